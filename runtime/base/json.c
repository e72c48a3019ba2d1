/* Writes values as JSON, independently of the locale. */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

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
    switch (dtype) {
    case GTS_BOOL:
        (void)fputs(*(const uint8_t *)value != 0 ? "true" : "false", out);
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
        gts_json_float(out, *(const float *)value, 9);
        break;
    case GTS_FLOAT64:
        gts_json_float(out, *(const double *)value, 17);
        break;
    }
}
