/*
 * Profiles: how often programs are called, and how long the conversion of their arguments and the SDFG take.
 *
 * Each call is timed for the innermost profile, the one that began last before the call. A profile that ends adds its
 * times to the profile around it. The times that calls still add to belong to their program and are protected by its
 * lock. All other data is protected by `lock`, also the times of steps, which belong to the profile from the beginning.
 * No thread holds `lock` while it waits for a program.
 */
#define _GNU_SOURCE
#include "profile/histogram.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/path.h"
#include "base/rank.h"
#include "profile/steps.h"

struct gts_profile {
    gts_profile *outer;
    gts_program_times *times; /* one for each stub; no call adds to them any more */
    gts_step_times *steps;    /* those that have run; a step adds to them while the profile is running */
    char *report;             /* NULL until the profile has ended */
    uint64_t begin;           /* in ns */
    unsigned int generation;  /* gts_forks when the profile began */
    bool has_ended;
};

/* The profile that began last and has not ended; NULL when none is running. */
static gts_profile *running;

GTS_LOCK(lock)
GTS_LOCK(ending) /* one profile ends at a time */

static gts_profile *reporting; /* the profile that has ended, and has not been added to the one around it; or NULL */

/* At the end of the process, a profile waits no longer than this for a call, which may never end. */
#define PATIENCE_NS UINT64_C(1000000000)

/* Returns the link in a program's list that points to the times of `profile`, or the last link if there are none. */
static gts_program_times **find_link(gts_program *program, const gts_profile *profile)
{
    gts_program_times **link = &gts_profiled_of(program)->times;
    while (*link != NULL && (*link)->profile != profile)
        link = &(*link)->next;
    return link;
}

/* Removes the first times of a list and returns them; NULL if the list is empty. */
static gts_program_times *pop(gts_program_times **list)
{
    gts_program_times *const first = *list;
    if (first != NULL)
        *list = first->next;
    return first;
}

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

/* Moves the times of `profile` to the front of the program's list, or creates them; false when memory runs out. */
static GTS_COLD bool prepare_times(gts_program *self, gts_profile *profile)
{
    gts_profiled *const own = gts_profiled_of(self);
    gts_program_times *const times = pop(find_link(self, profile));
    gts_program_times *const found = times != NULL ? times : gts_program_times_new(profile, self->stub);
    if (found == NULL)
        return false; /* the call runs without being timed */
    found->next = own->times;
    own->times = found;
    return true;
}

/* Begins to time the call that has just been entered. */
static void enter(gts_program *self)
{
    gts_profile *const profile = __atomic_load_n(&running, __ATOMIC_RELAXED);
    gts_profiled *const own = gts_profiled_of(self);
    if (profile == NULL)
        return;
    const bool has_times = own->times != NULL && own->times->profile == profile;
    own->entered = GTS_LIKELY(has_times) || prepare_times(self, profile) ? gts_clock_ns() : 0;
    self->has_extra_work = true;
}

/* Runs the SDFG, and adds the times of a call that was entered to its profile. */
static int run(gts_program *self, gts_observers rest)
{
    gts_profiled *const own = gts_profiled_of(self);
    if (own->entered == 0)
        return gts_run_observed(self, rest);
    const bool is_first = !self->runtime->was_called;
    const gts_pool_use before = gts_pool_taken(self->runtime->pool, &(const gts_pool_use){0});
    const uint64_t converted = gts_clock_ns();
    const int status = gts_run_observed(self, rest);
    const uint64_t ended = gts_clock_ns();
    const bool is_initial = is_first || self->runtime->has_new_handle;
    gts_call_times *const calls = GTS_UNLIKELY(is_initial) ? &own->times->initial : &own->times->run;
    if (status == 0) {
        ++calls->count;
        gts_histogram_add(&calls->conversion, converted - own->entered);
        gts_histogram_add(&calls->sdfg, ended - converted);
        gts_histogram_add(&calls->whole, ended - own->entered);
        gts_add_memory(&calls->memory, gts_pool_taken(self->runtime->pool, &before));
    }
    own->entered = 0;
    return status;
}

/* ---- Steps ----------------------------------------------------------------------------------------------------- */

