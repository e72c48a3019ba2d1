/*
 * Tables that change between two calls, or give their address to others: a call uses the elements that are there. Arguments:
 * the stubs and the libraries of 'gather' and 'wide_gather', whose table has 64 bits.
 */
#define _DEFAULT_SOURCE
#include <sys/mman.h>

#include "gather_stub.h"
#include "gtstub/step.h"
#include "harness.h"
#include "wide_gather_stub.h"

enum { ROWS = 37, VERTICES = 50, NEIGHBORS = 2, SLOT_TABLE = 0, SIZE = 4 * ROWS * NEIGHBORS };

static struct recorder recorder;
static gts_program *program;
static double x[VERTICES], out[ROWS];
static int32_t memory[SIZE];

static gts_array line(double *data, int64_t size)
{
    return (gts_array){
        .data = data, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {size}, .strides = {1}};
}

static gts_array table_of(void *data, gts_dtype dtype, int64_t rows, int64_t down, int64_t right)
{
    return (gts_array){.data = data,
                       .dtype = dtype,
                       .device = GTS_CPU,
                       .rank = 2,
                       .shape = {rows, NEIGHBORS},
                       .strides = {down, right}};
}

static struct gather_args args_of(int32_t *table, int64_t rows, int64_t down, int64_t right)
{
    return (struct gather_args){
        .x = line(x, VERTICES),
        .out = line(out, rows),
        .gt_conn_E2V = table_of(table, GTS_INT32, rows, down, right),
    };
}

static int32_t *element(const gts_array *table, int64_t row, int64_t column)
{
    return (int32_t *)table->data + row * table->strides[0] + column * table->strides[1];
}

static void fill(const gts_array *table, int32_t value)
{
    for (int64_t row = 0; row < table->shape[0]; ++row) {
        for (int64_t column = 0; column < NEIGHBORS; ++column)
            *element(table, row, column) = value;
    }
}

/* Whether the SDFG has got a table that is one value everywhere. */
static bool has_passed(const gts_array *table, int32_t value)
{
    gts_array passed = *table;
    passed.data = (void *)(uintptr_t)last_record(&recorder).values[SLOT_TABLE]; /* NOLINT */
    bool is_same = true;
    for (int64_t row = 0; row < table->shape[0]; ++row) {
        for (int64_t column = 0; column < NEIGHBORS; ++column)
            is_same = is_same && *element(&passed, row, column) == value;
    }
    return is_same;
}

static const char TOO_HIGH[] = "...but argument 'x' has the indices 0 to 49 on axis 0 ('Vertex')." HINT;
static const char TOO_HIGH_FROM_1[] = "...but argument 'x' has the indices 1 to 50 on axis 0 ('Vertex')." HINT;

static void refused(const struct gather_args *args, const char *text)
{
    const size_t before = recorder.count();
    CHECK(gather_call(program, args) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_VALUE_ERROR, text);
    CHECK(recorder.count() == before);
}

/* All elements are others, as in a local array that lies where that of the call before did. */
static void check_layout(int64_t rows, int64_t down, int64_t right, int64_t begin)
{
    const struct gather_args args = args_of(memory + begin, rows, down, right);
    for (int64_t base = 0; base < 2; ++base) {
        CHECK(gts_set_index_base(program, "E2V", base) == 0);
        for (int32_t value = 1; value < 4; ++value) {
            fill(&args.gt_conn_E2V, value);
            for (int call = 0; call < 2; ++call) {
                CHECK(gather_call(program, &args) == 0);
                CHECK(has_passed(&args.gt_conn_E2V, value - (int32_t)base));
            }
        }
        fill(&args.gt_conn_E2V, VERTICES + 1);
        refused(&args, base == 0 ? TOO_HIGH : TOO_HIGH_FROM_1);
        fill(&args.gt_conn_E2V, VERTICES - 1);
        CHECK(gather_call(program, &args) == 0);
        CHECK(has_passed(&args.gt_conn_E2V, VERTICES - 1 - (int32_t)base));
    }
}

static void test_layouts(void)
{
    for (int64_t rows = 1; rows <= ROWS; ++rows) {
        check_layout(rows, 1, rows, 0);                      /* Fortran */
        check_layout(rows, NEIGHBORS, 1, 0);                 /* C */
        check_layout(rows, 1, ROWS + 3, 0);                  /* the first rows of a larger table */
        check_layout(rows, 2, 2 * rows, 1);                  /* every second row */
        check_layout(rows, 4, 2, 1);                         /* elements apart */
        check_layout(rows, -1, -rows, rows * NEIGHBORS - 1); /* backwards */
        check_layout(rows, -2, 1, (rows - 1) * 2);           /* rows backwards */
        check_layout(rows, 3, -1, 1);                        /* columns backwards */
        check_layout(rows, 0, 0, SIZE - 1);                  /* one element at the end of memory */
        check_layout(rows, 0, 1, SIZE - 2);                  /* all rows are one */
        check_layout(rows, 3, 0, 0);                         /* all columns are one */
    }
    CHECK(gts_set_index_base(program, "E2V", 0) == 0);
}

