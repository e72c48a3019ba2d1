/*
 * A C host of the granule 'tiny' (tests/support/granules.py): host SCENARIO FOLDER [INPUT OUTPUT]. The input and the output
 * have the arguments, one after another, and then the output has the kept arrays.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "tiny_granule.h"

enum { ROWS = 4, LEVELS = 5, EDGES = 6, VERTICES = 4, POINTS = 7, WIDE = 8 };

typedef struct input {
    double u[ROWS][LEVELS], w[ROWS][LEVELS], line[POINTS], edges[EDGES][LEVELS], vertices[VERTICES][LEVELS];
    int32_t v2e[VERTICES][2];
} input;

static const char *folder, *input_file, *output_file;
static FILE *output;

/* ---- Arguments ------------------------------------------------------------------------------------------------- */

static gts_array matrix(void *data, gts_dtype dtype, int64_t rows, int64_t columns)
{
    return (gts_array){
        .data = data, .dtype = dtype, .device = GTS_CPU, .rank = 2, .shape = {rows, columns}, .strides = {columns, 1}};
}

static struct tiny_arguments arguments_of(input *from)
{
    return (struct tiny_arguments){
        .u = matrix(from->u, GTS_FLOAT64, ROWS, LEVELS),
        .w = matrix(from->w, GTS_FLOAT64, ROWS, LEVELS),
        .line =
            {.data = from->line, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {POINTS}, .strides = {1}},
        .edges = matrix(from->edges, GTS_FLOAT64, EDGES, LEVELS),
        .vertices = matrix(from->vertices, GTS_FLOAT64, VERTICES, LEVELS),
        .v2e = matrix(from->v2e, GTS_INT32, VERTICES, 2),
    };
}

static input read_input(void)
{
    input read;
    FILE *const file = fopen(input_file, "rb");
    CHECK(file != NULL && fread(&read, sizeof read, 1, file) == 1 && fclose(file) == 0);
    return read;
}

static void write_array(gts_granule *granule, const char *name)
{
    gts_array array;
    CHECK(gts_granule_array(granule, name, &array) == 0);
    const int64_t rows = array.rank == 1 ? 1 : array.shape[0], columns = array.shape[array.rank - 1];
    CHECK(array.strides[array.rank - 1] == 1);
    for (int64_t row = 0; row < rows; ++row)
        CHECK(fwrite((double *)array.data + row * array.strides[0], sizeof(double), (size_t)columns, output) ==
              (size_t)columns);
}

/* All arrays as they are now, where they are now. */
static void write_arrays(gts_granule *granule)
{
    for (const char *const *name =
             (const char *const[]){"u", "w", "line", "edges", "vertices", "coefficients", "work", "history", NULL};
         *name != NULL; ++name)
        write_array(granule, *name);
}

/* ---- Hooks ----------------------------------------------------------------------------------------------------- */

static int hook_calls;

/* As Model.exchange() does; `data` is the distance of the rows, which the array has, too. */
static int exchange(void *data, const gts_array *arrays)
{
    ++hook_calls;
    const size_t distance = *(const size_t *)data;
    CHECK(arrays[0].rank == 2 && arrays[0].shape[0] == ROWS && arrays[0].shape[1] == LEVELS);
    CHECK(arrays[0].strides[0] == (int64_t)distance && arrays[0].strides[1] == 1);
    double *const w = arrays[0].data;
    for (size_t i = 0; i < LEVELS; ++i) {
        const double second = w[distance + i];
        w[i] = w[(ROWS - 2) * distance + i];
        w[(ROWS - 1) * distance + i] = second;
    }
    return 0;
}

static size_t distance = LEVELS;
static const struct tiny_hooks HOOKS = {.exchange = {exchange, &distance}};

static void succeeds(int status)
{
    if (status == 0)
        return;
    fprintf(stderr, "%s\n", gts_last_error(NULL)->message);
    exit(1);
}

static void refuses(int status, gts_error_kind kind, const char *text)
{
    CHECK(status == -1);
    CHECK_ERROR(gts_last_error(NULL), kind, text);
}

