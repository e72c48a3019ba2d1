/* Chooses the clock of calls, and measures its ticks. */
#define _GNU_SOURCE
#include "base/clock.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool gts_counts_ticks;
gts_moment gts_loaded_at;

/* Of several readings the quickest one, because a thread may lose its processor between both clocks. */
gts_moment gts_now(void)
{
    gts_moment now = {0};
    uint64_t quickest = UINT64_MAX;
    for (int i = 0; i < 5; ++i) {
        const uint64_t begin = gts_ticks(), ns = gts_clock_ns(), took = gts_ticks() - begin;
        if (took < quickest) {
            quickest = took;
            now = (gts_moment){.ticks = begin + took / 2, .ns = ns};
        }
    }
    return now;
}

double gts_ns_per_tick(void)
{
    gts_moment now;
    do
        now = gts_now();
    while (now.ns - gts_loaded_at.ns < 1000000);
    return (double)(now.ns - gts_loaded_at.ns) / (double)(now.ticks - gts_loaded_at.ticks);
}

/* When the library is loaded, before any time is read. The counter runs evenly on all processors if the kernel uses it. */
__attribute__((constructor(101))) static void choose_clock(void)
{
#if defined(__x86_64__)
    char source[4] = "";
    const int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    gts_counts_ticks = file >= 0 && read(file, source, sizeof source) == sizeof source &&
                       memcmp(source, "tsc\n", 4) == 0;
    if (file >= 0)
        close(file);
#endif
    gts_loaded_at = gts_now();
}
