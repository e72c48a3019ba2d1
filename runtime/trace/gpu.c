/*
 * The work of calls on a GPU. Events measure it, as in profiles; when it was, they tell by their distance from another
 * event, the anchor, for which one call has waited. An anchor is replaced when it is old: two clocks drift apart, and the
 * distance is a float.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "trace/trace.h"

/* The age of an anchor, in ns, at which a call waits for the next one. */
#define OLD UINT64_C(10000000000)

static void add(const gts_cuda *cuda, void *begin, void *end, void *context)
{
    const gts_gpu_trace *const own = context;
    double to_begin, to_end;
    if (!gts_gpu_elapsed(cuda, own->anchor, begin, &to_begin) || !gts_gpu_elapsed(cuda, own->anchor, end, &to_end))
        return;
    gts_events_add_ns("GPU", *own->name, own->track, own->anchored + (uint64_t)to_begin,
                      own->anchored + (uint64_t)to_end);
}

/* Waits until the GPU has come to a new anchor; false if it cannot. */
static bool drop_anchor(gts_program *self, gts_gpu_trace *own)
{
    const gts_gpu *const gpu = &self->runtime->gpu;
    gts_gpu_times_collect(self, own->times, GTS_FOREVER);
    own->anchored = 0;
    if ((own->anchor == NULL && gpu->cuda->event_create(&own->anchor, 0) != 0) ||
        gpu->cuda->event_record(own->anchor, gpu->stream) != 0 || gpu->cuda->event_synchronize(own->anchor) != 0) {
        (void)gpu->cuda->get_last_error();
        return false;
    }
    own->anchored = gts_clock_ns();
    return true;
}

static void find_track(gts_gpu_trace *own, const void *stream)
{
    char text[40] = "GPU";
    if (own->track != 0 && own->stream == stream)
        return;
    if ((uintptr_t)stream > 1)
        (void)snprintf(text, sizeof text, "GPU, stream 0x%" PRIxPTR, (uintptr_t)stream);
    own->stream = stream;
    own->track = gts_trace_track(text);
}

bool gts_gpu_trace_begin(gts_program *self, gts_gpu_trace *own, const char *const *name)
{
    const gts_gpu *const gpu = &self->runtime->gpu;
    if (gpu->cuda == NULL || gts_cuda_capture(gpu->cuda, gpu->stream) != 0)
        return false;
    if ((own->anchored == 0 || gts_clock_ns() - own->anchored > OLD) && !drop_anchor(self, own))
        return false;
    find_track(own, gpu->stream);
    own->name = name;
    return gts_gpu_times_begin(self, &own->times, add);
}

void gts_gpu_trace_end(gts_program *self, gts_gpu_trace *own, bool has_failed)
{
    gts_gpu_times_end(self, own->times, has_failed ? NULL : own);
}

void gts_gpu_trace_collect(gts_program *self, gts_gpu_trace *own, uint64_t patience)
{
    gts_gpu_times_collect(self, own->times, patience);
}

void gts_gpu_trace_free(gts_program *self, gts_gpu_trace *own)
{
    if (own->anchor != NULL)
        (void)self->runtime->gpu.cuda->event_destroy(own->anchor);
    gts_gpu_times_free(self, &own->times);
}