static gts_granule *opened(void)
{
    gts_granule *granule;
    succeeds(tiny_open(folder, &granule));
    return granule;
}

/* ---- Running --------------------------------------------------------------------------------------------------- */

/* The calls that test_hosts.py does in Python, too. */
static void run_all(gts_granule *granule, const struct tiny_arguments *arguments)
{
    succeeds(tiny_bind(granule, arguments, &HOOKS));
    succeeds(tiny_run(granule, 0.5));
    succeeds(tiny_first(granule, 0.25));
    succeeds(tiny_run(granule, 0.25));
    write_arrays(granule);
    succeeds(gts_granule_swap(granule, "u", "w"));
    succeeds(tiny_run(granule, -1.5));
    write_arrays(granule);
    succeeds(gts_granule_swap(granule, "w", "u"));
    succeeds(tiny_run(granule, -1.5));
    gts_granule_unbind(granule);
    succeeds(tiny_bind(granule, arguments, &HOOKS)); /* the scalar stays */
    succeeds(tiny_run(granule, -1.5));
    write_arrays(granule);
}

static void run(void)
{
    input in = read_input();
    const struct tiny_arguments arguments = arguments_of(&in);
    gts_granule *granule = opened();
    run_all(granule, &arguments);
    gts_granule_close(&granule);
    CHECK(granule == NULL);
    gts_granule_close(&granule);
}

/* Rows that are farther apart, a table that begins at 1, and names of dimensions. */
static void run_wide(void)
{
    input in = read_input();
    struct tiny_arguments arguments = arguments_of(&in);
    static double u[ROWS][WIDE], w[ROWS][WIDE];
    for (int row = 0; row < ROWS; ++row) {
        memcpy(u[row], in.u[row], sizeof in.u[row]);
        memcpy(w[row], in.w[row], sizeof in.w[row]);
    }
    for (int row = 0; row < VERTICES; ++row) {
        ++in.v2e[row][0];
        ++in.v2e[row][1];
    }
    arguments.u.data = u;
    arguments.w.data = w;
    arguments.u.strides[0] = arguments.w.strides[0] = WIDE;
    distance = WIDE;
    arguments.u.dims[0] = arguments.w.dims[0] = "I";
    arguments.index_base = 1;
    gts_granule *granule = opened();
    run_all(granule, &arguments);
    gts_granule_close(&granule);
}

/* Two granules of one folder, which keep arrays of their own. */
static void two(void)
{
    input in = read_input(), other = in;
    const struct tiny_arguments arguments = arguments_of(&in), others = arguments_of(&other);
    gts_granule *granule = opened(), *second = opened();
    succeeds(tiny_bind(granule, &arguments, &HOOKS));
    succeeds(tiny_bind(second, &others, &HOOKS));
    for (int i = 0; i < 2; ++i) {
        succeeds(tiny_run(granule, 0.5));
        if (i == 0)
            succeeds(tiny_run(second, 0.5));
    }
    write_arrays(granule);
    write_arrays(second);
    gts_granule_close(&granule);
    succeeds(tiny_run(second, 0.5)); /* the programs of the other granule are closed */
    write_arrays(second);
    gts_granule_close(&second);
}

/* A granule that is opened again begins from the file. */
static void again(void)
{
    for (int i = 0; i < 2; ++i) {
        input in = read_input();
        const struct tiny_arguments arguments = arguments_of(&in);
        gts_granule *granule = opened();
        succeeds(tiny_bind(granule, &arguments, &HOOKS));
        succeeds(tiny_run(granule, 0.5));
        write_arrays(granule);
        gts_granule_close(&granule);
    }
}

#define CLOSED "Granule 'tiny' is not open: it was closed."

