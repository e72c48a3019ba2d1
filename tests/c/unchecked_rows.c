/*
 * A program checks the elements of some rows of a table, and uses others without a check: changes there are noticed, and
 * rows that no call has used are read when one does. Arguments: the stub and the library of 'mixed_gather'.
 */
#include "harness.h"
#include "mixed_gather_stub.h"

enum { ROWS = 600, COLUMNS = 70, VERTICES = 5000, ALWAYS = 20 };

static struct recorder recorder;
static gts_program *program;
static double x[VERTICES];
static int32_t tables[2][ROWS][COLUMNS];

/* Gives rows other indices, in all columns. */
static void renew(int table, int first, int stop)
{
    for (int row = first; row < stop; ++row) {
        for (int column = 0; column < COLUMNS; ++column)
            tables[table][row][column] = 1 + (tables[table][row][column] + 7 * row + column) % (VERTICES - 1);
    }
}

/* Whether a call passes the SDFG these rows of a table as they are now. */
static bool passes(const struct mixed_gather_args *args, int table, int first, int stop)
{
    CHECK(mixed_gather_call(program, args) == 0);
    const int32_t(*const found)[COLUMNS] = (void *)(uintptr_t)last_record(&recorder).values[table]; /* NOLINT */
    bool is_same = true;
    for (int row = first; row < stop; ++row) {
        for (int column = 0; column < COLUMNS; ++column)
            is_same = is_same && found[row][column] == tables[table][row][column] - 1;
    }
    return is_same;
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    recorder = open_recorder(argv[2]);
    program = load(argv[1], argv[2]);
    struct mixed_gather_args args = {
        .x = {.data = x, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {VERTICES}, .strides = {1}},
        .gt_conn_E2V = packed_table(tables[0], GTS_INT32, ROWS, COLUMNS),
        .gt_conn_always = packed_table(tables[1], GTS_INT32, ROWS, COLUMNS),
    };
    for (int32_t checked = 0; checked < 20; checked += 10) {
        CHECK(gts_set_index_base(program, "E2V", 1) == 0 && gts_set_index_base(program, "always", 1) == 0);
        renew(0, 0, ROWS);
        renew(1, 0, ROWS);
        args.checked = checked;
        args.start = 20;
        args.stop = 60;
        CHECK(passes(&args, 0, 20, 60) && passes(&args, 1, ALWAYS, 50));
        renew(0, 20, 60);
        CHECK(passes(&args, 0, 20, 60));
        renew(0, 30, 40);
        CHECK(passes(&args, 0, 20, 60));
        renew(0, 60, ROWS); /* which no call has used */
        CHECK(!passes(&args, 0, 60, ROWS));
        args.start = 300;
        args.stop = ROWS;
        CHECK(passes(&args, 0, 300, ROWS));
        args.stop = ROWS + 1;
        CHECK(mixed_gather_call(program, &args) == -1);
        args.stop = ROWS;
        renew(0, 400, ROWS);
        CHECK(passes(&args, 0, 300, ROWS));
        renew(1, ALWAYS + 10, 50);
        CHECK(passes(&args, 1, ALWAYS, 50));
    }
    gts_close(&program);
    recorder.clear();
    return 0;
}
