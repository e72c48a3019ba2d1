/* Inside the runtime: the arguments of one call of a recording. All data is protected by the recorder's lock. */
#pragma once

#include "base/strided.h"
#include "program/observe.h"
#include "observers/record/archive.h"

/* The part of a recording that belongs to one program. */
typedef struct gts_recorder_program {
    struct gts_recorder_program *next;
    const gts_stub *stub; /* never unmapped */
    char *id;             /* its name in the recording; the second program of the same name is <name>-2 */
    bool is_announced;    /* the index has it */
    bool has_ended;       /* its recording has stopped, and the user was told */
    bool was_captured;    /* the user was told that captured calls are not recorded */
    uint64_t calls;       /* number of calls that have begun */
    gts_store *stores;
} gts_recorder_program;

extern const gts_observer gts_recorder_observer;
extern size_t gts_recorder_offset __attribute__((visibility("hidden")));

/* The part of the recording that belongs to a program; NULL if its calls are not recorded. */
static inline gts_recorder_program *gts_recorder_of(const gts_program *self)
{
    return *(gts_recorder_program **)gts_observed(self, gts_recorder_offset);
}

/* The addresses of one argument, or of all arguments that overlap. */
typedef struct gts_span {
    uintptr_t low, high;
    uint32_t memory; /* the lowest index of these arguments */
} gts_span;

typedef struct gts_recorder_value {
    gts_array array;
    void *host; /* array.data, or the place of that element in a copy if the array is on a GPU */
    gts_range range;
    gts_span span;
    gts_store *store;
    int64_t before, after; /* offsets in the store, in bytes; `after` is -1 if the call does not write the argument */
} gts_recorder_value;

/* A call that is being recorded. */
typedef struct gts_recorder_call {
    uint64_t number;
    int gpu_error;               /* of CUDA, if arrays could not be copied from the GPU; else 0 */
    gts_recorder_value values[]; /* [stub->leaf_count] */
} gts_recorder_call;

/* Writes all arguments to the archive, before the call; false with call->gpu_error, or else with errno. */
bool gts_snapshot_before(gts_program *self, gts_recorder_call *call);

/* Writes the arguments that the call has written to the archive, and the call to the index; false as above. */
bool gts_snapshot_after(gts_program *self, gts_recorder_call *call);

/* Forgets the memory for copies in a forked child, because a thread of the parent may have been using it. */
void gts_snapshot_forget(void);
