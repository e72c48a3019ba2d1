/* Inside the runtime: the memory that SDFGs have freed, and that is kept for their next arrays. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "embedded/memory.h"

/* What the SDFG of a library has taken from the pool. */
typedef struct gts_pool_use {
    uint64_t arrays, bytes;
    uint64_t ns; /* in which arrays were taken and given back while gts_attention was not 0 */
} gts_pool_use;

/*
 * Lends the pool to the SDFG of a library, which is from dlopen(), unless it has one. Returns what it takes, or NULL if
 * it takes nothing: gtstub has not built the library, another runtime lends its pool, or there is none.
 */
const gts_pool_use *gts_pool_lend(void *library, const char *name);

/* What was taken since another moment, of a result of gts_pool_lend(). */
gts_pool_use gts_pool_taken(const gts_pool_use *use, const gts_pool_use *before);

/*
 * Whether SDFGs get no memory from the pool in this thread. While a handle is initialised they get none: the arena of an
 * array that the handle keeps would never be free for other programs.
 */
void gts_pool_pause(bool pause);
