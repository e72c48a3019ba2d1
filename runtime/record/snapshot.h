/* Inside the runtime: the arguments of one call of a recording. All of it is under the recording's lock. */
#ifndef GTSTUB_RECORD_SNAPSHOT_H
#define GTSTUB_RECORD_SNAPSHOT_H

#include "record/archive.h"
#include "program/hooks.h"

struct gts_recorder_program {
    gts_recorder_program *next;
    const gts_stub *stub; /* is never unmapped */
    char *id;             /* the program's name in the recording: of two with one name the second is <name>-2 */
    bool is_announced;    /* in the index */
    uint64_t calls;       /* that have begun */
    gts_store *stores;
};

/* Bytes of one argument, or of all that overlap: then low and high are of all of them. */
typedef struct gts_span {
    uintptr_t low, high;
    uint32_t memory; /* the least index of these arguments */
} gts_span;

typedef struct gts_recorder_value {
    gts_array array;
    size_t size;
    gts_span span;
    gts_store *store;
    int64_t before, after; /* where they lie in the store; `after` is -1 where nothing is written */
} gts_recorder_value;

struct gts_recorder_call {
    uint64_t number;
    gts_recorder_value values[]; /* [stub->leaf_count] */
};

/* Writes all arguments to the archive, as they are before the call. False with errno. */
bool gts_snapshot_before(gts_program *self, gts_recorder_call *call);

/* Writes what the call has written, and the call to the index. False with errno. */
bool gts_snapshot_after(gts_program *self, gts_recorder_call *call);

/* In a forked child: the memory that the parent was packing values into is left alone. */
void gts_snapshot_forget(void);

#endif
