/*
 * Check 'bounds' of C hosts: calls, bound calls and steps whose SDFG reads one element too many if `factor` is 11, several
 * threads, and handlers of SIGSEGV that the host has.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#include "gtstub/step.h"
#include "harness.h"
#include "prog_stub.h"

enum { N = 3, THREADS = 3, CALLS = 30 };

#ifdef __x86_64__
#define VERB "read"
#else
#define VERB "accessed" /* the signal does not tell a read from a write */
#endif

static const char READ[] = "Argument 'x' of program 'prog' is " VERB " 1 element after its end by the call; check "
                           "'bounds' refuses this.";

static const char *stub, *library;

static gts_array line(double *data)
{
    return (gts_array){.data = data, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {N}, .strides = {1}};
}

static struct prog_args prog_args(double *in, double *out, double factor)
{
    return (struct prog_args){.x = line(in), .factor = factor, .out = line(out)};
}

static int call(gts_program *program, double *in, double *out, double factor)
{
    const struct prog_args args = prog_args(in, out, factor);
    return prog_call(program, &args);
}

static void check_results(const double *in, const double *out)
{
    for (int i = 0; i < N; ++i)
        CHECK(out[i] == 2 * in[i] + (i > 0 ? in[i - 1] : 0));
}

static void test_calls(void)
{
    double in[N + 1] = {1, 2, 3}, out[N] = {0};
    gts_program *program = load(stub, library);
    CHECK(call(program, in, out, 2) == 0);
    for (int round = 0; round < 2; ++round) {
        gts_checks *checks = gts_checks_begin("bounds end");
        CHECK(checks != NULL);
        in[0] = 10 * round;
        CHECK(call(program, in, out, 2) == 0);
        check_results(in, out);
        CHECK(call(program, in, out, 11) == -1);
        CHECK_ERROR(gts_last_error(program), GTS_RUNTIME_ERROR, READ);
        check_results(in, out); /* which the call that failed has left */
        gts_checks_end(&checks);
        in[1] = round; /* the slots have the addresses of the host again */
        CHECK(call(program, in, out, 2) == 0);
        check_results(in, out);
    }
    gts_close(&program);
}

static void test_bound_calls_and_steps(void)
{
    double in[N + 1] = {1, 2, 3}, out[N] = {0};
    gts_program *program = load(stub, library);
    gts_bound_call *good, *bad;
    gts_step *step;
    const struct prog_args good_args = prog_args(in, out, 2), bad_args = prog_args(in, out, 11);
    CHECK(gts_bind(program, &good_args, &good) == 0);
    CHECK(gts_bind(program, &bad_args, &bad) == 0);
    const gts_action actions[] = {{.call = good}, {.call = bad}};
    CHECK(gts_step_new("guarded", actions, 2, &step) == 0);
    gts_checks *checks = gts_checks_begin("bounds end");
    CHECK(gts_start(good) == 0);
    check_results(in, out);
    CHECK(gts_start(bad) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_RUNTIME_ERROR, READ);
    in[2] = 4;
    CHECK(gts_step_run(step) == -1);
    CHECK(strstr(gts_last_error(NULL)->message, READ) != NULL);
    check_results(in, out);
    gts_checks_end(&checks);
    in[1] = 5;
    CHECK(gts_start(good) == 0);
    check_results(in, out);
    gts_step_free(&step);
    gts_unbind(&good);
    gts_unbind(&bad);
    gts_close(&program);
}

static void *call_often(void *nothing)
{
    gts_program *program = load(stub, library);
    double in[N + 1] = {1, 2, 3}, out[N] = {0};
    for (int i = 0; i < CALLS; ++i) {
        CHECK(call(program, in, out, 2) == 0);
        check_results(in, out);
        CHECK(call(program, in, out, 11) == -1);
        CHECK_ERROR(gts_last_error(program), GTS_RUNTIME_ERROR, READ);
    }
    gts_close(&program);
    return nothing;
}

static void test_threads(void)
{
    gts_checks *checks = gts_checks_begin("bounds end");
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; ++i)
        CHECK(pthread_create(&threads[i], NULL, call_often, NULL) == 0);
    for (int i = 0; i < THREADS; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
    gts_checks_end(&checks);
}

/* ---- Handlers ---------------------------------------------------------------------------------------------------- */

static sigjmp_buf place;

static void jump(int number)
{
    siglongjmp(place, number);
}

static void test_the_handler_of_the_host(void)
{
    double in[N + 1] = {1, 2, 3}, out[N] = {0};
    gts_program *program = load(stub, library);
    gts_checks *checks = gts_checks_begin("bounds end");
    struct sigaction own = {.sa_handler = jump}, before, now;
    CHECK(sigaction(SIGSEGV, &own, &before) == 0);
    CHECK(call(program, in, out, 11) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_RUNTIME_ERROR, READ);
    CHECK(sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_handler == jump);
    if (sigsetjmp(place, 1) == 0) {
        (void)raise(SIGSEGV);
        CHECK(false);
    }
    CHECK(sigaction(SIGSEGV, &before, NULL) == 0);
    gts_checks_end(&checks);
    gts_close(&program);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    stub = argv[1];
    library = argv[2];
    test_calls();
    test_bound_calls_and_steps();
    test_threads();
    test_the_handler_of_the_host();
    return 0;
}
