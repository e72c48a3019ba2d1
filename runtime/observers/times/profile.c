/*
 * Profiles: how often programs are called, and how long the conversion of their arguments and the SDFG take.
 *
 * A call or an action of a step is timed for the profiles that were running when it began: the innermost one, which began
 * last, and all around it. `lock` protects all times. No thread holds it while it waits for a program.
 */
#define _GNU_SOURCE
#include "observers/times/times.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/new.h"
#include "base/path.h"
#include "base/rank.h"

struct gts_profile {
    gts_profile *outer;
    gts_times *programs;     /* a list */
    gts_times *steps;        /* a list */
    uint64_t begin, wall;    /* in ticks; `wall` is 0 until it has ended */
    uint64_t number;         /* > 0 */
    unsigned int generation; /* gts_forks when the profile began */
};

size_t gts_timed_offset;
_Atomic uint64_t gts_innermost_profile;

static gts_profile *running; /* the innermost profile; NULL when none is running */

GTS_LOCK(lock)

/* At the end of the process, a profile waits no longer than this for a call, which may never end. */
#define PATIENCE_NS UINT64_C(1000000000)

/* ---- Times ----------------------------------------------------------------------------------------------------- */

/* Makes times of a program or a step without calls; NULL without memory, of which each row takes 10 kilobytes. */
static gts_times *new_times(const gts_stub *stub, const gts_step *step)
{
    const size_t count = step == NULL ? GTS_PROGRAM_ROWS : step->count;
    gts_times *const times = calloc(1, sizeof *times + count * sizeof *times->row);
    if (times == NULL)
        return NULL;
    times->stub = stub;
    times->name = step == NULL ? stub->name : gts_lasting_name(step->name);
    times->count = count;
    times->is_empty = step == NULL;
    for (size_t i = 0; i < count; ++i) {
        gts_row *const row = &times->row[i];
        row->time.min = UINT64_MAX;
        row->name = step == NULL ? NULL : gts_lasting_name(gts_step_name_at(step, i));
        row->is_program = step != NULL && step->positions[i].call != NULL;
    }
    return times;
}

/* Whether times are those of a step that was freed, and had the name and the positions of this one. */
static bool is_free_for(const gts_times *times, const gts_step *step)
{
    bool is_free = times->step == 0 && times->count == step->count;
    is_free = is_free && times->name == gts_lasting_name(step->name);
    for (size_t i = 0; is_free && i < step->count; ++i)
        is_free = times->row[i].is_program == (step->positions[i].call != NULL) &&
                  times->row[i].name == gts_lasting_name(gts_step_name_at(step, i));
    return is_free;
}

/*
 * The times of a program or a step in a profile and in those around it; NULL if the profile is NULL. A step gets the
 * times of one like it that was freed, so that a host which makes a step anew again and again needs no more memory.
 */
static gts_times *find_times(gts_profile *profile, const gts_stub *stub, const gts_step *step)
{
    if (profile == NULL)
        return NULL;
    gts_times **const list = step == NULL ? &profile->programs : &profile->steps;
    for (gts_times *each = *list; each != NULL; each = each->next) {
        if (step == NULL ? each->stub == stub : each->step == step->id)
            return each;
    }
    gts_times *found = step == NULL ? NULL : *list;
    while (found != NULL && !is_free_for(found, step))
        found = found->next;
    if (found == NULL) {
        found = new_times(stub, step);
        if (found == NULL)
            return NULL; /* nothing is timed */
        found->next = *list;
        *list = found;
    }
    found->step = step == NULL ? 0 : step->id;
    found->outer = find_times(profile->outer, stub, step);
    return found;
}

static unsigned int bucket_of(uint64_t time)
{
    if (time < GTS_PER_OCTAVE)
        return (unsigned int)time;
    const unsigned int shift = 63U - GTS_BUCKET_BITS - (unsigned int)__builtin_clzll(time);
    const unsigned int bucket = (shift << GTS_BUCKET_BITS) + (unsigned int)(time >> shift);
    return bucket < GTS_BUCKETS ? bucket : GTS_BUCKETS - 1;
}

static void add(gts_row *row, uint64_t time)
{
    gts_histogram *const histogram = &row->time;
    histogram->min = time < histogram->min ? time : histogram->min;
    histogram->max = time > histogram->max ? time : histogram->max;
    histogram->total += time;
    ++histogram->bucket[bucket_of(time)];
}

/* ---- Calls and actions ----------------------------------------------------------------------------------------- */

void gts_profile_find(gts_timed *timed, const gts_stub *stub)
{
    pthread_mutex_lock(&lock);
    timed->times = find_times(running, stub, NULL);
    timed->profile = running == NULL ? 0 : running->number;
    pthread_mutex_unlock(&lock);
}

