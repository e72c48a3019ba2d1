/* Profiles of steps: which positions are counted, in which profile, and that steps may be freed meanwhile. */
#define _POSIX_C_SOURCE 200809L
#include <gtstub/step.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "prog_stub.h"

enum { THREADS = 3, RUNS = 200, PROFILES = 50, ANEW = 100 };

static const char *prog_stub, *prog_library;
static gts_program *program;

static gts_bound_call *bind(void)
{
    static double in[3], out[3];
    const gts_array x = {in, GTS_FLOAT64, GTS_CPU, 1, true, {0}, {3}, {1}, {"K"}};
    const gts_array result = {out, GTS_FLOAT64, GTS_CPU, 1, false, {0}, {3}, {1}, {"K"}};
    gts_bound_call *call;
    CHECK(gts_bind(program, &(struct prog_args){.x = x, .factor = 2.5, .out = result}, &call) == 0);
    return call;
}

static gts_step *make(const char *name, const gts_action *actions, size_t count)
{
    gts_step *step;
    CHECK(gts_step_new(name, actions, count, &step) == 0);
    return step;
}

static int wait_a_little(void *nothing)
{
    (void)nothing;
    const struct timespec time = {0, 2000000};
    return nanosleep(&time, NULL);
}

static int nothing_to_do(void *nothing)
{
    (void)nothing;
    return 0;
}

static gts_step *make_small(const char *name)
{
    return make(name, &(gts_action){.function = nothing_to_do, .name = "nothing"}, 1);
}

static void run(gts_step *step, int times)
{
    for (int i = 0; i < times; ++i)
        CHECK(gts_step_run(step) == 0);
}

static char *end(gts_profile *profile)
{
    char *const report = gts_profile_end(profile);
    CHECK(report != NULL);
    return report;
}

/* Where the report has the positions of the first step `name`; NULL if it has none. */
static const char *find(const char *report, const char *name)
{
    char text[64];
    (void)snprintf(text, sizeof text, "{\"name\": \"%s\", \"positions\": [", name);
    const char *const place = strstr(report, text);
    return place == NULL ? NULL : place + strlen(text);
}

static double figure(const char *report, const char *step, int position, const char *key)
{
    char text[32];
    (void)snprintf(text, sizeof text, "\"%s\": ", key);
    const char *place = find(report, step);
    for (int i = 0; place != NULL && i < position; ++i)
        place = strstr(place + 1, "{\"name\": ");
    place = place == NULL ? NULL : strstr(place, text);
    return place == NULL ? 0 : atof(place + strlen(text));
}

static int calls(const char *report, const char *step, int position)
{
    return (int)figure(report, step, position, "calls");
}

static bool has(const char *report, const char *text)
{
    return strstr(report, text) != NULL;
}

static void test_positions_are_counted(void)
{
    gts_bound_call *call = bind();
    const gts_action actions[] = {
        {.call = call}, {.function = wait_a_little, .name = "exchange"}, {.call = call}, {.function = nothing_to_do}};
    gts_step *step = make("dynamics", actions, 4);
    run(step, 1);
    gts_profile *const profile = gts_profile_begin();
    run(step, 3);
    char *const report = end(profile);
    run(step, 1);
    for (int i = 1; i <= 4; ++i) {
        CHECK(calls(report, "dynamics", i) == 3);
        CHECK(figure(report, "dynamics", i, "min") <= figure(report, "dynamics", i, "median"));
        CHECK(figure(report, "dynamics", i, "median") <= figure(report, "dynamics", i, "max"));
        CHECK(figure(report, "dynamics", i, "max") <= figure(report, "dynamics", i, "total"));
    }
    CHECK(figure(report, "dynamics", 2, "min") >= 2e-3 && figure(report, "dynamics", 2, "total") >= 3 * 2e-3);
    CHECK(has(report, "[\n  {\"name\": \"prog\", \"kind\": \"program\", \"calls\": 3, \"time\": {\"min\": "));
    CHECK(has(report, ",\n  {\"name\": \"exchange\", \"kind\": \"function\", \"calls\": 3, \"time\": {\"min\": "));
    CHECK(has(report, ",\n  {\"name\": \"unnamed\", \"kind\": \"function\", \"calls\": 3, \"time\": {\"min\": "));
    CHECK(has(report, "{\"calls\": 6")); /* of the program */
    free(report);
    gts_step_free(&step);
    gts_unbind(&call);
}

