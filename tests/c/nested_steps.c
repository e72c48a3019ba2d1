/*
 * Steps inside steps, functions that get arrays, and what a step keeps. Arguments: the stub and the library of 'prog':
 * out[i] = factor * x[i] + x[i - 1], out[0] = factor * x[0].
 */
#define _POSIX_C_SOURCE 200809L
#include "gtstub/step.h"
#include "harness.h"
#include "prog_stub.h"

enum { N = 5 };

static gts_program *program;

#define CHECK_REFUSED(call, kind, text)                                                                                \
    do {                                                                                                               \
        CHECK((call) == -1);                                                                                           \
        CHECK_ERROR(gts_last_error(NULL), kind, text);                                                                 \
    } while (false)

static gts_array line(double *data, int64_t size)
{
    return (gts_array){
        .data = data, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {size}, .strides = {1}};
}

static gts_bound_call *bind_args(const struct prog_args *args)
{
    gts_bound_call *call;
    if (gts_bind(program, args, &call) != 0) {
        fprintf(stderr, "%s\n", gts_last_error(program)->message);
        exit(1);
    }
    return call;
}

static gts_bound_call *bind(double *x, double factor, double *out)
{
    return bind_args(&(struct prog_args){.x = line(x, N), .factor = factor, .out = line(out, N)});
}

static gts_step *make(const char *name, const gts_action *actions, size_t count)
{
    gts_step *step;
    CHECK(gts_step_new(name, actions, count, &step) == 0);
    return step;
}

static gts_step *make_one(const char *name, gts_action action)
{
    return make(name, &action, 1);
}

/* Runs a step after clearing two arrays, one of which has the value 1 in its first element. */
static void run(gts_step *step, double *one, double *other)
{
    memset(one, 0, N * sizeof *one);
    memset(other, 0, N * sizeof *other);
    one[0] = 1;
    CHECK(gts_step_run(step) == 0);
}

/* ---- Changes --------------------------------------------------------------------------------------------------- */

static void test_changes_reach_inner_steps(void)
{
    double now[N], new[N], factor = 3;
    gts_bound_call *there = bind(now, 2, new), *again = bind(now, 2, new);
    gts_step *innermost = make_one("innermost", (gts_action){.call = again});
    gts_step *inner = make_one("inner", (gts_action){.step = innermost});
    const gts_action actions[] = {{.call = there}, {.step = inner}, {.call = there}, {.step = innermost}};
    gts_step *outer = make("outer", actions, 4);
    run(outer, now, new);
    CHECK(new[0] == 2);
    CHECK(gts_step_set_scalar(outer, "factor", GTS_FLOAT64, &factor) == 0);
    run(innermost, now, new);
    CHECK(new[0] == 3);
    CHECK(gts_step_swap(outer, now, new) == 0); /* in the innermost one once, although it is there twice */
    run(innermost, new, now);
    CHECK(now[0] == 3);
    CHECK(gts_step_swap(outer, now, new) == 0);
    run(outer, now, new);
    CHECK(new[0] == 3);
    gts_step_free(&outer);
    gts_step_free(&inner);
    gts_step_free(&innermost);
    gts_unbind(&there);
    gts_unbind(&again);
}

static void test_a_step_inside_two_steps(void)
{
    double now[N], new[N], factor = 3;
    gts_bound_call *call = bind(now, 2, new);
    gts_step *inner = make_one("inner", (gts_action){.call = call});
    gts_step *first = make_one("first", (gts_action){.step = inner});
    gts_step *second = make_one("second", (gts_action){.step = inner});
    CHECK(gts_step_set_scalar(first, "factor", GTS_FLOAT64, &factor) == 0);
    CHECK(gts_step_swap(first, now, new) == 0);
    run(second, new, now);
    CHECK(now[0] == 3);
    gts_step_free(&first);
    gts_step_free(&inner);
    gts_unbind(&call);
    run(second, new, now);
    CHECK(now[0] == 3);
    gts_step_free(&second);
}

