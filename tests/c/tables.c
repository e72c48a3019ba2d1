/*
 * Tables of neighbors that a C host passes: their indices are checked, and brought to base 0 where that was said.
 * They are static: a table is known by its address, which one on the stack would share with the next.
 */
#define _POSIX_C_SOURCE 200809L
#include "gather_stub.h"
#include "harness.h"

enum { EDGES = 3, VERTICES = 4, NEIGHBORS = 2, SLOT_TABLE = 0, SLOT_X = 2 };

static struct recorder recorder;
static gts_program *program;
static double x[VERTICES], out[EDGES];

static gts_array line(double *data, int64_t size)
{
    return (gts_array){
        .data = data, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {size}, .strides = {1}};
}

/* Neighbors of an edge lie `EDGES` elements apart. */
static struct gather_args args_of(int32_t *table)
{
    return (struct gather_args){
        .x = line(x, VERTICES),
        .out = line(out, EDGES),
        .gt_conn_E2V = {.data = table,
                        .dtype = GTS_INT32,
                        .device = GTS_CPU,
                        .rank = 2,
                        .shape = {EDGES, NEIGHBORS},
                        .strides = {1, EDGES}},
    };
}

static const int32_t *passed_table(void)
{
    return (const int32_t *)(uintptr_t)last_record(&recorder).values[SLOT_TABLE]; /* NOLINT */
}

static const double *passed_x(void)
{
    return (const double *)(uintptr_t)last_record(&recorder).values[SLOT_X]; /* NOLINT */
}

static void refused(const struct gather_args *args, const char *text)
{
    const size_t before = recorder.count();
    CHECK(gather_call(program, args) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_VALUE_ERROR, text);
    CHECK(recorder.count() == before);
}

static void test_first_call(void)
{
    CHECK(gather_call(program, NULL) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_TYPE_ERROR,
                "The arguments of program 'gather' must be a struct, not NULL.");
}

static void test_base_0(void)
{
    static int32_t table[] = {0, 1, 3, 1, 2, -1};
    struct gather_args args = args_of(table);
    CHECK(gather_call(program, &args) == 0);
    CHECK(passed_table() == table); /* no copy */

    static int32_t other[] = {0, 1, 4, 1, 2, -1};
    args.gt_conn_E2V.data = other;
    refused(&args, "Connectivity 'E2V' of program 'gather' has index 4 in row 2, column 0 (index base 0, see "
                   "gts_set_index_base()), but argument 'x' has the indices 0 to 3 on axis 0 ('Vertex')." HINT);
    refused(&args, "Connectivity 'E2V' of program 'gather' has index 4 in row 2, column 0 (index base 0, see "
                   "gts_set_index_base()), but argument 'x' has the indices 0 to 3 on axis 0 ('Vertex')." HINT);
    other[2] = 3;
    other[4] = -2;
    refused(&args, "Connectivity 'E2V' of program 'gather' has index -2 in row 1, column 1 (index base 0, see "
                   "gts_set_index_base()), but argument 'x' has the indices 0 to 3 on axis 0 ('Vertex')." HINT);
    args.gt_conn_E2V.data = table;
    CHECK(gather_call(program, &args) == 0);
}

/* A table of base 1 with all its indices is no table of base 0, nor the other way round. */
static void test_wrong_base(void)
{
    static int32_t from_1[] = {1, 2, 4, 2, 3, 0};
    struct gather_args args = args_of(from_1);
    refused(&args, "Connectivity 'E2V' of program 'gather' has index 4 in row 2, column 0 (index base 0, see "
                   "gts_set_index_base()), but argument 'x' has the indices 0 to 3 on axis 0 ('Vertex')." HINT);
    CHECK(gts_set_index_base(program, "E2V", 1) == 0);
    static int32_t from_0[] = {0, 1, 3, 1, 2, -1};
    args = args_of(from_0);
    refused(&args, "Connectivity 'E2V' of program 'gather' has index -1 in row 3, column 2 (index base 1, see "
                   "gts_set_index_base()), but argument 'x' has the indices 1 to 4 on axis 0 ('Vertex')." HINT);
    CHECK(gts_set_index_base(program, "E2V", 0) == 0);
    CHECK(gather_call(program, &args) == 0);
}