static void refuse_closed(gts_granule *copy, const struct tiny_arguments *arguments)
{
    gts_array array;
    refuses(tiny_run(copy, 0.5), GTS_RUNTIME_ERROR, CLOSED);
    refuses(tiny_run(copy, 0.75), GTS_RUNTIME_ERROR, CLOSED);
    refuses(tiny_first(copy, 0.25), GTS_RUNTIME_ERROR, CLOSED);
    refuses(tiny_bind(copy, arguments, &HOOKS), GTS_RUNTIME_ERROR, CLOSED);
    refuses(gts_granule_swap(copy, "u", "w"), GTS_RUNTIME_ERROR, CLOSED);
    refuses(gts_granule_array(copy, "history", &array), GTS_RUNTIME_ERROR, CLOSED);
    succeeds(gts_granule_unbind(copy));
}

/* Copies of the pointer to a granule that was closed, also when others are open or were closed since. */
static void closed(void)
{
    input in = read_input(), other = in;
    const struct tiny_arguments arguments = arguments_of(&in), others = arguments_of(&other);
    gts_granule *granule = opened(), *copy = granule;
    succeeds(tiny_bind(granule, &arguments, &HOOKS));
    succeeds(tiny_run(granule, 0.5));
    write_arrays(granule);
    succeeds(gts_granule_close(&granule));
    refuse_closed(copy, &arguments);
    for (int i = 0; i < 2; ++i) {
        granule = opened();
        CHECK(granule != copy);
        succeeds(tiny_bind(granule, &others, &HOOKS));
        refuse_closed(copy, &arguments);
        succeeds(gts_granule_close(&granule));
    }
    refuse_closed(copy, &arguments);
    succeeds(gts_granule_close(&copy));
    CHECK(copy == NULL);
}

/* ---- Refusals -------------------------------------------------------------------------------------------------- */

#define REFUSED(change, kind, text)                                                                                    \
    do {                                                                                                               \
        struct tiny_arguments bad = arguments_of(&in);                                                                 \
        change;                                                                                                        \
        refuses(tiny_bind(granule, &bad, &HOOKS), kind, text);                                                         \
        gts_array now;                                                                                                 \
        succeeds(gts_granule_array(granule, "u", &now));                                                               \
        CHECK(now.data == in.u);                                                                                       \
    } while (0)