/* The outer step has one of the arrays, the inner one the other. */
static void test_a_step_that_has_one_of_the_arrays(void)
{
    double now[N], new[N], in[N], out[N];
    gts_bound_call *reader = bind(now, 2, out), *writer = bind(in, 2, new);
    gts_step *inner = make_one("inner", (gts_action){.call = writer});
    const gts_action actions[] = {{.call = reader}, {.step = inner}};
    gts_step *outer = make("outer", actions, 2);
    CHECK_REFUSED(gts_step_swap(inner, now, new), GTS_VALUE_ERROR,
                  "Arrays of step 'inner' cannot be swapped: no program of it has the first one.");
    CHECK(gts_step_swap(outer, now, new) == 0);
    memset(in, 0, sizeof in);
    in[0] = 5;
    run(outer, new, now);
    CHECK(out[0] == 2 && now[0] == 10);
    gts_step_free(&outer);
    gts_step_free(&inner);
    gts_unbind(&reader);
    gts_unbind(&writer);
}

static int note(void *data, void *const *arrays)
{
    *(double **)data = arrays[0];
    return 0;
}

/* What comes before the refusal is as it was: calls and arrays of functions, outside and inside. */
static void test_a_refused_change_changes_nothing(void)
{
    double now[N], new[N], other[N], *seen = NULL;
    const float single = 3;
    struct prog_args args = {.x = line(now, N), .factor = 1, .out = line(other, N)};
    args.x.readonly = true;
    gts_bound_call *there = bind(now, 2, new), *reader = bind_args(&args);
    gts_step *inner = make_one("inner", (gts_action){.call = there});
    const gts_action actions[] = {
        {.array_function = note, .data = (void *)&seen, .arrays = (void *[]){new}, .array_count = 1, .name = "note"},
        {.call = reader},
        {.step = inner},
    };
    gts_step *outer = make("outer", actions, 3);
    CHECK_REFUSED(gts_step_swap(outer, now, new), GTS_VALUE_ERROR,
                  "Step 'inner' cannot be changed at position 1, program 'prog': Argument 'out' of program 'prog' is "
                  "written by the program and must not be read-only. Nothing has changed.");
    CHECK_REFUSED(gts_step_set_scalar(outer, "factor", GTS_FLOAT32, &single), GTS_TYPE_ERROR,
                  "Step 'outer' cannot be changed at position 2, program 'prog': Argument 'factor' of program 'prog' "
                  "must have dtype 'float64', not 'float32'. Nothing has changed.");
    CHECK_REFUSED(gts_step_set_scalar(outer, "factors", GTS_FLOAT32, &single), GTS_TYPE_ERROR,
                  "No program of step 'outer' has an argument 'factors'.");
    run(outer, now, new);
    CHECK(seen == new && new[0] == 2 && other[0] == 1);
    gts_step_free(&outer);
    gts_step_free(&inner);
    gts_unbind(&there);
    gts_unbind(&reader);
}

/* A function frees the step that it is in, which another step contains and keeps, and then that other step. */
static int free_all(void *data)
{
    gts_step **const steps = data;
    CHECK(gts_step_free(&steps[0]) == 0 && steps[0] == NULL);
    gts_step *const outer = steps[1];
    CHECK_REFUSED(gts_step_free(&steps[1]), GTS_RUNTIME_ERROR,
                  "Step 'outer' is running, in another thread or because one of its functions uses it.");
    CHECK(steps[1] == outer);
    return 0;
}

static void test_a_function_that_frees_its_steps(void)
{
    double now[N] = {1}, new[N];
    gts_bound_call *call = bind(now, 2, new);
    gts_step *steps[2] = {NULL, NULL};
    const gts_action actions[] = {{.function = free_all, .data = (void *)steps}, {.call = call}};
    steps[0] = make("inner", actions, 2);
    steps[1] = make_one("outer", (gts_action){.step = steps[0]});
    gts_unbind(&call);
    CHECK(gts_step_run(steps[1]) == 0 && new[0] == 2);
    CHECK(gts_step_free(&steps[1]) == 0 && steps[1] == NULL);
}

/* ---- Functions ------------------------------------------------------------------------------------------------- */

