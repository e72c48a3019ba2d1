/* Writes values as JSON, independently of the locale. */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/element.h"

void gts_json_float(FILE *out, double value, int digits)
{
    char text[32];
    if (isfinite(value)) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        char *const comma = strchr(text, ','); /* the decimal point of some locales */
        if (comma != NULL)
            *comma = '.';
    } else {
        (void)snprintf(text, sizeof text, "\"%s\"", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    }
    (void)fputs(text, out);
}

void gts_json_value(FILE *out, gts_dtype dtype, const void *value)
{
    if (dtype >= GTS_FLOAT32)
        gts_json_float(out, gts_element_float(dtype, value), dtype == GTS_FLOAT32 ? 9 : 17);
    else if (dtype == GTS_BOOL)
        (void)fputs(gts_element_integer(dtype, value) != 0 ? "true" : "false", out);
    else if (dtype == GTS_UINT64)
        (void)fprintf(out, "%" PRIu64, (uint64_t)gts_element_integer(dtype, value));
    else
        (void)fprintf(out, "%" PRId64, gts_element_integer(dtype, value));
}