static void check_shifted(void)
{
    static const int32_t expected[] = {0, 1, 3, 1, 2, -1};
    CHECK(memcmp(passed_table(), expected, sizeof expected) == 0);
}

static void test_base_1(void)
{
    CHECK(gts_set_index_base(program, "E2V", 1) == 0);
    static int32_t table[] = {1, 2, 4, 2, 3, 0};
    struct gather_args args = args_of(table);
    CHECK(gather_call(program, &args) == 0);
    const int32_t *const copy = passed_table();
    CHECK(copy != table);
    check_shifted();
    CHECK(table[0] == 1); /* the caller's stays as it is */

    CHECK(gather_call(program, &args) == 0);
    CHECK(passed_table() == copy); /* made once */
    static double other[VERTICES];
    args.x.data = other; /* another array is no reason to make it again */
    CHECK(gather_call(program, &args) == 0);
    CHECK(passed_table() == copy);
    check_shifted();

    static int32_t same[] = {1, 2, 4, 2, 3, 0};
    args.gt_conn_E2V.data = same;
    CHECK(gather_call(program, &args) == 0);
    check_shifted();
    CHECK(gts_set_index_base(program, "E2V", 0) == 0);
}

/* Rows and columns that run backwards, and rows apart: the copy has the layout of the table. */
static void test_layouts(void)
{
    CHECK(gts_set_index_base(program, "E2V", 1) == 0);
    static int32_t table[] = {0, 9, 3, 9, 2, 9, 4, 9, 2, 9, 1, 9};
    struct gather_args args = args_of(&table[10]);
    args.gt_conn_E2V.strides[0] = -2;
    args.gt_conn_E2V.strides[1] = -6;
    CHECK(gather_call(program, &args) == 0);
    const int32_t *const copy = passed_table();
    static const int32_t expected[NEIGHBORS][EDGES] = {{0, 1, 3}, {1, 2, -1}};
    for (int neighbor = 0; neighbor < NEIGHBORS; ++neighbor) {
        for (int edge = 0; edge < EDGES; ++edge)
            CHECK(copy[-6 * neighbor - 2 * edge] == expected[neighbor][edge]);
    }
    CHECK(gts_set_index_base(program, "E2V", 0) == 0);
}

/* Fields say which indices there are: they need not begin at 0. */
static void test_origin(void)
{
    static int32_t table[] = {2, 3, 5, 3, 4, -1};
    struct gather_args args = args_of(table);
    refused(&args, "Connectivity 'E2V' of program 'gather' has index 4 in row 1, column 1 (index base 0, see "
                   "gts_set_index_base()), but argument 'x' has the indices 0 to 3 on axis 0 ('Vertex')." HINT);
    args.x.origin[0] = 2;
    CHECK(gather_call(program, &args) == 0);
}

/* A table is known, and counts from 1; names of dimensions, which another caller gives, do not make it another one. */
static void test_known_table_with_names(void)
{
    CHECK(gts_set_index_base(program, "E2V", 1) == 0);
    static int32_t table[] = {1, 2, 4, 2, 3, 0};
    static double other[VERTICES];
    struct gather_args args = args_of(table);
    CHECK(gather_call(program, &args) == 0);
    check_shifted();
    args.gt_conn_E2V.dims[0] = "Edge";
    args.gt_conn_E2V.dims[1] = "E2V";
    args.x.data = other;
    CHECK(gather_call(program, &args) == 0);
    check_shifted();
    CHECK(gts_set_index_base(program, "E2V", 0) == 0);
}

