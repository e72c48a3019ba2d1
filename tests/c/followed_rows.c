/*
 * A program uses some rows of a table, and those that are elements of another table: all rows count as used, and changes
 * of any are noticed. Arguments: the stub and the library of 'chained_gather'.
 */
#include "chained_gather_stub.h"
#include "harness.h"

enum { ROWS = 600, COLUMNS = 70, USED = 10, VERTICES = 5000 };

static struct recorder recorder;
static gts_program *program;
static double x[VERTICES];
static int32_t tables[2][ROWS][COLUMNS];

/* Gives rows of the first table other indices. */
static void renew(int first, int stop)
{
    for (int row = first; row < stop; ++row) {
        for (int column = 0; column < COLUMNS; ++column)
            tables[0][row][column] = 1 + (tables[0][row][column] + 7 * row + column) % (VERTICES - 1);
    }
}

/* Whether a call passes the SDFG the first table as it is now. */
static bool passes(const struct chained_gather_args *args)
{
    CHECK(chained_gather_call(program, args) == 0);
    const int32_t(*const found)[COLUMNS] = (void *)(uintptr_t)last_record(&recorder).values[0]; /* NOLINT */
    bool is_same = true;
    for (int row = 0; row < ROWS; ++row) {
        for (int column = 0; column < COLUMNS; ++column)
            is_same = is_same && found[row][column] == tables[0][row][column] - 1;
    }
    return is_same;
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    recorder = open_recorder(argv[2]);
    program = load(argv[1], argv[2]);
    struct chained_gather_args args = {
        .x = {.data = x, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {VERTICES}, .strides = {1}},
        .gt_conn_E2V = packed_table(tables[0], GTS_INT32, ROWS, COLUMNS),
        .gt_conn_always = packed_table(tables[1], GTS_INT32, ROWS, COLUMNS),
        .checked = USED,
    };
    CHECK(gts_set_index_base(program, "E2V", 1) == 0 && gts_set_index_base(program, "always", 1) == 0);
    for (int i = 0; i < ROWS * COLUMNS; ++i)
        tables[1][i / COLUMNS][i % COLUMNS] = 1 + i % ROWS;
    renew(0, ROWS);
    CHECK(passes(&args));
    for (int i = 0; i < 4; ++i) { /* also in a table that has been read anew */
        renew(USED, ROWS);
        CHECK(passes(&args));
        renew(ROWS / 2, ROWS);
        CHECK(passes(&args));
    }
    gts_close(&program);
    recorder.clear();
    return 0;
}