/* Adds the time to the innermost profile that is running and was when the action began. */
static void time_step(const gts_step *step, size_t position, uint64_t begin)
{
    const uint64_t end = gts_clock_ns();
    (void)pthread_mutex_lock(&lock);
    gts_profile *profile = __atomic_load_n(&running, __ATOMIC_RELAXED);
    while (profile != NULL && profile->begin > begin)
        profile = profile->outer;
    gts_step_times *const times = profile == NULL ? NULL : gts_step_times_find(&profile->steps, step);
    if (times != NULL) {
        ++times->position[position].count;
        gts_histogram_add(&times->position[position].time, end - begin);
    }
    (void)pthread_mutex_unlock(&lock);
}

static void free_step(const gts_step *step)
{
    if (!gts_step_is_timed())
        return;
    (void)pthread_mutex_lock(&lock);
    gts_profile *profile = __atomic_load_n(&running, __ATOMIC_RELAXED);
    for (; profile != NULL; profile = profile->outer)
        gts_step_times_release(&profile->steps, step->id);
    if (reporting != NULL)
        gts_step_times_forget(reporting->steps, step->id);
    (void)pthread_mutex_unlock(&lock);
}

/* ---- Finished times -------------------------------------------------------------------------------------------- */

/* Moves times into a profile. */
static void keep(gts_profile *profile, gts_program_times *times)
{
    gts_program_times *same = profile->times;
    while (same != NULL && same->stub != times->stub)
        same = same->next;
    if (same != NULL)
        gts_program_times_merge(same, times);
    if (same != NULL || times->initial.count + times->run.count == 0) {
        free(times);
        return;
    }
    times->next = profile->times;
    profile->times = times;
}

/* Moves the times of a program that is being closed into their profiles. */
static void close_program(gts_program *self)
{
    if (gts_belongs_to_parent(self)) /* its times belong to the parent, too */
        return;
    gts_profiled *const own = gts_profiled_of(self);
    (void)pthread_mutex_lock(&lock);
    gts_program_times *times;
    while ((times = pop(&own->times)) != NULL)
        keep(times->profile, times);
    (void)pthread_mutex_unlock(&lock);
}

/* ---- Beginning and ending -------------------------------------------------------------------------------------- */

gts_profile *gts_profile_begin(void)
{
    gts_profile *const profile = calloc(1, sizeof *profile);
    if (profile == NULL)
        return NULL;
    (void)pthread_mutex_lock(&lock);
    profile->outer = __atomic_load_n(&running, __ATOMIC_RELAXED);
    profile->generation = __atomic_load_n(&gts_forks, __ATOMIC_RELAXED);
    profile->begin = gts_clock_ns();
    __atomic_store_n(&running, profile, __ATOMIC_RELAXED);
    (void)__atomic_fetch_add(&gts_step_timers, 1, __ATOMIC_RELAXED);
    (void)__atomic_fetch_add(&gts_attention, 1, __ATOMIC_RELAXED);
    (void)pthread_mutex_unlock(&lock);
    return profile;
}

static GTS_COLD gts_program_times *copy_times(gts_program *program, const gts_profile *profile)
{
    const gts_program_times *const times = *find_link(program, profile);
    gts_program_times *const copy = times == NULL ? NULL : malloc(sizeof *copy);
    if (copy != NULL)
        *copy = *times;
    return copy;
}

typedef struct destination {
    gts_profile *profile;
    uint64_t patience; /* ns to wait for a call that is running */
} destination;

/* Moves the times of one program into the profile, after the call that is running. */
static void collect(gts_program *program, void *context)
{
    const destination *const to = context;
    gts_program_times *times;
    if (gts_lock(program, to->patience)) {
        times = pop(find_link(program, to->profile));
        gts_profiled_of(program)->entered = 0;
        gts_leave(program);
    } else {
        times = copy_times(program, to->profile); /* the call outlives the process, and may still add to them */
    }
    if (times == NULL)
        return;
    (void)pthread_mutex_lock(&lock);
    keep(to->profile, times);
    (void)pthread_mutex_unlock(&lock);
}

