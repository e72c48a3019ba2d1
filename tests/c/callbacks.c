/* Functions of a C host that an SDFG calls: their arguments, results and data, and calls of programs within them. */
#include <pthread.h>

#include "calling_stub.h"
#include "prog_stub.h"
#include "harness.h"

enum { N = 4, M = 3, THREADS = 2, CALLS = 200 };

/* What the functions of a call use: its arguments, and what they are to do. */
struct host {
    gts_program *program;
    gts_program *called; /* that `weigh` calls; NULL for none */
    struct calling_args args;
    double x[N];
    float y[M][N];
    double now;
    int seen;
    int status;
};

static double now(void *data)
{
    const struct host *const host = data;
    return host->now;
}

static void see(const double *x, const float *y, void *data)
{
    struct host *const host = data;
    CHECK(x == host->x && y == host->y[0]);
    ++host->seen;
}

static void smooth(const double *memory, double *result, void *data)
{
    const struct host *const host = data;
    CHECK(memory[0] == 0 && memory[3] == 3 && result == host->x);
    result[1] = 100;
}

static void split(double a, int32_t *count, float *tile, void *data)
{
    const struct host *const host = data;
    *count = (int32_t)(8 * a);
    for (int i = 0; i < 4 * M; ++i)
        tile[i] = (float)host->now;
}

static bool weigh(double a, int32_t i, bool is_last, void *data)
{
    struct host *const host = data;
    CHECK(a == 0.5 && is_last == (i == 1));
    if (host->called != NULL && i == 1)
        host->status = calling_call(host->called, &host->args);
    return is_last;
}

static void set_up(struct host *host, gts_program *program, double time)
{
    memset(host, 0, sizeof *host);
    host->program = program;
    host->now = time;
    host->args = (struct calling_args){
        .x = {host->x, GTS_FLOAT64, GTS_CPU, 1, false, {0}, {N}, {1}, {"K"}},
        .y = {host->y, GTS_FLOAT32, GTS_CPU, 2, false, {0}, {N, M}, {1, N}, {"Edge", "K"}},
        .a = 0.5,
        .now = {now, host},
        .see = {see, host},
        .weigh = {weigh, host},
        .smooth = {smooth, host},
        .split = {split, host},
    };
}

static void check_results(const struct host *host)
{
    CHECK(host->x[0] == host->now + 4); /* of `now`, and the count of `split` */
    CHECK(host->x[1] == 200);           /* of `smooth`, and of the last call of `weigh` */
    for (int i = 0; i < N; ++i)
        CHECK(host->y[0][i] == (float)host->now && host->y[M - 1][i] == (float)host->now);
}

static void test_values(gts_program *program)
{
    struct host host;
    for (int i = 0; i < 3; ++i) {
        set_up(&host, program, i);
        CHECK(calling_call(program, &host.args) == 0);
        check_results(&host);
        CHECK(host.seen == 1);
    }
}

static void test_missing_functions(gts_program *program)
{
    struct host host;
    set_up(&host, program, 1);
    host.args.smooth.function = NULL;
    CHECK(calling_call(program, &host.args) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_TYPE_ERROR,
                "Argument 'smooth' of program 'calling' must be a function, not NULL.");
    CHECK(host.seen == 0);
    set_up(&host, program, 2);
    CHECK(calling_call(program, &host.args) == 0);
    check_results(&host);
}

/* `weigh` runs in a thread of OpenMP, if there is one. */
static void test_nested_calls(gts_program *program, gts_program *other)
{
    struct host host;
    for (int i = 0; i < 2; ++i) {
        set_up(&host, program, 5);
        host.called = i == 0 ? program : other;
        CHECK(calling_call(program, &host.args) == 0);
        CHECK(host.status == -1);
        CHECK_ERROR(gts_last_error(host.called), GTS_RUNTIME_ERROR,
                    "Program 'calling' was called by one of its own callbacks.");
        check_results(&host);
    }
}

static void call_prog(const double *x, const float *y, void *data)
{
    (void)x, (void)y;
    struct host *const host = data;
    double in[3] = {0}, out[3] = {0};
    const struct prog_args args = {
        .x = {in, GTS_FLOAT64, GTS_CPU, 1, true, {0}, {3}, {1}, {"K"}},
        .factor = 2.5,
        .out = {out, GTS_FLOAT64, GTS_CPU, 1, false, {0}, {3}, {1}, {"K"}},
    };
    host->status = prog_call(host->called, &args);
    host->called = NULL;
}

static void test_another_program(gts_program *program, gts_program *prog, const struct recorder *recorder)
{
    struct host host;
    set_up(&host, program, 3);
    host.args.see.function = call_prog;
    host.called = prog;
    const size_t before = recorder->count();
    host.status = -1;
    CHECK(calling_call(program, &host.args) == 0);
    CHECK(host.status == 0 && recorder->count() > before);
    check_results(&host);
}

static void *call_often(void *data)
{
    struct host *const host = data;
    for (int i = 0; i < CALLS; ++i) {
        CHECK(calling_call(host->program, &host->args) == 0);
        check_results(host);
        memset(host->y, 0, sizeof host->y);
    }
    return NULL;
}

/* Each with a handle of its own, then all with the same. */
static void test_threads(gts_program *const *programs)
{
    static struct host host[2 * THREADS];
    pthread_t threads[2 * THREADS];
    for (int i = 0; i < 2 * THREADS; ++i) {
        set_up(&host[i], programs[i % THREADS], i);
        CHECK(pthread_create(&threads[i], NULL, call_often, &host[i]) == 0);
    }
    for (int i = 0; i < 2 * THREADS; ++i) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(host[i].seen == CALLS);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    gts_program *programs[THREADS], *prog = load(argv[1], argv[2]);
    for (int i = 0; i < THREADS; ++i)
        programs[i] = load("./calling_stub.so", "./libcalling.so");
    struct recorder recorder = open_recorder(argv[2]);
    test_values(programs[0]);
    test_missing_functions(programs[0]);
    test_nested_calls(programs[0], programs[1]);
    test_another_program(programs[0], prog, &recorder);
    test_threads(programs);
    for (int i = 0; i < THREADS; ++i)
        gts_close(&programs[i]);
    gts_close(&prog);
    recorder.clear();
    return 0;
}
