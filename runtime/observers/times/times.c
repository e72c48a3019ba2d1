/*
 * The observer of times. It reads one clock at the beginning and at the end of a piece of work, and passes what it has read
 * to the profiles that are running and to the timeline of the process.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "base/clock.h"
#include "observers/times/times.h"

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

static void enter_timed(gts_program *self)
{
    gts_timed *const timed = gts_timed_of(self);
    if (GTS_UNLIKELY(timed->profile != gts_innermost_profile))
        gts_profile_find(timed, self->stub);
    if (timed->times == NULL && !gts_has_timeline)
        return;
    timed->entered = gts_ticks();
    self->has_extra_work = true;
}

static int run(gts_program *self, gts_observers rest)
{
    gts_timed *const timed = gts_timed_of(self);
    if (timed->entered == 0)
        return gts_run_observed(self, rest);
    const gts_pool_use *const pool = self->runtime->pool;
    const gts_pool_use none = {0}, before = GTS_LIKELY(pool == NULL) ? none : gts_pool_taken(pool, &none);
    gts_call call = {.entered = timed->entered, .is_initial = !self->runtime->was_called};
    timed->entered = 0;
    call.converted = gts_ticks();
    const int status = gts_run_observed(self, rest);
    call.ended = gts_ticks();
    call.is_initial |= self->runtime->has_new_handle;
    if (GTS_UNLIKELY(pool != NULL))
        call.taken = gts_pool_taken(pool, &before);
    if (timed->times != NULL && status == 0)
        gts_profile_add_call(timed->times, &call);
    if (gts_has_timeline)
        gts_events_add((gts_event){
            .ticks = call.ended,
            .begin = call.ended - call.entered,
            .kind = GTS_LIKELY(status == 0) ? "call" : "failed call",
            .name = timed->name,
            .track = gts_this_track(),
            .kib = (uint32_t)((call.taken.bytes + 1023) / 1024),
            .us = (uint32_t)((call.taken.ns + 999) / 1000),
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
    fprintf(out, "%s(", stub->name);
    gts_print_static_arguments(out, stub, "", "=");
    fputs(")", out);
    if (fclose(out) != 0)
        return NULL;
    if (text[size - 2] == '(') /* no arguments */
        text[size - 2] = '\0';
    return text;
}

static void load(gts_program *self, void *library)
{
    (void)library;
    if (!gts_has_timeline)
        return;
    char *const label = label_of(self->stub);
    gts_timed_of(self)->name = gts_lasting_name(label == NULL ? self->stub->name : label);
    free(label);
}

/* ---- Everything else ------------------------------------------------------------------------------------------- */

static void span(const char *kind, const char *name, uint64_t begin, uint64_t end)
{
    if (gts_has_timeline)
        gts_events_add((gts_event){
            .ticks = end,
            .begin = end - begin,
            .kind = kind,
            .name = gts_lasting_name(name),
            .track = gts_this_track(),
        });
}

/* In the timeline, a call and a step inside a step have spans of their own. */
static void time_action(const gts_step *step, size_t position, uint64_t begin, uint64_t end)
{
    if (gts_innermost_profile != 0)
        gts_profile_add_action(step, position, begin, end);
    const gts_position *const at = &step->positions[position];
    if (at->call == NULL && at->role->step == NULL)
        span(at->role->kind, at->role->name, begin, end);
}

static void read_environment(void)
{
    gts_timeline_read_environment();
    gts_profile_read_environment();
}

/* In a forked child, whose parent has the profiles and writes its own events. */
static void forget_times(void)
{
    gts_has_timeline = false;
    gts_profile_forget();
}

const gts_observer gts_times_observer = {
    .size = sizeof(gts_timed),
    .offset = &gts_timed_offset,
    .read_environment = read_environment,
    .load = load,
    .enter = enter_timed,
    .run = run,
    .time_action = time_action,
    .span = span,
    .free_step = gts_profile_free_step,
    .after_fork = forget_times,
};
