/*
 * Bound calls and steps: what they run, every refusal, and memory. Arguments: the stubs and the libraries of 'prog', which
 * computes (sum.c), of 'whole' and 'gather', which record, and of 'fixed', a scalar of which was compiled in.
 */
#define _DEFAULT_SOURCE
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixed_stub.h"
#include "gather_stub.h"
#include "gtstub/step.h"
#include "prog_stub.h"
#include "whole.h"

enum { N = 5, RUNS = 1000000, POSITIONS = 1000 };

static const char *const *libraries; /* stub, library, ... */

enum { PROG, WHOLE = 2, GATHER = 4, FIXED = 6 };

static gts_program *load_one(int which)
{
    return load(libraries[which], libraries[which + 1]);
}

#define CHECK_REFUSED(call, program, kind, text)                                                                       \
    do {                                                                                                               \
        CHECK((call) == -1);                                                                                           \
        CHECK_ERROR(gts_last_error(program), kind, text);                                                              \
    } while (false)

static const char UNBOUND[] = "The call cannot be used: it was unbound, or never bound.";
static const char FREED[] = "The step cannot be used: it was freed, or never made.";
static const char CLOSED[] = "The bound call of program 'prog' cannot be used: the program was closed.";

static gts_array line(double *data, int64_t size)
{
    return (gts_array){
        .data = data, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {size}, .strides = {1}};
}

static struct prog_args prog_args(double *x, double factor, double *out, int64_t size)
{
    return (struct prog_args){.x = line(x, size), .factor = factor, .out = line(out, size)};
}

static gts_bound_call *bind(gts_program *program, const void *args)
{
    gts_bound_call *call;
    if (gts_bind(program, args, &call) != 0) {
        fprintf(stderr, "%s\n", gts_last_error(program)->message);
        exit(1);
    }
    return call;
}

static gts_bound_call *bind_prog(gts_program *program, double *x, double factor, double *out, int64_t size)
{
    const struct prog_args args = prog_args(x, factor, out, size);
    return bind(program, &args);
}

static gts_step *make(const char *name, const gts_action *actions, size_t count)
{
    gts_step *step;
    CHECK(gts_step_new(name, actions, count, &step) == 0);
    return step;
}

static size_t count(const struct recorder *recorder, int function)
{
    size_t n = 0;
    for (size_t i = 0; i < recorder->count(); ++i)
        n += recorder->at(i).function == function;
    return n;
}

/* ---- Results --------------------------------------------------------------------------------------------------- */

static void start_values(double *x)
{
    for (int i = 0; i < N; ++i)
        x[i] = 0.1 * (i + 1);
}

static int add_one(void *data)
{
    ((double *)data)[0] += 1;
    return 0;
}

/* A step gives what single calls give, bit for bit, also with another call of the program in between. */
static void test_results(void)
{
    gts_program *program = load_one(PROG);
    double x[N], out[N] = {0}, expected_x[N], expected_out[N] = {0}, long_x[2 * N] = {1}, long_out[2 * N] = {0};
    start_values(x);
    start_values(expected_x);
    gts_bound_call *there = bind_prog(program, x, 0.3, out, N), *back = bind_prog(program, out, 0.7, x, N);
    CHECK(out[N - 1] == 0); /* binding runs nothing */
    const gts_action actions[] = {{.call = there}, {.function = add_one, .data = x}, {.call = back}, {.call = there}};
    gts_step *step = make("there and back", actions, 4);
    const struct prog_args other = prog_args(long_x, 2, long_out, 2 * N);
    for (int i = 0; i < 10; ++i) {
        const struct prog_args first = prog_args(expected_x, 0.3, expected_out, N);
        const struct prog_args second = prog_args(expected_out, 0.7, expected_x, N);
        CHECK(prog_call(program, &first) == 0);
        CHECK(add_one(expected_x) == 0);
        CHECK(prog_call(program, &second) == 0 && prog_call(program, &first) == 0);
        CHECK(gts_step_run(step) == 0);
        CHECK(memcmp(x, expected_x, sizeof x) == 0 && memcmp(out, expected_out, sizeof out) == 0);
        CHECK(prog_call(program, &other) == 0);
    }
    CHECK(gts_bound_program(there) == program && gts_bound_program(NULL) == NULL);
    gts_step_free(&step);
    gts_step_free(&step);
    gts_unbind(&there);
    gts_unbind(&there);
    gts_close(&program);
    gts_unbind(&back); /* after its program */
}