/* Ends the innermost profile. */
static void end_innermost(uint64_t patience)
{
    (void)pthread_mutex_lock(&lock);
    gts_profile *const profile = __atomic_load_n(&running, __ATOMIC_RELAXED);
    __atomic_store_n(&running, profile->outer, __ATOMIC_RELAXED);
    (void)__atomic_fetch_sub(&gts_step_timers, 1, __ATOMIC_RELAXED);
    (void)__atomic_fetch_sub(&gts_attention, 1, __ATOMIC_RELAXED);
    reporting = profile;
    (void)pthread_mutex_unlock(&lock);
    gts_loaded_visit(collect, &(destination){profile, patience});
    profile->report = gts_profile_report(profile->times, profile->steps, gts_clock_ns() - profile->begin);
    profile->has_ended = true;
    (void)pthread_mutex_lock(&lock);
    while (profile->times != NULL && profile->outer != NULL)
        keep(profile->outer, pop(&profile->times));
    while (profile->steps != NULL && profile->outer != NULL)
        (void)gts_step_times_keep(&profile->outer->steps, gts_step_times_pop(&profile->steps));
    reporting = NULL;
    (void)pthread_mutex_unlock(&lock);
}

char *gts_profile_end(gts_profile *profile)
{
    if (profile->generation != __atomic_load_n(&gts_forks, __ATOMIC_RELAXED)) {
        /* It belongs to the parent, which ends its own copy. */
        profile->times = NULL;
        profile->steps = NULL;
        profile->report = gts_profile_report(NULL, NULL, gts_clock_ns() - profile->begin);
    } else {
        (void)pthread_mutex_lock(&ending);
        while (!profile->has_ended)
            end_innermost(GTS_FOREVER);
        (void)pthread_mutex_unlock(&ending);
    }
    char *const text = profile->report;
    while (profile->times != NULL)
        free(pop(&profile->times));
    while (profile->steps != NULL)
        free(gts_step_times_pop(&profile->steps));
    free(profile);
    return text;
}

/* Forgets all profiles in a forked child, because they belong to the parent. */
static void forget(void)
{
    __atomic_store_n(&running, NULL, __ATOMIC_RELAXED);
    reporting = NULL;
}

/* ---- GTSTUB_PROFILE -------------------------------------------------------------------------------------------- */

static struct {
    gts_profile *profile;
    char *path;
} whole_process;

/* Waits a second at most, because a thread that is ending a profile may never finish. */
static bool may_end(void)
{
    struct timespec deadline;
    (void)clock_gettime(CLOCK_REALTIME, &deadline);
    ++deadline.tv_sec;
    return pthread_mutex_timedlock(&ending, &deadline) == 0;
}

static void write_report(void)
{
    gts_profile *const profile = whole_process.profile;
    if (profile->generation != __atomic_load_n(&gts_forks, __ATOMIC_RELAXED) || !may_end())
        return;
    while (!profile->has_ended)
        end_innermost(PATIENCE_NS);
    const bool is_empty = profile->times == NULL && profile->steps == NULL; /* as in a process that compiles */
    if (is_empty || profile->report == NULL)
        return;
    FILE *const file = gts_create_file(whole_process.path);
    bool is_written = file != NULL && fputs(profile->report, file) >= 0;
    if (file != NULL)
        is_written = fclose(file) == 0 && is_written;
    if (!is_written)
        (void)fprintf(stderr, "The profile cannot be written to '%s': %s.\n", whole_process.path, strerror(errno));
}

static void read_environment(void)
{
    const char *const path = getenv("GTSTUB_PROFILE");
    if (path == NULL || *path == '\0')
        return;
    whole_process.path = gts_own_path(path);
    whole_process.profile = whole_process.path == NULL ? NULL : gts_profile_begin();
    if (whole_process.profile != NULL)
        (void)atexit(write_report);
}

const gts_observer gts_profile_observer = {
    .size = sizeof(gts_profiled),
    .place = &gts_profiled_place,
    .read_environment = read_environment,
    .enter = enter,
    .run = run,
    .close = close_program,
    .time_step = time_step,
    .free_step = free_step,
    .after_fork = forget,
};
