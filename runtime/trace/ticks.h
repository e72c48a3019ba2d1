/*
 * Inside the runtime: the clock of traced calls. It is the processor's own counter where the kernel keeps its time by the
 * same counter, because clock_gettime() takes longer than all else that tracing does in a call.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* Whether ticks of x86 are those of the processor's counter; otherwise they are ns of CLOCK_MONOTONIC. */
extern bool gts_counts_ticks __attribute__((visibility("hidden")));

/* Finds out whether the kernel keeps its time by that counter, which then runs evenly on all processors. */
void gts_choose_clock(void);

static inline uint64_t gts_ticks(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(gts_counts_ticks, true))
        return __rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
    return gts_clock_ns();
}

/* Two readings of clocks at one time. */
typedef struct gts_moment {
    uint64_t ticks, ns;
} gts_moment;

static inline gts_moment gts_now(void)
{
    return (gts_moment){.ticks = gts_ticks(), .ns = gts_clock_ns()};
}
