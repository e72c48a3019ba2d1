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
    gts_record *records; /* that no program writes any more, one for each stub */
    char *report;        /* after it has ended */
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
static gts_record **place_of_record(gts_program *program, const gts_profile *profile)
{
    gts_record **place = &program->record;
    while (*place != NULL && (*place)->profile != profile)
        place = &(*place)->next;
    return place;
}

/* Takes the record of `profile` off a program; NULL where there is none. */
static gts_record *take_off(gts_program *program, const gts_profile *profile)
{
    gts_record **const place = place_of_record(program, profile);
    gts_record *const record = *place;
    if (record != NULL)
        *place = record->next;
    return record;
}

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

/* Makes the record of `profile` the program's first one; it may be behind those of profiles that are ending. */
static GTS_COLD bool find_record(gts_program *self, gts_profile *profile)
{
    gts_record *const record = take_off(self, profile);
    gts_record *const found = record != NULL ? record : gts_record_new(profile, self->stub);
    if (found == NULL)
        return false; /* the call goes on without */
    found->next = self->record;
    self->record = found;
    return true;
}

void gts_profile_enter(gts_program *self, gts_profile *profile)
{
    const bool has_record = self->record != NULL && self->record->profile == profile;
    self->entered = GTS_LIKELY(has_record) || find_record(self, profile) ? gts_now() : 0;
    self->is_special = true;
}

int gts_profile_run(gts_program *self)
{
    const uint64_t converted = gts_now();
    const int status = self->stub->run(self);
    const uint64_t ended = gts_now();
    if (status == 0) {
        const bool is_initial = !self->was_called || self->has_new_handle;
        gts_calls *const calls = GTS_UNLIKELY(is_initial) ? &self->record->initial : &self->record->run;
        ++calls->count;
        gts_times_add(&calls->conversion, converted - self->entered);
        gts_times_add(&calls->sdfg, ended - converted);
        gts_times_add(&calls->whole, ended - self->entered);
    }
    self->entered = 0;
    return status;
}

/* ---- Records that no program writes any more ------------------------------------------------------------------- */

/* Makes a record part of a profile. */
static void keep(gts_profile *profile, gts_record *record)
{
    gts_record *same = profile->records;
    while (same != NULL && same->stub != record->stub)
        same = same->next;
    if (same != NULL)
        gts_record_merge(same, record);
    if (same != NULL || record->initial.count + record->run.count == 0) {
        free(record);
        return;
    }
    record->next = profile->records;
    profile->records = record;
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
    while (self->record != NULL) {
        gts_record *const record = self->record;
        self->record = record->next;
        keep(record->profile, record);
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

static GTS_COLD gts_record *copy_record(gts_program *program, const gts_profile *profile)
{
    const gts_record *const record = *place_of_record(program, profile);
    gts_record *const copy = record == NULL ? NULL : malloc(sizeof *copy);
    if (copy != NULL)
        *copy = *record;
    return copy;
}

/* Takes what `profile` has recorded of a program, after the call that is running. */
static gts_record *take_record(gts_profile *profile, gts_program *program, bool at_exit)
{
    if (!gts_lock(program, at_exit ? PATIENCE : GTS_FOREVER)) /* its call outlives the process, and may still write */
        return copy_record(program, profile);
    gts_record *const record = take_off(program, profile);
    program->entered = 0;
    gts_leave(program);
    return record;
}

static void take_all_records(gts_profile *profile, bool at_exit)
{
    (void)pthread_mutex_lock(&lock);
    for (gts_program *program = programs; program != NULL; program = program->next) {
        ++program->pins;
        (void)pthread_mutex_unlock(&lock);
        gts_record *const record = take_record(profile, program, at_exit);
        (void)pthread_mutex_lock(&lock);
        if (record != NULL)
            keep(profile, record);
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
    take_all_records(profile, at_exit);
    profile->report = gts_report(profile->records, gts_now() - profile->begin);
    profile->has_ended = true;
    (void)pthread_mutex_lock(&lock);
    while (profile->records != NULL && profile->outer != NULL) {
        gts_record *const record = profile->records;
        profile->records = record->next;
        keep(profile->outer, record);
    }
    (void)pthread_mutex_unlock(&lock);
    return profile;
}

char *gts_profile_end(gts_profile *profile)
{
    if (profile->generation != __atomic_load_n(&gts_forks, __ATOMIC_SEQ_CST)) { /* the parent's, who ends it himself */
        profile->records = NULL;
        profile->report = gts_report(profile->records, gts_now() - profile->begin);
    } else {
        (void)pthread_mutex_lock(&ending);
        while (!profile->has_ended)
            (void)end_innermost(false);
        (void)pthread_mutex_unlock(&ending);
    }
    char *const text = profile->report;
    while (profile->records != NULL) {
        gts_record *const record = profile->records;
        profile->records = record->next;
        free(record);
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
    if (profile->records == NULL || profile->report == NULL) /* a process without calls, such as one that compiles */
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