/* Elements outside of a table may change: the call knows the table still, and makes no other copy. */
static void test_what_is_outside(void)
{
    CHECK(gts_set_index_base(program, "E2V", 1) == 0);
    const int64_t layouts[][3] = {{1, ROWS, 0}, {NEIGHBORS, 1, 0}, {2, 2 * ROWS, 1}, {3, 1, 0}, {-1, -ROWS, 2 * ROWS}};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; ++i) {
        const struct gather_args args = args_of(memory + layouts[i][2], ROWS, layouts[i][0], layouts[i][1]);
        memset(memory, 0, sizeof memory);
        fill(&args.gt_conn_E2V, 1);
        CHECK(gather_call(program, &args) == 0);
        const uint64_t copy = last_record(&recorder).values[SLOT_TABLE];
        memset(memory, 1, sizeof memory);
        fill(&args.gt_conn_E2V, 1);
        CHECK(gather_call(program, &args) == 0);
        CHECK(last_record(&recorder).values[SLOT_TABLE] == copy);
    }
    CHECK(gts_set_index_base(program, "E2V", 0) == 0);
}

/* Each element of a small table is compared. */
static void test_single_elements(void)
{
    CHECK(gts_set_index_base(program, "E2V", 1) == 0);
    for (int64_t rows = 1; rows <= 3; ++rows) {
        const int64_t layouts[][2] = {{1, rows}, {NEIGHBORS, 1}, {4, 2}};
        for (size_t i = 0; i < sizeof layouts / sizeof *layouts; ++i) {
            const struct gather_args args = args_of(memory, rows, layouts[i][0], layouts[i][1]);
            fill(&args.gt_conn_E2V, 1);
            CHECK(gather_call(program, &args) == 0);
            for (int64_t at = 0; at < rows * NEIGHBORS; ++at) {
                *element(&args.gt_conn_E2V, at / NEIGHBORS, at % NEIGHBORS) = VERTICES + 1;
                refused(&args, TOO_HIGH_FROM_1);
                *element(&args.gt_conn_E2V, at / NEIGHBORS, at % NEIGHBORS) = 1;
                CHECK(gather_call(program, &args) == 0);
            }
        }
    }
    CHECK(gts_set_index_base(program, "E2V", 0) == 0);
}

static void test_wide_table(const char *stub, const char *library)
{
    static int64_t wide[ROWS * NEIGHBORS];
    gts_program *own = load(stub, library);
    const struct recorder calls = open_recorder(library);
    CHECK(gts_set_index_base(own, "E2V", 1) == 0);
    for (int64_t rows = 1; rows <= ROWS; ++rows) {
        const struct wide_gather_args args = {
            .x = line(x, VERTICES),
            .out = line(out, rows),
            .gt_conn_E2V = table_of(wide, GTS_INT64, rows, 1, rows),
        };
        for (int64_t value = 1; value < 4; ++value) {
            for (int64_t i = 0; i < rows * NEIGHBORS; ++i)
                wide[i] = value;
            CHECK(wide_gather_call(own, &args) == 0);
            const int64_t *const passed = (int64_t *)(uintptr_t)last_record(&calls).values[SLOT_TABLE]; /* NOLINT */
            for (int64_t i = 0; i < rows * NEIGHBORS; ++i)
                CHECK(passed[i] == value - 1);
        }
    }
    gts_close(&own);
    calls.clear();
}

/* Two time levels share a table, or have one each, and the tables change: both calls see it. */
static void test_in_turn(void)
{
    static double next[VERTICES];
    for (int64_t base = 0; base < 2; ++base) {
        CHECK(gts_set_index_base(program, "E2V", base) == 0);
        struct gather_args now = args_of(memory, ROWS, 1, ROWS), new = now;
        new.x.data = next;
        for (int tables = 1; tables <= 2; ++tables) {
            for (int32_t value = 1; value < 9; ++value) {
                fill(&now.gt_conn_E2V, value);
                if (tables == 2)
                    fill(&new.gt_conn_E2V, value + 10);
                const int32_t of_new = value + (tables == 2 ? 10 : 0);
                const int turns = value % 3 + 1; /* until the next change */
                for (int turn = 0; turn < turns; ++turn) {
                    CHECK(gather_call(program, value % 2 == 0 ? &now : &new) == 0);
                    CHECK(has_passed(&now.gt_conn_E2V, (value % 2 == 0 ? value : of_new) - (int32_t)base));
                    CHECK(gather_call(program, value % 2 == 0 ? &new : &now) == 0);
                    CHECK(has_passed(&now.gt_conn_E2V, (value % 2 == 0 ? of_new : value) - (int32_t)base));
                }
            }
            new.gt_conn_E2V.data = memory + ROWS *NEIGHBORS;
        }
    }
    CHECK(gts_set_index_base(program, "E2V", 0) == 0);
}

