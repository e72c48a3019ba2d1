/*
 * Inside the runtime: the times of calls, of actions of steps and of other work. One observer reads one clock, and has two
 * sinks. Profiles keep times as histograms, in ticks (base/clock.h), and their reports have them in seconds. The timeline
 * of the process keeps the newest events, in a ring to which all threads add theirs, and writes them to a file at the end.
 */
#pragma once

#include <stdio.h>

#include "program/observe.h"
#include "steps/steps.h"

extern const gts_observer gts_times_observer;

/* ---- profile.c ------------------------------------------------------------------------------------------------- */

/* One bucket for each time below 32, and 32 buckets for each doubling above, up to 2^45 (more than an hour at 5 GHz). */
enum { GTS_BUCKET_BITS = 5, GTS_PER_OCTAVE = 1 << GTS_BUCKET_BITS, GTS_BUCKETS = (45 - 4) * GTS_PER_OCTAVE };

/* Minimum, maximum and sum are exact; the median is accurate to 1/64 of its value. */
typedef struct gts_histogram {
    uint64_t min, max, total;
    uint64_t bucket[GTS_BUCKETS];
} gts_histogram;

/* What is timed: a part of the calls of a program, or a position of a step. */
typedef struct gts_row {
    const char *name; /* of the program or function at a position; never freed */
    bool is_program;
    gts_histogram time;
} gts_row;

/* The rows of a program. Initial calls are the first one, and those that initialised the SDFG's handle. */
enum {
    GTS_CONVERSION, /* from the beginning of the call to the start of the SDFG */
    GTS_SDFG,
    GTS_WHOLE, /* the sum of both */
    GTS_CALL_ROWS,
    GTS_PROGRAM_ROWS = 2 * GTS_CALL_ROWS, /* of initial calls, and of all others */
};

/* The times of one program or one step in one profile. */
typedef struct gts_times {
    struct gts_times *next;  /* in a list of the profile */
    struct gts_times *outer; /* those in the profile around it, or NULL */
    const gts_stub *stub;    /* never unmapped; NULL for a step */
    uint64_t step;           /* its id; 0 after it was freed, and for a program */
    const char *name;        /* never freed */
    bool is_empty;           /* no call of the program has succeeded */
    gts_pool_use memory[2];  /* that the SDFG has taken from the pool: in initial calls, and in all others */
    size_t count;
    gts_row row[]; /* [count] */
} gts_times;

/* What is known of a program whose calls are timed. Its lock protects this. */
typedef struct gts_timed {
    uint64_t entered; /* when this call was entered, in ticks; 0 if it is not timed */
    uint64_t profile; /* the number of the profile that `times` belong to */
    gts_times *times; /* NULL if no profile times this call */
    const char *name; /* in the timeline, with its static arguments */
} gts_timed;

extern size_t gts_timed_offset __attribute__((visibility("hidden")));

static inline gts_timed *gts_timed_of(const gts_program *self)
{
    return gts_observed(self, gts_timed_offset);
}

/* A call that has ended. */
typedef struct gts_call {
    uint64_t entered, converted, ended; /* in ticks */
    bool is_initial;
    gts_pool_use taken; /* from the pool */
} gts_call;

/* The number of the profile that began last and has not ended. No other one ever has it. 0 when none is running. */
extern _Atomic uint64_t gts_innermost_profile __attribute__((visibility("hidden")));

/* Finds the times of a program in that profile: sets `times` and `profile`. */
GTS_COLD void gts_profile_find(gts_timed *timed, const gts_stub *stub);

/* Adds a call that has succeeded, and an action: to all profiles that are running and were when it began. */
void gts_profile_add_call(gts_times *times, const gts_call *call);
void gts_profile_add_action(const gts_step *step, size_t position, uint64_t begin, uint64_t end);

/* A step is being freed. */
void gts_profile_free_step(const gts_step *step);

/* Begins what GTSTUB_PROFILE asks for. */
void gts_profile_read_environment(void);

/* Forgets all profiles in a forked child, because they belong to the parent. */
void gts_profile_forget(void);

/* ---- report.c -------------------------------------------------------------------------------------------------- */

