/*
 * Calls that begin with empty caches, so that callgrind's model of a cache counts the cache lines that they touch: with
 * one set of CACHE_LINES lines (instructions.py), every first access of a line is a miss and every other access is a hit.
 */
#ifndef COLD_H
#define COLD_H

/* More than the model's caches have. */
#define EVICTED_LINES 1024
#define CACHE_LINE 64
#define WARM_STACK 4096

static char other_memory[EVICTED_LINES * CACHE_LINE] __attribute__((aligned(CACHE_LINE)));

/* Fills both caches with other lines: of data, and of instructions that do nothing. */
static inline void evict(void)
{
    for (int i = 0; i < EVICTED_LINES; ++i)
        (void)((volatile char *)other_memory)[CACHE_LINE * i];
    __asm__ volatile(".rept 1024\n\tnop\n\t.p2align 6\n.endr\n");
}

/* Reads memory that belongs to the caller. */
static inline void warm(const void *memory, size_t size)
{
    for (size_t i = 0; i < size; ++i)
        (void)((const volatile char *)memory)[i];
}

/* Uses the stack below this function's caller, as whatever has run before the call has done. */
static __attribute__((noinline, unused)) void warm_stack(void)
{
    volatile char stack[WARM_STACK];
    for (int i = 0; i < WARM_STACK; ++i)
        stack[i] = 0;
}

#endif
