/*
 * A program uses some rows and columns of a table: changes there are noticed, and rows that no call has used are read when
 * one does. Prints how many of the changes of each kind were noticed. Arguments: the stub and the library of 'part_gather'.
 */
#include "gtstub/step.h"
#include "harness.h"
#include "part_gather_stub.h"

enum { ROWS = 1000, COLUMNS = 4, FIRST = 350, USED = 300, VERTICES = 5000, SIZE = 2 * ROWS * COLUMNS, TRIES = 50 };

static struct recorder recorder;
static gts_program *program;
static double x[VERTICES];
static int32_t memory[SIZE];

static const struct layout {
    const char *name;
    int64_t down, right, begin;
} LAYOUTS[] = {
    {"Fortran", 1, ROWS, 0},
    {"C", COLUMNS, 1, 0},
    {"every second row", 2, 2 * ROWS, 1},
    {"backwards", -COLUMNS, -1, ROWS *COLUMNS - 1},
};

static struct part_gather_args args_of(const struct layout *layout, int32_t start, int32_t stop)
{
    return (struct part_gather_args){
        .x = {.data = x, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {VERTICES}, .strides = {1}},
        .start = start,
        .stop = stop,
        .gt_conn_E2V = {.data = memory + layout->begin,
                        .dtype = GTS_INT32,
                        .device = GTS_CPU,
                        .rank = 2,
                        .shape = {ROWS, COLUMNS},
                        .strides = {layout->down, layout->right}},
    };
}

static int32_t *element(const gts_array *table, int64_t row, int64_t column)
{
    return (int32_t *)table->data + row * table->strides[0] + column * table->strides[1];
}

static int32_t random_number(int32_t below)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005 + 1442695040888963407;
    return (int32_t)((state >> 33) % (uint64_t)below);
}

/* Gives rows other indices, in the columns that the program uses. */
static void renew(const gts_array *table, int64_t first, int64_t count)
{
    for (int64_t row = first; row < first + count; ++row) {
        for (int64_t column = 1; column < COLUMNS; ++column) {
            const int32_t old = *element(table, row, column);
            *element(table, row, column) = 1 + (old + random_number(VERTICES - 2)) % (VERTICES - 1);
        }
    }
}

static void swap_rows(const gts_array *table, int64_t row, int64_t other)
{
    for (int64_t column = 0; column < COLUMNS; ++column) {
        const int32_t kept = *element(table, row, column);
        *element(table, row, column) = *element(table, other, column);
        *element(table, other, column) = kept;
    }
}

static void fill(const gts_array *table)
{
    for (int i = 0; i < SIZE; ++i)
        memory[i] = VERTICES * 2; /* no program may use this index */
    renew(table, 0, ROWS);
}

/* ---- Kinds of changes ------------------------------------------------------------------------------------------ */

static void another_mesh(const gts_array *table)
{
    renew(table, FIRST, USED);
}

static void permuted_rows(const gts_array *table)
{
    for (int32_t i = 1; i < USED; ++i)
        swap_rows(table, FIRST + i, FIRST + random_number(i + 1));
}

static void shifted_by_one(const gts_array *table)
{
    for (int64_t i = 1; i < USED; ++i)
        swap_rows(table, FIRST + i - 1, FIRST + i);
}

static void another_base(const gts_array *table)
{
    for (int64_t row = FIRST; row < FIRST + USED; ++row) {
        for (int64_t column = 1; column < COLUMNS; ++column)
            ++*element(table, row, column);
    }
}

static void first_row(const gts_array *table)
{
    renew(table, FIRST, 1);
}

static void last_row(const gts_array *table)
{
    renew(table, FIRST + USED - 1, 1);
}

static void one_column(const gts_array *table)
{
    const int64_t column = 1 + random_number(COLUMNS - 1);
    for (int64_t row = FIRST; row < FIRST + USED; ++row)
        *element(table, row, column) = *element(table, row, column) % (VERTICES - 1) + 1;
}

static void region(const gts_array *table, int32_t count)
{
    renew(table, FIRST + random_number(USED - count + 1), count);
}

static void region_of_a_seventh(const gts_array *table)
{
    region(table, USED / 7 + 1);
}

static void region_of_a_twentieth(const gts_array *table)
{
    region(table, USED / 20);
}

static void one_element(const gts_array *table)
{
    int32_t *const changed = element(table, FIRST + random_number(USED), 1 + random_number(COLUMNS - 1));
    *changed = *changed % (VERTICES - 1) + 1;
}