static void test_a_report_has_steps_only_if_one_has_run(void)
{
    gts_step *step = make_small("small"), *empty = make("empty", NULL, 0);
    run(step, 1);
    gts_profile *const profile = gts_profile_begin();
    run(empty, 1);
    char *const report = end(profile);
    CHECK(!has(report, "steps"));
    free(report);
    gts_step_free(&step);
    gts_step_free(&empty);
}

static int fail_if_set(void *data)
{
    return *(int *)data;
}

static void test_failed_actions_are_not_counted(void)
{
    int status = 0;
    const gts_action actions[] = {{.function = nothing_to_do},
                                  {.function = fail_if_set, .data = &status},
                                  {.function = nothing_to_do, .name = "late"}};
    gts_step *step = make("failing", actions, 3);
    gts_profile *profile = gts_profile_begin();
    run(step, 1);
    status = 1;
    CHECK(gts_step_run(step) == -1);
    char *report = end(profile);
    CHECK(calls(report, "failing", 1) == 2 && calls(report, "failing", 2) == 1 && calls(report, "failing", 3) == 1);
    free(report);
    profile = gts_profile_begin();
    CHECK(gts_step_run(step) == -1);
    report = end(profile);
    CHECK(has(report, "{\"name\": \"late\", \"kind\": \"function\", \"calls\": 0, \"time\": null}"));
    free(report);
    gts_step_free(&step);
}

static void test_profiles_nest(void)
{
    gts_step *step = make_small("small"), *other = make_small("other");
    gts_profile *const outer = gts_profile_begin();
    run(step, 4);
    for (int round = 0; round < 2; ++round) {
        gts_profile *const inner = gts_profile_begin();
        run(step, 3);
        run(other, 1);
        char *const report = end(inner);
        CHECK(calls(report, "small", 1) == 3 && calls(report, "other", 1) == 1);
        free(report);
    }
    run(step, 1);
    char *const report = end(outer);
    CHECK(calls(report, "small", 1) == 4 + 2 * 3 + 1 && calls(report, "other", 1) == 2);
    CHECK(find(find(report, "small"), "small") == NULL);
    free(report);
    gts_step_free(&step);
    gts_step_free(&other);
}

static gts_profile *inner_profile;
static char *inner_report;

static int begin_inner(void *nothing)
{
    (void)nothing;
    inner_profile = gts_profile_begin();
    return 0;
}

static int end_inner(void *nothing)
{
    (void)nothing;
    inner_report = end(inner_profile);
    return 0;
}

static void test_an_action_belongs_to_a_profile_that_began_before_it(void)
{
    const gts_action actions[] = {{.function = begin_inner}, {.function = nothing_to_do}, {.function = end_inner}};
    gts_step *step = make("profiling", actions, 3);
    gts_profile *const outer = gts_profile_begin();
    run(step, 1);
    char *const report = end(outer);
    const int expected[] = {0, 1, 0};
    for (int i = 1; i <= 3; ++i) {
        CHECK(calls(inner_report, "profiling", i) == expected[i - 1]);
        CHECK(calls(report, "profiling", i) == 1);
    }
    free(inner_report);
    free(report);
    run(step, 1); /* no profile was running when it began */
    CHECK(!has(inner_report, "steps"));
    free(inner_report);
    gts_step_free(&step);
}

static void test_steps_may_be_freed_and_made_anew(void)
{
    gts_profile *const outer = gts_profile_begin();
    gts_profile *const inner = gts_profile_begin();
    for (int i = 0; i < ANEW; ++i) {
        gts_step *step = make_small("anew");
        run(step, 2);
        gts_step_free(&step);
        gts_step *other = make("anew", &(gts_action){.function = nothing_to_do, .name = "other"}, 1);
        run(other, 1);
        gts_step_free(&other);
    }
    char *report = end(inner);
    const char *const first = find(report, "anew"), *const second = find(first, "anew");
    CHECK(second != NULL && find(second, "anew") == NULL);
    CHECK(has(report, "{\"name\": \"nothing\", \"kind\": \"function\", \"calls\": 200, "));
    CHECK(has(report, "{\"name\": \"other\", \"kind\": \"function\", \"calls\": 100, "));
    free(report);
    gts_step *step = make_small("anew");
    run(step, 1);
    gts_step_free(&step);
    report = end(outer);
    CHECK(has(report, "{\"name\": \"nothing\", \"kind\": \"function\", \"calls\": 201, "));
    CHECK(find(find(find(report, "anew"), "anew"), "anew") == NULL);
    free(report);
}