static void test_functions_get_arrays_as_they_are(void)
{
    double now[N], new[N], spare[N], more[N], *seen = NULL, *inside = NULL;
    gts_bound_call *call = bind(now, 2, new);
    void *arrays[] = {new, spare};
    gts_step *inner = make_one(
        "inner", (gts_action){.array_function = note, .data = (void *)&inside, .arrays = arrays, .array_count = 2});
    const gts_action actions[] = {
        {.call = call},
        {.array_function = note, .data = (void *)&seen, .arrays = arrays, .array_count = 1},
        {.step = inner},
        {.array_function = note, .data = (void *)&seen, .arrays = (void *[]){more}, .array_count = 1},
    };
    gts_step *outer = make("outer", actions, 3);
    arrays[0] = NULL; /* they were copied */
    CHECK(gts_step_run(outer) == 0 && seen == new && inside == new);
    CHECK(gts_step_swap(outer, now, new) == 0);
    CHECK(gts_step_run(outer) == 0 && seen == now && inside == now);
    CHECK_REFUSED(gts_step_swap(outer, now, spare), GTS_VALUE_ERROR,
                  "Arrays of step 'outer' cannot be swapped: only a function has the second one, whose layout is not "
                  "known.");
    CHECK_REFUSED(gts_step_swap(outer, spare, now), GTS_VALUE_ERROR,
                  "Arrays of step 'outer' cannot be swapped: only a function has the first one, whose layout is not "
                  "known.");
    CHECK_REFUSED(gts_step_swap(outer, now, more), GTS_VALUE_ERROR,
                  "Arrays of step 'outer' cannot be swapped: no program of it has the second one.");
    CHECK_REFUSED(gts_step_swap(outer, spare, spare), GTS_VALUE_ERROR,
                  "Arrays of step 'outer' cannot be swapped: the two are the same.");
    CHECK(gts_step_run(outer) == 0 && seen == now && inside == now);
    gts_step_free(&outer);
    gts_step_free(&inner);

    gts_step *only = make("only", actions + 1, 1);
    const gts_action two[] = {{.step = only}, actions[3]};
    arrays[0] = new;
    gts_step *functions = make("functions", two, 2);
    CHECK(gts_step_run(functions) == 0 && seen == more);
    CHECK(gts_step_swap(functions, more, NULL) == -1);
    gts_step_free(&functions);
    gts_step_free(&only);
    only = make_one(
        "only",
        (gts_action){.array_function = note, .data = (void *)&seen, .arrays = (void *[]){now, new}, .array_count = 2});
    CHECK(gts_step_swap(only, now, new) == 0 && gts_step_run(only) == 0 && seen == new);
    gts_step_free(&only);
    gts_unbind(&call);
}

static int fail(void *data, void *const *arrays)
{
    (void)data;
    (void)arrays;
    return 7;
}

static int run_it(void *step)
{
    return gts_step_run(*(gts_step **)step) == -1 ? 0 : 1;
}

static void test_errors_of_inner_steps(void)
{
    double now[N], new[N];
    gts_bound_call *call = bind(now, 2, new);
    gts_step *inner = make_one("inner", (gts_action){.array_function = fail, .name = "halo"});
    const gts_action actions[] = {{.call = call}, {.step = inner}};
    gts_step *outer = make("outer", actions, 2);
    static const char text[] = "Step 'outer' has stopped at position 2 of 2, step 'inner': Step 'inner' has stopped at "
                               "position 1 of 1, function 'halo': it has returned 7. Position 1 of "
                               "step 'outer' has run.";
    CHECK_REFUSED(gts_step_run(outer), GTS_RUNTIME_ERROR, text);
    gts_profile *const profile = gts_profile_begin();
    CHECK_REFUSED(gts_step_run(outer), GTS_RUNTIME_ERROR, text);
    free(gts_profile_end(profile));
    gts_step_free(&outer);
    gts_step_free(&inner);

    /* A function of the inner step can neither run nor change the outer one, which is running. */
    inner = make_one("inner", (gts_action){.function = run_it, .data = (void *)&outer});
    outer = make_one("outer", (gts_action){.step = inner, .name = "other name"});
    CHECK(gts_step_run(outer) == 0);
    CHECK_ERROR(gts_last_error(NULL), GTS_RUNTIME_ERROR,
                "Step 'outer' is running, in another thread or because one of its functions uses it.");
    gts_step_free(&outer);
    gts_step_free(&inner);
    gts_unbind(&call);
}

