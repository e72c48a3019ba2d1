/* Debug checks of C hosts: what a failed check leaves behind, and checks that begin and end while threads call. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prog_stub.h"
#include "harness.h"

enum { THREADS = 3, CALLS = 200, ROUNDS = 50 };

static const char *stub, *library;

/* Calls out[i] = factor * x[i] + x[i - 1] on fields that begin at `origin`. */
static int call(gts_program *program, double *in, double *out, int64_t origin, double factor)
{
    const gts_array x = {in, GTS_FLOAT64, GTS_CPU, 1, true, {0}, {3}, {1}, {"K"}};
    const gts_array result = {out, GTS_FLOAT64, GTS_CPU, 1, false, {origin}, {3}, {1}, {"K"}};
    return prog_call(program, &(struct prog_args){.x = x, .factor = factor, .out = result});
}

static void test_a_value_that_was_written(void)
{
    double in[3] = {1, 2, 3}, out[3] = {0};
    gts_program *program = load(stub, library);
    CHECK(call(program, in, out, 0, NAN) == 0);
    gts_checks *checks = gts_checks_begin("nan; max out=7");
    CHECK(checks != NULL);
    CHECK(call(program, in, out, 0, 1) == 0);
    CHECK(call(program, in, out, -4, 2) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_RUNTIME_ERROR,
                "Argument 'out' of program 'prog' is 8 at K -2 after the call; check 'max out=7' refuses 1 of 3 "
                "elements, 0 of them also before the call.");
    CHECK(out[2] == 8); /* the SDFG has run */
    CHECK(call(program, in, out, 5, NAN) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_RUNTIME_ERROR,
                "Argument 'out' of program 'prog' is nan at K 5 after the call; check 'nan' refuses 3 of 3 elements, "
                "0 of them also before the call.");
    in[1] = NAN;
    out[0] = 5;
    CHECK(call(program, in, out, 0, 1) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_RUNTIME_ERROR,
                "Argument 'x' of program 'prog' is nan at K 1 before the call; check 'nan' refuses 1 of 3 elements.");
    CHECK(out[0] == 5); /* the SDFG has not run */
    gts_checks_end(&checks);
    CHECK(checks == NULL);
    gts_checks_end(&checks);
    CHECK(call(program, in, out, 0, 1) == 0);
    gts_close(&program);
}

static void test_a_text_that_is_wrong(void)
{
    CHECK(gts_checks_begin("nan; min x=o") == NULL);
    CHECK_ERROR(gts_last_error(NULL), GTS_VALUE_ERROR, "The limit of check 'min x=o' must be a number, not 'o'.");
}

/* The SDFG takes no origin. So a call that knows its arrays does not look at it. */
static void test_origins_of_known_arrays(void)
{
    double in[3] = {1, 2, 3}, out[2][3] = {{0}};
    gts_program *program = load(stub, library);
    for (int64_t origin = 0; origin < 3; ++origin) {
        for (int i = 0; i < 2; ++i)
            CHECK(call(program, in, out[i], 10, 1) == 0);
        gts_checks *checks = gts_checks_begin("max out=6");
        for (int i = 0; i < 2; ++i) {
            char text[32];
            (void)snprintf(text, sizeof text, " is 8 at K %d ", (int)origin + 2);
            CHECK(call(program, in, out[i], origin, 2) == -1);
            CHECK(strstr(gts_last_error(program)->message, text) != NULL);
        }
        gts_checks_end(&checks);
    }
    gts_close(&program);
}

static void test_programs_close_before_and_after_checks_end(void)
{
    double in[3] = {1, 2, 3}, out[3] = {0};
    gts_program *first = load(stub, library), *second = load(stub, library);
    gts_checks *outer = gts_checks_begin("min out=0"), *inner = gts_checks_begin("nan");
    CHECK(call(first, in, out, 0, 1) == 0);
    CHECK(call(second, in, out, 0, 1) == 0);
    gts_close(&first);
    gts_checks_end(&outer);
    CHECK(call(second, in, out, 0, NAN) == -1);
    gts_checks_end(&inner);
    CHECK(call(second, in, out, 0, NAN) == 0);
    gts_close(&second);
}

static void *begin_and_end(void *nothing)
{
    for (int i = 0; i < ROUNDS; ++i) {
        gts_checks *checks = gts_checks_begin("nan; max *=1000"), *more = gts_checks_begin("min *=-1000");
        CHECK(checks != NULL && more != NULL);
        gts_checks_end(i % 2 == 0 ? &checks : &more);
        gts_checks_end(&checks);
        gts_checks_end(&more);
    }
    return nothing;
}

static void *call_often(void *shared)
{
    gts_program *own = load(stub, library);
    double in[3] = {1, 2, 3}, out[3] = {0};
    for (int i = 0; i < CALLS; ++i) {
        CHECK(call(own, in, out, 0, 1) == 0);
        CHECK(call(shared, in, out, 0, 1) == 0);
        CHECK(call(i % 2 == 0 ? own : shared, in, out, 0, -1e9) == -1);
    }
    gts_close(&own);
    return NULL;
}

static void test_checks_begin_and_end_while_threads_call(void)
{
    gts_program *shared = load(stub, library);
    gts_checks *checks = gts_checks_begin("min out=-1e6");
    pthread_t threads[THREADS + 2];
    for (int i = 0; i < THREADS + 2; ++i)
        CHECK(pthread_create(&threads[i], NULL, i < THREADS ? call_often : begin_and_end, shared) == 0);
    for (int i = 0; i < THREADS + 2; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
    gts_checks_end(&checks);
    gts_close(&shared);
}

static void test_a_forked_child_is_checked(void)
{
    double in[3] = {1, 2, 3}, out[3] = {0};
    gts_checks *checks = gts_checks_begin("max out=6");
    gts_program *program = load(stub, library);
    CHECK(call(program, in, out, 0, 1) == 0);
    const pid_t child = fork();
    if (child == 0) {
        gts_close(&program);
        program = load(stub, library);
        CHECK(call(program, in, out, 0, 2) == -1);
        gts_checks_end(&checks);
        CHECK(call(program, in, out, 0, 2) == 0);
        gts_close(&program);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    gts_checks_end(&checks);
    gts_close(&program);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    stub = argv[1];
    library = argv[2];
    test_a_value_that_was_written();
    test_a_text_that_is_wrong();
    test_origins_of_known_arrays();
    test_programs_close_before_and_after_checks_end();
    test_checks_begin_and_end_while_threads_call();
    test_a_forked_child_is_checked();
    return 0;
}