/* A known table is right for the fields that it came with, and may not be for others, in the same memory even. */
static void test_field_that_gets_shorter(void)
{
    for (int64_t base = 0; base < 2; ++base) {
        CHECK(gts_set_index_base(program, "E2V", base) == 0);
        static int32_t from_0[] = {0, 1, 3, 1, 2, -1}, from_1[] = {1, 2, 4, 2, 3, 0};
        struct gather_args args = args_of(base == 0 ? from_0 : from_1);
        CHECK(gather_call(program, &args) == 0);
        args.x.shape[0] = VERTICES - 1;
        const char *const
            text = base == 0
                       ? "Connectivity 'E2V' of program 'gather' has index 3 in row 2, column 0 (index base 0, see "
                         "gts_set_index_base()), but argument 'x' has the indices 0 to 2 on axis 0 ('Vertex')." HINT
                       : "Connectivity 'E2V' of program 'gather' has index 4 in row 3, column 1 (index base 1, see "
                         "gts_set_index_base()), but argument 'x' has the indices 1 to 3 on axis 0 ('Vertex')." HINT;
        refused(&args, text);
        refused(&args, text);
        args.x.shape[0] = VERTICES;
        CHECK(gather_call(program, &args) == 0);
        if (base == 1)
            check_shifted();
    }
    CHECK(gts_set_index_base(program, "E2V", 0) == 0);
}

/* Time levels swap: fields in turn, over a table that is copied once; then two tables in turn, a copy for each. */
static void test_in_turn(void)
{
    CHECK(gts_set_index_base(program, "E2V", 1) == 0);
    static int32_t table[] = {1, 2, 4, 2, 3, 0}, backwards[] = {4, 2, 1, 0, 3, 2};
    static const int32_t expected[] = {3, 1, 0, -1, 2, 1};
    static double next[VERTICES], third[VERTICES];
    struct gather_args now = args_of(table), new = args_of(table);
    new.x.data = next;
    CHECK(gather_call(program, &now) == 0);
    const int32_t *const copy = passed_table();
    for (int step = 0; step < 3; ++step) {
        CHECK(gather_call(program, &new) == 0);
        CHECK(passed_x() == next && passed_table() == copy);
        CHECK(gather_call(program, &now) == 0);
        CHECK(passed_x() == x && passed_table() == copy);
    }
    check_shifted();

    new.gt_conn_E2V.data = backwards;
    CHECK(gather_call(program, &new) == 0);
    const int32_t *const other_copy = passed_table();
    for (int step = 0; step < 3; ++step) {
        CHECK(gather_call(program, &now) == 0);
        CHECK(passed_x() == x && passed_table() == copy);
        check_shifted();
        CHECK(gather_call(program, &new) == 0);
        CHECK(passed_x() == next && passed_table() == other_copy);
        CHECK(memcmp(other_copy, expected, sizeof expected) == 0);
    }

    struct gather_args wrong = now;
    wrong.x = line(third, VERTICES - 1);
    refused(&wrong, "Connectivity 'E2V' of program 'gather' has index 4 in row 3, column 1 (index base 1, see "
                    "gts_set_index_base()), but argument 'x' has the indices 1 to 3 on axis 0 ('Vertex')." HINT);
    CHECK(gather_call(program, &new) == 0); /* is known still */
    CHECK(passed_table() == other_copy);
    wrong.x = line(third, VERTICES);
    CHECK(gather_call(program, &wrong) == 0);
    CHECK(passed_x() == third);
    check_shifted();
    CHECK(gather_call(program, &now) == 0);
    CHECK(passed_x() == x);
    check_shifted();
    CHECK(gts_set_index_base(program, "E2V", 0) == 0); /* nothing is known of either */
    refused(&new, "Connectivity 'E2V' of program 'gather' has index 4 in row 0, column 0 (index base 0, see "
                  "gts_set_index_base()), but argument 'x' has the indices 0 to 3 on axis 0 ('Vertex')." HINT);
    refused(&now, "Connectivity 'E2V' of program 'gather' has index 4 in row 2, column 0 (index base 0, see "
                  "gts_set_index_base()), but argument 'x' has the indices 0 to 3 on axis 0 ('Vertex')." HINT);
}