static void test_many_positions(void)
{
    gts_program *program = load_one(PROG);
    double x[N] = {1}, out[N] = {0};
    static gts_action actions[POSITIONS];
    gts_bound_call *calls[POSITIONS];
    for (int i = 0; i < POSITIONS; ++i)
        actions[i].call = calls[i] = bind_prog(program, i % 2 == 0 ? x : out, 1, i % 2 == 0 ? out : x, N);
    gts_step *step = make("many", actions, POSITIONS);
    CHECK(gts_step_run(step) == 0);
    CHECK(x[0] == 1 && x[1] == POSITIONS);
    const double half = 0.5;
    CHECK(gts_step_set_scalar(step, "factor", GTS_FLOAT64, &half) == 0);
    gts_bound_call *const last = calls[POSITIONS - 1];
    CHECK(gts_start(last) == 0 && x[0] == 0.5 * out[0]);
    CHECK(gts_step_swap(step, x, out) == 0);
    out[0] = 8;
    CHECK(gts_start(calls[0]) == 0 && x[0] == 4);
    gts_step_free(&step);
    for (int i = 0; i < POSITIONS; ++i)
        gts_unbind(&calls[i]);
    step = make("nothing", NULL, 0);
    CHECK(gts_step_run(step) == 0);
    gts_step_free(&step);
    gts_close(&program);
}

static long resident_pages(void)
{
    long size = 0, resident = 0;
    FILE *const file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld %ld", &size, &resident) == 2 && fclose(file) == 0);
    return resident;
}

static void test_memory_stays_the_same(void)
{
    gts_program *program = load_one(PROG);
    double x[N] = {0}, out[N] = {0};
    gts_bound_call *call = bind_prog(program, x, 1, out, N);
    gts_step *step = make("often", &(gts_action){.call = call}, 1);
    CHECK(gts_step_run(step) == 0);
    const long before = resident_pages();
    for (int i = 0; i < RUNS; ++i)
        CHECK(gts_step_run(step) == 0);
    CHECK(resident_pages() - before < 64); /* a byte that a run loses would be 244 */
    gts_step_free(&step);
    gts_unbind(&call);
    gts_close(&program);
}

/* A bound call shares the copy of a table, which it keeps when the program has forgotten it. */
static void test_tables(void)
{
    gts_program *program = load_one(GATHER);
    const struct recorder recorder = open_recorder(libraries[GATHER + 1]);
    CHECK(gts_set_index_base(program, "E2V", 1) == 0);
    static double x[4], out[3];
    static int32_t tables[4][6] = {{1, 2, 4, 2, 3, 0}, {4, 4, 4, 4, 4, 4}, {3, 3, 3, 3, 3, 3}, {2, 2, 2, 2, 2, 2}};
    static const int32_t expected[] = {0, 1, 3, 1, 2, -1};
    struct gather_args args = {.x = line(x, 4), .out = line(out, 3)};
    args.gt_conn_E2V = (gts_array){
        .data = tables[0], .dtype = GTS_INT32, .device = GTS_CPU, .rank = 2, .shape = {3, 2}, .strides = {1, 3}};
    gts_bound_call *call = bind(program, &args);
    for (int i = 1; i < 4; ++i) {
        args.gt_conn_E2V.data = tables[i];
        CHECK(gather_call(program, &args) == 0);
    }
    CHECK(gts_start(call) == 0);
    const int32_t *const passed = (const int32_t *)(uintptr_t)last_record(&recorder).values[0]; /* NOLINT */
    CHECK(passed != tables[0] && memcmp(passed, expected, sizeof expected) == 0);
    gts_unbind(&call);
    gts_close(&program);
    recorder.clear();
}

/* ---- Handles --------------------------------------------------------------------------------------------------- */

