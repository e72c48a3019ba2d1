/*
 * Tables that may count from 1 though they were said to count from 0. What is said of them is on stderr, which the test
 * reads. Arguments: the stub and the library of 'gather'.
 */
#include "gather_stub.h"
#include "gtstub/step.h"
#include "harness.h"

enum { ROWS = 4, VERTICES = 9, NEIGHBORS = 2 };

static double x[VERTICES], out[ROWS];

static struct gather_args args_of(int32_t *table, int64_t used_rows)
{
    const gts_array line = {
        .data = x, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {VERTICES}, .strides = {1}};
    struct gather_args args = {
        .x = line,
        .out = line,
        .gt_conn_E2V = {.data = table,
                        .dtype = GTS_INT32,
                        .device = GTS_CPU,
                        .rank = 2,
                        .shape = {ROWS, NEIGHBORS},
                        .strides = {NEIGHBORS, 1}},
    };
    args.out.data = out;
    args.out.shape[0] = used_rows;
    return args;
}

/* Calls a new program as often as there are tables, and says first what follows on stderr. */
static void call(char **argv, const char *what, int64_t base, int64_t used_rows, int32_t tables[][ROWS * NEIGHBORS],
                 int count)
{
    gts_program *program = load(argv[1], argv[2]);
    fprintf(stderr, "%s:\n", what);
    if (base >= 0)
        CHECK(gts_set_index_base(program, "E2V", base) == 0);
    for (int i = 0; i < count; ++i) {
        const struct gather_args args = args_of(tables[i], used_rows);
        CHECK(gather_call(program, &args) == 0 && gather_call(program, &args) == 0);
    }
    gts_close(&program);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    int32_t from_1[][ROWS * NEIGHBORS] = {{1, 2, 2, 3, 3, 4, 4, 5}, {3, 2, 2, 3, 3, 4, 4, 5}};
    int32_t from_0[][ROWS * NEIGHBORS] = {{3, 2, 2, 1, 1, 0, -1, 5}};
    int32_t missing[][ROWS * NEIGHBORS] = {{3, 2, -1, 3, 3, 4, 4, 5}};
    int32_t padded[][ROWS * NEIGHBORS] = {{1, 2, 2, 3, 3, 4, 0, 0}};
    call(argv, "from 1, said to be 0", 0, ROWS, from_1, 2);
    call(argv, "from 1, nothing said", -1, ROWS, from_1, 2);
    call(argv, "from 1, said to be 1", 1, ROWS, from_1, 2);
    call(argv, "from 0", 0, ROWS, from_0, 1);
    call(argv, "from 0, the part without index 0", 0, 2, from_0, 1);
    call(argv, "the part with index 0", 0, ROWS, padded, 1);
    call(argv, "index 0 in padding", 0, 3, padded, 1);
    call(argv, "no neighbor", 0, ROWS, missing, 1);
    call(argv, "nothing used", 0, 0, from_1, 1);
    open_recorder(argv[2]).clear();
    return 0;
}
