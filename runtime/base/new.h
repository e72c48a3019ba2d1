/*
 * Inside the runtime: memory for its own bookkeeping, which is small. If the system has none, the process ends with a
 * sentence: no caller has a failure to handle, or half a structure to free. Memory for arrays, whose size the user
 * chooses, comes from malloc(), and its absence is a refusal.
 */
#pragma once

#include <stddef.h>

/* Zeroed memory for `count` elements of `size` bytes, also for none; to be freed with free(). */
void *gts_new(size_t count, size_t size) __attribute__((malloc, returns_nonnull, warn_unused_result));

/* Memory of gts_new() with another size, of which what is new is not zeroed. */
void *gts_renew(void *memory, size_t size) __attribute__((returns_nonnull, warn_unused_result));

/* The size of a cache line of the CPU, in bytes. */
#define GTS_CACHE_LINE 64

static inline size_t gts_in_cache_lines(size_t size)
{
    return (size + GTS_CACHE_LINE - 1) / GTS_CACHE_LINE * GTS_CACHE_LINE;
}

/* Zeroed memory that shares no cache line with other data; to be freed with free(). */
void *gts_new_lines(size_t size) __attribute__((malloc, returns_nonnull, warn_unused_result));

/* A text as printf() makes it; to be freed with free(). */
char *gts_new_text(const char *format, ...)
    __attribute__((malloc, returns_nonnull, warn_unused_result, format(printf, 1, 2)));