static void test_table_that_is_too_short(void)
{
    static int32_t table[] = {0, 1, 3, 1, 2, -1};
    struct gather_args args = args_of(table);
    CHECK(gather_call(program, &args) == 0);
    args.gt_conn_E2V.shape[0] = EDGES - 1;
    refused(&args,
            "Connectivity 'E2V' of program 'gather' must have the rows 0 to 2, which this call uses, not 0 to 1." HINT);
    args.gt_conn_E2V.shape[0] = 0;
    refused(&args, "Connectivity 'E2V' of program 'gather' must have the rows 0 to 2, which this call uses, but it is "
                   "empty." HINT);
    args.gt_conn_E2V.shape[0] = EDGES - 1;
    args.out.shape[0] = EDGES - 1;
    CHECK(gather_call(program, &args) == 0);
    static double other[EDGES];
    args.out = line(other, EDGES); /* of the known table */
    refused(&args,
            "Connectivity 'E2V' of program 'gather' must have the rows 0 to 2, which this call uses, not 0 to 1." HINT);
    args.out.origin[0] = -1;
    CHECK(gather_call(program, &args) == 0);
}

static void test_table_that_starts_elsewhere(void)
{
    static int32_t table[] = {0, 1, 3, 1, 2, -1};
    struct gather_args args = args_of(table);
    args.gt_conn_E2V.origin[1] = 7;
    refused(&args, "Argument 'E2V' of program 'gather' must have start 0 on axis 1 ('E2V'), not 7.");
}

/* With GTSTUB_DEBUG=1 nothing is known: what has changed in place is seen, and a size that the SDFG does not take. */
static void test_debugging(const char *stub, const char *library)
{
    CHECK(setenv("GTSTUB_DEBUG", "1", 1) == 0);
    gts_program *const known = program;
    program = load(stub, library);
    static int32_t table[] = {0, 1, 3, 1, 2, -1};
    struct gather_args args = args_of(table);
    CHECK(gather_call(program, &args) == 0);
    CHECK(gather_call(program, &args) == 0);
    table[2] = 4;
    refused(&args, "Connectivity 'E2V' of program 'gather' has index 4 in row 2, column 0 (index base 0, see "
                   "gts_set_index_base()), but argument 'x' has the indices 0 to 3 on axis 0 ('Vertex')." HINT);
    gts_close(&program);
    program = known;
    CHECK(unsetenv("GTSTUB_DEBUG") == 0);
}

static void test_what_is_said_wrongly(void)
{
    const int64_t origin[2] = {0};
    CHECK(gts_set_index_base(program, "E2V", 2) == -1);
    CHECK_TEXT(gts_last_error(program)->message,
               "Connectivity 'E2V' of program 'gather' must have an index base of 0 or 1, not 2.");
    CHECK(gts_set_index_base(program, "x", 1) == -1);
    CHECK_TEXT(gts_last_error(program)->message, "Program 'gather' has no connectivity 'x'; it has 'E2V'.");
    CHECK(gts_set_origin(program, "E2V", origin, 2) == -1);
    CHECK_TEXT(gts_last_error(program)->message, "Program 'gather' has no field 'E2V'; it has 'x', 'out'.");
    CHECK(gts_set_origin(program, "x", origin, 2) == -1);
    CHECK_TEXT(gts_last_error(program)->message,
               "Argument 'x' of program 'gather' has 1 axes, but its origin was given for 2.");
    CHECK(gts_set_origin(program, "x", origin, 1) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    recorder = open_recorder(argv[2]);
    program = load(argv[1], argv[2]);
    test_first_call();
    test_base_0();
    test_wrong_base();
    test_base_1();
    test_layouts();
    test_in_turn();
    test_origin();
    test_known_table_with_names();
    test_field_that_gets_shorter();
    test_table_that_is_too_short();
    test_table_that_starts_elsewhere();
    test_debugging(argv[1], argv[2]);
    test_what_is_said_wrongly();
    gts_close(&program);
    recorder.clear();
    return 0;
}
