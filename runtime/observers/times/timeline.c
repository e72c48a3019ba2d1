/*
 * The timeline of a process, which GTSTUB_TRACE begins. It is written as JSON in the Trace Event Format, which Perfetto and
 * chrome://tracing open (docs/trace.md).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/path.h"
#include "base/rank.h"
#include "observers/times/times.h"

/* Of GTSTUB_TRACE_EVENTS. */
#define USUAL (UINT64_C(1) << 18)
#define LEAST (UINT64_C(1) << 4)
#define MOST (UINT64_C(1) << 26)

static char *path;

/* ---- Times ----------------------------------------------------------------------------------------------------- */

/* An event with its times in ns of CLOCK_MONOTONIC. */
typedef struct span {
    int64_t begin, end;
    const gts_event *event; /* in the order in which they were added */
    struct span *before;    /* for nest() */
} span;

static span *make_spans(const gts_event *events, size_t count)
{
    span *const spans = malloc((count + 1) * sizeof *spans);
    const gts_moment first = gts_loaded_at;
    const double ns_per_tick = gts_ns_per_tick();
    for (size_t i = 0; spans != NULL && i < count; ++i) {
        const gts_event *const event = &events[i];
        const int64_t at = (int64_t)first.ns + (int64_t)((double)(int64_t)(event->ticks - first.ticks) * ns_per_tick);
        const double unit = event->in_ns ? 1 : ns_per_tick;
        spans[i].begin = at - (int64_t)((double)event->begin * unit);
        spans[i].end = at - (int64_t)((double)event->end * unit);
        spans[i].event = event;
    }
    return spans;
}

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* Each track for itself, in the order in which its spans have ended: that in which a thread has added its own. */
static int by_end(const void *a, const void *b)
{
    const span *const one = a, *const two = b;
    int order = COMPARE(one->event->track, two->event->track);
    if (order == 0 && gts_is_named_track(one->event->track))
        order = COMPARE(one->end, two->end);
    return order != 0 ? order : COMPARE(one->event, two->event);
}

/* Each track for itself, and a span before those inside it. */
static int by_begin(const void *a, const void *b)
{
    const span *const one = a, *const two = b;
    int order = COMPARE(one->event->track, two->event->track);
    order = order != 0 ? order : COMPARE(one->begin, two->begin);
    order = order != 0 ? order : COMPARE(two->end, one->end);
    return order != 0 ? order : COMPARE(two->event, one->event);
}

/*
 * Spans of a track contain each other or do not overlap. Those that do, because their times come from different clocks,
 * are corrected: a viewer would drop them. `spans` are in the order by_end().
 */