/* A table of an earlier call may be unmapped: it is not read again. */
static void test_unmapped_table(void)
{
    const size_t bytes = ROWS * NEIGHBORS * sizeof(int32_t);
    const struct gather_args kept = args_of(memory, ROWS, 1, ROWS);
    fill(&kept.gt_conn_E2V, 1);
    for (int before = 0; before < 3; ++before) {
        int32_t *const mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(mapped != MAP_FAILED);
        const struct gather_args args = args_of(mapped, ROWS, 1, ROWS);
        CHECK(gather_call(program, &args) == 0);
        for (int call = 0; call < before; ++call)
            CHECK(gather_call(program, &kept) == 0);
        CHECK(munmap(mapped, bytes) == 0);
        CHECK(gather_call(program, &kept) == 0);
        struct gather_args other = args_of(memory + 1, ROWS - 1, 1, ROWS);
        CHECK(gather_call(program, &other) == 0);
    }
}

/* A refused table is corrected where no element of it is kept: the call reads it again, as do those beside it. */
static void test_corrected_table(void)
{
    static double next[VERTICES + 9];
    for (int64_t base = 0; base < 2; ++base) {
        const struct gather_args args = args_of(memory, ROWS, 1, ROWS);
        struct gather_args longer = args;
        longer.x = line(next, VERTICES + 9);
        for (int64_t at = 0; at < ROWS * NEIGHBORS; ++at) {
            fill(&args.gt_conn_E2V, 1);
            CHECK(gts_set_index_base(program, "E2V", base) == 0);
            memory[at] = VERTICES + 1;
            if (at % 3 > 0)
                CHECK(gather_call(program, &longer) == 0);
            refused(&args, base == 0 ? TOO_HIGH : TOO_HIGH_FROM_1);
            memory[at] = 1;
            CHECK(gather_call(program, at % 3 == 1 ? &longer : &args) == 0);
            CHECK(has_passed(&args.gt_conn_E2V, 1 - (int32_t)base));
        }
    }
    CHECK(gts_set_index_base(program, "E2V", 0) == 0);
}

/* A start of a bound call sees a changed table as a call does, alone and in a step, beside calls of the program. */
static void test_bound_calls(void)
{
    for (int64_t base = 0; base < 2; ++base) {
        CHECK(gts_set_index_base(program, "E2V", base) == 0);
        const struct gather_args args = args_of(memory, ROWS, 1, ROWS), other = args_of(memory + SIZE / 2, ROWS, 4, 2);
        fill(&args.gt_conn_E2V, 1);
        fill(&other.gt_conn_E2V, 1);
        gts_bound_call *call, *other_call;
        gts_step *step;
        CHECK(gts_bind(program, &args, &call) == 0);
        CHECK(gts_bind(program, &other, &other_call) == 0);
        const gts_action actions[] = {{.call = other_call}, {.call = call}};
        CHECK(gts_step_new("both", actions, 2, &step) == 0);
        /* A bound call keeps the index base that it was bound with. */
        CHECK(gts_set_index_base(program, "E2V", 1 - base) == 0);
        for (int32_t value = 2; value < 6; ++value) {
            fill(&args.gt_conn_E2V, value);
            fill(&other.gt_conn_E2V, value + 1);
            for (int again = 0; again < 2; ++again) {
                CHECK(gts_start(call) == 0);
                CHECK(has_passed(&args.gt_conn_E2V, value - (int32_t)base));
                CHECK(gts_start(other_call) == 0);
                CHECK(has_passed(&other.gt_conn_E2V, value + 1 - (int32_t)base));
                CHECK(gts_step_run(step) == 0);
                CHECK(has_passed(&args.gt_conn_E2V, value - (int32_t)base));
                CHECK(gather_call(program, &args) == 0);
                CHECK(has_passed(&args.gt_conn_E2V, value - 1 + (int32_t)base));
            }
        }
        fill(&args.gt_conn_E2V, VERTICES + 1);
        for (int again = 0; again < 2; ++again) {
            CHECK(gts_start(call) == -1);
            CHECK_ERROR(gts_last_error(program), GTS_VALUE_ERROR, base == 0 ? TOO_HIGH : TOO_HIGH_FROM_1);
            CHECK(gts_step_run(step) == -1);
        }
        fill(&args.gt_conn_E2V, 1);
        CHECK(gts_step_run(step) == 0);
        CHECK(has_passed(&args.gt_conn_E2V, 1 - (int32_t)base));
        gts_profile *const profile = gts_profile_begin(); /* each start takes the slow way */
        fill(&args.gt_conn_E2V, 7);
        CHECK(gts_start(call) == 0);
        CHECK(has_passed(&args.gt_conn_E2V, 7 - (int32_t)base));
        free(gts_profile_end(profile));
        CHECK(gts_start(call) == 0);
        CHECK(has_passed(&args.gt_conn_E2V, 7 - (int32_t)base));
        gts_step_free(&step);
        gts_unbind(&call);
        gts_unbind(&other_call);
    }
    CHECK(gts_set_index_base(program, "E2V", 0) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 5);
    recorder = open_recorder(argv[2]);
    program = load(argv[1], argv[2]);
    test_layouts();
    recorder.clear();
    test_what_is_outside();
    test_single_elements();
    test_wide_table(argv[3], argv[4]);
    test_in_turn();
    test_unmapped_table();
    test_corrected_table();
    test_bound_calls();
    gts_close(&program);
    recorder.clear();
    return 0;
}
