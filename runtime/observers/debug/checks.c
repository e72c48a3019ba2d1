/*
 * Debug checks begin and end: gts_checks_begin(), GTSTUB_CHECK.
 *
 * All checks that are running check each call. Their list is protected by `lock`, but calls read it without the lock:
 * checks are freed only when every program has been entered after they were taken off the list.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/lock.h"
#include "observers/debug/checked.h"

gts_checks *_Atomic gts_checks_running;

GTS_LOCK(lock)

/* ---- Beginning and ending -------------------------------------------------------------------------------------- */

gts_checks *gts_checks_begin(const char *text)
{
    gts_checks *const self = gts_checks_read(text);
    if (self == NULL)
        return NULL;
    pthread_mutex_lock(&lock);
    self->outer = gts_checks_running;
    gts_checks_running = self;
    gts_add_attention(1);
    pthread_mutex_unlock(&lock);
    return self;
}

static void take_off(gts_checks *self)
{
    pthread_mutex_lock(&lock);
    gts_checks *_Atomic *link = &gts_checks_running;
    while (*link != NULL && *link != self)
        link = &(*link)->outer;
    if (*link != NULL) {
        *link = self->outer;
        gts_add_attention(-1);
    }
    pthread_mutex_unlock(&lock);
}

/* Waits for the call that is running. */
static void forget_checks(gts_program *program, void *checks)
{
    gts_lock(program, GTS_FOREVER);
    gts_checked_forget(program, checks);
    gts_leave(program);
}

static void warn_about_pattern(const gts_pattern *pattern, const char *what)
{
    if (pattern->pattern != NULL && !pattern->is_optional && !pattern->has_matched)
        fprintf(stderr, "Check '%s' has selected no %s that was called.\n", pattern->item, what);
}

/* Warns about patterns that have selected nothing, where there was something to select. */
static void warn(const gts_checks *self)
{
    if (self->has_met) {
        for (uint32_t i = 0; i < self->only_count; ++i)
            warn_about_pattern(&self->only[i], "program");
    }
    if (!self->has_selected)
        return;
    for (uint32_t i = 0; i < self->rule_count; ++i)
        warn_about_pattern(&self->rules[i].fields, "field of a program");
    for (uint32_t i = 0; i < self->trace_count; ++i)
        warn_about_pattern(&self->traces[i].fields, "field of a program");
}

void gts_checks_end(gts_checks **checks)
{
    gts_checks *const self = *checks;
    *checks = NULL;
    if (self == NULL)
        return;
    take_off(self);
    gts_loaded_visit(forget_checks, self);
    warn(self);
    gts_checks_free(self);
}

void gts_checks_inherit(void)
{
    gts_maps_forget();
    for (gts_checks *checks = gts_checks_running; checks != NULL; checks = checks->outer) {
        checks->has_met = checks->has_selected = false; /* the parent warns of its own calls */
        gts_add_attention(1);
    }
}

/* ---- GTSTUB_CHECK ---------------------------------------------------------------------------------------------- */

static gts_checks *whole_process;

static void warn_at_exit(void)
{
    warn(whole_process);
}

void gts_checks_read_environment(void)
{
    const char *text = getenv("GTSTUB_CHECK");
    if (text == NULL || *text == '\0')
        text = gts_is_set("GTSTUB_BUILD_CHECKS") ? "finite" : "0";
    if (strcmp(text, "0") == 0)
        return;
    whole_process = gts_checks_begin(text);
    if (whole_process != NULL)
        atexit(warn_at_exit);
    else
        fprintf(stderr, "GTSTUB_CHECK is ignored: %s\n", gts_own_error.message);
}
