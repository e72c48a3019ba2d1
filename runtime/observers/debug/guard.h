/*
 * Inside the runtime: the guarded copies on which a call runs (guard.c), and what it has accessed outside of them
 * (outside.c).
 */
#pragma once

#include "observers/debug/checked.h"
#include "observers/debug/pages.h"
#include "base/strided.h"
#include "gtstub/stub.h"

/* The memory of one array, or of several that share it, and its copy. */
typedef struct gts_region {
    uintptr_t low, high;  /* the memory of the host: its first byte, and the one after its last */
    size_t align;         /* addresses are the same modulo this many bytes */
    gts_pages *pages;     /* NULL before it was copied */
    uintptr_t begin, end; /* of the open pages */
    uintptr_t copy;       /* address of the copy */
    size_t part_count;    /* number of arrays */
    bool has_gaps;        /* not all of its bytes belong to elements, as far as it is known */
} gts_region;

/* An array of the call. */
typedef struct gts_part {
    uint32_t leaf;
    gts_array array;  /* all the memory that the SDFG may access in its place */
    gts_range memory; /* of the array */
    gts_region *region;
} gts_part;

struct gts_guard {
    bool at_end; /* copies end where the open pages end; otherwise they begin where those begin */
    size_t part_count, region_count;
    gts_part *parts;        /* [leaf_count], in the order of addresses */
    gts_region *regions;    /* [leaf_count] */
    gts_region *workspaces; /* [workspace_count], at first only with `low`; without `pages` where there is no copy */
    const char *map;        /* that ended first after an access */
    /* gts_program.call_back, which is another one while the SDFG runs */
    int (*call_back)(gts_program *, uint32_t leaf, const gts_callback_value *, uint32_t arguments, uint32_t results);
};

/* The copy of a part, or with another `begin` the same array in a copy of the open pages of its region. */
static inline gts_array gts_copy_of(const gts_part *part, uintptr_t begin)
{
    const gts_region *const region = part->region;
    gts_array copy = part->array;
    copy.data = (void *)(begin + (region->copy - region->begin) + ((uintptr_t)copy.data - region->low));
    return copy;
}

/* ---- outside.c ------------------------------------------------------------------------------------------------- */

/*
 * Writes the bytes of open memory at an address that belong to no element: float32 and float64 are NaN there, int32 and
 * int64 exceed any index. They differ from place to place, so that a write is found also if the SDFG has read what it
 * writes at another such place. `size` is a multiple of 4.
 */
void gts_guard_fill(void *memory, uintptr_t address, size_t size);

/* The error when memory runs out. Returns -1. */
GTS_COLD int gts_guard_refuse_memory(gts_program *self);

/* Fails for the first access outside of the arrays and workspaces of the call, or prints all if its checks only warn. */
int gts_guard_report(gts_program *self, const gts_guard *guard);