static void test_another_call_has_changed_memory_symbols(void)
{
    const struct recorder recorder = open_recorder(libraries[WHOLE + 1]);
    recorder.clear();
    gts_program *program = load_one(WHOLE);
    struct whole w;
    set_up(&w);
    gts_bound_call *call = bind(program, &w.args);
    CHECK(recorder.count() == 0);
    CHECK(gts_start(call) == 0 && gts_start(call) == 0);
    CHECK(count(&recorder, INIT) == 1);
    w.args.vn.shape[1] = w.args.x_0.shape[0] = w.args.out_0.shape[1] = w.args.out_1.shape[1] = LEVELS - 1;
    CHECK(whole_call(program, &w.args) == 0);
    CHECK(count(&recorder, INIT) == 2);
    recorder.clear();
    CHECK(gts_start(call) == 0);
    CHECK(count(&recorder, INIT) == 1 && recorder.at(0).function == EXIT && recorder.at(1).function == INIT);
    CHECK(recorder.at(1).values[0] == LEVELS && last_record(&recorder).handle == recorder.at(1).handle);
    CHECK((int32_t)last_record(&recorder).values[SLOT_NK] == LEVELS);
    gts_unbind(&call);
    gts_close(&program);
    recorder.clear();
}

static void test_a_workspace_is_missing(void)
{
    const struct recorder recorder = open_recorder(libraries[WHOLE + 1]);
    recorder.behaviour->workspace_bytes = 1000;
    gts_program *program = load_one(WHOLE);
    struct whole w;
    set_up(&w);
    gts_bound_call *call = bind(program, &w.args);
    gts_step *step = make("s", &(gts_action){.call = call}, 1);
    CHECK_REFUSED(gts_start(call), program, GTS_RUNTIME_ERROR,
                  "Program 'whole' needs a workspace of 1000 bytes in 'CPU_Heap', but none has been set.");
    CHECK_REFUSED(gts_step_run(step), NULL, GTS_RUNTIME_ERROR,
                  "Step 's' has stopped at position 1 of 1, program 'whole': Program 'whole' needs a workspace of 1000 "
                  "bytes in 'CPU_Heap', but none has been set.");
    void *const memory = aligned_alloc(256, 1024);
    CHECK(gts_set_workspace(program, "CPU_Heap", memory, 1000) == 0);
    CHECK(gts_step_run(step) == 0 && count(&recorder, PROGRAM) == 1);
    gts_step_free(&step);
    gts_unbind(&call);
    gts_close(&program);
    free(memory);
    recorder.behaviour->workspace_bytes = 0;
    recorder.clear();
}

/* ---- Refusals -------------------------------------------------------------------------------------------------- */

static void test_binding_is_refused(void)
{
    gts_program *program = load_one(PROG);
    double x[N] = {0}, out[N] = {0};
    struct prog_args args = prog_args(x, 1, out, N);
    gts_bound_call *call = bind(program, &args), *refused = call;
    args.out.shape[0] = N - 1;
    CHECK_REFUSED(
        gts_bind(program, &args, &refused), program, GTS_VALUE_ERROR,
        "Arguments of program 'prog' disagree: size of axis 0 of 'x' is 5, but size of axis 0 of 'out' is 4.");
    CHECK(refused == NULL);
    CHECK_REFUSED(gts_bind(program, NULL, &refused), program, GTS_TYPE_ERROR,
                  "The arguments of program 'prog' must be a struct, not NULL.");
    CHECK_REFUSED(gts_bind(NULL, &args, &refused), NULL, GTS_RUNTIME_ERROR,
                  "The program is not open: it was closed, or never opened.");
    CHECK(gts_start(call) == 0);
    gts_unbind(&call);
    gts_close(&program);
}

