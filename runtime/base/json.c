/* Writes values as JSON, independently of the locale. */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/element.h"

/* The number of bytes of the UTF-8 character at `text`, which is not empty; 0 if it is none. */
static size_t utf8_length(const unsigned char *text)
{
    const unsigned char first = text[0];
    if (first < 0x80)
        return 1;
    const size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    for (size_t i = 1; i < length; ++i) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    }
    const bool is_other = (first == 0xE0 && text[1] < 0xA0) || (first == 0xF0 && text[1] < 0x90) || /* too long */
                          (first == 0xED && text[1] > 0x9F) ||                                      /* surrogates */
                          (first == 0xF4 && text[1] > 0x8F);                                        /* no code points */
    return is_other ? 0 : length;
}

void gts_json_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
        const size_t length = utf8_length(at);
        if (length == 0)
            fputs("\\ufffd", out);
        else if (*at < 0x20)
            fprintf(out, "\\u%04x", *at);
        else
            fprintf(out, "%s%.*s", *at == '"' || *at == '\\' ? "\\" : "", (int)length, (const char *)at);
        at += length == 0 ? 1 : length;
    }
    fputc('"', out);
}

void gts_float_text(double value, int digits, char *text, size_t size)
{
    if (isfinite(value))
        snprintf(text, size, "%.*g", digits, value);
    else
        snprintf(text, size, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    char *const comma = strchr(text, ',');
    if (comma != NULL)
        *comma = '.';
}

void gts_json_value(FILE *out, gts_dtype dtype, const void *value)
{
    if (gts_is_complex(dtype)) {
        const gts_dtype part = gts_part_dtype(dtype);
        fputc('[', out);
        gts_json_value(out, part, value);
        fputs(", ", out);
        gts_json_value(out, part, (const char *)value + gts_dtype_size(part));
        fputc(']', out);
    } else if (dtype >= GTS_FLOAT32) {
        const double number = gts_element_float(dtype, value);
        char text[32];
        gts_float_text(number, dtype == GTS_FLOAT64 ? 17 : 9, text, sizeof text);
        fprintf(out, isfinite(number) ? "%s" : "\"%s\"", text);
    } else if (dtype == GTS_BOOL)
        fputs(gts_element_integer(dtype, value) != 0 ? "true" : "false", out);
    else if (dtype == GTS_UINT64)
        fprintf(out, "%" PRIu64, (uint64_t)gts_element_integer(dtype, value));
    else
        fprintf(out, "%" PRId64, gts_element_integer(dtype, value));
}
