/* Writes the report of a replay as JSON (docs/formats.md). */
#define _GNU_SOURCE
#include "record/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/element.h"
#include "base/json.h"

bool gts_findings_begin(gts_findings *findings)
{
    *findings = (gts_findings){0};
    findings->out = open_memstream(&findings->text, &findings->size);
    if (findings->out == NULL)
        return false;
    (void)fputs("{\n\"schema\": \"gtstub/replay/1\",\n\"comparisons\": [", findings->out);
    return true;
}

char *gts_findings_end(gts_findings *findings)
{
    (void)fputs("]\n}\n", findings->out);
    if (fclose(findings->out) == 0)
        return findings->text;
    free(findings->text);
    return NULL;
}

/* An element as a complex number, whose imaginary part is 0 for other types. */
static gts_complex to_complex(gts_dtype dtype, const void *value)
{
    if (dtype >= GTS_FLOAT32)
        return gts_element_complex(dtype, value);
    const int64_t number = gts_element_integer(dtype, value);
    return (gts_complex){dtype == GTS_UINT64 ? (double)(uint64_t)number : (double)number, 0};
}

/* The greater number, or NaN if one is NaN. */
static double greater(double a, double b)
{
    return a >= b || isnan(a) ? a : b;
}

/* Writes where the two differ most, and by how much: of complex numbers, the part that differs more counts. */
static void print_worst(FILE *out, const gts_array *array, const gts_difference *difference, const void *expected,
                        const void *found)
{
    int64_t index[GTS_MAX_RANK];
    gts_index_of(array, difference->worst, index);
    const gts_complex a = to_complex(array->dtype, expected), b = to_complex(array->dtype, found);
    const double size = greater(fabs(a.real), fabs(a.imaginary));
    const double absolute = greater(fabs(b.real - a.real), fabs(b.imaginary - a.imaginary));
    (void)fputs("{\"index\": [", out);
    for (int32_t i = 0; i < array->rank; ++i)
        (void)fprintf(out, "%s%" PRId64, i == 0 ? "" : ", ", index[i]);
    (void)fputs("], \"expected\": ", out);
    gts_json_value(out, array->dtype, expected);
    (void)fputs(", \"found\": ", out);
    gts_json_value(out, array->dtype, found);
    if (difference->ulp == GTS_APART)
        (void)fputs(", \"ulp\": null", out);
    else
        (void)fprintf(out, ", \"ulp\": %" PRIu64, difference->ulp);
    (void)fputs(", \"absolute\": ", out);
    gts_json_float(out, absolute, 6);
    (void)fputs(", \"relative\": ", out);
    if (size == 0)
        (void)fputs("null", out);
    else
        gts_json_float(out, absolute / size, 6);
    (void)fputs("}", out);
}

void gts_findings_add(gts_findings *findings, const gts_archive_call *call, uint32_t leaf, uint64_t tolerance,
                      const gts_difference *difference, const void *expected, const void *found)
{
    FILE *const out = findings->out;
    const gts_array *const array = &call->values[leaf].array;
    const size_t element = gts_dtype_size(array->dtype);
    (void)fprintf(out,
                  "%s\n {\"program\": \"%s\", \"call\": %" PRIu64 ", \"argument\": \"%s\", \"dtype\": \"%s\",\n"
                  "  \"dims\": [",
                  findings->has_any ? "," : "", call->program->name, call->number, call->program->leaves[leaf].path,
                  gts_dtype_name(array->dtype));
    for (int32_t i = 0; i < array->rank; ++i)
        (void)fprintf(out, "%s\"%s\"", i == 0 ? "" : ", ", array->dims[i]);
    (void)fprintf(
        out, "],\n  \"elements\": %zu, \"tolerance\": %" PRIu64 ", \"differ\": %zu, \"beyond\": %zu,\n  \"worst\": ",
        call->values[leaf].size / element, tolerance, difference->differ, difference->beyond);
    findings->has_any = true;
    if (difference->differ == 0) {
        (void)fputs("null}", out);
        return;
    }
    const size_t place = difference->worst * element;
    print_worst(out, array, difference, (const char *)expected + place, (const char *)found + place);
    (void)fputs("}", out);
}