void gts_profile_add_call(gts_times *times, const gts_call *call)
{
    pthread_mutex_lock(&lock);
    for (; times != NULL; times = times->outer) {
        gts_row *const row = &times->row[call->is_initial ? 0 : GTS_CALL_ROWS];
        gts_pool_use *const memory = &times->memory[call->is_initial ? 0 : 1];
        times->is_empty = false;
        add(&row[GTS_CONVERSION], call->converted - call->entered);
        add(&row[GTS_SDFG], call->ended - call->converted);
        add(&row[GTS_WHOLE], call->ended - call->entered);
        memory->arrays += call->taken.arrays;
        memory->bytes += call->taken.bytes;
        memory->ns += call->taken.ns;
    }
    pthread_mutex_unlock(&lock);
}

void gts_profile_add_action(const gts_step *step, size_t position, uint64_t begin, uint64_t end)
{
    pthread_mutex_lock(&lock);
    gts_profile *profile = running;
    while (profile != NULL && profile->begin > begin)
        profile = profile->outer;
    for (gts_times *times = find_times(profile, NULL, step); times != NULL; times = times->outer)
        add(&times->row[position], end - begin);
    pthread_mutex_unlock(&lock);
}

void gts_profile_free_step(const gts_step *step)
{
    pthread_mutex_lock(&lock);
    for (const gts_profile *profile = running; profile != NULL; profile = profile->outer) {
        for (gts_times *times = profile->steps; times != NULL; times = times->next)
            times->step = times->step == step->id ? 0 : times->step;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- Beginning and ending -------------------------------------------------------------------------------------- */

/* Makes a profile the innermost one. The lock is held. */
static void set_running(gts_profile *profile)
{
    running = profile;
    gts_innermost_profile = profile == NULL ? 0 : profile->number;
}

static gts_profile *begin(void)
{
    static uint64_t last_number;
    gts_profile *const profile = gts_new(1, sizeof *profile);
    pthread_mutex_lock(&lock);
    *profile = (gts_profile){
        .outer = running,
        .begin = gts_ticks(),
        .number = ++last_number,
        .generation = gts_forks,
    };
    set_running(profile);
    gts_add_attention(1);
    pthread_mutex_unlock(&lock);
    return profile;
}

gts_profile *gts_profile_begin(void)
{
    gts_start_observers(); /* the profile of the process, if there is one, is around all others */
    return begin();
}

/* Waits for the call of a program that is running. A refused one, which has not ended, is forgotten. */
static void wait_for_call(gts_program *program, void *patience)
{
    if (!gts_lock(program, *(const uint64_t *)patience))
        return; /* the call outlives the process */
    gts_timed_of(program)->entered = 0;
    gts_leave(program);
}

/* Ends a profile and those inside it, and returns its report. `patience`, in ns, is for each call that is running. */
static char *end(gts_profile *profile, uint64_t patience)
{
    pthread_mutex_lock(&lock);
    while (profile->wall == 0) {
        running->wall = gts_ticks() - running->begin + 1;
        set_running(running->outer);
        gts_add_attention(-1);
    }
    pthread_mutex_unlock(&lock);
    gts_loaded_visit(wait_for_call, &patience);
    pthread_mutex_lock(&lock); /* for the call that has tried its patience */
    char *const report = gts_profile_report(profile->programs, profile->steps, profile->wall);
    pthread_mutex_unlock(&lock);
    return report;
}

static void free_all(gts_times *times)
{
    for (gts_times *next; times != NULL; times = next) {
        next = times->next;
        free(times);
    }
}

char *gts_profile_end(gts_profile *profile)
{
    if (profile->generation != gts_forks) {
        profile->programs = profile->steps = NULL; /* they belong to the parent, which ends its own copy */
        profile->wall = gts_ticks() - profile->begin + 1;
    }
    char *const report = end(profile, GTS_FOREVER);
    free_all(profile->programs);
    free_all(profile->steps);
    free(profile);
    return report;
}

void gts_profile_forget(void)
{
    set_running(NULL);
}

/* ---- GTSTUB_PROFILE -------------------------------------------------------------------------------------------- */

static struct {
    gts_profile *profile;
    char *path;
} whole_process;

static void write_report(void)
{
    const gts_profile *const profile = whole_process.profile;
    if (profile->generation != gts_forks)
        return;
    const char *const report = end(whole_process.profile, PATIENCE_NS);
    const gts_times *called = profile->programs;
    while (called != NULL && called->is_empty)
        called = called->next;
    if ((called == NULL && profile->steps == NULL) || report == NULL) /* as in a process that compiles */
        return;
    FILE *const file = gts_create_file(whole_process.path);
    if (file == NULL || fputs(report, file) < 0 || fclose(file) != 0)
        fprintf(stderr, "The profile cannot be written to '%s': %s.\n", whole_process.path, strerror(errno));
}

void gts_profile_read_environment(void)
{
    whole_process.path = gts_own_path(getenv("GTSTUB_PROFILE"));
    whole_process.profile = whole_process.path == NULL ? NULL : begin();
    if (whole_process.profile != NULL)
        atexit(write_report);
}
