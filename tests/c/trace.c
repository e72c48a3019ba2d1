/* Does what test_trace.py finds in the timeline: calls and steps of two threads, and how often as its argument says. */
#define _POSIX_C_SOURCE 200809L
#include <gtstub/step.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "prog_stub.h"

static gts_program *program;
static double in[3], out[3];

static struct prog_args arguments(void)
{
    const gts_array x = {in, GTS_FLOAT64, GTS_CPU, 1, true, {0}, {3}, {1}, {"K"}};
    const gts_array result = {out, GTS_FLOAT64, GTS_CPU, 1, false, {0}, {3}, {1}, {"K"}};
    return (struct prog_args){.x = x, .factor = 2.5, .out = result};
}

static void call(int times)
{
    const struct prog_args args = arguments();
    for (int i = 0; i < times; ++i)
        CHECK(prog_call(program, &args) == 0);
}

static void *call_in_thread(void *times)
{
    call(*(const int *)times);
    return NULL;
}

static int sleep_a_little(void *nothing)
{
    (void)nothing;
    const struct timespec time = {0, 2000000};
    return nanosleep(&time, NULL);
}

static int fail(void *nothing)
{
    (void)nothing;
    return 7;
}

/* The names are freed long before the timeline is written. */
static void run_step(const char *name)
{
    gts_bound_call *bound;
    gts_step *inner, *outer;
    const struct prog_args args = arguments();
    CHECK(gts_bind(program, &args, &bound) == 0);
    CHECK(gts_step_new("inner", &(gts_action){.call = bound}, 1, &inner) == 0);
    const gts_action actions[] = {{.function = sleep_a_little, .name = "a \"halo\"\n"}, {.step = inner}};
    CHECK(gts_step_new(name, actions, 2, &outer) == 0);
    CHECK(gts_step_run(outer) == 0);
    gts_step_free(&outer);
    gts_step_free(&inner);
    gts_unbind(&bound);
    CHECK(gts_step_new("failing", &(gts_action){.function = fail}, 1, &outer) == 0);
    CHECK(gts_step_run(outer) == -1);
    gts_step_free(&outer);
}

static void fork_a_child(const char *stub, const char *library)
{
    const pid_t child = fork();
    if (child == 0) {
        gts_close(&program);
        program = load(stub, library);
        call(3);
        gts_close(&program);
        exit(0); /* it writes nothing */
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    const struct recorder recorder = open_recorder(argv[2]);
    const int times = atoi(argv[3]);
    pthread_t thread;
    program = load(argv[1], argv[2]);
    call(times);
    CHECK(prog_call(program, &(struct prog_args){0}) == -1); /* refused: it does not run */
    CHECK(pthread_create(&thread, NULL, call_in_thread, &(int){2}) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    run_step("outer");
    fork_a_child(argv[1], argv[2]);
    gts_close(&program);
    recorder.clear();
    return 0;
}
