/* Profiles: what is counted, in which profile, and that ending one is safe while other threads call, load and unload. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prog_stub.h"
#include "whole.h"

enum { THREADS = 3, CALLS = 300, PROFILES = 50 };

static const char *whole_stub, *whole_library, *prog_stub, *prog_library;

static int call_prog(gts_program *program)
{
    double in[3] = {0}, out[3] = {0};
    const gts_array x = {in, GTS_FLOAT64, GTS_CPU, 1, true, {0}, {3}, {1}, {"K"}};
    const gts_array result = {out, GTS_FLOAT64, GTS_CPU, 1, false, {0}, {3}, {1}, {"K"}};
    const struct prog_args args = {.x = x, .factor = 2.5, .out = result};
    return prog_call(program, &args);
}

/* The number that follows `key` behind `part` in the first program `name` of a report; 0 where there is none. */
static double figure(const char *report, const char *name, const char *part, const char *key)
{
    char text[64];
    (void)snprintf(text, sizeof text, "{\"name\": \"%s\"", name);
    const char *place = strstr(report, text);
    (void)snprintf(text, sizeof text, "\"%s\": ", part);
    place = place == NULL ? NULL : strstr(place, text);
    if (place == NULL || strncmp(place + strlen(text), "null", 4) == 0)
        return 0;
    (void)snprintf(text, sizeof text, "\"%s\": ", key);
    place = strstr(place, text);
    return place == NULL ? 0 : atof(place + strlen(text));
}

static int calls(const char *report, const char *name, const char *part)
{
    return (int)figure(report, name, part, "calls");
}

static char *end(gts_profile *profile)
{
    char *const report = gts_profile_end(profile);
    CHECK(report != NULL);
    return report;
}

static void test_calls_are_counted(void)
{
    gts_profile *const profile = gts_profile_begin();
    gts_program *program = load(prog_stub, prog_library);
    for (int i = 0; i < 5; ++i)
        CHECK(call_prog(program) == 0);
    char *const report = end(profile);
    CHECK(call_prog(program) == 0);
    CHECK(calls(report, "prog", "initial") == 1 && calls(report, "prog", "run") == 4);
    CHECK(figure(report, "prog", "run", "min") <= figure(report, "prog", "run", "median"));
    CHECK(figure(report, "prog", "run", "median") <= figure(report, "prog", "run", "max"));
    free(report);
    gts_close(&program);
}

static void test_without_a_profile_nothing_is_counted(void)
{
    gts_program *program = load(prog_stub, prog_library);
    CHECK(call_prog(program) == 0);
    gts_profile *const profile = gts_profile_begin();
    char *report = end(profile);
    CHECK(strstr(report, "name") == NULL);
    free(report);
    gts_profile *const later = gts_profile_begin();
    CHECK(call_prog(program) == 0);
    report = end(later);
    CHECK(calls(report, "prog", "initial") == 0 && calls(report, "prog", "run") == 1);
    free(report);
    gts_close(&program);
}

static void test_failed_calls_are_not_counted(void)
{
    gts_profile *const profile = gts_profile_begin();
    gts_program *program = load(prog_stub, prog_library);
    CHECK(call_prog(program) == 0);
    CHECK(prog_call(program, &(struct prog_args){0}) == -1);
    char *const report = end(profile);
    CHECK(calls(report, "prog", "initial") == 1 && calls(report, "prog", "run") == 0);
    CHECK(call_prog(program) == 0); /* the refused call was not left open */
    free(report);
    gts_close(&program);
}

static void test_a_new_handle_is_initial_again(void)
{
    static struct whole w;
    set_up(&w);
    gts_profile *const profile = gts_profile_begin();
    gts_program *program = load(whole_stub, whole_library);
    CHECK(whole_call(program, &w.args) == 0);
    CHECK(whole_call(program, &w.args) == 0);
    CHECK(gts_set_workspace(program, "CPU_Heap", NULL, 0) == 0);
    CHECK(whole_call(program, &w.args) == 0);
    CHECK(whole_call(program, &w.args) == 0);
    char *const report = end(profile);
    CHECK(calls(report, "whole", "initial") == 2 && calls(report, "whole", "run") == 2);
    free(report);
    gts_close(&program);
}

static void test_profiles_nest(void)
{
    gts_profile *const outer = gts_profile_begin();
    gts_program *program = load(prog_stub, prog_library);
    for (int i = 0; i < 4; ++i)
        CHECK(call_prog(program) == 0);
    for (int round = 0; round < 2; ++round) {
        gts_profile *const inner = gts_profile_begin();
        for (int i = 0; i < 3; ++i)
            CHECK(call_prog(program) == 0);
        char *const report = end(inner);
        CHECK(calls(report, "prog", "initial") == 0 && calls(report, "prog", "run") == 3);
        free(report);
        CHECK(call_prog(program) == 0);
    }
    char *const report = end(outer);
    CHECK(calls(report, "prog", "initial") == 1 && calls(report, "prog", "run") == 3 + 2 * 3 + 2);
    free(report);
    gts_close(&program);
}

