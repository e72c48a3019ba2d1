/* Writes the timeline as JSON in the Trace Event Format, which Perfetto and chrome://tracing open (docs/trace.md). */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/path.h"
#include "base/rank.h"
#include "trace/ticks.h"
#include "trace/trace.h"

/* ---- Times ----------------------------------------------------------------------------------------------------- */

/* An event with its times in ns of CLOCK_MONOTONIC. */
typedef struct span {
    int64_t begin, end;
    const char *kind, *name;
    uint32_t track, kib, us;
    size_t number; /* in the order in which they were added */
} span;

static span *make_spans(const gts_event *events, size_t count, gts_moment first)
{
    span *const spans = malloc((count + 1) * sizeof *spans);
    const gts_moment last = gts_now();
    const double ticks = (double)(last.ticks - first.ticks), ns = (double)(last.ns - first.ns);
    const double ns_per_tick = ticks > 0 ? ns / ticks : 1;
    for (size_t i = 0; spans != NULL && i < count; ++i) {
        const gts_event *const event = &events[i];
        const int64_t at = (int64_t)first.ns + (int64_t)((double)(int64_t)(event->ticks - first.ticks) * ns_per_tick);
        const double unit = event->in_ns ? 1 : ns_per_tick;
        spans[i] = (span){
            .begin = at - (int64_t)((double)event->begin * unit),
            .end = at - (int64_t)((double)event->end * unit),
            .kind = event->kind,
            .name = event->name,
            .track = event->track,
            .kib = event->kib,
            .us = event->us,
            .number = i,
        };
    }
    return spans;
}

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Each track for itself, in the order in which its spans have ended: that in which a thread has added its own. */
static int by_end(const void *a, const void *b)
{
    const span *const one = a, *const two = b;
    if (one->track != two->track)
        return compare(one->track, two->track);
    if (gts_trace_is_named(one->track) && one->end != two->end)
        return one->end < two->end ? -1 : 1;
    return compare(one->number, two->number);
}

/* Each track for itself, and a span before those inside it. */
static int by_begin(const void *a, const void *b)
{
    const span *const one = a, *const two = b;
    if (one->track != two->track)
        return compare(one->track, two->track);
    if (one->begin != two->begin)
        return one->begin < two->begin ? -1 : 1;
    return one->end != two->end ? (one->end > two->end ? -1 : 1) : compare(two->number, one->number);
}

/*
 * Spans of a track contain each other or do not overlap. Those that do, because their times come from different clocks,
 * are corrected: a viewer would drop them. `spans` are in the order by_end(); `open` has room for as many pointers.
 */
