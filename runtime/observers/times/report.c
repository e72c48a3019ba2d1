/* Writes the report of a profile as JSON (docs/formats.md), independently of the locale. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "observers/times/times.h"

typedef struct report {
    FILE *out;
    double ns_per_tick;
} report;

static void print_seconds(FILE *out, uint64_t ns)
{
    const uint64_t second = 1000000000;
    fprintf(out, "%" PRIu64 ".%09" PRIu64, ns / second, ns % second);
}

/* Rounded up, so that no sum is below one of its times. */
static uint64_t ns_of(const report *self, uint64_t ticks)
{
    const double ns = (double)ticks * self->ns_per_tick;
    return (uint64_t)ns + ((double)(uint64_t)ns < ns);
}

/* How many times a histogram has. */
static uint64_t count_of(const gts_histogram *histogram)
{
    uint64_t count = 0;
    for (unsigned int i = 0; i < GTS_BUCKETS; ++i)
        count += histogram->bucket[i];
    return count;
}

/* Returns the middle of the bucket that holds the median; of an even number of times, the lower of the two. */
static uint64_t median_of(const gts_histogram *histogram)
{
    const uint64_t count = count_of(histogram);
    uint64_t below = 0;
    unsigned int i = 0;
    while (i < GTS_BUCKETS - 1 && (below += histogram->bucket[i]) < (count + 1) / 2)
        ++i;
    const unsigned int shift = i < GTS_PER_OCTAVE ? 0 : (i >> GTS_BUCKET_BITS) - 1;
    const uint64_t middle = ((uint64_t)(i - (shift << GTS_BUCKET_BITS)) << shift) + ((UINT64_C(1) << shift) >> 1);
    return middle < histogram->min ? histogram->min : middle > histogram->max ? histogram->max : middle;
}

/* The sum of the times is `total` ns. */
static void print_histogram(const report *self, const char *name, const gts_histogram *histogram, uint64_t total)
{
    const struct {
        const char *name;
        uint64_t ns;
    } figures[] = {{"min", ns_of(self, histogram->min)},
                   {"median", ns_of(self, median_of(histogram))},
                   {"max", ns_of(self, histogram->max)},
                   {"total", total}};
    fprintf(self->out, ", \"%s\": {", name);
    for (unsigned int i = 0; i < sizeof figures / sizeof *figures; ++i) {
        fprintf(self->out, "%s\"%s\": ", i == 0 ? "" : ", ", figures[i].name);
        print_seconds(self->out, figures[i].ns);
    }
    fputs("}", self->out);
}

static void print_calls(const report *self, const char *name, const gts_row *row, const gts_pool_use *memory)
{
    const uint64_t count = count_of(&row[GTS_WHOLE].time);
    const uint64_t conversion = ns_of(self, row[GTS_CONVERSION].time.total),
                   sdfg = ns_of(self, row[GTS_SDFG].time.total);
    fprintf(self->out, ",\n  \"%s\": ", name);
    if (count == 0) {
        fputs("null", self->out);
        return;
    }
    fprintf(self->out, "{\"calls\": %" PRIu64, count);
    print_histogram(self, "conversion", &row[GTS_CONVERSION].time, conversion);
    print_histogram(self, "sdfg", &row[GTS_SDFG].time, sdfg);
    print_histogram(self, "whole", &row[GTS_WHOLE].time, conversion + sdfg);
    if (memory->arrays > 0) {
        fprintf(self->out, ", \"memory\": {\"arrays\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"time\": ", memory->arrays,
                memory->bytes);
        print_seconds(self->out, memory->ns);
        fputs("}", self->out);
    }
    fputs("}", self->out);
}

void gts_print_static_arguments(FILE *out, const gts_stub *stub, const char *before, const char *behind)
{
    const char *separator = "";
    for (uint32_t i = 0; i < stub->leaf_count; ++i) {
        if (stub->leaves[i].kind != GTS_STATIC)
            continue;
        fprintf(out, "%s%s%s%s", separator, before, stub->leaves[i].path, behind);
        gts_json_value(out, stub->leaves[i].dtype, stub->leaves[i].value);
        separator = ", ";
    }
}

static void print_program(const report *self, const gts_times *times)
{
    fprintf(self->out, "\n {\"name\": \"%s\", \"sdfg_digest\": \"%s\",\n  \"static\": {", times->name,
            times->stub->sdfg_digest);
    gts_print_static_arguments(self->out, times->stub, "\"", "\": ");
    fputs("}", self->out);
    print_calls(self, "initial", times->row, &times->memory[0]);
    print_calls(self, "run", &times->row[GTS_CALL_ROWS], &times->memory[1]);
    fputs("}", self->out);
}

static void print_step(const report *self, const gts_times *times)
{
    fputs("\n {\"name\": ", self->out);
    gts_json_text(self->out, times->name);
    fputs(", \"positions\": [", self->out);
    for (size_t i = 0; i < times->count; ++i) {
        const gts_row *const row = &times->row[i];
        const uint64_t count = count_of(&row->time);
        fputs(i == 0 ? "\n  {\"name\": " : ",\n  {\"name\": ", self->out);
        gts_json_text(self->out, row->name);
        fprintf(self->out, ", \"kind\": \"%s\", \"calls\": %" PRIu64, row->is_program ? "program" : "function", count);
        if (count == 0)
            fputs(", \"time\": null", self->out);
        else
            print_histogram(self, "time", &row->time, ns_of(self, row->time.total));
        fputs("}", self->out);
    }
    fputs("]}", self->out);
}

/* Prints a list of times, with `separator` before the first one. Returns whether there are any. */
static bool print_all(const report *self, const gts_times *times, void (*print)(const report *, const gts_times *),
                      const char *separator)
{
    bool has_any = false;
    for (; times != NULL; times = times->next) {
        if (times->is_empty)
            continue;
        fputs(has_any ? "," : separator, self->out);
        print(self, times);
        has_any = true;
    }
    return has_any;
}

char *gts_profile_report(const gts_times *programs, const gts_times *steps, uint64_t wall)
{
    char *text = NULL;
    size_t size = 0;
    const report self = {open_memstream(&text, &size), gts_ns_per_tick()};
    if (self.out == NULL)
        return NULL;
    fputs("{\n\"schema\": \"gtstub/profile/1\",\n\"wall\": ", self.out);
    print_seconds(self.out, ns_of(&self, wall));
    fputs(",\n\"programs\": [", self.out);
    fputs(print_all(&self, programs, print_program, "") ? "\n]" : "]", self.out);
    fputs(print_all(&self, steps, print_step, ",\n\"steps\": [") ? "\n]\n}\n" : "\n}\n", self.out);
    if (fclose(self.out) == 0)
        return text;
    free(text);
    return NULL;
}