/* Each refused binding leaves the one before, which runs at the end. */
static void bad_arguments(void)
{
    input in = read_input();
    const struct tiny_arguments arguments = arguments_of(&in);
    static double line[2 * POINTS], spare[ROWS * LEVELS];
    gts_granule *granule = opened();
    succeeds(tiny_bind(granule, &arguments, &HOOKS));
    REFUSED(bad.u.shape[1] = 4, GTS_VALUE_ERROR,
            "Argument 'u' of granule 'tiny' must have 5 elements on axis 1 ('K'), as when it was exported, not 4.");
    REFUSED(bad.u.shape[0] = 5, GTS_VALUE_ERROR,
            "Argument 'u' of granule 'tiny' must have 4 elements on axis 0 ('I'), as when it was exported, not 5.");
    REFUSED(
        bad.w.dtype = GTS_FLOAT32, GTS_TYPE_ERROR,
        "Argument 'w' of granule 'tiny' must be an array of type 'float64' and rank 2, not of type 'float32' and rank "
        "2.");
    REFUSED(bad.line.rank = 2, GTS_TYPE_ERROR,
            "Argument 'line' of granule 'tiny' must be an array of type 'float64' and rank 1, not of type 'float64' "
            "and rank 2.");
    REFUSED(bad.line.rank = GTS_MAX_RANK + 9, GTS_TYPE_ERROR,
            "Argument 'line' of granule 'tiny' must be an array of type 'float64' and rank 1, not of type 'float64' "
            "and rank 15.");
    REFUSED((bad.line.data = line, bad.line.strides[0] = 2), GTS_VALUE_ERROR,
            "Granule 'tiny' cannot be bound at position 2 of step 'tiny_run': Argument 'x' of program "
            "'tests_support_granule_programs_relax' must have stride 1 on axis 0 ('axis_0'), not 2.");
    REFUSED(bad.edges.data = NULL, GTS_TYPE_ERROR, "Argument 'edges' of granule 'tiny' must be an array, not NULL.");
    REFUSED(memset(&bad.edges, 0, sizeof bad.edges), GTS_TYPE_ERROR,
            "Argument 'edges' of granule 'tiny' must be an array of type 'float64' and rank 2, not of type 'unknown "
            "dtype' and rank 0.");
    REFUSED(bad.u.dims[1] = "Edge", GTS_VALUE_ERROR,
            "Argument 'u' of granule 'tiny' must have dimension 'K', not 'Edge', on axis 1.");
    REFUSED(bad.u.device = GTS_CUDA, GTS_VALUE_ERROR, "Argument 'u' of granule 'tiny' must be in memory of the CPU.");
    REFUSED(bad.u.strides[0] = INT64_MAX, GTS_VALUE_ERROR,
            "Argument 'u' of granule 'tiny' has strides that no address can hold.");
    REFUSED(bad.w.strides[1] = 0, GTS_VALUE_ERROR,
            "Argument 'w' of granule 'tiny' has stride 0 on axis 1 ('K'), but a step writes it.");
    REFUSED(bad.w.readonly = true, GTS_VALUE_ERROR,
            "Argument 'w' of granule 'tiny' is read-only, but a step writes it.");
    REFUSED(bad.w.data = bad.u.data, GTS_VALUE_ERROR,
            "Argument 'u' of granule 'tiny' shares memory with array 'w', but did not when the granule was exported, "
            "and a step writes one.");
    REFUSED(
        (bad.w.data = spare, bad.line.data = &spare[10]), GTS_VALUE_ERROR,
        "Argument 'w' of granule 'tiny' shares memory with array 'line', but did not when the granule was exported, "
        "and a step writes one.");
    REFUSED(bad.index_base = 2, GTS_VALUE_ERROR, "The index base of granule 'tiny' must be 0 or 1, not 2.");
    gts_array kept;
    succeeds(gts_granule_array(granule, "history", &kept));
    REFUSED(bad.line.data = kept.data, GTS_VALUE_ERROR,
            "Argument 'line' of granule 'tiny' shares memory with array 'history', but did not when the granule was "
            "exported, and a step writes one.");
    int32_t table[VERTICES][2] = {{0}, {0, EDGES}};
    REFUSED(
        bad.v2e.data = table, GTS_VALUE_ERROR,
        "Granule 'tiny' cannot be bound at position 6 of step 'tiny_run': Connectivity 'V2E' of program 'gather' has "
        "index 6 in row 1, column 1 (index base 0, see gts_set_index_base()), but argument 'a' has the indices 0 to "
        "5 on axis 0 ('Edge')." HINT);
    refuses(tiny_bind(granule, &arguments, &(const struct tiny_hooks){.exchange = {NULL, NULL}}), GTS_TYPE_ERROR,
            "Hook 'exchange' of granule 'tiny' is missing: it must be a function.");
    refuses(tiny_bind(granule, &arguments, NULL), GTS_TYPE_ERROR,
            "Hook 'exchange' of granule 'tiny' is missing: it must be a function.");
    succeeds(tiny_run(granule, 0.5));
    write_arrays(granule);
    gts_granule_close(&granule);
}

/* Arguments that no step writes may be one, and read-only. */
static void readonly(void)
{
    input in = read_input();
    struct tiny_arguments arguments = arguments_of(&in);
    arguments.edges.readonly = arguments.v2e.readonly = true;
    arguments.u.origin[0] = arguments.w.origin[1] = 7; /* unused */
    gts_granule *granule = opened();
    succeeds(tiny_bind(granule, &arguments, &HOOKS));
    succeeds(tiny_run(granule, 0.5));
    write_arrays(granule);
    gts_granule_close(&granule);
}