static void nest(span *spans, size_t count)
{
    span *last = NULL; /* of those that no other one contains */
    for (span *outer = spans; outer < spans + count; ++outer) {
        for (; last != NULL && last->event->track == outer->event->track && last->end > outer->begin;
             last = last->before) {
            if (last->begin < outer->begin && last->end - outer->begin < outer->begin - last->begin) {
                outer->begin = last->end; /* it comes before, and overlaps by little */
                outer->end = outer->end < outer->begin ? outer->begin : outer->end;
                break;
            }
            outer->begin = last->begin < outer->begin ? last->begin : outer->begin;
            outer->end = last->end > outer->end ? last->end : outer->end;
        }
        outer->before = last;
        last = outer;
    }
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static void write_name(FILE *out, const char *what, uint32_t track, const char *name)
{
    fprintf(out, "{\"ph\": \"M\", \"name\": \"%s\", \"pid\": %ld, \"tid\": %" PRIu32 ", \"args\": {\"name\": ", what,
            (long)getpid(), track);
    gts_json_text(out, name);
    fputs("}},\n", out);
}

static void write_track(FILE *out, uint32_t track)
{
    char name[32];
    snprintf(name, sizeof name, track == (uint32_t)getpid() ? "main thread" : "thread %" PRIu32, track);
    write_name(out, "thread_name", track, gts_is_named_track(track) ? gts_track_name(track) : name);
}

/* A number of ns in the format's unit, µs. */
static void write_time(FILE *out, const char *what, int64_t ns)
{
    fprintf(out, ", \"%s\": %" PRId64 ".%03d", what, ns / 1000, (int)(ns % 1000));
}

static void write_spans(FILE *out, const span *spans, size_t count, int64_t zero)
{
    for (const span *each = spans; each < spans + count; ++each) {
        const gts_event *const event = each->event;
        if (each == spans || event->track != each[-1].event->track)
            write_track(out, event->track);
        fputs("{\"ph\": \"X\", \"name\": ", out);
        gts_json_text(out, event->name);
        fputs(", \"cat\": ", out);
        gts_json_text(out, event->kind);
        write_time(out, "ts", each->begin - zero);
        write_time(out, "dur", each->end - each->begin);
        if (event->kib > 0)
            fprintf(out, ", \"args\": {\"memory\": \"%" PRIu32 " KiB in %" PRIu32 " µs\"}", event->kib, event->us);
        fprintf(out, ", \"pid\": %ld, \"tid\": %" PRIu32 "}%s\n", (long)getpid(), event->track,
                each + 1 == spans + count ? "" : ",");
    }
}

/* What `gtstub trace merge` needs to know, the name of the process, and how much is missing. */
static void write_header(FILE *out, int64_t zero, uint64_t dropped)
{
    struct timespec now;
    char host[256] = "";
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t ahead = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - (int64_t)gts_clock_ns();
    gethostname(host, sizeof host - 1);
    fprintf(out,
            "{\"displayTimeUnit\": \"ns\",\n\"otherData\": {\"schema\": \"gtstub/trace/1\", \"epoch\": %" PRId64
            ", \"dropped\": %" PRIu64 ", \"rank\": %ld, \"host\": ",
            zero + ahead, dropped, gts_rank());
    gts_json_text(out, host);
    fputs("},\n\"traceEvents\": [\n", out);
    char name[32];
    snprintf(name, sizeof name, "rank %ld", gts_rank());
    write_name(out, "process_name", (uint32_t)getpid(), gts_rank() < 0 ? program_invocation_short_name : name);
    if (dropped > 0)
        fprintf(out,
                "{\"ph\": \"i\", \"s\": \"g\", \"name\": \"%" PRIu64
                " earlier events were dropped\", \"ts\": 0, \"pid\": %ld, \"tid\": %ld},\n",
                dropped, (long)getpid(), (long)getpid());
}

static bool write_file(const span *spans, size_t count, uint64_t dropped)
{
    FILE *const out = gts_create_file(path);
    if (out == NULL)
        return false;
    int64_t zero = INT64_MAX;
    for (size_t i = 0; i < count; ++i)
        zero = spans[i].begin < zero ? spans[i].begin : zero;
    write_header(out, zero, dropped);
    write_spans(out, spans, count, zero);
    fputs("]}\n", out);
    const bool is_written = ferror(out) == 0;
    return fclose(out) == 0 && is_written;
}

/* ---- Beginning and ending -------------------------------------------------------------------------------------- */

static bool write_events(void)
{
    size_t count;
    uint64_t dropped;
    gts_event *const events = gts_events_copy(&count, &dropped);
    span *const spans = events == NULL ? NULL : make_spans(events, count);
    bool is_written = spans != NULL;
    if (is_written) {
        qsort(spans, count, sizeof *spans, by_end);
        nest(spans, count);
        qsort(spans, count, sizeof *spans, by_begin);
        is_written = count == 0 || write_file(spans, count, dropped);
    }
    free(spans);
    free(events);
    return is_written;
}

static void write_timeline(void)
{
    if (gts_has_timeline && !write_events()) /* not in a forked child */
        fprintf(stderr, "The trace cannot be written to '%s': %s.\n", path, strerror(errno));
}

/* The number of events, rounded up to a power of 2. */
static uint64_t read_capacity(void)
{
    const char *const text = getenv("GTSTUB_TRACE_EVENTS");
    if (text == NULL || *text == '\0')
        return USUAL;
    char *end;
    const unsigned long long wanted = strtoull(text, &end, 10);
    uint64_t capacity = LEAST;
    if (*text < '0' || *text > '9' || *end != '\0') {
        fprintf(stderr, "GTSTUB_TRACE_EVENTS must be a number of events, but is '%s': %" PRIu64 " are kept.\n", text,
                USUAL);
        return USUAL;
    }
    while (capacity < wanted && capacity < MOST)
        capacity *= 2;
    return capacity;
}

void gts_timeline_read_environment(void)
{
    path = gts_own_path(getenv("GTSTUB_TRACE"));
    gts_has_timeline = path != NULL && gts_events_begin(read_capacity()) && atexit(write_timeline) == 0;
    if (gts_has_timeline)
        gts_add_attention(1);
}
