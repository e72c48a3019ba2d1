/*
 * Arrays without elements that an SDFG reads, but on which no results depend: what the SDFG gets, and what is printed.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "harness.h"
#include "padded_stub.h"

enum { VERTICES = 4, EDGES = 2, LEVELS = 3, SLOT_X = 1, SLOT_Y = 2, SLOT_X_STRIDE = 5 };

#define NEEDS_NONE ". No result should depend on the others: "
#define X_LACKS_5                                                                                                      \
    "Program 'padded' reads argument 'x' at the indices 0 to 5 on axis 0 ('Vertex'), which has 0 to 3" NEEDS_NONE
#define Y_LACKS_5                                                                                                      \
    "Program 'padded' reads argument 'y' at the indices 0 to 5 on axis 1 ('K'), which has 0 to 2" NEEDS_NONE
#define COPIED "each call passes a copy in which they are "
#define NOT_COPIED "the SDFG reads what is in memory there, because "

static struct recorder recorder;
static const char *stub, *library;
static FILE *printed;

static double x[2 * VERTICES];
static int32_t y[EDGES][LEVELS];
static int32_t table[EDGES][2];

static void set_values(void)
{
    for (int i = 0; i < 2 * VERTICES; ++i)
        x[i] = i;
    for (int i = 0; i < EDGES * LEVELS; ++i)
        y[i / LEVELS][i % LEVELS] = i;
    memset(table, 0, sizeof table);
}

static struct padded_args args_of(int32_t n)
{
    return (struct padded_args){
        .x = {.data = x, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {VERTICES}, .strides = {1}},
        .y = {.data = y,
              .dtype = GTS_INT32,
              .device = GTS_CPU,
              .rank = 2,
              .shape = {EDGES, LEVELS},
              .strides = {LEVELS, 1}},
        .n = n,
        .gt_conn_E2V =
            {.data = table, .dtype = GTS_INT32, .device = GTS_CPU, .rank = 2, .shape = {EDGES, 2}, .strides = {2, 1}},
    };
}

static double *passed_x(void)
{
    return (double *)(uintptr_t)last_record(&recorder).values[SLOT_X]; /* NOLINT */
}

static int32_t *passed_y(void)
{
    return (int32_t *)(uintptr_t)last_record(&recorder).values[SLOT_Y]; /* NOLINT */
}

/* What was printed since the last time. */
static void check_printed(const char *expected)
{
    static char text[4096];
    rewind(printed);
    const size_t size = fread(text, 1, sizeof text - 1, printed);
    text[size] = '\0';
    CHECK(ftruncate(fileno(printed), 0) == 0);
    rewind(printed);
    if (strcmp(text, expected) != 0)
        printf("found    %s\nexpected %s\n", text, expected);
    CHECK(strcmp(text, expected) == 0);
}

static void call(gts_program *program, const struct padded_args *args)
{
    const int status = padded_call(program, args);
    if (status != 0)
        fprintf(stderr, "%s\n", gts_last_error(program)->message);
    CHECK(status == 0);
}

static void test_copies(void)
{
    gts_program *program = load(stub, library);
    struct padded_args args = args_of(LEVELS - 1);
    call(program, &args);
    CHECK(passed_x() == x && passed_y() == y[0]);
    check_printed("");

    args.n = 5;
    call(program, &args);
    check_printed(X_LACKS_5 COPIED "NaN (48 bytes).\n" Y_LACKS_5 COPIED "as the nearest element (48 bytes).\n");
    const double *const copy = passed_x();
    CHECK(copy != x && passed_y() != y[0]);
    CHECK(copy[0] == 0 && copy[3] == 3 && isnan(copy[4]) && isnan(copy[5]));
    const int32_t nearest[] = {0, 1, 2, 2, 2, 2, 3, 4, 5, 5, 5, 5};
    CHECK(memcmp(passed_y(), nearest, sizeof nearest) == 0);

    x[3] = 7; /* each call makes the copy, and prints nothing */
    call(program, &args);
    CHECK(passed_x() == copy && copy[3] == 7);
    check_printed("");

    args.n = 3; /* another size */
    call(program, &args);
    CHECK(passed_x() == x && passed_y() != y[0]);
    args.n = LEVELS - 1;
    call(program, &args);
    CHECK(passed_x() == x && passed_y() == y[0]);
    gts_close(&program);
    CHECK(program == NULL);
}

