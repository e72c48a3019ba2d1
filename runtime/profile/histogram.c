/* Records of calls: made, added up, and their medians. */
#include "profile/histogram.h"

#include <stdlib.h>

static void init(gts_calls *calls)
{
    calls->conversion.min = calls->sdfg.min = calls->whole.min = UINT64_MAX;
}

static void merge_times(gts_times *times, const gts_times *from)
{
    times->min = from->min < times->min ? from->min : times->min;
    times->max = from->max > times->max ? from->max : times->max;
    times->total += from->total;
    for (unsigned int i = 0; i < GTS_BUCKETS; ++i)
        times->bucket[i] += from->bucket[i];
}

static void merge_calls(gts_calls *calls, const gts_calls *from)
{
    calls->count += from->count;
    merge_times(&calls->conversion, &from->conversion);
    merge_times(&calls->sdfg, &from->sdfg);
    merge_times(&calls->whole, &from->whole);
}

gts_record *gts_record_new(gts_profile *profile, const gts_stub *stub)
{
    gts_record *const record = calloc(1, sizeof *record);
    if (record == NULL)
        return NULL;
    record->profile = profile;
    record->stub = stub;
    init(&record->initial);
    init(&record->run);
    return record;
}

void gts_record_merge(gts_record *record, const gts_record *from)
{
    merge_calls(&record->initial, &from->initial);
    merge_calls(&record->run, &from->run);
}

/* The middle of the bucket that holds the median (of an even number of times, the lower one of the two in the middle). */
uint64_t gts_times_median(const gts_times *times, uint64_t count)
{
    uint64_t below = 0;
    unsigned int i = 0;
    while (i < GTS_BUCKETS - 1 && (below += times->bucket[i]) < (count + 1) / 2)
        ++i;
    const unsigned int shift = i < GTS_PER_OCTAVE ? 0 : (i >> GTS_BUCKET_BITS) - 1;
    const uint64_t middle = ((uint64_t)(i - (shift << GTS_BUCKET_BITS)) << shift) + ((UINT64_C(1) << shift) >> 1);
    return middle < times->min ? times->min : middle > times->max ? times->max : middle;
}
