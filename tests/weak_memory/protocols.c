/*
 * Two or three threads use what the runtime reads or writes without a lock, in all ways that weak memory allows:
 *
 *     protocols NAME ROUNDS
 *
 * Each round is memory_run() with another seed, which a failed one prints. The names are those of the table "Words
 * without a lock" in docs/design.md.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calling_stub.h"
#include "memory.h"
#include "observers/times/times.h"
#include "prog_stub.h"
#include "program/private.h"

static uint64_t seed;

#define EXPECT(condition) expect(condition, #condition, __LINE__)

static void expect(bool holds, const char *condition, int line)
{
    if (holds)
        return;
    fprintf(stderr, "seed %llu: protocols.c:%d: does not hold: %s\n", (unsigned long long)seed, line, condition);
    _exit(67);
}

/* In every second round, threads wait for each other: what happens before something must then be seen. */
static unsigned int phase;

static bool is_ordered(void)
{
    return seed % 2 == 0;
}

static void begin_phase(unsigned int next)
{
    __atomic_store_n(&phase, next, __ATOMIC_RELEASE);
}

static void wait_for_phase(unsigned int wanted)
{
    while (is_ordered() && __atomic_load_n(&phase, __ATOMIC_ACQUIRE) < wanted)
        memory_rest();
}

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

static gts_program *program;

static void load_program(void)
{
    EXPECT(gts_load("./prog_stub.so", "./libsum.so", &program) == 0);
}

static gts_array line(double *data)
{
    return (gts_array){.data = data, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {1}, .strides = {1}};
}

/* Calls the program with arrays of its own: out = factor * in. */
static int call(double factor)
{
    double in[1] = {2}, out[1] = {0};
    const struct prog_args args = {.x = line(in), .factor = factor, .out = line(out)};
    const int status = prog_call(program, &args);
    EXPECT(out[0] == 2 * factor || status != 0);
    return status;
}

static void call_with_3(void)
{
    EXPECT(call(3) == 0);
}

static void call_with_4(void)
{
    EXPECT(call(4) == 0);
    EXPECT(call(5) == 0);
}

/* ---- Profiles -------------------------------------------------------------------------------------------------- */

static void profile(void)
{
    gts_profile *const begun = gts_profile_begin();
    begin_phase(1);
    wait_for_phase(2);
    char *const report = gts_profile_end(begun);
    EXPECT(!is_ordered() || strstr(report, "\"prog\"") != NULL);
    free(report);
}

static void call_in_profile(void)
{
    wait_for_phase(1);
    EXPECT(call(3) == 0);
    begin_phase(2);
}

/* ---- The ring of events ---------------------------------------------------------------------------------------- */

static const char *const TEXTS[] = {"0", "1", "2", "3"};

static void begin_ring(void)
{
    free(gts_ring.places);
    gts_ring.added = 0;
    EXPECT(gts_events_begin(2));
}

static void add_events(void)
{
    for (uint32_t i = 0; i < 4; ++i)
        gts_events_add((gts_event){i, i, i, TEXTS[i], TEXTS[i], i, i % 2 == 1, i, i});
}

static void copy_events(void)
{
    size_t count;
    uint64_t dropped;
    gts_event *const events = gts_events_copy(&count, &dropped);
    for (size_t i = 0; i < count; ++i) {
        const gts_event *const each = &events[i];
        EXPECT(each->begin == each->ticks && each->end == each->ticks && each->track == each->ticks);
        EXPECT(each->kind == TEXTS[each->ticks] && each->name == each->kind && each->in_ns == (each->ticks % 2 == 1));
        EXPECT(each->kib == each->ticks && each->us == each->ticks);
    }
    free(events);
}

/* ---- Steps ----------------------------------------------------------------------------------------------------- */

static gts_step *steps[2];
static int runs;

static int count_run(void *data)
{
    ++*(int *)data;
    return 0;
}

static void make_step(void)
{
    EXPECT(gts_step_new("common", &(gts_action){.function = count_run, .data = &runs}, 1, &steps[0]) == 0);
    steps[1] = gts_step_keep(steps[0]);
}

static void run_first(void)
{
    (void)gts_step_run(steps[0]);
    gts_step_free(&steps[0]);
}

static void run_second(void)
{
    (void)gts_step_run(steps[1]);
    gts_step_free(&steps[1]);
}

/* ---- Callbacks --------------------------------------------------------------------------------------------------- */

static gts_program *calling[2];
static int seen;

static double now(void *data)
{
    (void)data;
    return 1;
}

static void see(const double *x, const float *y, void *data)
{
    (void)x, (void)y, (void)data;
    ++seen;
}

static void smooth(const double *memory, double *result, void *data)
{
    (void)memory, (void)result, (void)data;
}

static void split(double a, int32_t *count, float *tile, void *data)
{
    (void)a, (void)tile, (void)data;
    *count = 2;
}

static bool weigh(double a, int32_t i, bool is_last, void *data)
{
    (void)a, (void)i, (void)data;
    return is_last;
}

static void load_calling(void)
{
    for (int i = 0; i < 2; ++i)
        EXPECT(gts_load("./calling_stub.so", "./libcalling.so", &calling[i]) == 0);
}

static void call_calling(gts_program *called)
{
    double x[2] = {0};
    float y[3][2] = {{0}};
    const struct calling_args args = {
        .x = {x, GTS_FLOAT64, GTS_CPU, 1, false, {0}, {2}, {1}, {"K"}},
        .y = {y, GTS_FLOAT32, GTS_CPU, 2, false, {0}, {2, 3}, {1, 2}, {"Edge", "K"}},
        .a = 0.5,
        .now = {now, NULL},
        .see = {see, NULL},
        .weigh = {weigh, NULL},
        .smooth = {smooth, NULL},
        .split = {split, NULL},
    };
    EXPECT(calling_call(called, &args) == 0 && x[0] == 3);
}

static void call_first(void)
{
    call_calling(calling[0]);
}

static void call_second(void)
{
    call_calling(calling[1]);
}

/* ------------------------------------------------------------------------------------------------------------------ */

static void nothing(void)
{
}

static const struct protocol {
    const char *name;
    void (*prepare)(void), (*before)(void), (*threads[MEMORY_THREADS])(void);
} PROTOCOLS[] = {
    {"calls", load_program, nothing, {call_with_3, call_with_4}},
    {"profiles", load_program, nothing, {profile, call_in_profile, call_with_3}},
    {"ring", nothing, begin_ring, {add_events, copy_events}},
    {"steps", nothing, make_step, {run_first, run_second}},
    {"callbacks", load_calling, nothing, {call_first, call_second}},
};

static void run_round(const struct protocol *self)
{
    int count = 0;
    while (count < MEMORY_THREADS && self->threads[count] != NULL)
        ++count;
    phase = 0;
    self->before();
    memory_run(seed, count, self->threads);
}

int main(int argc, char **argv)
{
    EXPECT(argc == 3);
    const uint64_t first = getenv("SEED") == NULL ? 0 : strtoull(getenv("SEED"), NULL, 10);
    for (size_t i = 0; i < sizeof PROTOCOLS / sizeof *PROTOCOLS; ++i) {
        if (strcmp(PROTOCOLS[i].name, argv[1]) != 0)
            continue;
        PROTOCOLS[i].prepare();
        for (seed = first; seed < first + strtoull(argv[2], NULL, 10); ++seed)
            run_round(&PROTOCOLS[i]);
        return 0;
    }
    EXPECT(!"such a protocol");
    return 1;
}
