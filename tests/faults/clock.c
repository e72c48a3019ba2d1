/*
 * An LD_PRELOAD library that makes the wall clock of a process run backwards: every time it is asked it is
 * GTS_CLOCK_STEP seconds earlier than the time before. Where GTS_CLOCK_OFFSET is set it starts so many seconds off.
 * The monotonic clocks are left alone.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long gts_step, gts_offset;
static atomic_long gts_asked;

__attribute__((constructor)) static void gts_start(void)
{
    const char *const step = getenv("GTS_CLOCK_STEP");
    const char *const offset = getenv("GTS_CLOCK_OFFSET");
    gts_step = step == NULL ? 0 : atol(step);
    gts_offset = offset == NULL ? 0 : atol(offset);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const long result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += gts_offset - gts_step * atomic_fetch_add(&gts_asked, 1);
    return (int)result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    struct timespec time;
    const int result = clock_gettime(CLOCK_REALTIME, &time);
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return result;
}

time_t time(time_t *now)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_REALTIME, &time);
    if (now != NULL)
        *now = time.tv_sec;
    return time.tv_sec;
}