static int change_outer(void *data)
{
    gts_step *const outer = *(gts_step **)data;
    const double factor = 2;
    static const char text[] = "Step 'inner' is running, in another thread or because one of its functions uses it.";
    CHECK_REFUSED(gts_step_set_scalar(outer, "factor", GTS_FLOAT64, &factor), GTS_RUNTIME_ERROR, text);
    CHECK_REFUSED(gts_step_swap(outer, data, data), GTS_RUNTIME_ERROR, text);
    return 0;
}

static void test_a_change_while_an_inner_step_runs(void)
{
    double now[N] = {1}, new[N];
    gts_step *outer = NULL;
    gts_bound_call *call = bind(now, 2, new);
    gts_step *inner = make_one("inner", (gts_action){.function = change_outer, .data = (void *)&outer});
    const gts_action actions[] = {{.call = call}, {.step = inner}};
    outer = make("outer", actions, 2);
    CHECK(gts_step_run(inner) == 0);
    const double factor = 4; /* the refusals have left the outer step */
    CHECK(gts_step_set_scalar(outer, "factor", GTS_FLOAT64, &factor) == 0);
    CHECK(gts_start(call) == 0 && new[0] == 4);
    gts_step_free(&outer);
    gts_step_free(&inner);
    gts_unbind(&call);
}

static void test_actions_that_are_refused(void)
{
    double x[N];
    gts_step *inner = make("inner", NULL, 0), *step = NULL;
    const gts_action both = {.step = inner, .array_function = note};
    CHECK_REFUSED(gts_step_new("s", &both, 1, &step), GTS_TYPE_ERROR,
                  "Position 1 of step 's' must have either a bound call, a function or a step.");
    const gts_action idle = {.step = inner, .arrays = (void *[]){x}, .array_count = 1};
    CHECK_REFUSED(gts_step_new("s", &idle, 1, &step), GTS_TYPE_ERROR,
                  "Position 1 of step 's' has arrays, but no 'array_function' that gets them.");
    const gts_action none = {.array_function = note, .array_count = 1};
    CHECK_REFUSED(gts_step_new("s", &none, 1, &step), GTS_TYPE_ERROR,
                  "Position 1 of step 's' has a number of arrays, but no arrays.");
    CHECK(step == NULL);
    gts_step_free(&inner);
}

/* ---- Sections -------------------------------------------------------------------------------------------------- */

/* Sections of an array move with it, from their own place in it: those of programs and of functions. */
static void test_sections_move(void)
{
    double now[N] = {1, 2, 3, 4, 5}, new[N] = {10, 20, 30, 40, 50}, out[N] = {0}, *seen = NULL;
    struct prog_args args = {.x = line(now + 3, 2), .factor = 1, .out = line(out, 2)};
    gts_bound_call *whole = bind(now, 1, new), *section = bind_args(&args);
    const gts_action actions[] = {
        {.call = section},
        {.array_function = note, .data = (void *)&seen, .arrays = (void *[]){now + 3}, .array_count = 1},
        {.call = whole},
    };
    gts_step *step = make("s", actions, 3);
    CHECK(gts_step_swap(step, now, new) == 0);
    CHECK(gts_step_run(step) == 0 && out[0] == 40 && out[1] == 90 && seen == new + 3);
    CHECK(gts_step_swap(step, now, new) == 0);
    CHECK(gts_step_run(step) == 0 && seen == now + 3);
    gts_step_free(&step);
    gts_unbind(&section);

    double all[2 * N] = {0};
    gts_bound_call *level = bind(all, 1, new);
    args.x = line(all + N - 1, N);
    args.out = line(out, N);
    section = bind_args(&args);
    const gts_action others[] = {{.call = level}, {.call = section}};
    step = make("s", others, 2);
    CHECK_REFUSED(
        gts_step_swap(step, all, new), GTS_VALUE_ERROR,
        "Step 's' cannot be changed at position 2, program 'prog': Argument 'x' of program 'prog' has elements "
        "of the first array that is swapped, and others: it would have both arrays. Nothing has changed.");
    gts_step_free(&step);
    gts_unbind(&section);
    gts_unbind(&level);
    gts_unbind(&whole);
}

