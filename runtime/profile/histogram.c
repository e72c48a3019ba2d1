/* Histograms of times: creating and merging them, and their medians. */
#include "profile/histogram.h"

#include <stdlib.h>

size_t gts_profiled_place;

static void init(gts_call_times *times)
{
    times->conversion.min = times->sdfg.min = times->whole.min = UINT64_MAX;
}

void gts_histogram_merge(gts_histogram *histogram, const gts_histogram *from)
{
    histogram->min = from->min < histogram->min ? from->min : histogram->min;
    histogram->max = from->max > histogram->max ? from->max : histogram->max;
    histogram->total += from->total;
    for (unsigned int i = 0; i < GTS_BUCKETS; ++i)
        histogram->bucket[i] += from->bucket[i];
}

static void merge_calls(gts_call_times *times, const gts_call_times *from)
{
    times->count += from->count;
    gts_histogram_merge(&times->conversion, &from->conversion);
    gts_histogram_merge(&times->sdfg, &from->sdfg);
    gts_histogram_merge(&times->whole, &from->whole);
    gts_add_memory(&times->memory, from->memory);
}

gts_program_times *gts_program_times_new(gts_profile *profile, const gts_stub *stub)
{
    gts_program_times *const times = calloc(1, sizeof *times);
    if (times == NULL)
        return NULL;
    times->profile = profile;
    times->stub = stub;
    init(&times->initial);
    init(&times->run);
    return times;
}

void gts_program_times_merge(gts_program_times *times, const gts_program_times *from)
{
    merge_calls(&times->initial, &from->initial);
    merge_calls(&times->run, &from->run);
}

/* Returns the middle of the bucket that holds the median; of an even number of times, the lower of the two. */
uint64_t gts_histogram_median(const gts_histogram *histogram, uint64_t count)
{
    uint64_t below = 0;
    unsigned int i = 0;
    while (i < GTS_BUCKETS - 1 && (below += histogram->bucket[i]) < (count + 1) / 2)
        ++i;
    const unsigned int shift = i < GTS_PER_OCTAVE ? 0 : (i >> GTS_BUCKET_BITS) - 1;
    const uint64_t middle = ((uint64_t)(i - (shift << GTS_BUCKET_BITS)) << shift) + ((UINT64_C(1) << shift) >> 1);
    return middle < histogram->min ? histogram->min : middle > histogram->max ? histogram->max : middle;
}
