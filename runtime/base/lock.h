/* Inside the runtime: the lock of a program, for those who wait for it, and their clock. */
#ifndef GTSTUB_BASE_LOCK_H
#define GTSTUB_BASE_LOCK_H

#include <time.h>

#include "gtstub/stub.h"

/* Nanoseconds of a clock that only goes forward. */
static inline uint64_t gts_now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

#define GTS_FOREVER UINT64_MAX

/* Waits at most so many nanoseconds until no call is running; false if one still is. gts_leave() gives the lock back. */
bool gts_lock(gts_program *self, uint64_t patience);

#endif