static void test_a_closed_program(void)
{
    gts_program *program = load_one(PROG), *other = load_one(PROG);
    double x[N] = {0}, out[N] = {7};
    const double factor = 2;
    gts_bound_call *of_other = bind_prog(other, x, 1, out, N), *call = bind_prog(program, x, 1, out, N);
    const gts_action actions[] = {{.call = of_other}, {.call = call}};
    gts_step *step = make("s", actions, 2);
    CHECK(gts_step_run(step) == 0);
    gts_close(&program);
    CHECK(gts_bound_program(call) == NULL);
    CHECK_REFUSED(gts_start(call), NULL, GTS_RUNTIME_ERROR, CLOSED);
    CHECK_REFUSED(gts_set_scalar(call, "factor", GTS_FLOAT64, &factor), NULL, GTS_RUNTIME_ERROR, CLOSED);
    CHECK_REFUSED(gts_step_run(step), NULL, GTS_RUNTIME_ERROR,
                  "Step 's' has stopped at position 2 of 2, program 'prog': The bound call of program 'prog' cannot be "
                  "used: the program was closed. Position 1 has run.");
    static const char refusal[] = "Step 's' cannot be changed at position 2, program 'prog': The bound call of program "
                                  "'prog' cannot be used: the program was closed. Nothing has changed.";
    x[0] = 3;
    CHECK_REFUSED(gts_step_set_scalar(step, "factor", GTS_FLOAT64, &factor), NULL, GTS_RUNTIME_ERROR, refusal);
    CHECK_REFUSED(gts_step_swap(step, x, out), NULL, GTS_RUNTIME_ERROR, refusal);
    CHECK(gts_start(of_other) == 0 && out[0] == 3);
    gts_step_free(&step);
    gts_unbind(&call);
    gts_unbind(&of_other);
    gts_close(&other);
}

static void test_what_was_never_made(void)
{
    const double factor = 2;
    double x[N];
    CHECK_REFUSED(gts_start(NULL), NULL, GTS_RUNTIME_ERROR, UNBOUND);
    CHECK_REFUSED(gts_set_scalar(NULL, "factor", GTS_FLOAT64, &factor), NULL, GTS_RUNTIME_ERROR, UNBOUND);
    CHECK_REFUSED(gts_step_run(NULL), NULL, GTS_RUNTIME_ERROR, FREED);
    CHECK_REFUSED(gts_step_set_scalar(NULL, "factor", GTS_FLOAT64, &factor), NULL, GTS_RUNTIME_ERROR, FREED);
    CHECK_REFUSED(gts_step_swap(NULL, x, x), NULL, GTS_RUNTIME_ERROR, FREED);
}

static void test_positions_that_are_no_actions(void)
{
    gts_program *program = load_one(PROG);
    double x[N] = {0}, out[N] = {0};
    gts_bound_call *call = bind_prog(program, x, 1, out, N);
    const gts_action actions[] = {{.call = call}, {.name = "nothing"}, {.call = call, .function = add_one}};
    gts_step *step = NULL;
    static const char text[] = "Position 2 of step 's' must have either a bound call, a function or a step.";
    CHECK_REFUSED(gts_step_new("s", actions, 2, &step), NULL, GTS_TYPE_ERROR, text);
    CHECK_REFUSED(gts_step_new("s", actions + 1, 2, &step), NULL, GTS_TYPE_ERROR,
                  "Position 1 of step 's' must have either a bound call, a function or a step.");
    const gts_action both[] = {actions[0], actions[2]};
    CHECK_REFUSED(gts_step_new("s", both, 2, &step), NULL, GTS_TYPE_ERROR, text);
    CHECK(step == NULL);
    gts_unbind(&call);
    gts_close(&program);
}

static int return_three(void *data)
{
    (void)data;
    return 3;
}

static int run_again(void *step)
{
    return gts_step_run(*(gts_step **)step);
}

/* What was done before stays done, and the step can be run again. */
static void test_functions_that_fail(void)
{
    gts_program *program = load_one(PROG);
    double x[N] = {1}, out[N] = {0};
    gts_bound_call *call = bind_prog(program, x, 1, out, N);
    gts_action actions[] = {{.call = call}, {.call = call}, {.function = return_three, .name = "halo"}, {.call = call}};
    gts_step *step = make("s", actions, 4);
    static const char text[] = "Step 's' has stopped at position 3 of 4, function 'halo': it has returned 3. The "
                               "positions 1 to 2 have run.";
    CHECK_REFUSED(gts_step_run(step), NULL, GTS_RUNTIME_ERROR, text);
    gts_profile *const profile = gts_profile_begin();
    CHECK_REFUSED(gts_step_run(step), NULL, GTS_RUNTIME_ERROR, text);
    free(gts_profile_end(profile));
    CHECK(out[0] == 1);
    gts_step_free(&step);

    actions[2] = (gts_action){.function = run_again, .data = &step};
    step = make("loop", actions, 3);
    CHECK_REFUSED(
        gts_step_run(step), NULL, GTS_RUNTIME_ERROR,
        "Step 'loop' has stopped at position 3 of 3, function 'unnamed': it has returned -1. The positions 1 to 2 "
        "have run.");
    gts_step_free(&step);
    gts_unbind(&call);
    gts_close(&program);
}