/* A step of two calls and a function, none of which has all of the arrays that are swapped. */
static gts_step *make_halves(double *now, double *new, double **seen)
{
    gts_bound_call *halves[] = {bind(now, 1, new), bind(now + N, 1, new + N)};
    const gts_action actions[] = {
        {.call = halves[0]},
        {.call = halves[1]},
        {.array_function = note, .data = (void *)seen, .arrays = (void *[]){new + N}, .array_count = 1},
    };
    gts_step *const step = make("s", actions, 3);
    gts_unbind(&halves[0]);
    gts_unbind(&halves[1]);
    return step;
}

/* Calls have sections of both arrays alone. */
static void test_memory_moves(void)
{
    double now[2 * N] = {0}, new[2 * N] = {0}, *seen = NULL;
    gts_step *step = make_halves(now, new, &seen);
    CHECK(gts_step_swap_memory(step, now, new, sizeof now) == 0);
    new[0] = 1;
    new[N] = 2;
    CHECK(gts_step_run(step) == 0 && now[0] == 1 && now[N] == 2 && seen == now + N);
    CHECK(gts_step_swap_memory(step, now, new, sizeof now) == 0);
    now[0] = 3;
    CHECK(gts_step_run(step) == 0 && new[0] == 3 && new[N] == 2 && seen == new + N);
    gts_step_free(&step);
}

static void test_memory_that_is_refused(void)
{
    double now[2 * N] = {1}, new[2 * N] = {0}, none[2 * N], *seen = NULL;
    gts_step *step = make_halves(now, new, &seen);
    CHECK_REFUSED(
        gts_step_swap_memory(step, now, new, sizeof now - sizeof *now), GTS_VALUE_ERROR,
        "Step 's' cannot be changed at position 2, program 'prog': Argument 'x' of program 'prog' has elements "
        "of the first array that is swapped, and others: it would have both arrays. Nothing has changed.");
    CHECK_REFUSED(gts_step_swap_memory(step, now, none, sizeof now), GTS_VALUE_ERROR,
                  "Arrays of step 's' cannot be swapped: no program of it has the second one.");
    CHECK_REFUSED(gts_step_swap_memory(step, now, new, 0), GTS_VALUE_ERROR,
                  "Arrays of step 's' cannot be swapped: no program of it has the first one.");
    CHECK_REFUSED(gts_step_swap_memory(step, NULL, new, sizeof now), GTS_VALUE_ERROR,
                  "Arrays of step 's' cannot be swapped: no program of it has the first one.");
    CHECK_REFUSED(gts_step_swap_memory(step, now, now, sizeof now), GTS_VALUE_ERROR,
                  "Arrays of step 's' cannot be swapped: the two are the same.");
    CHECK_REFUSED(gts_step_swap_memory(step, now, now + N, sizeof now), GTS_VALUE_ERROR,
                  "Arrays of step 's' cannot be swapped: they share elements.");
    CHECK_REFUSED(gts_step_swap_memory(step, now, new, SIZE_MAX), GTS_VALUE_ERROR,
                  "Arrays of step 's' cannot be swapped: they share elements.");
    CHECK_REFUSED(gts_step_swap_memory(NULL, now, new, sizeof now), GTS_RUNTIME_ERROR,
                  "The step cannot be used: it was freed, or never made.");
    CHECK(gts_step_run(step) == 0 && new[0] == 1 && seen == new + N);
    gts_step_free(&step);

    struct prog_args args = {.x = line(now + N, N), .factor = 1, .out = line(none, N)};
    args.x.readonly = true;
    gts_bound_call *reader = bind_args(&args), *writer = bind(now, 1, new);
    const gts_action actions[] = {{.call = writer}, {.call = reader}};
    step = make("s", actions, 2);
    CHECK_REFUSED(gts_step_swap_memory(step, now, new, sizeof now), GTS_VALUE_ERROR,
                  "Step 's' cannot be changed at position 1, program 'prog': Argument 'out' of program 'prog' is "
                  "written by the program and must not be read-only. Nothing has changed.");
    gts_step_free(&step);
    gts_unbind(&reader);
    gts_unbind(&writer);
}