static void unused_elements(const gts_array *table)
{
    renew(table, 0, FIRST);
    renew(table, FIRST + USED, ROWS - FIRST - USED);
    for (int64_t row = 0; row < ROWS; ++row)
        *element(table, row, 0) = random_number(VERTICES);
}

/* ---- Tests ----------------------------------------------------------------------------------------------------- */

/* Whether the SDFG has got the elements of these rows, from 0. */
static bool has_passed(const gts_array *table, int64_t first, int64_t stop)
{
    gts_array found = *table;
    found.data = (void *)(uintptr_t)last_record(&recorder).values[0]; /* NOLINT */
    bool is_same = true;
    for (int64_t row = first; row < stop; ++row) {
        for (int64_t column = 1; column < COLUMNS; ++column)
            is_same = is_same && *element(&found, row, column) == *element(table, row, column) - 1;
    }
    return is_same;
}

static void count(const char *kind, void (*change)(const gts_array *))
{
    for (size_t i = 0; i < sizeof LAYOUTS / sizeof *LAYOUTS; ++i) {
        const struct part_gather_args args = args_of(&LAYOUTS[i], FIRST, FIRST + USED);
        int noticed = 0;
        for (int each = 0; each < TRIES; ++each) {
            fill(&args.gt_conn_E2V);
            CHECK(gts_set_index_base(program, "E2V", 1) == 0);
            CHECK(part_gather_call(program, &args) == 0 && has_passed(&args.gt_conn_E2V, FIRST, FIRST + USED));
            change(&args.gt_conn_E2V);
            CHECK(part_gather_call(program, &args) == 0);
            noticed += change == unused_elements ? has_passed(&args.gt_conn_E2V, 0, FIRST)
                                                 : has_passed(&args.gt_conn_E2V, FIRST, FIRST + USED);
            recorder.clear();
        }
        fprintf(stderr, "%s, %s: %d\n", kind, LAYOUTS[i].name, noticed);
    }
}

static void refused(const struct part_gather_args *args, const char *text)
{
    const size_t before = recorder.count();
    CHECK(part_gather_call(program, args) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_VALUE_ERROR, text);
    CHECK(recorder.count() == before);
}

/* Calls use more rows, on either side: those that have changed since the table was read are read now. */
static void test_more_rows(const struct layout *layout)
{
    for (int64_t base = 0; base < 2; ++base) {
        CHECK(gts_set_index_base(program, "E2V", base) == 0);
        struct part_gather_args args = args_of(layout, FIRST, FIRST);
        const gts_array *const table = &args.gt_conn_E2V;
        fill(table);
        CHECK(part_gather_call(program, &args) == 0); /* uses none */
        args.stop = FIRST + USED;
        CHECK(part_gather_call(program, &args) == 0);
        for (int side = 0; side < 2; ++side) {
            struct part_gather_args more = args;
            more.start -= side == 0 ? 20 : 0;
            more.stop += side == 0 ? 0 : 20;
            renew(table, side == 0 ? more.start : args.stop, 20);
            int32_t *const wrong = element(table, side == 0 ? FIRST - 3 : FIRST + USED + 3, 2);
            *wrong = VERTICES + 1;
            CHECK(part_gather_call(program, &args) == 0);
            CHECK(base == 0 || !has_passed(table, more.start, more.stop));
            refused(&more, base == 0 ? "...but argument 'x' has the indices 0 to 4999 on axis 0 ('Vertex')." HINT
                                     : "...but argument 'x' has the indices 1 to 5000 on axis 0 ('Vertex')." HINT);
            *wrong = 1;
            CHECK(part_gather_call(program, &more) == 0);
            CHECK(base == 0 || has_passed(table, more.start, more.stop));
            CHECK(part_gather_call(program, &args) == 0);
            renew(table, side == 0 ? more.start : more.stop - 1, 1); /* elements of the new rows are compared */
            CHECK(part_gather_call(program, &more) == 0);
            CHECK(base == 0 || has_passed(table, more.start, more.stop));
        }
    }
}

