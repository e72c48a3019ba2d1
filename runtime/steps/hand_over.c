/* Steps of a host with its own objects, such as Python, which C and Fortran find by their names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/new.h"
#include "base/path.h"
#include "program/private.h"
#include "steps/steps.h"

/* A step that was handed over. */
typedef struct handed_over {
    gts_step *step; /* owned */
    struct handed_over *next;
    char name[];
} handed_over;

GTS_LOCK(lock) /* of the list */

static handed_over *first;

/* ---- The list -------------------------------------------------------------------------------------------------- */

/* What points to the step of a name, or to the end of the list. */
static handed_over **find_link(const char *name)
{
    handed_over **link = &first;
    while (*link != NULL && strcmp((*link)->name, name) != 0)
        link = &(*link)->next;
    return link;
}

/* Removes a step from the list, and returns it with its reference. */
static gts_step *take_step(handed_over **link)
{
    handed_over *const taken = *link;
    gts_step *const step = taken->step;
    *link = taken->next;
    free(taken);
    return step;
}

/* In a forked child. A program of the step would be refused anyway, but the GIL may belong to a thread of the parent. */
static void disown(void)
{
    for (const handed_over *each = first; each != NULL; each = each->next)
        each->step->access = GTS_STEP_OF_PARENT;
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, disown);
}

/* ---- Handing over ---------------------------------------------------------------------------------------------- */

static int add(gts_step *step, const char *name)
{
    const handed_over *each = first;
    while (each != NULL && each->step != step)
        each = each->next;
    if (each != NULL)
        return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                             "Step '%s' cannot be handed over as '%s': it is handed over already, as '%s'.", step->name,
                             name, each->name);
    handed_over **const end = find_link(name);
    if (*end != NULL)
        return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                             "Step '%s' cannot be handed over as '%s': another step has this name, and must be taken "
                             "back first.",
                             step->name, name);
    handed_over *const new = gts_new(1, sizeof *new + strlen(name) + 1);
    *new = (handed_over){.step = gts_step_keep(step)};
    strcpy(new->name, name);
    step->access = GTS_STEP_HANDED_OVER;
    *end = new;
    return 0;
}

int gts_step_hand_over(gts_step *self, const char *name)
{
    pthread_mutex_lock(&lock);
    const int status = add(self, name);
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- Refusals -------------------------------------------------------------------------------------------------- */

/* A libgtstub in this process besides this one. */
typedef struct other_copy {
    const void *own; /* where this one begins */
    const char *path;
} other_copy;

static int note_other_copy(struct dl_phdr_info *library, size_t size, void *found)
{
    (void)size;
    static const char NAME[] = "libgtstub.so.";
    other_copy *const other = found;
    if (strncmp(gts_file_name(library->dlpi_name), NAME, sizeof NAME - 1) != 0 ||
        (const void *)library->dlpi_addr == other->own)
        return 0;
    other->path = library->dlpi_name;
    return 1;
}

/* Why no step of a name is there: the names that are, or a second copy of this library, which Python uses. */
static GTS_COLD int refuse_unknown(const char *name)
{
    char names[512] = "";
    for (const handed_over *each = first; each != NULL; each = each->next) {
        const size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s'%.100s'", length == 0 ? "" : ", ", each->name);
    }
    if (*names != '\0')
        return gts_error_set(&gts_own_error, GTS_VALUE_ERROR, "No step was handed over as '%.100s', only %s.", name,
                             names);
    Dl_info this;
    other_copy other = {.own = dladdr(&first, &this) != 0 ? this.dli_fbase : NULL};
    if (other.own != NULL)
        dl_iterate_phdr(note_other_copy, &other);
    if (other.path != NULL)
        return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                             "No step was handed over as '%.100s' to '%s'; Python may have handed it over to another "
                             "copy of this library, '%s'.",
                             name, this.dli_fname, other.path);
    return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                         "No step was handed over as '%.100s', nor under any other name.", name);
}

/* ---- Finding and taking back ----------------------------------------------------------------------------------- */

int gts_step_find(const char *name, gts_step **step)
{
    *step = NULL;
    pthread_mutex_lock(&lock);
    const handed_over *const found = *find_link(name);
    const int status = found == NULL ? refuse_unknown(name) : gts_step_check_access(found->step);
    if (status == 0)
        *step = gts_step_keep(found->step);
    pthread_mutex_unlock(&lock);
    return status;
}

int gts_step_take_back(const char *name, gts_step **step)
{
    *step = NULL;
    pthread_mutex_lock(&lock);
    handed_over **const link = find_link(name);
    const int status = *link == NULL ? refuse_unknown(name) : gts_step_enter((*link)->step);
    if (status == 0) {
        *step = take_step(link);
        (*step)->access = GTS_STEP_TAKEN_BACK;
        gts_step_leave(*step);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* Waits until a step is not running, and all that run it later see what the caller has written. */
static void wait_until_idle(gts_step *step)
{
    const struct timespec pause = {.tv_nsec = 100000};
    while (gts_step_enter(step) != 0)
        nanosleep(&pause, NULL);
    gts_step_leave(step);
}

gts_step *gts_step_end_one(void)
{
    pthread_mutex_lock(&lock);
    gts_step *const step = first == NULL ? NULL : take_step(&first);
    const gts_step_access access = step == NULL ? GTS_STEP_OF_PARENT : step->access;
    if (step != NULL)
        step->access = GTS_STEP_HOST_ENDED;
    pthread_mutex_unlock(&lock);
    if (access != GTS_STEP_OF_PARENT) /* a step that a thread of the parent was running will never end */
        wait_until_idle(step);
    return step;
}
