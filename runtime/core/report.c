/* The report of a profile: JSON, as docs/formats.md describes it, the same in every locale. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "record.h"

static void print_seconds(FILE *out, uint64_t time)
{
    const uint64_t second = 1000000000;
    (void)fprintf(out, "%" PRIu64 ".%09" PRIu64, time / second, time % second);
}

static void print_times(FILE *out, const char *name, const gts_times *times, uint64_t count)
{
    const struct {
        const char *name;
        uint64_t time;
    } figures[] = {
        {"min", times->min}, {"median", gts_times_median(times, count)}, {"max", times->max}, {"total", times->total}};
    (void)fprintf(out, ", \"%s\": {", name);
    for (unsigned int i = 0; i < sizeof figures / sizeof *figures; ++i) {
        (void)fprintf(out, "%s\"%s\": ", i == 0 ? "" : ", ", figures[i].name);
        print_seconds(out, figures[i].time);
    }
    (void)fputs("}", out);
}

static void print_calls(FILE *out, const gts_calls *calls)
{
    if (calls->count == 0) {
        (void)fputs("null", out);
        return;
    }
    (void)fprintf(out, "{\"calls\": %" PRIu64, calls->count);
    print_times(out, "conversion", &calls->conversion, calls->count);
    print_times(out, "sdfg", &calls->sdfg, calls->count);
    print_times(out, "whole", &calls->whole, calls->count);
    (void)fputs("}", out);
}

/* JSON has no infinities and no NaN: they are text, as in a program signature. */
static void print_float(FILE *out, double value, int digits)
{
    char text[32];
    if (isfinite(value)) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        char *const comma = strchr(text, ','); /* of some locales */
        if (comma != NULL)
            *comma = '.';
    } else {
        (void)snprintf(text, sizeof text, "\"%s\"", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    }
    (void)fputs(text, out);
}

static void print_value(FILE *out, gts_dtype dtype, const void *value)
{
    switch (dtype) {
    case GTS_BOOL:
        (void)fputs(*(const bool *)value ? "true" : "false", out);
        break;
    case GTS_INT8:
        (void)fprintf(out, "%" PRId8, *(const int8_t *)value);
        break;
    case GTS_UINT8:
        (void)fprintf(out, "%" PRIu8, *(const uint8_t *)value);
        break;
    case GTS_INT16:
        (void)fprintf(out, "%" PRId16, *(const int16_t *)value);
        break;
    case GTS_UINT16:
        (void)fprintf(out, "%" PRIu16, *(const uint16_t *)value);
        break;
    case GTS_INT32:
        (void)fprintf(out, "%" PRId32, *(const int32_t *)value);
        break;
    case GTS_UINT32:
        (void)fprintf(out, "%" PRIu32, *(const uint32_t *)value);
        break;
    case GTS_INT64:
        (void)fprintf(out, "%" PRId64, *(const int64_t *)value);
        break;
    case GTS_UINT64:
        (void)fprintf(out, "%" PRIu64, *(const uint64_t *)value);
        break;
    case GTS_FLOAT32:
        print_float(out, *(const float *)value, 9);
        break;
    case GTS_FLOAT64:
        print_float(out, *(const double *)value, 17);
        break;
    }
}

static void print_static_arguments(FILE *out, const gts_stub *stub)
{
    const char *separator = "";
    for (uint32_t i = 0; i < stub->leaf_count; ++i) {
        if (stub->leaves[i].kind != GTS_STATIC)
            continue;
        (void)fprintf(out, "%s\"%s\": ", separator, stub->leaves[i].path);
        print_value(out, stub->leaves[i].dtype, stub->leaves[i].value);
        separator = ", ";
    }
}

char *gts_report(const gts_record *records, uint64_t wall)
{
    char *text = NULL;
    size_t size = 0;
    FILE *const out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    (void)fputs("{\n\"schema\": \"gtstub/profile/1\",\n\"wall\": ", out);
    print_seconds(out, wall);
    (void)fputs(",\n\"programs\": [", out);
    for (const gts_record *record = records; record != NULL; record = record->next) {
        (void)fprintf(out, "\n {\"name\": \"%s\", \"sdfg_digest\": \"%s\",\n  \"static\": {", record->stub->name,
                      record->stub->sdfg_digest);
        print_static_arguments(out, record->stub);
        (void)fputs("},\n  \"initial\": ", out);
        print_calls(out, &record->initial);
        (void)fputs(",\n  \"run\": ", out);
        print_calls(out, &record->run);
        (void)fputs(record->next == NULL ? "}\n" : "},", out);
    }
    (void)fputs("]\n}\n", out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
