/* A model whose calls are recorded: GTSTUB_RECORD says where. What it has to do is its first argument. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtstub/stub.h"
#include "prog_stub.h"
#include "whole.h"

enum { CALLS = 100 };

static const char *prog_stub, *prog_library, *whole_stub, *whole_library;

static gts_array column(double *data, int64_t origin, int64_t size)
{
    return (gts_array){.data = data,
                       .dtype = GTS_FLOAT64,
                       .device = GTS_CPU,
                       .rank = 1,
                       .origin = {origin},
                       .shape = {size},
                       .strides = {1},
                       .dims = {"K"}};
}

static int call_prog(gts_program *program, gts_array x, gts_array out, double factor)
{
    const struct prog_args args = {.x = x, .factor = factor, .out = out};
    return program->stub->call(program, &args);
}

static void call_in_all_ways(void)
{
    gts_program *program = load(prog_stub, prog_library);
    double in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {0};
    CHECK(call_prog(program, column(in, 0, 3), column(out, 0, 3), 2.5) == 0);
    CHECK(call_prog(program, column(in, 0, 3), column(out, 0, 4), 2.5) == -1);
    CHECK(call_prog(program, column(in, 5, 4), column(out, 7, 4), 0.1) == 0);
    CHECK(call_prog(program, column(in, 0, 6), column(in, 0, 6), 3) == 0);        /* in place */
    CHECK(call_prog(program, column(in + 1, 0, 6), column(in, 0, 6), 0.25) == 0); /* overlapping */
    CHECK(call_prog(program, column(NULL, 0, 0), column(NULL, 0, 0), 1) == 0);    /* empty */
    in[0] = NAN;
    in[1] = -0.0;
    in[2] = INFINITY;
    CHECK(call_prog(program, column(in, 0, 3), column(out, 0, 3), 2.5) == 0);
    gts_close(&program);
}

static void call_whole(void)
{
    static struct whole w;
    set_up(&w);
    static double padded[LEVELS * 8];
    for (int k = 0; k < LEVELS; ++k) {
        for (int e = 0; e < EDGES; ++e) {
            padded[8 * k + e] = 10 * k + e;
            w.memory[1][EDGES * k + e] = 100 + 10 * k + e;
        }
    }
    for (int i = 0; i < EDGES * NEIGHBORS; ++i)
        w.table[i] = i;
    w.args.vn.data = padded;
    w.args.vn.strides[1] = 8;
    w.args.out_0.data = w.memory[1] + (ptrdiff_t)EDGES * (LEVELS - 1); /* the levels from the last to the first */
    w.args.out_0.strides[1] = -EDGES;
    w.args.out_0.origin[1] = -2;
    gts_program *program = load(whole_stub, whole_library);
    CHECK(program->stub->call(program, &w.args) == 0);
    w.args.x_1_0 = 7;
    CHECK(program->stub->call(program, &w.args) == 0);
    gts_close(&program);
}

static void die_in_a_call(void)
{
    gts_program *const program = load(prog_stub, prog_library);
    double in[3] = {1, 2, 3}, out[3] = {0};
    for (double factor = 10;; ++factor)
        CHECK(call_prog(program, column(in, 0, 3), column(out, 0, 3), factor) == 0);
}

static void *call_prog_often(void *nothing)
{
    gts_program *program = load(prog_stub, prog_library);
    double in[3] = {1, 2, 3}, out[3] = {0};
    for (int i = 0; i < CALLS; ++i)
        CHECK(call_prog(program, column(in, 0, 3), column(out, 0, 3), i < 13 ? i : i + 1) == 0);
    gts_close(&program);
    return nothing;
}

static void *call_whole_often(void *nothing)
{
    struct whole w;
    set_up(&w);
    gts_program *program = load(whole_stub, whole_library);
    for (int i = 0; i < CALLS; ++i) {
        w.memory[0][i % 5] = i;
        CHECK(program->stub->call(program, &w.args) == 0);
    }
    gts_close(&program);
    return nothing;
}

static void call_in_threads(void)
{
    void *(*const works[])(void *) = {call_prog_often, call_prog_often, call_whole_often};
    pthread_t threads[3];
    for (int i = 0; i < 3; ++i)
        CHECK(pthread_create(&threads[i], NULL, works[i], NULL) == 0);
    for (int i = 0; i < 3; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void call_in_a_child(void)
{
    gts_program *program = load(prog_stub, prog_library);
    double in[3] = {1, 2, 3}, out[3] = {0};
    CHECK(call_prog(program, column(in, 0, 3), column(out, 0, 3), 1) == 0);
    const pid_t child = fork();
    if (child == 0) {
        gts_program *again = load(prog_stub, prog_library);
        CHECK(call_prog(again, column(in, 0, 3), column(out, 0, 3), 2) == 0);
        gts_close(&again);
        gts_close(&program);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(call_prog(program, column(in, 0, 3), column(out, 0, 3), 3) == 0);
    gts_close(&program);
}

/* Files cannot grow beyond `bytes`, as on a disk that is full: all that fits is written. */
static void limit_files(rlim_t bytes)
{
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, RLIM_INFINITY}) == 0);
}

/* Values of 4800 bytes, or an index that grows: LIMIT decides what does not fit first. */
static void call_on_a_full_disk(void)
{
    gts_program *program = load(prog_stub, prog_library);
    static double in[600], out[600];
    for (int i = 0; i < 600; ++i)
        in[i] = i;
    limit_files((rlim_t)atol(getenv("LIMIT")));
    for (int size = 3; size <= 600; size += 199) {
        for (int i = 0; i < 5; ++i) {
            CHECK(call_prog(program, column(in, 0, size), column(out, 0, size), i) == 0);
            CHECK(out[size - 1] == i * in[size - 1] + in[size - 2]);
        }
    }
    gts_close(&program);
}

static void call_on_a_gpu(void)
{
    gts_program *program = load(prog_stub, prog_library);
    double in[3] = {1, 2, 3}, out[3] = {0};
    struct prog_args args = {.x = column(in, 0, 3), .factor = 1, .out = column(out, 0, 3)};
    args.x.device = args.out.device = GTS_CUDA;
    CHECK(program->stub->call(program, &args) == 0);
    CHECK(program->stub->call(program, &args) == 0);
    gts_close(&program);
}

int main(int argc, char **argv)
{
    CHECK(argc == 6);
    prog_stub = argv[2];
    prog_library = argv[3];
    whole_stub = argv[4];
    whole_library = argv[5];
    const struct {
        const char *name;
        void (*work)(void);
    } works[] = {{"all ways", call_in_all_ways}, {"whole", call_whole},     {"killed", die_in_a_call},
                 {"threads", call_in_threads},   {"fork", call_in_a_child}, {"full disk", call_on_a_full_disk},
                 {"gpu", call_on_a_gpu}};
    for (unsigned int i = 0; i < sizeof works / sizeof *works; ++i) {
        if (strcmp(argv[1], works[i].name) == 0)
            works[i].work();
    }
    return 0;
}