static void nest(span *spans, size_t count, span **open)
{
    size_t depth = 0;
    for (size_t i = 0; i < count; ++i) {
        span *const outer = &spans[i];
        while (depth > 0 && open[depth - 1]->track == outer->track && open[depth - 1]->end > outer->begin) {
            const span *const inner = open[depth - 1];
            if (inner->begin < outer->begin && inner->end - outer->begin < outer->begin - inner->begin) {
                outer->begin = inner->end; /* it comes before, and overlaps by little */
                outer->end = outer->end < outer->begin ? outer->begin : outer->end;
                break;
            }
            outer->begin = inner->begin < outer->begin ? inner->begin : outer->begin;
            outer->end = inner->end > outer->end ? inner->end : outer->end;
            --depth;
        }
        open[depth++] = outer;
    }
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static void write_name(FILE *out, const char *what, uint32_t track, const char *name)
{
    (void)fprintf(out,
                  "{\"ph\": \"M\", \"name\": \"%s\", \"pid\": %ld, \"tid\": %" PRIu32 ", \"args\": {\"name\": ", what,
                  (long)getpid(), track);
    gts_json_text(out, name);
    (void)fputs("}},\n", out);
}

static void write_process(FILE *out)
{
    char name[32];
    (void)snprintf(name, sizeof name, "rank %ld", gts_rank());
    write_name(out, "process_name", (uint32_t)getpid(), gts_rank() < 0 ? program_invocation_short_name : name);
}

static void write_track(FILE *out, uint32_t track)
{
    char name[32];
    (void)snprintf(name, sizeof name, track == (uint32_t)getpid() ? "main thread" : "thread %" PRIu32, track);
    write_name(out, "thread_name", track, gts_trace_is_named(track) ? gts_trace_track_name(track) : name);
}

/* A number of ns in the format's unit, µs. */
static void write_time(FILE *out, const char *what, int64_t ns)
{
    (void)fprintf(out, ", \"%s\": %" PRId64 ".%03d", what, ns / 1000, (int)(ns % 1000));
}

/* Says at the beginning, across all tracks, how much is missing. */
static void write_note(FILE *out, uint64_t dropped)
{
    if (dropped > 0)
        (void)fprintf(out,
                      "{\"ph\": \"i\", \"s\": \"g\", \"name\": \"%" PRIu64
                      " earlier events were dropped\", \"ts\": 0, \"pid\": %ld, \"tid\": %ld},\n",
                      dropped, (long)getpid(), (long)getpid());
}

static void write_spans(FILE *out, const span *spans, size_t count, int64_t zero)
{
    for (size_t i = 0; i < count; ++i) {
        const span *const each = &spans[i];
        if (i == 0 || each->track != spans[i - 1].track)
            write_track(out, each->track);
        (void)fputs("{\"ph\": \"X\", \"name\": ", out);
        gts_json_text(out, each->name);
        (void)fputs(", \"cat\": ", out);
        gts_json_text(out, each->kind);
        write_time(out, "ts", each->begin - zero);
        write_time(out, "dur", each->end - each->begin);
        if (each->kib > 0)
            (void)fprintf(out, ", \"args\": {\"memory\": \"%" PRIu32 " KiB in %" PRIu32 " µs\"}", each->kib, each->us);
        (void)fprintf(out, ", \"pid\": %ld, \"tid\": %" PRIu32 "}%s\n", (long)getpid(), each->track,
                      i + 1 == count ? "" : ",");
    }
}

/* What `gtstub trace merge` needs to know, and how much is missing. */
static void write_header(FILE *out, int64_t zero, uint64_t dropped)
{
    struct timespec now;
    char host[256] = "";
    (void)clock_gettime(CLOCK_REALTIME, &now);
    const int64_t ahead = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - (int64_t)gts_clock_ns();
    (void)gethostname(host, sizeof host - 1);
    (void)fprintf(out,
                  "{\"displayTimeUnit\": \"ns\",\n\"otherData\": {\"schema\": \"gtstub/trace/1\", \"epoch\": %" PRId64
                  ", \"dropped\": %" PRIu64 ", \"rank\": %ld, \"host\": ",
                  zero + ahead, dropped, gts_rank());
    gts_json_text(out, host);
    (void)fputs("},\n\"traceEvents\": [\n", out);
}

static bool write_file(const char *path, const span *spans, size_t count, uint64_t dropped)
{
    FILE *const out = gts_create_file(path);
    if (out == NULL)
        return false;
    int64_t zero = INT64_MAX;
    for (size_t i = 0; i < count; ++i)
        zero = spans[i].begin < zero ? spans[i].begin : zero;
    write_header(out, zero, dropped);
    write_process(out);
    write_note(out, dropped);
    write_spans(out, spans, count, zero);
    (void)fputs("]}\n", out);
    const bool is_written = ferror(out) == 0;
    return fclose(out) == 0 && is_written;
}

bool gts_trace_write(const char *path, const gts_moment *begin)
{
    size_t count;
    uint64_t dropped;
    gts_event *const events = gts_events_copy(&count, &dropped);
    span *const spans = events == NULL ? NULL : make_spans(events, count, *begin);
    span **const open = malloc((count + 1) * sizeof *open);
    bool is_written = spans != NULL && open != NULL;
    if (is_written) {
        qsort(spans, count, sizeof *spans, by_end);
        nest(spans, count, open);
        qsort(spans, count, sizeof *spans, by_begin);
        is_written = count == 0 || write_file(path, spans, count, dropped);
    }
    free(open);
    free(spans);
    free(events);
    return is_written;
}
