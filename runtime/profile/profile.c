/*
 * Profiles: how often programs were called, and how long conversion and SDFG took.
 *
 * A call is recorded by the profile that began last before it; when that ends, what it has recorded becomes part of the
 * one around it. Records that calls write hang on their program, under its lock. Everything else is under `lock`, which
 * nobody holds while he waits for a program: a host may load and unload programs wherever it likes.
 */
#define _GNU_SOURCE
#include "profile/profile.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/forks.h"
#include "base/lock.h"
#include "profile/histogram.h"

struct gts_profile {
    gts_profile *outer;
    gts_program_times *times; /* one for each stub; no program writes them any more */
    char *report;             /* after it has ended */
    uint64_t begin;
    unsigned int generation; /* forks that the process had behind it */
    bool has_ended;
};

gts_profile *gts_profile_running;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER; /* one profile ends at a time */
static pthread_cond_t unpinned = PTHREAD_COND_INITIALIZER;
static gts_program *programs;

/* Where the process ends, a call is waited for so many nanoseconds: its thread may never leave. */
#define PATIENCE UINT64_C(1000000000)

/* Where a program keeps the record of `profile`, or would keep it. */
static gts_program_times **place_of_times(gts_program *program, const gts_profile *profile)
{
    gts_program_times **place = &program->times;
    while (*place != NULL && (*place)->profile != profile)
        place = &(*place)->next;
    return place;
}

/* Takes the record of `profile` off a program; NULL where there is none. */
static gts_program_times *take_off(gts_program *program, const gts_profile *profile)
{
    gts_program_times **const place = place_of_times(program, profile);
    gts_program_times *const times = *place;
    if (times != NULL)
        *place = times->next;
    return times;
}

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

/* Makes the record of `profile` the program's first one; it may be behind those of profiles that are ending. */
static GTS_COLD bool find_times(gts_program *self, gts_profile *profile)
{
    gts_program_times *const times = take_off(self, profile);
    gts_program_times *const found = times != NULL ? times : gts_program_times_new(profile, self->stub);
    if (found == NULL)
        return false; /* the call goes on without */
    found->next = self->times;
    self->times = found;
    return true;
}

void gts_profile_enter(gts_program *self, gts_profile *profile)
{
    const bool has_times = self->times != NULL && self->times->profile == profile;
    self->entered = GTS_LIKELY(has_times) || find_times(self, profile) ? gts_now() : 0;
    self->is_special = true;
}

int gts_profile_run(gts_program *self)
{
    const uint64_t converted = gts_now();
    const int status = self->stub->run(self);
    const uint64_t ended = gts_now();
    if (status == 0) {
        const bool is_initial = !self->was_called || self->has_new_handle;
        gts_call_times *const calls = GTS_UNLIKELY(is_initial) ? &self->times->initial : &self->times->run;
        ++calls->count;
        gts_histogram_add(&calls->conversion, converted - self->entered);
        gts_histogram_add(&calls->sdfg, ended - converted);
        gts_histogram_add(&calls->whole, ended - self->entered);
    }
    self->entered = 0;
    return status;
}

/* ---- Records that no program writes any more ------------------------------------------------------------------- */

/* Makes a record part of a profile. */
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

void gts_profile_add_program(gts_program *self)
{
    (void)pthread_mutex_lock(&lock);
    self->next = programs;
    programs = self;
    (void)pthread_mutex_unlock(&lock);
}

void gts_profile_remove_program(gts_program *self)
{
    if (gts_is_parents(self)) /* as are its records, and it is on no list of this process */
        return;
    (void)pthread_mutex_lock(&lock);
    while (self->pins > 0)
        (void)pthread_cond_wait(&unpinned, &lock);
    gts_program **link = &programs;
    while (*link != NULL && *link != self)
        link = &(*link)->next;
    if (*link != NULL)
        *link = self->next;
    while (self->times != NULL) {
        gts_program_times *const times = self->times;
        self->times = times->next;
        keep(times->profile, times);
    }
    (void)pthread_mutex_unlock(&lock);
}

/* ---- Beginning and ending -------------------------------------------------------------------------------------- */

gts_profile *gts_profile_begin(void)
{
    gts_profile *const profile = calloc(1, sizeof *profile);
    if (profile == NULL)
        return NULL;
    (void)pthread_mutex_lock(&lock);
    profile->outer = __atomic_load_n(&gts_profile_running, __ATOMIC_SEQ_CST);
    profile->generation = __atomic_load_n(&gts_forks, __ATOMIC_SEQ_CST);
    profile->begin = gts_now();
    __atomic_store_n(&gts_profile_running, profile, __ATOMIC_SEQ_CST);
    (void)__atomic_fetch_add(&gts_attention, 1, __ATOMIC_SEQ_CST);
    (void)pthread_mutex_unlock(&lock);
    return profile;
}

static GTS_COLD gts_program_times *copy_times(gts_program *program, const gts_profile *profile)
{
    const gts_program_times *const times = *place_of_times(program, profile);
    gts_program_times *const copy = times == NULL ? NULL : malloc(sizeof *copy);
    if (copy != NULL)
        *copy = *times;
    return copy;
}