/* A call has the array of which functions have a section, and so has its layout. */
static void test_sections_that_only_functions_have(void)
{
    double now[N], new[N], *seen = NULL;
    gts_bound_call *call = bind(now, 1, new);
    const gts_action actions[] = {
        {.call = call},
        {.array_function = note, .data = (void *)&seen, .arrays = (void *[]){now + 1, new + 1}, .array_count = 2},
    };
    gts_step *step = make("s", actions, 2);
    CHECK_REFUSED(
        gts_step_swap(step, now + 1, new + 1), GTS_VALUE_ERROR,
        "Arrays of step 's' cannot be swapped: only a function has the first one, whose layout is not known.");
    CHECK(gts_step_swap(step, now, new) == 0);
    CHECK(gts_step_run(step) == 0 && seen == new + 1);
    gts_step_free(&step);
    gts_unbind(&call);
}

/* ---- What a step keeps ----------------------------------------------------------------------------------------- */

static void test_steps_keep_what_they_contain(void)
{
    double now[N], new[N], factor = 3;
    gts_bound_call *call = bind(now, 2, new);
    gts_step *inner = make_one("inner", (gts_action){.call = call});
    const gts_action actions[] = {{.step = inner}, {.call = call}};
    gts_step *outer = make("outer", actions, 2);
    gts_unbind(&call);
    CHECK(call == NULL);
    gts_step_free(&inner);
    CHECK(inner == NULL);
    CHECK(gts_step_set_scalar(outer, "factor", GTS_FLOAT64, &factor) == 0);
    run(outer, now, new);
    CHECK(new[0] == 3);
    CHECK(gts_step_swap(outer, now, new) == 0);
    run(outer, new, now);
    CHECK(now[0] == 3);
    gts_step_free(&outer);
}

/* The host frees the names of its dimensions, whose memory then has others. */
static void test_names_may_be_freed(void)
{
    double now[N], new[N], other[N], factor = 3;
    char *const name = strdup("K");
    CHECK(name != NULL);
    struct prog_args args = {.x = line(now, N), .factor = 2, .out = line(new, N)};
    args.x.dims[0] = args.out.dims[0] = name;
    gts_bound_call *call = bind_args(&args);
    name[0] = 'I';
    CHECK(gts_set_scalar(call, "factor", GTS_FLOAT64, &factor) == 0);
    gts_bound_call *refused;
    args.x.data = other;
    CHECK(gts_bind(program, &args, &refused) == -1); /* a wrong name is still refused */
    CHECK_ERROR(gts_last_error(program), GTS_TYPE_ERROR,
                "Argument 'x' of program 'prog' must have dimension 'K' on axis 0, not 'I'.");
    free(name);
    gts_step *step = make_one("s", (gts_action){.call = call});
    CHECK(gts_step_set_scalar(step, "factor", GTS_FLOAT64, &factor) == 0);
    CHECK(gts_step_swap(step, now, new) == 0);
    run(step, new, now);
    CHECK(now[0] == 3);
    gts_step_free(&step);
    gts_unbind(&call);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    program = load(argv[1], argv[2]);
    test_changes_reach_inner_steps();
    test_a_step_inside_two_steps();
    test_a_step_that_has_one_of_the_arrays();
    test_a_refused_change_changes_nothing();
    test_a_function_that_frees_its_steps();
    test_functions_get_arrays_as_they_are();
    test_errors_of_inner_steps();
    test_a_change_while_an_inner_step_runs();
    test_actions_that_are_refused();
    test_sections_move();
    test_memory_moves();
    test_memory_that_is_refused();
    test_sections_that_only_functions_have();
    test_steps_keep_what_they_contain();
    test_names_may_be_freed();
    gts_close(&program);
    return 0;
}