/* The JSON report of a profile that took `wall` ticks, to be freed with free(); NULL when memory runs out. */
char *gts_profile_report(const gts_times *programs, const gts_times *steps, uint64_t wall);

/* Writes the static arguments of a program, each as its path between two texts, and its value. */
void gts_print_static_arguments(FILE *out, const gts_stub *stub, const char *before, const char *behind);

/* ---- events.c -------------------------------------------------------------------------------------------------- */

/* A span of time on a track, which has just ended, or is added later. */
typedef struct gts_event {
    uint64_t ticks;      /* when it was added: gts_ticks() */
    uint64_t begin, end; /* how long before: in ticks, or in ns if `in_ns` */
    const char *kind;    /* never freed, like its name */
    const char *name;
    uint32_t track; /* that of a thread or, for gts_add_span(), of a name */
    bool in_ns;
    uint32_t kib, us; /* of a call: what its SDFG has taken from the pool, rounded up, and the time in which */
} gts_event;

/* The place of an event in the ring. */
typedef struct gts_event_place {
    _Alignas(64) uint64_t number; /* of the event, from 1; 0 while it is being written */
    gts_event event;
} gts_event_place;

/* The ring, whose length is a power of 2, and the number of the last event. */
extern struct gts_ring {
    gts_event_place *places;
    uint64_t length;
    _Atomic uint64_t added;
} gts_ring __attribute__((visibility("hidden")));

static inline gts_event_place *gts_event_place_of(uint64_t number)
{
    return &gts_ring.places[(number - 1) & (gts_ring.length - 1)];
}

/* For each member of an event. Each is stored and loaded whole, and not before the number of its place. */
/* clang-format off */
#define GTS_EACH_OF_EVENT(X) X(ticks), X(begin), X(end), X(kind), X(name), X(track), X(in_ns), X(kib), X(us)
/* clang-format on */

/*
 * Adds an event, in place of the oldest one if there are too many. A thread takes the next number, whose place it then
 * fills. It marks the place as unfinished first, and with its number last, so that a reader can leave out what is being
 * written.
 */
static inline void gts_events_add(const gts_event event)
{
    const uint64_t number = ++gts_ring.added;
    gts_event_place *const at = gts_event_place_of(number);
    __atomic_store_n(&at->number, 0, __ATOMIC_RELAXED);
#define STORE(member) __atomic_store_n(&at->event.member, event.member, __ATOMIC_RELEASE)
    GTS_EACH_OF_EVENT(STORE);
#undef STORE
    __atomic_store_n(&at->number, number, __ATOMIC_RELEASE);
}

/* Whether this process has a timeline. */
extern bool gts_has_timeline __attribute__((visibility("hidden")));

/* Makes the ring for this many events, a power of 2; false when memory runs out. */
bool gts_events_begin(uint64_t length);

/*
 * Copies the events that are left, in the order in which they were added, to memory that is freed with free(). Other
 * threads may go on to add events; those that they are adding at this moment are left out. NULL when memory runs out.
 */
gts_event *gts_events_copy(size_t *count, uint64_t *dropped);

/* The number of this thread, in the memory that it has from its beginning; 0 before gts_find_track(). */
extern __thread uint32_t gts_known_track __attribute__((visibility("hidden")));
GTS_COLD uint32_t gts_find_track(void);

/* The track of this thread: its number. */
static inline uint32_t gts_this_track(void)
{
    return GTS_LIKELY(gts_known_track != 0) ? gts_known_track : gts_find_track();
}

/* ---- names.c --------------------------------------------------------------------------------------------------- */

/* The one copy of a text. It is never freed. */
const char *gts_lasting_name(const char *text);

/* Numbers of tracks with a name are above those of threads. */
#define GTS_FIRST_NAMED UINT32_C(0x40000000)

static inline bool gts_is_named_track(uint32_t track)
{
    return track >= GTS_FIRST_NAMED;
}

/* Map a name to its track, and a track to its name. */
uint32_t gts_named_track(const char *name);
const char *gts_track_name(uint32_t track);

/* ---- timeline.c ------------------------------------------------------------------------------------------------ */

/* Begins what GTSTUB_TRACE asks for. */
void gts_timeline_read_environment(void);
