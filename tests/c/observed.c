/*
 * What recordings and checks cost a program that they do not observe: it must know its arrays as without them. Arguments:
 * the stub and the library of 'gather'. The calls 2 and 3 are recorded.
 */
#include "gather_stub.h"
#include "gtstub/stub.h"
#include "harness.h"

enum { ROWS = 4 };

static gts_program *program;

/* Makes a call, and tells whether the arrays were known before it. */
static bool knows_arrays(const struct gather_args *args)
{
    /* A call that knows its arrays does not see that this name is wrong. */
    struct gather_args named = *args;
    named.x.dims[0] = "Wrong";
    const int status = gather_call(program, &named);
    if (status == 0)
        return true;
    CHECK_ERROR(gts_last_error(program), GTS_TYPE_ERROR,
                "Argument 'x' of program 'gather' must have dimension 'Vertex' on axis 0, not 'Wrong'.");
    CHECK(gather_call(program, args) == 0);
    return false;
}

static gts_checks *begin(const char *checks)
{
    gts_checks *const begun = gts_checks_begin(checks);
    CHECK(begun != NULL);
    return begun;
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    static double x[ROWS], out[ROWS];
    static int32_t table[2 * ROWS];
    program = load(argv[1], argv[2]);
    const gts_array line = {
        .data = x, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {ROWS}, .strides = {1}};
    struct gather_args args = {.x = line, .out = line};
    args.out.data = out;
    args.gt_conn_E2V = (gts_array){
        .data = table, .dtype = GTS_INT32, .device = GTS_CPU, .rank = 2, .shape = {ROWS, 2}, .strides = {2, 1}};

    CHECK(gather_call(program, &args) == 0); /* 1, which is only counted */
    CHECK(!knows_arrays(&args));             /* 2 */
    CHECK(!knows_arrays(&args));             /* 3 */
    CHECK(knows_arrays(&args));
    CHECK(knows_arrays(&args));

    gts_checks *others = begin("only other*; nan");
    (void)knows_arrays(&args); /* the checks meet the program */
    CHECK(knows_arrays(&args));
    gts_checks *all = begin("nan");
    CHECK(!knows_arrays(&args));
    CHECK(!knows_arrays(&args));
    gts_checks_end(&all);
    (void)knows_arrays(&args);
    CHECK(knows_arrays(&args));
    gts_checks_end(&others);

    gts_close(&program);
    open_recorder(argv[2]).clear();
    return 0;
}