/* A call uses one column more, which has changed since the table was read. */
static void test_more_columns(const struct layout *layout)
{
    struct part_gather_args args = args_of(layout, FIRST, FIRST + USED);
    const gts_array *const table = &args.gt_conn_E2V;
    int32_t *const added = element(table, FIRST + 7, 0);
    CHECK(gts_set_index_base(program, "E2V", 1) == 0);
    fill(table);
    CHECK(part_gather_call(program, &args) == 0);
    for (int64_t row = FIRST; row < FIRST + USED; ++row)
        *element(table, row, 0) = 1;
    CHECK(part_gather_call(program, &args) == 0);
    args.all_columns = 1;
    for (int32_t value = 1; value < 4; ++value) {
        CHECK(part_gather_call(program, &args) == 0);
        const int64_t offset = added - (const int32_t *)table->data;
        CHECK(((const int32_t *)(uintptr_t)last_record(&recorder).values[0])[offset] == value - 1); /* NOLINT */
        for (int64_t row = FIRST; row < FIRST + USED; ++row)
            *element(table, row, 0) = value + 1;
    }
    *added = VERTICES + 1;
    CHECK(gts_set_index_base(program, "E2V", 1) == 0);
    refused(&args, "...but argument 'x' has the indices 1 to 5000 on axis 0 ('Vertex')." HINT);
}

/* A program uses a few rows of a large table. */
static void test_few_rows(const struct layout *layout)
{
    for (int32_t rows = 1; rows < 40; ++rows) {
        struct part_gather_args args = args_of(layout, FIRST, FIRST + rows);
        fill(&args.gt_conn_E2V);
        CHECK(gts_set_index_base(program, "E2V", 1) == 0);
        for (int call = 0; call < 3; ++call) {
            CHECK(part_gather_call(program, &args) == 0 && has_passed(&args.gt_conn_E2V, FIRST, FIRST + rows));
            renew(&args.gt_conn_E2V, FIRST, rows);
        }
    }
}

/* Two time levels have one table, of which one uses more rows than the other, and then both. */
static void test_two_time_levels(void)
{
    static double next[VERTICES];
    struct part_gather_args now = args_of(&LAYOUTS[0], FIRST, FIRST + USED), new = now;
    const gts_array *const table = &now.gt_conn_E2V;
    new.x.data = next;
    fill(table);
    CHECK(gts_set_index_base(program, "E2V", 1) == 0);
    CHECK(part_gather_call(program, &now) == 0 && part_gather_call(program, &new) == 0);
    now.start = new.start = 0;
    now.stop = new.stop = ROWS;
    renew(table, 0, FIRST);
    CHECK(part_gather_call(program, &now) == 0 && has_passed(table, 0, ROWS));
    CHECK(part_gather_call(program, &new) == 0 && has_passed(table, 0, ROWS));
    CHECK(part_gather_call(program, &now) == 0 && has_passed(table, 0, ROWS));
    renew(table, 0, 1); /* as both calls notice */
    CHECK(part_gather_call(program, &new) == 0 && has_passed(table, 0, ROWS));
    CHECK(part_gather_call(program, &now) == 0 && has_passed(table, 0, ROWS));
}

/* A bound call notices what calls with more rows, which compare others of the elements, do not. */
static void test_bound_call(void)
{
    struct part_gather_args args = args_of(&LAYOUTS[0], FIRST, FIRST + USED), all = args_of(&LAYOUTS[0], 0, ROWS);
    const gts_array *const table = &args.gt_conn_E2V;
    fill(table);
    CHECK(gts_set_index_base(program, "E2V", 1) == 0);
    gts_bound_call *call;
    CHECK(gts_bind(program, &args, &call) == 0);
    CHECK(gts_start(call) == 0 && has_passed(table, FIRST, FIRST + USED));
    CHECK(part_gather_call(program, &all) == 0 && has_passed(table, 0, ROWS));
    renew(table, FIRST, 1);
    CHECK(part_gather_call(program, &all) == 0 && !has_passed(table, 0, ROWS));
    CHECK(gts_start(call) == 0 && has_passed(table, FIRST, FIRST + USED));
    CHECK(part_gather_call(program, &all) == 0 && has_passed(table, 0, ROWS));
    gts_unbind(&call);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    recorder = open_recorder(argv[2]);
    program = load(argv[1], argv[2]);
    count("another mesh", another_mesh);
    count("permuted rows", permuted_rows);
    count("shifted by one", shifted_by_one);
    count("another base", another_base);
    count("first row", first_row);
    count("last row", last_row);
    count("one column", one_column);
    count("a region of a seventh", region_of_a_seventh);
    count("a region of a twentieth", region_of_a_twentieth);
    count("one element", one_element);
    count("unused elements", unused_elements);
    for (size_t i = 0; i < sizeof LAYOUTS / sizeof *LAYOUTS; ++i)
        test_few_rows(&LAYOUTS[i]), test_more_rows(&LAYOUTS[i]), test_more_columns(&LAYOUTS[i]);
    test_two_time_levels();
    test_bound_call();
    gts_close(&program);
    recorder.clear();
    return 0;
}