/* Of each second element. */
static void test_strides(void)
{
    gts_program *program = load(stub, library);
    struct padded_args args = args_of(LEVELS - 1);
    args.x.strides[0] = 2;
    args.x.shape[0] = 2;
    call(program, &args);
    check_printed("Program 'padded' reads argument 'x' at the indices 0 to 2 on axis 0 ('Vertex'), which has 0 to "
                  "1" NEEDS_NONE COPIED "NaN (24 bytes).\n");
    CHECK(passed_x()[0] == 0 && passed_x()[1] == 2 && isnan(passed_x()[2]));
    CHECK((int32_t)last_record(&recorder).values[SLOT_X_STRIDE] == 1);
    gts_close(&program);
}

/* Indices of a table, of which -1 is one as any other. */
static void test_tables(void)
{
    gts_program *program = load(stub, library);
    struct padded_args args = args_of(LEVELS - 1);
    table[0][1] = -1;
    table[1][0] = 6;
    call(program, &args);
    check_printed("Program 'padded' reads argument 'x' at the indices -1 to 6 on axis 0 ('Vertex'), which has 0 to "
                  "3" NEEDS_NONE COPIED "NaN (64 bytes).\n");
    CHECK(isnan(passed_x()[-1]) && passed_x()[3] == 3 && isnan(passed_x()[6]));
    gts_close(&program);
}

static void test_empty(void)
{
    gts_program *program = load(stub, library);
    struct padded_args args = args_of(-1);
    args.y.shape[1] = 0;
    call(program, &args);
    check_printed("");
    args.n = 0;
    call(program, &args);
    check_printed(
        "Program 'padded' reads argument 'y' at the indices 0 to 0 on axis 1 ('K'), which is empty" NEEDS_NONE COPIED
        "as the nearest element (8 bytes).\n");
    CHECK(passed_y()[0] == 0 && passed_y()[1] == 0);
    gts_close(&program);
}

static void runs_without_a_copy(const struct padded_args *args, const char *text)
{
    gts_program *program = load(stub, library);
    call(program, args);
    check_printed(text);
    CHECK(passed_x() == args->x.data);
    gts_close(&program);
}

static void test_arrays_that_are_not_copied(void)
{
    struct padded_args args = args_of(5);
    args.y.shape[1] = 6;
    args.y.shape[0] = 1;
    args.x.data = y;
    args.x.shape[0] = 2;
    runs_without_a_copy(&args,
                        "Program 'padded' reads argument 'x' at the indices 0 to 5 on axis 0 ('Vertex'), which has "
                        "0 to 1" NEEDS_NONE NOT_COPIED "it shares memory with another argument.\n");
    args = args_of(5);
    args.y.shape[1] = 6;
    args.y.shape[0] = 1;
    args.x.data = x + VERTICES;
    args.x.strides[0] = -1;
    runs_without_a_copy(&args, X_LACKS_5 NOT_COPIED "its strides are not positive.\n");

    static int32_t large[(1 << 22) + 64];
    args = args_of((1 << 22) + 40);
    args.y = (gts_array){.data = large,
                         .dtype = GTS_INT32,
                         .device = GTS_CPU,
                         .rank = 2,
                         .shape = {1, (1 << 22) + 64},
                         .strides = {1, 1}};
    runs_without_a_copy(&args, "Program 'padded' reads argument 'x' at the indices 0 to 4194344 on axis 0 ('Vertex'), "
                               "which has 0 to 3" NEEDS_NONE NOT_COPIED "it would be too large.\n");
}

/* What a check that fails has printed is otherwise lost. */
static void show(void)
{
    rewind(printed);
    for (int c = getc(printed); c != EOF; c = getc(printed))
        (void)putchar(c);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    stub = argv[1], library = argv[2];
    recorder = open_recorder(library);
    printed = tmpfile();
    CHECK(printed != NULL && dup2(fileno(printed), STDERR_FILENO) >= 0);
    CHECK(atexit(show) == 0);
    static void (*const tests[])(void) = {test_copies, test_strides, test_tables, test_empty,
                                          test_arrays_that_are_not_copied};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i) {
        set_values();
        tests[i]();
    }
    return 0;
}
