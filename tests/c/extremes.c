/* The least and the greatest values that indices, sizes and origins can have are refused, and nothing overflows. */
#include <inttypes.h>

#include "gather_stub.h"
#include "harness.h"
#include "wide_gather_stub.h"

enum { EDGES = 3, VERTICES = 4, NEIGHBORS = 2, ROW = 1, COLUMN = 1 };

static double x[VERTICES], out[EDGES];

static gts_array line(double *data, int64_t size)
{
    return (gts_array){
        .data = data, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {size}, .strides = {1}};
}

struct side {
    const char *name;
    struct recorder recorder;
    gts_program *program;
};

static struct side narrow = {.name = "gather"}, wide = {.name = "wide_gather"};

/* Tables are known by their addresses, so each call has one of its own. */
static int call(const struct side *side, int64_t value, const gts_array *field)
{
    static int32_t of_32[64][EDGES * NEIGHBORS];
    static int64_t of_64[64][EDGES * NEIGHBORS];
    static size_t number;
    CHECK(number < 64);
    for (int i = 0; i < EDGES * NEIGHBORS; ++i) {
        of_64[number][i] = i == ROW * NEIGHBORS + COLUMN ? value : 2;
        of_32[number][i] = (int32_t)of_64[number][i];
    }
    const gts_array values = line(out, EDGES);
    const struct gather_args args = {
        .x = *field, .out = values, .gt_conn_E2V = packed_table(of_32[number], GTS_INT32, EDGES, NEIGHBORS)};
    const struct wide_gather_args wide_args = {
        .x = *field, .out = values, .gt_conn_E2V = packed_table(of_64[number], GTS_INT64, EDGES, NEIGHBORS)};
    ++number;
    return side == &wide ? wide_gather_call(side->program, &wide_args) : gather_call(side->program, &args);
}

static void refused(const struct side *side, int64_t value, const gts_array *field, const char *text)
{
    const size_t before = side->recorder.count();
    CHECK(call(side, value, field) == -1);
    CHECK_ERROR(gts_last_error(side->program), GTS_VALUE_ERROR, text);
    CHECK(side->recorder.count() == before);
    const gts_array good = line(x, VERTICES);
    CHECK(call(side, 3, &good) == 0);
    CHECK(side->recorder.count() == before + 1);
}

static void test_indices(const struct side *side)
{
    const int64_t values[] = {side == &wide ? INT64_MIN : INT32_MIN, side == &wide ? INT64_MAX : INT32_MAX};
    const gts_array field = line(x, VERTICES);
    for (int64_t base = 0; base < 2; ++base) {
        CHECK(gts_set_index_base(side->program, "E2V", base) == 0);
        for (int i = 0; i < 2; ++i) {
            char text[512];
            (void)snprintf(text, sizeof text,
                           "Connectivity 'E2V' of program '%s' has index %" PRId64 " in row %" PRId64
                           ", column %" PRId64 " (index base %" PRId64 ", see gts_set_index_base()), but argument 'x'"
                           " has the indices %" PRId64 " to %" PRId64 " on axis 0 ('Vertex')." HINT,
                           side->name, values[i], ROW + base, COLUMN + base, base, base, VERTICES - 1 + base);
            refused(side, values[i], &field, text);
        }
        CHECK(call(side, base - 1, &field) == 0); /* the skip value */
    }
    CHECK(gts_set_index_base(side->program, "E2V", 0) == 0);
}

static void test_origins(const struct side *side)
{
    const int64_t origins[] = {INT64_MIN, INT64_MAX, (int64_t)INT32_MIN - 1};
    for (int i = 0; i < 3; ++i) {
        gts_array field = line(x, VERTICES);
        field.origin[0] = origins[i];
        char text[512];
        (void)snprintf(text, sizeof text,
                       "Argument 'x' of program '%s' has start %" PRId64
                       " on axis 0 ('Vertex'), which does not fit 'int32'.",
                       side->name, origins[i]);
        refused(side, 3, &field, text);
    }
    const int64_t lowest[] = {INT32_MIN, INT32_MAX};
    for (int i = 0; i < 2; ++i) {
        gts_array field = line(x, VERTICES);
        field.origin[0] = lowest[i];
        char text[512];
        (void)snprintf(text, sizeof text,
                       "Connectivity 'E2V' of program '%s' has index 2 in row 0, column 0 (index base 0, see"
                       " gts_set_index_base()), but argument 'x' has the indices %" PRId64 " to %" PRId64
                       " on axis 0 ('Vertex')." HINT,
                       side->name, lowest[i], lowest[i] + VERTICES - 1);
        refused(side, 3, &field, text);
    }
}

/* No array has so many elements. The last one has an index up to an origin of 1. */
static void test_sizes(const struct side *side)
{
    for (int64_t origin = -1; origin < 3; ++origin) {
        gts_array field = line(x, INT64_MAX);
        field.origin[0] = origin;
        CHECK(call(side, 3, &field) == (origin < 2 ? 0 : -1));
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 5);
    struct side *const sides[] = {&narrow, &wide};
    for (int i = 0; i < 2; ++i) {
        sides[i]->recorder = open_recorder(argv[2 * i + 2]);
        sides[i]->program = load(argv[2 * i + 1], argv[2 * i + 2]);
        CHECK(gts_set_index_base(sides[i]->program, "E2V", 0) == 0);
        test_origins(sides[i]);
        test_sizes(sides[i]);
        test_indices(sides[i]);
        gts_close(&sides[i]->program);
        sides[i]->recorder.clear();
    }
    return 0;
}
