/* Inside the runtime: the members of a granule, and the memory of its kept arrays. */
#pragma once

#include "base/error.h"
#include "base/refuse.h"
#include "steps/steps.h"
#include "gtstub/granule.h"

/* The memory of kept arrays: those that no step writes are shared with other processes. */
typedef struct gts_kept {
    void *file; /* mapped: the head of the file, and the arrays that are not written */
    size_t file_size;
    void *written; /* mapped privately: the arrays that are written, and those that are zero at the start */
    size_t written_size;
} gts_kept;

/* What a step calls in place of a hook. */
typedef struct gts_hook_call {
    struct gts_hook_call *next;
    gts_hook hook;
    uint32_t count;
    gts_array arrays[]; /* [count], with the addresses of the call before */
} gts_hook_call;

/* A scalar, in the first bytes. */
typedef struct gts_granule_value {
    uint64_t words[2];
} gts_granule_value;

struct gts_granule {
    const gts_granule_descriptor *descriptor; /* NULL after the granule was closed */
    gts_program **programs;                   /* [program_count] */
    gts_array *arrays;         /* [array_count], as they are now; an argument has no memory before it is bound */
    gts_granule_value *values; /* [scalar_count], as the host has given them last */
    uint64_t change;           /* counts the changes of `values`; > 0 */
    gts_granule_value *used;   /* [step_count][scalar_count]: those that the calls of each step have */
    uint64_t *run_with;        /* [step_count]: `change` when the step has begun to run; 0 if it has not since open() */
    gts_scalar *changed;       /* [scalar_count]: room for those of a run */
    bool *is_temporary;        /* [array_count]: each step overwrites the array before it reads it */
    unsigned int generation;   /* gts_forks when the granule was opened */
    int64_t index_base;        /* of the tables that are bound */
    bool from_fortran;         /* the host is Fortran: messages count as it does */
    gts_kept kept;
    gts_step **steps; /* [step_count]; NULL unless the granule is bound */
    gts_step *all;    /* contains all steps, to change them at once */
    gts_hook_call *hook_calls;
    char *name;         /* after the granule was closed: what it was called */
    gts_granule *older; /* that was closed before this one */
};

/* The values of the scalars that the calls of a step have. */
static inline gts_granule_value *gts_granule_used(const gts_granule *self, uint32_t step)
{
    return self->used + (size_t)step * self->descriptor->scalar_count;
}

static inline bool gts_granule_is_open(const gts_granule *self)
{
    return self != NULL && self->descriptor != NULL;
}

/*
 * Maps the arrays that the file `kept.bin` of a folder has, and sets the addresses of the kept arrays, whose other members
 * are set, and which of them are temporaries. Returns 0, or -1 with gts_own_error.
 */
int gts_kept_map(gts_kept *, const gts_granule_descriptor *, const char *folder, gts_array *arrays, bool *is_temporary);

void gts_kept_unmap(gts_kept *);

/* Refuses a granule that is not open. */
GTS_COLD int gts_granule_refuse_closed(const gts_granule *);

/* Refuses a granule that is not open, that a parent process has opened, or of which a step is running. */
int gts_granule_check_idle(const gts_granule *);

/* Refuses an open granule of which a step is running. */
int gts_granule_check_not_running(const gts_granule *);

/* Refuses an argument of the host. */
#define GTS_REFUSE_GRANULE(self, array, kind, format, ...)                                                             \
    gts_error_set(&gts_own_error, kind, GTS_GRANULE_ARGUMENT format, (array)->name, (self)->name, ##__VA_ARGS__)

/* Refuses the file of a folder that has the kept arrays. */
#define GTS_REFUSE_KEPT(self, folder, kind, format, ...)                                                               \
    gts_error_set(&gts_own_error, kind, GTS_KEPT_FILE format, (self)->name, folder, ##__VA_ARGS__)
