/* Every check of runtime/arguments/check.c: a good call first, then one thing wrong, refused before anything has run. */
#include "whole.h"

static struct recorder recorder;
static gts_program *program;

static void call_well(void)
{
    struct whole w;
    set_up(&w);
    const size_t before = recorder.count();
    CHECK(whole_call(program, &w.args) == 0);
    CHECK(recorder.count() > before);
    const struct record record = last_record(&recorder);
    CHECK(record.function == PROGRAM);
    CHECK(record.values[SLOT_VN] == (uintptr_t)w.args.vn.data);
    CHECK(record.values[SLOT_NK] == LEVELS);
}

static void refused(const struct whole *w, gts_error_kind kind, const char *text)
{
    const size_t before = recorder.count();
    CHECK(whole_call(program, &w->args) == -1);
    CHECK_ERROR(gts_last_error(program), kind, text);
    CHECK(recorder.count() == before);
    call_well();
}

#define REFUSED(change, kind, text)                                                                                    \
    do {                                                                                                               \
        struct whole w;                                                                                                \
        call_well();                                                                                                   \
        set_up(&w);                                                                                                    \
        change;                                                                                                        \
        refused(&w, kind, text);                                                                                       \
    } while (0)

static void test_types(void)
{
    REFUSED(w.args.vn = (gts_array){0}, GTS_TYPE_ERROR, "Argument 'vn' of program 'whole' must be an array, not NULL.");
    REFUSED(w.args.gt_conn_E2V = (gts_array){0}, GTS_TYPE_ERROR,
            "Argument 'E2V' of program 'whole' must be an array, not NULL.");
    REFUSED(w.args.vn.dtype = GTS_FLOAT32, GTS_TYPE_ERROR,
            "Argument 'vn' of program 'whole' must have dtype 'float64', not 'float32'.");
    REFUSED(w.args.gt_conn_E2V.dtype = GTS_INT64, GTS_TYPE_ERROR, "...'int32', not 'int64'.");
    REFUSED(w.args.vn.dtype = 99, GTS_TYPE_ERROR, "...'float64', not 'unknown dtype'.");
    REFUSED(w.args.vn.device = GTS_CUDA, GTS_VALUE_ERROR,
            "Argument 'vn' of program 'whole' must be on device 'cpu', not on 'cuda'.");
    REFUSED(w.args.vn.device = 77, GTS_VALUE_ERROR, "...'cpu', not on 'unknown device'.");
    REFUSED(w.args.out_1.readonly = true, GTS_VALUE_ERROR,
            "Argument 'out[1]' of program 'whole' is written by the program and must not be read-only.");
}

static void test_dimensions(void)
{
    REFUSED(w.args.vn.rank = 1, GTS_TYPE_ERROR,
            "Argument 'vn' of program 'whole' must have 2 dimensions ('Edge', 'K'), not 1.");
    REFUSED(w.args.x_0.rank = 700, GTS_TYPE_ERROR, "...1 dimension ('K'), not 700.");
    REFUSED((w.args.vn.dims[0] = "K", w.args.vn.dims[1] = "Edge"), GTS_TYPE_ERROR,
            "Argument 'vn' of program 'whole' must have dimension 'Edge' on axis 0, not 'K'.");
    REFUSED(w.args.vn.dims[1] = "Edge", GTS_TYPE_ERROR, "...'K' on axis 1, not 'Edge'.");
}

/* Names are compared when any array is another one, then of all: those of known memory decide nothing else. */
static void test_dimensions_of_known_memory(void)
{
    struct whole w;
    set_up(&w);
    CHECK(whole_call(program, &w.args) == 0);
    w.args.vn.dims[1] = "Edge";
    CHECK(whole_call(program, &w.args) == 0);
    w.args.x_0.data = w.memory[0];
    refused(&w, GTS_TYPE_ERROR, "...'K' on axis 1, not 'Edge'.");
}

static void test_constants(void)
{
    REFUSED(w.args.gt_conn_E2V.shape[1] = 3, GTS_VALUE_ERROR,
            "Argument 'E2V' of program 'whole' must have size 2 on axis 1 ('E2V'), not 3.");
    REFUSED(w.args.vn.origin[0] = 1, GTS_VALUE_ERROR, "...start 0 on axis 0 ('Edge'), not 1.");
    REFUSED(w.args.vn.strides[0] = -1, GTS_VALUE_ERROR, "...stride 1 on axis 0 ('Edge'), not -1.");
}

static void test_negative_sizes(void)
{
    REFUSED(w.args.x_0.shape[0] = -3, GTS_VALUE_ERROR,
            "Argument 'x[0]' of program 'whole' has the negative size -3 on axis 0 ('K').");
    REFUSED(w.args.gt_conn_E2V.shape[0] = -1, GTS_VALUE_ERROR, "...size -1 on axis 0 ('Edge').");
}

static void test_int32(void)
{
    REFUSED(w.args.vn.shape[1] = 3000000000, GTS_VALUE_ERROR,
            "Argument 'vn' of program 'whole' has size 3000000000 on axis 1 ('K'), which does not fit 'int32'.");
    REFUSED(w.args.out_0.origin[1] = -2147483649, GTS_VALUE_ERROR,
            "...start -2147483649 on axis 1 ('K'), which does not fit 'int32'.");
    REFUSED(w.args.out_0.origin[1] = 2147483644, GTS_VALUE_ERROR,
            "...stop 2147483648 on axis 1 ('K'), which does not fit 'int32'.");
    REFUSED(w.args.out_1.strides[1] = 2147483648, GTS_VALUE_ERROR,
            "...stride 2147483648 on axis 1 ('K'), which does not fit 'int32'.");
}

static void test_symbols(void)
{
    REFUSED(w.args.x_0.shape[0] = LEVELS + 1, GTS_VALUE_ERROR,
            "Arguments of program 'whole' disagree: size of axis 1 of 'vn' is 4, but size of axis 0 of 'x[0]' is 5.");
    REFUSED(w.args.out_0.shape[1] = 1, GTS_VALUE_ERROR, "...size of axis 1 of 'out[0]' is 1.");
}

static void test_null(void)
{
    const char *const text = "The arguments of program 'whole' must be a struct, not NULL.";
    for (int i = 0; i < 2; ++i) {
        CHECK(whole_call(program, NULL) == -1);
        CHECK_ERROR(gts_last_error(program), GTS_TYPE_ERROR, text);
    }
    call_well();
    const size_t before = recorder.count();
    CHECK(whole_call(program, NULL) == -1); /* also when it knows the arrays of a call */
    CHECK_ERROR(gts_last_error(program), GTS_TYPE_ERROR, text);
    CHECK(recorder.count() == before);
    call_well();
}

/* What no slot takes may be anything, and so may names that the caller does not know. */
static void test_accepts(void)
{
    struct whole w;
    set_up(&w);
    w.args.vn.readonly = true;
    w.args.vn.dims[0] = w.args.vn.dims[1] = NULL;
    w.args.out_1.shape[0] = 3000000000;
    w.args.out_1.origin[1] = -3000000000;
    CHECK(whole_call(program, &w.args) == 0);
    char edge[] = "Edge";
    w.args.vn.dims[0] = edge;
    CHECK(whole_call(program, &w.args) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    recorder = open_recorder(argv[2]);
    program = load(argv[1], argv[2]);
    test_null();
    test_types();
    test_dimensions();
    test_dimensions_of_known_memory();
    test_constants();
    test_negative_sizes();
    test_int32();
    test_symbols();
    test_accepts();
    gts_close(&program);
    recorder.clear();
    return 0;
}
