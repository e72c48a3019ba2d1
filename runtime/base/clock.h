/* Inside the runtime: the clock that profiles and waiting callers read. */
#pragma once

#include <stdint.h>
#include <time.h>

/* The time of a monotonic clock in nanoseconds. */
static inline uint64_t gts_clock_ns(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}
