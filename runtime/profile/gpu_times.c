/* Measures the work of calls on a GPU. The calls that are measured at a time are in a ring, the oldest first. */
#define _GNU_SOURCE
#include "profile/gpu_times.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

/* Calls whose work the GPU may not have done yet. While so many are pending, further calls are not measured. */
#define LENGTH 64

/* Between two looks at an event that is waited for with patience. */
#define PAUSE_NS 100000L

struct gts_gpu_times {
    struct {
        void *begin, *end; /* events; NULL until they are needed */
        gts_call_times *calls;
    } pair[LENGTH];
    unsigned int first, count;
};

static gts_gpu_times *make_times(gts_program *self)
{
    gts_profiled *const own = gts_profiled_of(self);
    if (own->gpu_times == NULL)
        own->gpu_times = calloc(1, sizeof *own->gpu_times);
    return own->gpu_times;
}

/* Whether a function has succeeded. Its error is cleared, because the call that is measured must not report it. */
static bool is_done(const gts_cuda *cuda, int error)
{
    if (GTS_UNLIKELY(error != 0))
        (void)cuda->get_last_error();
    return error == 0;
}

/* Adds the time of the oldest call if its work has ended, or after waiting for it. Returns whether it was removed. */
static bool collect_oldest(const gts_cuda *cuda, gts_gpu_times *times, bool wait)
{
    void *const begin = times->pair[times->first].begin, *const end = times->pair[times->first].end;
    gts_call_times *const calls = times->pair[times->first].calls;
    const int error = wait ? cuda->event_synchronize(end) : cuda->event_query(end);
    const bool has_happened = is_done(cuda, error);
    float milliseconds = 0;
    if (!wait && error == GTS_CUDA_NOT_READY)
        return false;
    if (has_happened && is_done(cuda, cuda->event_elapsed_time(&milliseconds, begin, end))) {
        ++calls->gpu_count;
        gts_histogram_add(&calls->gpu, (uint64_t)((double)milliseconds * 1e6));
    }
    times->first = (times->first + 1) % LENGTH;
    --times->count;
    return true;
}

bool gts_gpu_times_begin(gts_program *self)
{
    const gts_gpu *const gpu = &self->runtime->gpu;
    gts_gpu_times *const times = gpu->cuda == NULL ? NULL : make_times(self);
    if (times == NULL || gts_cuda_capture(gpu->cuda, gpu->stream) != 0)
        return false;
    while (times->count > 0 && collect_oldest(gpu->cuda, times, false))
        ;
    if (times->count == LENGTH)
        return false;
    const unsigned int last = (times->first + times->count) % LENGTH;
    void **const begin = &times->pair[last].begin, **const end = &times->pair[last].end;
    return (*begin != NULL || is_done(gpu->cuda, gpu->cuda->event_create(begin, 0))) &&
           (*end != NULL || is_done(gpu->cuda, gpu->cuda->event_create(end, 0))) &&
           is_done(gpu->cuda, gpu->cuda->event_record(*begin, gpu->stream));
}

void gts_gpu_times_end(gts_program *self, gts_call_times *calls)
{
    const gts_gpu *const gpu = &self->runtime->gpu;
    gts_gpu_times *const times = gts_profiled_of(self)->gpu_times;
    const unsigned int last = (times->first + times->count) % LENGTH;
    if (calls == NULL || !is_done(gpu->cuda, gpu->cuda->event_record(times->pair[last].end, gpu->stream)))
        return;
    times->pair[last].calls = calls;
    ++times->count;
}

void gts_gpu_times_collect(gts_program *self, uint64_t patience)
{
    gts_gpu_times *const times = gts_profiled_of(self)->gpu_times;
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    const uint64_t begin = gts_clock_ns();
    while (times != NULL && times->count > 0) {
        if (collect_oldest(self->runtime->gpu.cuda, times, patience == GTS_FOREVER))
            continue;
        if (gts_clock_ns() - begin >= patience)
            times->count = 0;
        else
            (void)nanosleep(&pause, NULL);
    }
}

void gts_gpu_times_free(gts_program *self)
{
    gts_gpu_times *const times = gts_profiled_of(self)->gpu_times;
    for (unsigned int i = 0; times != NULL && i < LENGTH; ++i) {
        if (times->pair[i].begin != NULL)
            (void)self->runtime->gpu.cuda->event_destroy(times->pair[i].begin);
        if (times->pair[i].end != NULL)
            (void)self->runtime->gpu.cuda->event_destroy(times->pair[i].end);
    }
    free(times);
    gts_profiled_of(self)->gpu_times = NULL;
}
