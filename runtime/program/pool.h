/* Inside the runtime: the memory that SDFGs have freed, and that is kept for their next arrays. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gtstub/sdfg_memory.h"

/* What the SDFG of a library has taken from the pool. */
typedef struct gts_pool_use {
    uint64_t arrays, bytes;
    uint64_t ns; /* in which arrays were taken and given back while something observed calls */
} gts_pool_use;

/* Lends the pool to the SDFG of a library, which is from dlopen(), unless it has one. */
void gts_pool_lend(void *library, const char *name);

/*
 * Whether SDFGs get arrays from `operator new[]` in this thread, as an SDFG does for those that its handle keeps: in the
 * pool, the arena of such an array would never be free for other programs.
 */
void gts_pool_pause(bool pause);
