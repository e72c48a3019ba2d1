/* What calls.c passes to memory.c: accesses of the thread whose turn it is. `where` is the code that makes them. */
#ifndef GTSTUB_TESTS_MODEL_H
#define GTSTUB_TESTS_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "memory.h"

/* Whether a thread of memory_run() runs. If not, nothing else may be called. */
bool memory_is_modelled(void);

void memory_read(const volatile void *memory, size_t size, const void *where);

/* Before memory is written. */
void memory_write(const volatile void *memory, size_t size, const void *where);

/* Frees memory when all threads have ended. */
void memory_free(void *memory, const void *where);

uint64_t memory_load(volatile void *memory, size_t size, int order, const void *where);
void memory_store(volatile void *memory, size_t size, uint64_t value, int order, const void *where);

typedef enum memory_change { MEMORY_EXCHANGE, MEMORY_ADD, MEMORY_SUBTRACT } memory_change;

/* Returns the value before. */
uint64_t memory_update(volatile void *memory, size_t size, memory_change change, uint64_t value, int order,
                       const void *where);

/* Of success and failure, in which *expected becomes the value that was found. */
bool memory_compare(volatile void *memory, size_t size, uint64_t *expected, uint64_t value, const int *orders,
                    const void *where);

void memory_lock(const void *mutex);
void memory_unlock(const void *mutex);

#endif
