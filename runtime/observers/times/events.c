/* The ring of events, and the tracks of threads. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "observers/times/times.h"

struct gts_ring gts_ring;
bool gts_has_timeline;

bool gts_events_begin(uint64_t length)
{
    gts_event_place *const places = aligned_alloc(_Alignof(gts_event_place), length * sizeof *places);
    if (places == NULL)
        return false;
    memset(places, 0, length * sizeof *places); /* so that no call is the first one to touch a page */
    gts_ring.places = places;
    gts_ring.length = length;
    return true;
}

void gts_add_span(const char *kind, const char *name, const char *track, uint64_t begin, uint64_t end)
{
    gts_start_observers();
    if (!gts_has_timeline)
        return;
    const gts_moment now = gts_now();
    gts_events_add((gts_event){
        .ticks = now.ticks,
        .begin = begin < now.ns ? now.ns - begin : 0,
        .end = end < now.ns ? now.ns - end : 0,
        .kind = gts_lasting_name(kind),
        .name = gts_lasting_name(name),
        .track = track == NULL ? gts_this_track() : gts_named_track(track),
        .in_ns = true,
    });
}

/* Copies the event of a number; false if it is not there, or not yet, or no longer. */
static bool copy(uint64_t number, gts_event *to)
{
    gts_event_place *const at = gts_event_place_of(number);
    if (__atomic_load_n(&at->number, __ATOMIC_ACQUIRE) != number)
        return false;
#define LOAD(member) __atomic_load(&at->event.member, &to->member, __ATOMIC_ACQUIRE)
    GTS_EACH_OF_EVENT(LOAD);
#undef LOAD
    return __atomic_load_n(&at->number, __ATOMIC_RELAXED) == number;
}

gts_event *gts_events_copy(size_t *count, uint64_t *dropped)
{
    const uint64_t last = gts_ring.added;
    const uint64_t first = last > gts_ring.length ? last - gts_ring.length + 1 : 1;
    gts_event *const events = malloc((last - first + 2) * sizeof *events);
    *count = 0;
    for (uint64_t number = first; events != NULL && number <= last; ++number)
        *count += copy(number, &events[*count]);
    *dropped = last - *count;
    return events;
}

__thread uint32_t gts_known_track;

uint32_t gts_find_track(void)
{
    gts_known_track = (uint32_t)gettid();
    return gts_known_track;
}
