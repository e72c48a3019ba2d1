/* Writes the report of a profile as JSON (docs/formats.md), independently of the locale. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "profile/steps.h"

static void print_seconds(FILE *out, uint64_t time)
{
    const uint64_t second = 1000000000;
    (void)fprintf(out, "%" PRIu64 ".%09" PRIu64, time / second, time % second);
}

static void print_histogram(FILE *out, const char *name, const gts_histogram *histogram, uint64_t count)
{
    const struct {
        const char *name;
        uint64_t time;
    } figures[] = {{"min", histogram->min},
                   {"median", gts_histogram_median(histogram, count)},
                   {"max", histogram->max},
                   {"total", histogram->total}};
    (void)fprintf(out, ", \"%s\": {", name);
    for (unsigned int i = 0; i < sizeof figures / sizeof *figures; ++i) {
        (void)fprintf(out, "%s\"%s\": ", i == 0 ? "" : ", ", figures[i].name);
        print_seconds(out, figures[i].time);
    }
    (void)fputs("}", out);
}

static void print_calls(FILE *out, const gts_call_times *times)
{
    if (times->count == 0) {
        (void)fputs("null", out);
        return;
    }
    (void)fprintf(out, "{\"calls\": %" PRIu64, times->count);
    print_histogram(out, "conversion", &times->conversion, times->count);
    print_histogram(out, "sdfg", &times->sdfg, times->count);
    print_histogram(out, "whole", &times->whole, times->count);
    if (times->memory.arrays > 0) {
        (void)fprintf(out, ", \"memory\": {\"arrays\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"time\": ",
                      times->memory.arrays, times->memory.bytes);
        print_seconds(out, times->memory.ns);
        (void)fputs("}", out);
    }
    (void)fputs("}", out);
}

static void print_static_arguments(FILE *out, const gts_stub *stub)
{
    const char *separator = "";
    for (uint32_t i = 0; i < stub->leaf_count; ++i) {
        if (stub->leaves[i].kind != GTS_STATIC)
            continue;
        (void)fprintf(out, "%s\"%s\": ", separator, stub->leaves[i].path);
        gts_json_value(out, stub->leaves[i].dtype, stub->leaves[i].value);
        separator = ", ";
    }
}

static void print_position(FILE *out, const gts_position_times *position)
{
    (void)fputs("{\"name\": ", out);
    gts_json_text(out, position->name);
    (void)fprintf(out, ", \"kind\": \"%s\", \"calls\": %" PRIu64, position->is_program ? "program" : "function",
                  position->count);
    if (position->count == 0)
        (void)fputs(", \"time\": null", out);
    else
        print_histogram(out, "time", &position->time, position->count);
    (void)fputs("}", out);
}

static void print_steps(FILE *out, const gts_step_times *steps)
{
    (void)fputs(",\n\"steps\": [", out);
    for (const gts_step_times *step = steps; step != NULL; step = step->next) {
        (void)fputs("\n {\"name\": ", out);
        gts_json_text(out, step->name);
        (void)fputs(", \"positions\": [", out);
        for (size_t i = 0; i < step->count; ++i) {
            (void)fputs(i == 0 ? "\n  " : ",\n  ", out);
            print_position(out, &step->position[i]);
        }
        (void)fputs(step->next == NULL ? "]}\n]" : "]},", out);
    }
}

char *gts_profile_report(const gts_program_times *programs, const gts_step_times *steps, uint64_t wall)
{
    char *text = NULL;
    size_t size = 0;
    FILE *const out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    (void)fputs("{\n\"schema\": \"gtstub/profile/1\",\n\"wall\": ", out);
    print_seconds(out, wall);
    (void)fputs(",\n\"programs\": [", out);
    for (const gts_program_times *program = programs; program != NULL; program = program->next) {
        (void)fprintf(out, "\n {\"name\": \"%s\", \"sdfg_digest\": \"%s\",\n  \"static\": {", program->stub->name,
                      program->stub->sdfg_digest);
        print_static_arguments(out, program->stub);
        (void)fputs("},\n  \"initial\": ", out);
        print_calls(out, &program->initial);
        (void)fputs(",\n  \"run\": ", out);
        print_calls(out, &program->run);
        (void)fputs(program->next == NULL ? "}\n" : "},", out);
    }
    (void)fputs("]", out);
    if (steps != NULL)
        print_steps(out, steps);
    (void)fputs("\n}\n", out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