static int change_while_running(void *data)
{
    gts_step *const step = *(gts_step **)data;
    static const char text[] = "Step 'loop' is running, in another thread or because one of its functions uses it.";
    const double factor = 2;
    CHECK_REFUSED(gts_step_run(step), NULL, GTS_RUNTIME_ERROR, text);
    CHECK_REFUSED(gts_step_set_scalar(step, "factor", GTS_FLOAT64, &factor), NULL, GTS_RUNTIME_ERROR, text);
    CHECK_REFUSED(gts_step_swap(step, data, data), NULL, GTS_RUNTIME_ERROR, text);
    gts_step *copy = step;
    CHECK_REFUSED(gts_step_free(&copy), NULL, GTS_RUNTIME_ERROR, text);
    CHECK(copy == step);
    return 0;
}

static void test_a_step_that_uses_itself(void)
{
    gts_step *step = NULL;
    step = make("loop", &(gts_action){.function = change_while_running, .data = &step}, 1);
    CHECK(gts_step_run(step) == 0);
    CHECK(gts_step_run(step) == 0);
    gts_step_free(&step);
}

/* ---- Changes --------------------------------------------------------------------------------------------------- */

static void test_scalars(void)
{
    gts_program *program = load_one(PROG), *whole = load_one(WHOLE), *fixed = load_one(FIXED);
    const struct recorder recorder = open_recorder(libraries[WHOLE + 1]);
    double x[N] = {1}, out[N] = {0}, factor = 4;
    const float single = 4;
    const int32_t i = 12;
    const uint32_t u = 12;
    struct whole w;
    set_up(&w);
    gts_bound_call *call = bind_prog(program, x, 2, out, N), *of_whole = bind(whole, &w.args);
    gts_bound_call *of_fixed = bind(fixed, &(struct fixed_args){.n = 1});
    CHECK(gts_set_scalar(call, "factor", GTS_FLOAT64, &factor) == 0);
    CHECK(gts_start(call) == 0 && out[0] == 4);
    CHECK_REFUSED(gts_set_scalar(call, "factors", GTS_FLOAT64, &factor), program, GTS_TYPE_ERROR,
                  "Program 'prog' has no argument 'factors'.");
    CHECK_REFUSED(gts_set_scalar(call, "factor", GTS_FLOAT32, &single), program, GTS_TYPE_ERROR,
                  "...'float64', not 'float32'.");
    CHECK_REFUSED(gts_set_scalar(call, "factor", (gts_dtype)0, &single), program, GTS_TYPE_ERROR,
                  "...'float64', not 'unknown dtype'.");
    CHECK_REFUSED(gts_set_scalar(call, "x", GTS_FLOAT64, &factor), program, GTS_TYPE_ERROR,
                  "Argument 'x' of program 'prog' is not a scalar: bind the call again to change it.");
    CHECK_REFUSED(gts_set_scalar(of_fixed, "m", GTS_INT32, &i), fixed, GTS_VALUE_ERROR,
                  "Argument 'm' of program 'fixed' was compiled in, and cannot be changed.");
    CHECK_REFUSED(gts_set_scalar(of_whole, "x[1][0]", GTS_UINT32, &u), whole, GTS_TYPE_ERROR,
                  "...'int32', not 'uint32'.");
    CHECK(gts_set_scalar(of_whole, "x[1][0]", GTS_INT32, &i) == 0);
    CHECK(gts_set_scalar(of_whole, "x[1][1]", GTS_FLOAT32, &single) == 0); /* a zero-dimensional field */
    CHECK(gts_start(of_whole) == 0 && (int32_t)last_record(&recorder).values[SLOT_X_1_0] == 12);
    CHECK(memcmp(&last_record(&recorder).values[SLOT_X_1_1], &single, sizeof single) == 0);
    const unsigned char all_bits = 0xFF; /* true, as some Fortran compilers write it */
    CHECK(gts_set_scalar(of_whole, "flag", GTS_BOOL, &all_bits) == 0 && gts_start(of_whole) == 0);
    CHECK((last_record(&recorder).values[SLOT_FLAG] & 0xFF) == 1);

    const gts_action actions[] = {{.call = of_whole}, {.call = call}, {.call = of_fixed}, {.call = call}};
    gts_step *step = make("s", actions, 4);
    CHECK_REFUSED(gts_step_set_scalar(step, "factors", GTS_FLOAT64, &factor), NULL, GTS_TYPE_ERROR,
                  "No program of step 's' has an argument 'factors'.");
    CHECK_REFUSED(gts_step_set_scalar(step, "factor", GTS_FLOAT32, &single), NULL, GTS_TYPE_ERROR,
                  "Step 's' cannot be changed at position 2, program 'prog': Argument 'factor' of program 'prog' must "
                  "have dtype 'float64', not 'float32'. Nothing has changed.");
    CHECK_REFUSED(gts_step_set_scalar(step, "m", GTS_INT32, &i), NULL, GTS_VALUE_ERROR,
                  "Step 's' cannot be changed at position 3, program 'fixed': Argument 'm' of program 'fixed' was "
                  "compiled in, and cannot be changed. Nothing has changed.");
    out[0] = 0;
    CHECK(gts_step_run(step) == 0 && out[0] == 4);
    factor = 5;
    CHECK(gts_step_set_scalar(step, "factor", GTS_FLOAT64, &factor) == 0);
    CHECK(gts_step_run(step) == 0 && out[0] == 5);
    gts_step_free(&step);
    gts_unbind(&call);
    gts_unbind(&of_whole);
    gts_unbind(&of_fixed);
    gts_close(&program);
    gts_close(&whole);
    gts_close(&fixed);
    recorder.clear();
}

