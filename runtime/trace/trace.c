/*
 * The timeline of a process: GTSTUB_TRACE. Calls are timed with gts_ticks(). Everything else, which is rarer, comes with
 * its times in ns.
 */
#define _GNU_SOURCE
#include "trace/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/rank.h"
#include "trace/ticks.h"

/* Of GTSTUB_TRACE_EVENTS. */
#define USUAL (UINT64_C(1) << 18)
#define LEAST (UINT64_C(1) << 4)
#define MOST (UINT64_C(1) << 26)

static struct {
    char *path;
    gts_moment begin;
    unsigned int generation; /* gts_forks when it began */
    bool is_on;
} trace;

/* What the trace knows of a program, whose lock protects this. */
typedef struct traced {
    uint64_t entered; /* in ticks; 0 while no call is in the timeline */
    const char *name; /* with its static arguments */
} traced;

static size_t place;

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

static void enter(gts_program *self)
{
    if (!trace.is_on)
        return;
    ((traced *)gts_observed(self, place))->entered = gts_ticks();
    self->has_extra_work = true;
}

static int run(gts_program *self, gts_observers rest)
{
    traced *const own = gts_observed(self, place);
    const uint64_t begin = own->entered;
    if (begin == 0)
        return gts_run_observed(self, rest);
    own->entered = 0;
    const gts_pool_use before = gts_pool_taken(self->runtime->pool, &(const gts_pool_use){0});
    const int status = gts_run_observed(self, rest);
    const uint64_t end = gts_ticks();
    const gts_pool_use taken = gts_pool_taken(self->runtime->pool, &before);
    gts_events_add((gts_event){
        .ticks = end,
        .begin = end - begin,
        .kind = GTS_LIKELY(status == 0) ? "call" : "failed call",
        .name = own->name,
        .track = gts_this_track(),
        .kib = (uint32_t)((taken.bytes + 1023) / 1024),
        .us = (uint32_t)((taken.ns + 999) / 1000),
    });
    return status;
}

/* "smooth(limited_area=true)"; NULL when memory runs out. */
static char *label_of(const gts_stub *stub)
{
    char *text = NULL;
    size_t size = 0;
    FILE *const out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    (void)fputs(stub->name, out);
    const char *separator = "(";
    for (uint32_t i = 0; i < stub->leaf_count; ++i) {
        if (stub->leaves[i].kind != GTS_STATIC)
            continue;
        (void)fprintf(out, "%s%s=", separator, stub->leaves[i].path);
        gts_json_value(out, stub->leaves[i].dtype, stub->leaves[i].value);
        separator = ", ";
    }
    (void)fputs(*separator == ',' ? ")" : "", out);
    return fclose(out) == 0 ? text : NULL;
}

static void load(gts_program *self, void *library)
{
    (void)library;
    if (!trace.is_on)
        return;
    char *const label = label_of(self->stub);
    ((traced *)gts_observed(self, place))->name = gts_trace_name(label == NULL ? self->stub->name : label);
    free(label);
}

/* ---- Everything else ------------------------------------------------------------------------------------------- */

static void span(const char *kind, const char *name, const char *track, uint64_t begin, uint64_t end)
{
    if (trace.is_on)
        gts_events_add_ns(gts_trace_name(kind), gts_trace_name(name),
                          track == NULL ? gts_this_track() : gts_trace_track(track), begin, end);
}

static void time_step(const gts_step *step, size_t position, uint64_t begin)
{
    span(step->positions[position].role->kind, gts_step_name_at(step, position), NULL, begin, gts_clock_ns());
}

/* ---- Beginning and ending -------------------------------------------------------------------------------------- */

static void write_trace(void)
{
    if (trace.generation != __atomic_load_n(&gts_forks, __ATOMIC_RELAXED))
        return;
    if (!gts_trace_write(trace.path, &trace.begin))
        (void)fprintf(stderr, "The trace cannot be written to '%s': %s.\n", trace.path, strerror(errno));
}

/* The number of events, rounded up to a power of 2. */
static uint64_t read_capacity(void)
{
    const char *const text = getenv("GTSTUB_TRACE_EVENTS");
    if (text == NULL || *text == '\0')
        return USUAL;
    char *end;
    const unsigned long long wanted = strtoull(text, &end, 10);
    uint64_t capacity = LEAST;
    if (*text < '0' || *text > '9' || *end != '\0') {
        (void)fprintf(stderr, "GTSTUB_TRACE_EVENTS must be a number of events, but is '%s': %" PRIu64 " are kept.\n",
                      text, USUAL);
        return USUAL;
    }
    while (capacity < wanted && capacity < MOST)
        capacity *= 2;
    return capacity;
}

static void read_environment(void)
{
    const char *const path = getenv("GTSTUB_TRACE");
    if (path == NULL || *path == '\0')
        return;
    gts_choose_clock();
    trace.path = gts_own_path(path);
    trace.begin = gts_now();
    trace.generation = __atomic_load_n(&gts_forks, __ATOMIC_RELAXED);
    trace.is_on = trace.path != NULL && gts_events_begin(read_capacity()) && atexit(write_trace) == 0;
    if (!trace.is_on)
        return;
    (void)__atomic_fetch_add(&gts_step_timers, 1, __ATOMIC_RELAXED);
    (void)__atomic_fetch_add(&gts_attention, 1, __ATOMIC_RELAXED);
}

/* In a forked child, whose parent writes its own events. */
static void forget(void)
{
    trace.is_on = false;
}

const gts_observer gts_trace_observer = {
    .size = sizeof(traced),
    .place = &place,
    .read_environment = read_environment,
    .load = load,
    .enter = enter,
    .run = run,
    .time_step = time_step,
    .span = span,
    .after_fork = forget,
};
