/* Inside the runtime: what a profile records of a program. Times are in nanoseconds. */
#ifndef GTSTUB_PROFILE_HISTOGRAM_H
#define GTSTUB_PROFILE_HISTOGRAM_H

#include "gtstub/stub.h"

/* Buckets for times below 32 ns, and 32 for each doubling above, up to 2^42 ns, more than an hour. */
enum { GTS_BUCKET_BITS = 5, GTS_PER_OCTAVE = 1 << GTS_BUCKET_BITS, GTS_BUCKETS = (42 - 4) * GTS_PER_OCTAVE };

/* Exact extremes and sum; a median to a 64th of itself. */
typedef struct gts_times {
    uint64_t min, max, total;
    uint64_t bucket[GTS_BUCKETS];
} gts_times;

/* Times of the same calls: from entering to the SDFG, of the SDFG, and both. */
typedef struct gts_calls {
    uint64_t count;
    gts_times conversion, sdfg, whole;
} gts_calls;

static inline unsigned int gts_bucket(uint64_t time)
{
    if (time < GTS_PER_OCTAVE)
        return (unsigned int)time;
    const unsigned int shift = 63U - GTS_BUCKET_BITS - (unsigned int)__builtin_clzll(time);
    const unsigned int bucket = (shift << GTS_BUCKET_BITS) + (unsigned int)(time >> shift);
    return bucket < GTS_BUCKETS ? bucket : GTS_BUCKETS - 1;
}

static inline void gts_times_add(gts_times *times, uint64_t time)
{
    times->min = time < times->min ? time : times->min;
    times->max = time > times->max ? time : times->max;
    times->total += time;
    ++times->bucket[gts_bucket(time)];
}

struct gts_record {
    gts_record *next; /* of the program: of an outer profile; of a profile: of another program */
    gts_profile *profile;
    const gts_stub *stub; /* is never unmapped */
    gts_calls initial;    /* calls that initialised the SDFG's handle, or that were the first */
    gts_calls run;        /* all others */
};

/* A record without calls; NULL without memory. */
gts_record *gts_record_new(gts_profile *profile, const gts_stub *stub);

/* Adds the calls of `from`. */
void gts_record_merge(gts_record *record, const gts_record *from);

/* Of `count` times, not 0. */
uint64_t gts_times_median(const gts_times *times, uint64_t count);

/* The JSON of a profile that took `wall` ns, to be freed with free(); NULL without memory. */
char *gts_report(const gts_record *records, uint64_t wall);

#endif
