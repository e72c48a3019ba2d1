/* Inside the runtime: the times that a profile keeps, as histograms. All times are in nanoseconds. */
#pragma once

#include "program/observe.h"

/* One bucket for each time below 32 ns, and 32 buckets for each doubling above, up to 2^42 ns (more than an hour). */
enum { GTS_BUCKET_BITS = 5, GTS_PER_OCTAVE = 1 << GTS_BUCKET_BITS, GTS_BUCKETS = (42 - 4) * GTS_PER_OCTAVE };

/* Minimum, maximum and sum are exact; the median is accurate to 1/64 of its value. */
typedef struct gts_histogram {
    uint64_t min, max, total;
    uint64_t bucket[GTS_BUCKETS];
} gts_histogram;

/* The times of `count` calls. */
typedef struct gts_call_times {
    uint64_t count;
    gts_histogram conversion; /* from the beginning of the call to the start of the SDFG */
    gts_histogram sdfg;
    gts_histogram whole; /* the sum of both */
    gts_pool_use memory; /* that the SDFG has taken from the pool */
} gts_call_times;

/* The times of all calls of one program in one profile. */
typedef struct gts_program_times {
    struct gts_program_times
        *next; /* in a program's list: of an outer profile; in a profile's list: of another program */
    gts_profile *profile;
    const gts_stub *stub;   /* never unmapped */
    gts_call_times initial; /* the first call, and calls that initialised the SDFG's handle */
    gts_call_times run;     /* all other calls */
} gts_program_times;

/* What profiles know of a program. Its lock protects this. */
typedef struct gts_profiled {
    uint64_t entered;         /* when this call was entered, in ns; 0 if no profile times it */
    gts_program_times *times; /* a list: those of the innermost profile first */
} gts_profiled;

extern const gts_observer gts_profile_observer;
extern size_t gts_profiled_place __attribute__((visibility("hidden")));

static inline gts_profiled *gts_profiled_of(const gts_program *self)
{
    return gts_observed(self, gts_profiled_place);
}

static inline unsigned int gts_bucket(uint64_t time)
{
    if (time < GTS_PER_OCTAVE)
        return (unsigned int)time;
    const unsigned int shift = 63U - GTS_BUCKET_BITS - (unsigned int)__builtin_clzll(time);
    const unsigned int bucket = (shift << GTS_BUCKET_BITS) + (unsigned int)(time >> shift);
    return bucket < GTS_BUCKETS ? bucket : GTS_BUCKETS - 1;
}

static inline void gts_histogram_add(gts_histogram *histogram, uint64_t time)
{
    histogram->min = time < histogram->min ? time : histogram->min;
    histogram->max = time > histogram->max ? time : histogram->max;
    histogram->total += time;
    ++histogram->bucket[gts_bucket(time)];
}

/* Adds what was taken from the pool. */
static inline void gts_add_memory(gts_pool_use *to, gts_pool_use taken)
{
    to->arrays += taken.arrays;
    to->bytes += taken.bytes;
    to->ns += taken.ns;
}

/* Adds the times of `from` to a histogram. */
void gts_histogram_merge(gts_histogram *histogram, const gts_histogram *from);

/* The median of the `count` > 0 times of a histogram. */
uint64_t gts_histogram_median(const gts_histogram *histogram, uint64_t count);

/* Allocates times without calls; NULL when memory runs out. */
gts_program_times *gts_program_times_new(gts_profile *profile, const gts_stub *stub);

/* Adds the calls of `from` to `times`. */
void gts_program_times_merge(gts_program_times *times, const gts_program_times *from);
