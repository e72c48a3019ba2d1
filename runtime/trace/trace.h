/*
 * Inside the runtime: the timeline of a process. Each thread adds events to one ring, in which the newest ones stay. They
 * are written to a file when the process ends.
 */
#pragma once

#include "program/observe.h"

extern const gts_observer gts_trace_observer;

/* ---- events.c -------------------------------------------------------------------------------------------------- */

/* A span of time on a track, which has just ended, or is added later. */
typedef struct gts_event {
    uint64_t ticks;      /* gts_ticks() when it was added */
    uint64_t begin, end; /* how long before: in ticks, or in ns if `in_ns` */
    const char *kind;    /* never freed, like its name */
    const char *name;
    uint32_t track; /* gts_this_track(), or that of gts_trace_track() */
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
    uint64_t length, added;
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
    const uint64_t number = __atomic_add_fetch(&gts_ring.added, 1, __ATOMIC_RELAXED);
    gts_event_place *const at = gts_event_place_of(number);
    __atomic_store_n(&at->number, 0, __ATOMIC_RELAXED);
#define STORE(member) __atomic_store_n(&at->event.member, event.member, __ATOMIC_RELEASE)
    GTS_EACH_OF_EVENT(STORE);
#undef STORE
    __atomic_store_n(&at->number, number, __ATOMIC_RELEASE);
}

/* Makes the ring for this many events, a power of 2; false when memory runs out. */
bool gts_events_begin(uint64_t length);

/*
 * Copies the events that are left, in the order in which they were added, to memory that is freed with free(). Other
 * threads may go on to add events; those that they are adding at this moment are left out. NULL when memory runs out.
 */
gts_event *gts_events_copy(size_t *count, uint64_t *dropped);

/* Adds an event whose times are in ns of CLOCK_MONOTONIC. */
void gts_events_add_ns(const char *kind, const char *name, uint32_t track, uint64_t begin, uint64_t end);

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
const char *gts_trace_name(const char *text);

/* Numbers of tracks with a name are above those of threads. */
#define GTS_FIRST_NAMED UINT32_C(0x40000000)

static inline bool gts_trace_is_named(uint32_t track)
{
    return track >= GTS_FIRST_NAMED;
}

/* The track of a name, and the other way round. */
uint32_t gts_trace_track(const char *name);
const char *gts_trace_track_name(uint32_t track);

/* ---- write.c --------------------------------------------------------------------------------------------------- */

struct gts_moment; /* ticks.h */

/* Writes all events to a file; false with errno. `begin` is when the trace began. */
bool gts_trace_write(const char *path, const struct gts_moment *begin);