static void test_time_levels(void)
{
    gts_program *program = load_one(PROG);
    double now[N] = {1, 1, 1, 1, 1}, new[N] = {0}, other[2 * N] = {0}, two[2] = {0};
    gts_bound_call *call = bind_prog(program, now, 2, new, N), *section = bind_prog(program, now, 1, two, 2);
    gts_bound_call *of_other = bind_prog(program, other, 1, other, 2 * N);
    const gts_action actions[] = {{.call = section}, {.call = call}, {.call = of_other}};
    gts_step *step = make("s", actions, 3);
    CHECK(gts_step_run(step) == 0 && new[4] == 3 && two[1] == 2);
    CHECK(gts_step_swap(step, now, new) == 0);
    CHECK(gts_step_run(step) == 0 && now[4] == 9 && two[1] == 5); /* now = 2 * new[i] + new[i - 1] */
    CHECK_REFUSED(gts_step_swap(step, new, new), NULL, GTS_VALUE_ERROR,
                  "Arrays of step 's' cannot be swapped: the two are the same.");
    static const char first[] = "Arrays of step 's' cannot be swapped: no program of it has the first one.";
    static const char second[] = "Arrays of step 's' cannot be swapped: no program of it has the second one.";
    CHECK_REFUSED(gts_step_swap(step, &now[1], new), NULL, GTS_VALUE_ERROR, first);
    CHECK_REFUSED(gts_step_swap(step, new, NULL), NULL, GTS_VALUE_ERROR, second);
    CHECK_REFUSED(gts_step_swap(step, new, other), NULL, GTS_VALUE_ERROR,
                  "Arrays of step 's' cannot be swapped: they differ in type, size, stride or origin.");
    gts_step_free(&step);

    gts_bound_call *shifted = bind_prog(program, other, 1, &other[1], N);
    step = make("s", &(gts_action){.call = shifted}, 1);
    CHECK_REFUSED(gts_step_swap(step, other, &other[1]), NULL, GTS_VALUE_ERROR,
                  "Arrays of step 's' cannot be swapped: they share elements.");
    gts_step_free(&step);
    gts_unbind(&shifted);

    struct prog_args args = prog_args(now, 1, new, N);
    args.x.readonly = true;
    gts_bound_call *reader = bind(program, &args);
    const gts_action reading[] = {{.call = of_other}, {.call = reader}};
    step = make("s", reading, 2);
    CHECK_REFUSED(gts_step_swap(step, now, new), NULL, GTS_VALUE_ERROR,
                  "Step 's' cannot be changed at position 2, program 'prog': Argument 'out' of program 'prog' is "
                  "written by the program and must not be read-only. Nothing has changed.");
    now[0] = 21;
    CHECK(gts_step_run(step) == 0 && new[0] == 21);
    gts_step_free(&step);
    gts_unbind(&call);
    gts_unbind(&section);
    gts_unbind(&of_other);
    gts_unbind(&reader);
    gts_close(&program);
}

