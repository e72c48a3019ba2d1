/*
 * Inside the runtime: the clocks. Waiting callers read CLOCK_MONOTONIC. Calls, actions of steps and other work are timed
 * in ticks: of the processor's own counter where the kernel keeps its time by that counter, because clock_gettime() takes
 * longer than all else that timing does in a call; elsewhere in ns of CLOCK_MONOTONIC.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* The time of a monotonic clock in nanoseconds. */
static inline uint64_t gts_clock_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Whether ticks of x86 are those of the counter. */
extern bool gts_counts_ticks __attribute__((visibility("hidden")));

static inline uint64_t gts_ticks(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(gts_counts_ticks, true))
        return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
    return gts_clock_ns();
}

/* Readings of both clocks at one time. */
typedef struct gts_moment {
    uint64_t ticks, ns;
} gts_moment;

gts_moment gts_now(void);

/* When this library was loaded. */
extern gts_moment gts_loaded_at __attribute__((visibility("hidden")));

/* The length of a tick, measured since then. The first ms of a process is too short for that: the rest of it passes. */
double gts_ns_per_tick(void);