static void test_an_inner_profile_ends_with_the_outer_one(void)
{
    gts_profile *const outer = gts_profile_begin();
    gts_program *program = load(prog_stub, prog_library);
    CHECK(call_prog(program) == 0);
    gts_profile *const inner = gts_profile_begin();
    CHECK(call_prog(program) == 0);
    char *const outer_report = end(outer);
    CHECK(call_prog(program) == 0);
    char *const inner_report = end(inner);
    CHECK(calls(outer_report, "prog", "initial") == 1 && calls(outer_report, "prog", "run") == 1);
    CHECK(calls(inner_report, "prog", "initial") == 0 && calls(inner_report, "prog", "run") == 1);
    free(outer_report);
    free(inner_report);
    gts_close(&program);
}

static void test_unloaded_programs_stay_in_the_report(void)
{
    gts_profile *const profile = gts_profile_begin();
    for (int i = 0; i < 3; ++i) {
        gts_program *program = load(prog_stub, prog_library);
        CHECK(call_prog(program) == 0);
        CHECK(call_prog(program) == 0);
        gts_close(&program);
    }
    char *const report = end(profile);
    CHECK(calls(report, "prog", "initial") == 3 && calls(report, "prog", "run") == 3);
    const char *const first = strstr(report, "{\"name\": \"prog\"");
    CHECK(strstr(first + 1, "{\"name\": \"prog\"") == NULL);
    free(report);
}

static void test_a_fork(void)
{
    gts_profile *const profile = gts_profile_begin();
    gts_program *program = load(prog_stub, prog_library);
    CHECK(call_prog(program) == 0);
    const pid_t child = fork();
    if (child == 0) {
        char *report = end(profile);
        CHECK(strstr(report, "name") == NULL); /* they are the parent's */
        free(report);
        gts_close(&program);
        gts_profile *const own = gts_profile_begin();
        gts_program *again = load(prog_stub, prog_library);
        CHECK(call_prog(again) == 0);
        report = end(own);
        CHECK(calls(report, "prog", "initial") == 1 && calls(report, "prog", "run") == 0);
        free(report);
        gts_close(&again);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(call_prog(program) == 0);
    char *const report = end(profile);
    CHECK(calls(report, "prog", "initial") == 1 && calls(report, "prog", "run") == 1);
    free(report);
    gts_close(&program);
}

/* ---- Threads --------------------------------------------------------------------------------------------------- */

static gts_program *shared;

static void *call_often(void *nothing)
{
    for (int i = 0; i < CALLS; ++i)
        CHECK(call_prog(shared) == 0);
    return nothing;
}

static void *load_often(void *nothing)
{
    for (int i = 0; i < PROFILES; ++i) {
        gts_program *program = load(prog_stub, prog_library);
        CHECK(call_prog(program) == 0);
        gts_close(&program);
    }
    return nothing;
}

static void *profile_often(void *nothing)
{
    for (int i = 0; i < PROFILES; ++i)
        free(end(gts_profile_begin()));
    return nothing;
}

static void test_no_call_is_lost_while_threads_begin_and_end_profiles(void)
{
    gts_profile *const profile = gts_profile_begin();
    shared = load(prog_stub, prog_library);
    pthread_t threads[THREADS + 3];
    for (int i = 0; i < THREADS; ++i)
        CHECK(pthread_create(&threads[i], NULL, call_often, NULL) == 0);
    CHECK(pthread_create(&threads[THREADS], NULL, load_often, NULL) == 0);
    for (int i = 1; i < 3; ++i)
        CHECK(pthread_create(&threads[THREADS + i], NULL, profile_often, NULL) == 0);
    for (int i = 0; i < THREADS + 3; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
    char *const report = end(profile);
    CHECK(calls(report, "prog", "initial") == 1 + PROFILES && calls(report, "prog", "run") == THREADS * CALLS - 1);
    free(report);
    gts_close(&shared);
}

int main(int argc, char **argv)
{
    CHECK(argc == 5);
    whole_stub = argv[1];
    whole_library = argv[2];
    prog_stub = argv[3];
    prog_library = argv[4];
    const struct recorder recorders[] = {open_recorder(whole_library), open_recorder(prog_library)};
    test_calls_are_counted();
    test_without_a_profile_nothing_is_counted();
    test_failed_calls_are_not_counted();
    test_a_new_handle_is_initial_again();
    test_profiles_nest();
    test_an_inner_profile_ends_with_the_outer_one();
    test_unloaded_programs_stay_in_the_report();
    test_a_fork();
    test_no_call_is_lost_while_threads_begin_and_end_profiles();
    recorders[0].clear();
    recorders[1].clear();
    return 0;
}