static void order(void)
{
    input in = read_input();
    const struct tiny_arguments arguments = arguments_of(&in);
    const char *const unbound = "Granule 'tiny' is not bound: bind its arguments first.";
    gts_array array;
    gts_granule *granule = NULL;
    refuses(tiny_run(granule, 0.5), GTS_RUNTIME_ERROR, "The granule is not open.");
    refuses(tiny_bind(granule, &arguments, &HOOKS), GTS_RUNTIME_ERROR, "The granule is not open.");
    refuses(gts_granule_swap(granule, "u", "w"), GTS_RUNTIME_ERROR, "The granule is not open.");
    refuses(gts_granule_array(granule, "u", &array), GTS_RUNTIME_ERROR, "The granule is not open.");
    gts_granule_unbind(granule);
    granule = opened();
    refuses(tiny_run(granule, 0.5), GTS_RUNTIME_ERROR, unbound);
    refuses(tiny_first(granule, 0.25), GTS_RUNTIME_ERROR, unbound);
    refuses(gts_granule_swap(granule, "u", "w"), GTS_RUNTIME_ERROR, unbound);
    refuses(gts_granule_array(granule, "u", &array), GTS_RUNTIME_ERROR, unbound);
    refuses(gts_granule_array(granule, "nothing", &array), GTS_VALUE_ERROR, "Granule 'tiny' has no array 'nothing'.");
    succeeds(gts_granule_array(granule, "history", &array));
    CHECK(array.data != NULL && !array.readonly);
    succeeds(gts_granule_array(granule, "weights", &array));
    CHECK(array.readonly);
    succeeds(gts_granule_array(granule, "coefficients", &array)); /* 'kept' names it, so that it can be swapped */
    CHECK(!array.readonly);
    CHECK(hook_calls == 0);
    succeeds(tiny_bind(granule, &arguments, &HOOKS));
    refuses(gts_granule_swap(granule, "u", "nothing"), GTS_VALUE_ERROR, "Granule 'tiny' has no array 'nothing'.");
    refuses(gts_granule_swap(granule, "u", "u"), GTS_VALUE_ERROR,
            "Arrays 'u' and 'u' of granule 'tiny' cannot be swapped: they are the same.");
    refuses(gts_granule_swap(granule, "line", "history"), GTS_VALUE_ERROR,
            "Arrays 'line' and 'history' of granule 'tiny' cannot be swapped: one is an argument, whose memory is the "
            "host's, and the granule keeps the other one.");
    refuses(gts_granule_swap(granule, "u", "edges"), GTS_VALUE_ERROR,
            "Arrays 'u' and 'edges' of granule 'tiny' cannot be swapped: they differ in type, size or stride.");
    succeeds(gts_granule_swap(granule, "coefficients", "work")); /* both are named in 'kept' */
    succeeds(gts_granule_swap(granule, "work", "coefficients"));
    gts_granule_unbind(granule);
    refuses(tiny_run(granule, 0.5), GTS_RUNTIME_ERROR, unbound);
    succeeds(tiny_bind(granule, &arguments, &HOOKS));
    succeeds(tiny_run(granule, 0.5)); /* nothing has changed */
    write_arrays(granule);
    gts_granule_close(&granule);
}

/* ---- Hooks that do something else ------------------------------------------------------------------------------ */

static gts_granule *running;
static input bound;

static int fail_once(void *data, const gts_array *arrays)
{
    return hook_calls == 0 ? (hook_calls = 1, 7) : exchange(data, arrays);
}

static void failing_hook(void)
{
    bound = read_input();
    const struct tiny_arguments arguments = arguments_of(&bound);
    gts_granule *granule = opened();
    succeeds(tiny_bind(granule, &arguments, &(const struct tiny_hooks){.exchange = {fail_once, &distance}}));
    refuses(
        tiny_run(granule, 0.5), GTS_RUNTIME_ERROR,
        "Step 'tiny_run' has stopped at position 3 of 7, function 'exchange': it has returned 7. The positions 1 to "
        "2 have run.");
    gts_granule_close(&granule);
}

#define RUNNING "Granule 'tiny' is running, in another thread or because one of its hooks uses it."

static void *use_elsewhere(void *status)
{
    *(int *)status = tiny_run(running, 0.5);
    refuses(*(int *)status, GTS_RUNTIME_ERROR, RUNNING);
    refuses(gts_granule_unbind(running), GTS_RUNTIME_ERROR, RUNNING);
    return NULL;
}