static void test_steps_of_one_name_are_apart_while_they_are_there(void)
{
    gts_step *a = make_small("twin"), *b = make_small("twin");
    gts_profile *const outer = gts_profile_begin();
    gts_profile *const inner = gts_profile_begin();
    run(a, 5);
    run(b, 6);
    free(end(inner));
    gts_step_free(&b);
    run(a, 1);
    gts_step *in_place_of_b = make_small("twin"), *third = make_small("twin");
    for (int i = 0; i < 2; ++i) {
        run(in_place_of_b, 1);
        run(third, 1);
    }
    char *const report = end(outer);
    CHECK(has(report, "\"calls\": 6, ") && has(report, "\"calls\": 8, ") && has(report, "\"calls\": 2, "));
    free(report);
    gts_step_free(&a);
    gts_step_free(&in_place_of_b);
    gts_step_free(&third);
}

static void test_names_are_json(void)
{
    const gts_action action = {.function = nothing_to_do,
                               .name = "\xc3\xa4\xe2\x82\xac\xf0\x9f\x8c\x8d \xff\xc0\x80\xed\xa0\x80"};
    gts_step *step = make("a \"b\" \\ \n", &action, 1);
    gts_profile *const profile = gts_profile_begin();
    run(step, 1);
    char *const report = end(profile);
    CHECK(has(report, "{\"name\": \"a \\\"b\\\" \\\\ \\u000a\", "));
    CHECK(has(report, "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x8c\x8d \\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\""));
    free(report);
    gts_step_free(&step);
}

static void test_a_fork(void)
{
    gts_step *step = make_small("forked");
    gts_profile *const profile = gts_profile_begin();
    run(step, 1);
    const pid_t child = fork();
    if (child == 0) {
        run(step, 1);
        char *report = end(profile);
        CHECK(!has(report, "steps")); /* they are the parent's */
        free(report);
        gts_profile *const own = gts_profile_begin();
        run(step, 2);
        report = end(own);
        CHECK(calls(report, "forked", 1) == 2);
        free(report);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    run(step, 1);
    char *const report = end(profile);
    CHECK(calls(report, "forked", 1) == 2);
    free(report);
    gts_step_free(&step);
}

/* ---- Threads --------------------------------------------------------------------------------------------------- */

static void *run_often(void *name)
{
    gts_bound_call *call = bind();
    gts_step *step = make(name, (gts_action[]){{.call = call}, {.function = nothing_to_do}}, 2);
    run(step, RUNS);
    gts_step_free(&step);
    for (int i = 0; i < PROFILES; ++i) {
        gts_step *anew = make_small("anew");
        run(anew, 1);
        gts_step_free(&anew);
    }
    gts_unbind(&call);
    return NULL;
}

static void *profile_often(void *nothing)
{
    for (int i = 0; i < PROFILES; ++i)
        free(end(gts_profile_begin()));
    return nothing;
}

static void test_no_action_is_lost_while_threads_begin_and_end_profiles(void)
{
    char *names[THREADS] = {"a", "b", "c"};
    gts_profile *const profile = gts_profile_begin();
    pthread_t threads[THREADS + 2];
    for (int i = 0; i < THREADS; ++i)
        CHECK(pthread_create(&threads[i], NULL, run_often, names[i]) == 0);
    for (int i = 0; i < 2; ++i)
        CHECK(pthread_create(&threads[THREADS + i], NULL, profile_often, NULL) == 0);
    for (int i = 0; i < THREADS + 2; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
    char *const report = end(profile);
    for (int i = 0; i < THREADS; ++i)
        CHECK(calls(report, names[i], 1) == RUNS && calls(report, names[i], 2) == RUNS);
    int anew = 0;
    for (const char *place = find(report, "anew"); place != NULL; place = find(place, "anew"))
        anew += atoi(strstr(place, "\"calls\": ") + strlen("\"calls\": "));
    CHECK(anew == THREADS * PROFILES);
    free(report);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    prog_stub = argv[1];
    prog_library = argv[2];
    const struct recorder recorder = open_recorder(prog_library);
    program = load(prog_stub, prog_library);
    test_positions_are_counted();
    test_a_report_has_steps_only_if_one_has_run();
    test_failed_actions_are_not_counted();
    test_profiles_nest();
    test_an_action_belongs_to_a_profile_that_began_before_it();
    test_steps_may_be_freed_and_made_anew();
    test_steps_of_one_name_are_apart_while_they_are_there();
    test_names_are_json();
    test_a_fork();
    test_no_action_is_lost_while_threads_begin_and_end_profiles();
    gts_close(&program);
    recorder.clear();
    return 0;
}
