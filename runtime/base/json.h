/* Inside the runtime: writes values as JSON. */
#pragma once

#include <stdio.h>

#include "gtstub/gtstub.h"

/* The text of a number with `digits` significant digits and a decimal point in any locale; or "nan", "inf", "-inf". */
void gts_float_text(double value, int digits, char *text, size_t size);

/* Writes a text in quotes. Bytes that are not UTF-8 become U+FFFD. */
void gts_json_text(FILE *out, const char *text);

/*
 * Writes an element with enough digits that reading it gives the same value. Infinities and NaN become texts, as in a
 * program signature. A complex number is an array of its real and its imaginary part.
 */
void gts_json_value(FILE *out, gts_dtype dtype, const void *value);