static int note(void *data, void *const *arrays)
{
    *(double **)data = arrays[0];
    return 0;
}

/* Binds a half of the edges on all levels, which lies between the elements of the other half. */
static gts_bound_call *bind_edges(gts_program *program, struct whole *w, ptrdiff_t first)
{
    struct whole_args args = w->args;
    gts_array *const arrays[] = {&args.vn, &args.out_0, &args.out_1};
    for (int i = 0; i < 3; ++i) {
        arrays[i]->data = w->memory[i] + first;
        arrays[i]->shape[0] = EDGES / 2;
    }
    return bind(program, &args);
}

/* An address does not say whether what lies between the elements belongs to the array. */
static void test_arrays_between_the_elements(void)
{
    const struct recorder recorder = open_recorder(libraries[WHOLE + 1]);
    gts_program *program = load_one(WHOLE);
    struct whole w;
    double *seen = NULL;
    set_up(&w);
    gts_bound_call *lower = bind_edges(program, &w, 0), *upper = bind_edges(program, &w, EDGES / 2);
    const gts_action actions[] = {
        {.call = lower},
        {.array_function = note,
         .data = (void *)&seen,
         .arrays = (void *[]){w.memory[0] + EDGES / 2},
         .array_count = 1,
         .name = "halo"},
        {.call = upper},
    };
    gts_step *step = make("s", (const gts_action[]){actions[0], actions[2]}, 2);
    CHECK_REFUSED(gts_step_swap(step, w.memory[0], w.memory[1]), NULL, GTS_VALUE_ERROR,
                  "Step 's' cannot be changed at position 2, program 'whole': Argument 'vn' of program 'whole' lies "
                  "between the elements of the first array that is swapped, as another section of the same array "
                  "would: swap the memory of the whole array. Nothing has changed.");
    gts_step_free(&step);
    step = make("s", actions, 2);
    CHECK_REFUSED(gts_step_swap(step, w.memory[1], w.memory[0]), NULL, GTS_VALUE_ERROR,
                  "Step 's' cannot be changed at position 2, function 'halo': array 1 lies between the elements of the "
                  "second array that is swapped, as another section of the same array would: swap the memory of the "
                  "whole array. Nothing has changed.");
    gts_step_free(&step);
    step = make("s", actions, 3);
    CHECK(gts_step_run(step) == 0 && seen == w.memory[0] + EDGES / 2);
    CHECK(last_record(&recorder).values[SLOT_VN] == (uint64_t)(w.memory[0] + EDGES / 2));
    CHECK(gts_step_swap_memory(step, w.memory[0], w.memory[1], sizeof w.memory[0]) == 0);
    CHECK(gts_step_run(step) == 0 && seen == w.memory[1] + EDGES / 2);
    CHECK(last_record(&recorder).values[SLOT_VN] == (uint64_t)(w.memory[1] + EDGES / 2));
    CHECK(last_record(&recorder).values[SLOT_OUT_0] == (uint64_t)(w.memory[0] + EDGES / 2));
    gts_step_free(&step);
    gts_unbind(&lower);

    /* The two that are swapped may lie between each other's elements. */
    step = make("s", &(const gts_action){.call = upper}, 1);
    CHECK(gts_step_swap(step, w.memory[1] + EDGES / 2, w.memory[0] + EDGES / 2) == 0);
    gts_step_free(&step);
    gts_unbind(&upper);
    struct whole_args args = w.args;
    args.vn.shape[0] = args.out_0.shape[0] = args.out_1.shape[0] = EDGES / 2;
    args.out_0.data = w.memory[0] + EDGES / 2;
    gts_bound_call *both = bind(program, &args);
    step = make("s", &(const gts_action){.call = both}, 1);
    CHECK(gts_step_swap(step, w.memory[0], w.memory[0] + EDGES / 2) == 0);
    CHECK(gts_step_run(step) == 0);
    CHECK(last_record(&recorder).values[SLOT_VN] == (uint64_t)(w.memory[0] + EDGES / 2));
    gts_step_free(&step);
    gts_unbind(&both);
    gts_close(&program);
    recorder.clear();
}