static int use(void *data, const gts_array *arrays)
{
    const struct tiny_arguments arguments = arguments_of(&bound);
    refuses(tiny_run(running, 0.5), GTS_RUNTIME_ERROR, RUNNING);
    refuses(tiny_run(running, 0.75), GTS_RUNTIME_ERROR, RUNNING);
    refuses(tiny_bind(running, &arguments, &HOOKS), GTS_RUNTIME_ERROR, RUNNING);
    refuses(gts_granule_swap(running, "u", "w"), GTS_RUNTIME_ERROR, RUNNING);
    refuses(gts_granule_unbind(running), GTS_RUNTIME_ERROR, RUNNING);
    gts_granule *copy = running;
    refuses(gts_granule_close(&copy), GTS_RUNTIME_ERROR, RUNNING);
    CHECK(copy == running);
    pthread_t thread;
    int status = 0;
    CHECK(pthread_create(&thread, NULL, use_elsewhere, &status) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(status == -1);
    return exchange(data, arrays);
}

static void using_hook(void)
{
    bound = read_input();
    const struct tiny_arguments arguments = arguments_of(&bound);
    running = opened();
    succeeds(tiny_bind(running, &arguments, &(const struct tiny_hooks){.exchange = {use, &distance}}));
    succeeds(tiny_run(running, 0.5));
    CHECK(hook_calls == 1);
    write_arrays(running);
    gts_granule_close(&running);
}

/* ---- Forks ----------------------------------------------------------------------------------------------------- */

static void after_fork(void)
{
    input in = read_input();
    const struct tiny_arguments arguments = arguments_of(&in);
    gts_granule *granule = opened();
    succeeds(tiny_bind(granule, &arguments, &HOOKS));
    const pid_t child = fork();
    if (child == 0) {
        const char
            *const forked = "Granule 'tiny' was opened before this process was forked; open it again in the child.";
        refuses(tiny_run(granule, 0.5), GTS_RUNTIME_ERROR, forked);
        refuses(tiny_run(granule, 0.75), GTS_RUNTIME_ERROR, forked);
        refuses(tiny_bind(granule, &arguments, &HOOKS), GTS_RUNTIME_ERROR, forked);
        refuses(gts_granule_swap(granule, "u", "w"), GTS_RUNTIME_ERROR, forked);
        CHECK(hook_calls == 0);
        gts_granule *own = opened(); /* a child opens its own */
        succeeds(tiny_bind(own, &arguments, &HOOKS));
        succeeds(tiny_run(own, 0.5));
        gts_granule_close(&own);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    succeeds(tiny_run(granule, 0.5));
    write_arrays(granule);
    gts_granule_close(&granule);
}

/* ---- Folders --------------------------------------------------------------------------------------------------- */

/* Prints why the folder cannot be opened. */
static void open_(void)
{
    gts_granule *granule = (gts_granule *)1;
    CHECK(tiny_open(folder, &granule) == -1);
    CHECK(granule == NULL);
    puts(gts_last_error(NULL)->message);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } SCENARIOS[] = {
        {"run", run},
        {"run_wide", run_wide},
        {"two", two},
        {"again", again},
        {"closed", closed},
        {"bad_arguments", bad_arguments},
        {"readonly", readonly},
        {"order", order},
        {"failing_hook", failing_hook},
        {"using_hook", using_hook},
        {"after_fork", after_fork},
        {"open", open_},
    };
    CHECK(argc >= 3);
    folder = argv[2];
    if (argc > 4) {
        input_file = argv[3];
        output_file = argv[4];
        output = fopen(output_file, "wb");
        CHECK(output != NULL);
    }
    for (size_t i = 0; i < sizeof SCENARIOS / sizeof *SCENARIOS; ++i) {
        if (strcmp(SCENARIOS[i].name, argv[1]) != 0)
            continue;
        SCENARIOS[i].run();
        CHECK(output == NULL || fclose(output) == 0);
        return 0;
    }
    fprintf(stderr, "there is no scenario '%s'\n", argv[1]);
    return 2;
}
