/**
 * @file
 * Where an SDFG gets the memory of its arrays. The C++ code of an SDFG that gtstub has built contains this file as text,
 * so that it compiles as C and C++, and includes nothing of gtstub's.
 */
#ifndef GTSTUB_SDFG_MEMORY_H
#define GTSTUB_SDFG_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/** Arrays of fewer bytes are allocated as without a pool. */
#define GTS_POOLED_BYTES 32768

/** The alignment of the memory in bytes: that of DaCe's arrays. */
#define GTS_POOLED_ALIGNMENT 64

/**
 * What the variable `__gtstub_memory_<name>` of a library points to. It is NULL until the runtime sets it, once, before
 * the first call. The runtime owns it and never frees it. The functions may be called in any thread.
 */
typedef struct gts_sdfg_memory gts_sdfg_memory;
struct gts_sdfg_memory {
    /** Memory for an array, aligned to GTS_POOLED_ALIGNMENT; NULL if the pool has none. */
    void *(*take)(gts_sdfg_memory *, size_t bytes);

    /** Takes back what `take` has given: all that lies in `[begin, begin + size)`. */
    void (*give)(gts_sdfg_memory *, void *);
    uintptr_t begin;
    size_t size; /**< in bytes */
};

#endif