/* Takes what `profile` has recorded of a program, after the call that is running. */
static gts_program_times *take_times(gts_profile *profile, gts_program *program, bool at_exit)
{
    if (!gts_lock(program, at_exit ? PATIENCE : GTS_FOREVER)) /* its call outlives the process, and may still write */
        return copy_times(program, profile);
    gts_program_times *const times = take_off(program, profile);
    program->entered = 0;
    gts_leave(program);
    return times;
}

static void take_all_times(gts_profile *profile, bool at_exit)
{
    (void)pthread_mutex_lock(&lock);
    for (gts_program *program = programs; program != NULL; program = program->next) {
        ++program->pins;
        (void)pthread_mutex_unlock(&lock);
        gts_program_times *const times = take_times(profile, program, at_exit);
        (void)pthread_mutex_lock(&lock);
        if (times != NULL)
            keep(profile, times);
        if (--program->pins == 0)
            (void)pthread_cond_broadcast(&unpinned);
    }
    (void)pthread_mutex_unlock(&lock);
}

/* Ends the profile that began last. */
static gts_profile *end_innermost(bool at_exit)
{
    (void)pthread_mutex_lock(&lock);
    gts_profile *const profile = __atomic_load_n(&gts_profile_running, __ATOMIC_SEQ_CST);
    __atomic_store_n(&gts_profile_running, profile->outer, __ATOMIC_SEQ_CST);
    (void)__atomic_fetch_sub(&gts_attention, 1, __ATOMIC_SEQ_CST);
    (void)pthread_mutex_unlock(&lock);
    take_all_times(profile, at_exit);
    profile->report = gts_profile_report(profile->times, gts_now() - profile->begin);
    profile->has_ended = true;
    (void)pthread_mutex_lock(&lock);
    while (profile->times != NULL && profile->outer != NULL) {
        gts_program_times *const times = profile->times;
        profile->times = times->next;
        keep(profile->outer, times);
    }
    (void)pthread_mutex_unlock(&lock);
    return profile;
}

char *gts_profile_end(gts_profile *profile)
{
    if (profile->generation != __atomic_load_n(&gts_forks, __ATOMIC_SEQ_CST)) { /* the parent's, who ends it himself */
        profile->times = NULL;
        profile->report = gts_profile_report(profile->times, gts_now() - profile->begin);
    } else {
        (void)pthread_mutex_lock(&ending);
        while (!profile->has_ended)
            (void)end_innermost(false);
        (void)pthread_mutex_unlock(&ending);
    }
    char *const text = profile->report;
    while (profile->times != NULL) {
        gts_program_times *const times = profile->times;
        profile->times = times->next;
        free(times);
    }
    free(profile);
    return text;
}

void gts_profile_forget(void)
{
    __atomic_store_n(&gts_profile_running, NULL, __ATOMIC_SEQ_CST);
    __atomic_store_n(&gts_attention, 0, __ATOMIC_SEQ_CST); /* the threads that waited are the parent's, too */
    programs = NULL;
    (void)pthread_mutex_init(&lock, NULL);
    (void)pthread_mutex_init(&ending, NULL);
    (void)pthread_cond_init(&unpinned, NULL);
}

/* ---- GTSTUB_PROFILE -------------------------------------------------------------------------------------------- */

static struct {
    gts_profile *profile;
    char *path;
} whole_process;

/* The path with the number of this process in the place of "%p"; NULL without memory. */
static char *numbered(const char *path)
{
    const char *const place = strstr(path, "%p");
    char *text = NULL;
    size_t size = 0;
    FILE *const out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    if (place == NULL)
        (void)fputs(path, out);
    else
        (void)fprintf(out, "%.*s%ld%s", (int)(place - path), path, (long)getpid(), place + 2);
    (void)fclose(out);
    return text;
}

/* Waits at most a second: the thread that ends a profile may never come back. */
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
    if (profile->generation != __atomic_load_n(&gts_forks, __ATOMIC_SEQ_CST) || !may_end())
        return;
    while (!profile->has_ended)
        (void)end_innermost(true);
    if (profile->times == NULL || profile->report == NULL) /* a process without calls, such as one that compiles */
        return;
    FILE *const file = fopen(whole_process.path, "we");
    bool is_written = file != NULL && fputs(profile->report, file) >= 0;
    if (file != NULL)
        is_written = fclose(file) == 0 && is_written;
    if (!is_written)
        (void)fprintf(stderr, "The profile cannot be written to '%s': %s.\n", whole_process.path, strerror(errno));
}

void gts_profile_read_environment(void)
{
    const char *const path = getenv("GTSTUB_PROFILE");
    if (path == NULL || *path == '\0')
        return;
    whole_process.path = numbered(path);
    whole_process.profile = whole_process.path == NULL ? NULL : gts_profile_begin();
    if (whole_process.profile != NULL)
        (void)atexit(write_report);
}
