/* Inside the runtime: reads the index of a recording, which docs/record.md describes. */
#pragma once

#include <stdio.h>

#include "base/layout.h"
#include "gtstub/program.h"

/* All texts below point into gts_archive_index.text. */
typedef struct gts_archive_leaf {
    const char *name;
    const char *path;
    gts_leaf_kind kind;
    gts_dtype dtype;
    int32_t rank;
    bool written;
    const char *dims[GTS_MAX_RANK];
    bool has_tolerance;
    uint64_t tolerance; /* in units in the last place */
} gts_archive_leaf;

typedef struct gts_archive_program {
    struct gts_archive_program *next;
    const char *id;
    const char *name;
    const char *program_digest;
    const char *sdfg_digest;
    uint32_t leaf_count;
    gts_archive_leaf leaves[]; /* [leaf_count] */
} gts_archive_program;

typedef struct gts_archive_value {
    unsigned int store;
    int64_t before, after; /* offsets in the store, in bytes; `after` is -1 if the call did not write the argument */
    uint32_t memory;       /* number of the memory, less than leaf_count; values that overlap have the same */
    int64_t offset;        /* bytes from the beginning of the memory to array.data, which is NULL here */
    gts_array array;
    size_t size; /* of all elements, in bytes */
    gts_extent extent;
} gts_archive_value;

typedef struct gts_archive_call {
    gts_archive_program *program;
    uint64_t number;
    gts_archive_value values[]; /* [program->leaf_count] */
} gts_archive_call;

typedef struct gts_archive_index {
    char *text;
    gts_archive_program *programs;
    size_t call_count;
    gts_archive_call **calls;
} gts_archive_index;

/* Opens a file of a recording for reading; NULL if it cannot be read, or is a device or a FIFO. */
FILE *gts_archive_open(const char *path);

/* Reads all complete calls of the archive at `path`. The index must be freed even after -1. */
int gts_archive_index_read(gts_archive_index *index, const char *path, gts_error *error);
void gts_archive_index_free(gts_archive_index *index);