/* ---- Debugging, forks ------------------------------------------------------------------------------------------ */

static void test_memory_that_was_freed(void)
{
    CHECK(setenv("GTSTUB_DEBUG", "1", 1) == 0);
    gts_program *program = load_one(PROG);
    enum { BIG = 1 << 20 };
    double *const big = mmap(NULL, BIG * sizeof *big, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double *const out = malloc(BIG * sizeof *out);
    CHECK(big != MAP_FAILED && out != NULL);
    big[0] = 3;
    gts_bound_call *call = bind_prog(program, big, 1, out, BIG);
    gts_step *step = make("s", &(gts_action){.call = call}, 1);
    CHECK(gts_start(call) == 0 && gts_step_run(step) == 0 && out[0] == 3);
    CHECK(munmap(big, BIG * sizeof *big) == 0);
    CHECK_REFUSED(gts_start(call), program, GTS_VALUE_ERROR,
                  "Argument 'x' of program 'prog' was freed after the call was bound: its memory is not there any "
                  "more.");
    CHECK_REFUSED(gts_step_run(step), NULL, GTS_VALUE_ERROR,
                  "Step 's' has stopped at position 1 of 1, program 'prog': Argument 'x' of program 'prog' was freed "
                  "after the call was bound: its memory is not there any more.");
    free(out);
    gts_step_free(&step);
    gts_unbind(&call);
    gts_close(&program);
    CHECK(unsetenv("GTSTUB_DEBUG") == 0);
}

static void test_fork(void)
{
    gts_program *program = load_one(PROG);
    double x[N] = {1}, out[N] = {0};
    gts_bound_call *call = bind_prog(program, x, 1, out, N);
    gts_step *step = make("s", &(gts_action){.call = call}, 1);
    CHECK(gts_step_run(step) == 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        static const char
            text[] = "Program 'prog' was loaded before this process was forked; load it again in the child, in "
                     "Python by with_backend() or gtstub.compile().";
        out[0] = 0;
        CHECK_REFUSED(gts_start(call), program, GTS_RUNTIME_ERROR, text);
        CHECK_REFUSED(gts_step_run(step), NULL, GTS_RUNTIME_ERROR,
                      "Step 's' has stopped at position 1 of 1, program 'prog': Program 'prog' was loaded before this "
                      "process was forked; load it again in the child, in Python by with_backend() or "
                      "gtstub.compile().");
        const double factor = 2;
        CHECK_REFUSED(gts_set_scalar(call, "factor", GTS_FLOAT64, &factor), program, GTS_RUNTIME_ERROR, text);
        CHECK(out[0] == 0);
        gts_unbind(&call);
        gts_close(&program);
        program = load_one(PROG);
        call = bind_prog(program, x, 3, out, N);
        CHECK(gts_start(call) == 0 && out[0] == 3);
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(gts_step_run(step) == 0);
    gts_step_free(&step);
    gts_unbind(&call);
    gts_close(&program);
}

int main(int argc, char **argv)
{
    CHECK(argc == 9);
    libraries = (const char *const *)argv + 1;
    test_results();
    test_many_positions();
    test_memory_stays_the_same();
    test_tables();
    test_another_call_has_changed_memory_symbols();
    test_a_workspace_is_missing();
    test_binding_is_refused();
    test_a_closed_program();
    test_what_was_never_made();
    test_positions_that_are_no_actions();
    test_functions_that_fail();
    test_a_step_that_uses_itself();
    test_scalars();
    test_time_levels();
    test_arrays_between_the_elements();
    test_memory_that_was_freed();
    test_fork();
    return 0;
}
