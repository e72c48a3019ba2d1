/* Inside the runtime: values in JSON. */
#ifndef GTSTUB_BASE_JSON_H
#define GTSTUB_BASE_JSON_H

#include <stdio.h>

#include "gtstub/gtstub.h"

/* JSON has no infinities and no NaN: they are text, as in a program signature. */
void gts_json_float(FILE *out, double value, int digits);

/* An element of a type, such that reading it gives the same one again. */
void gts_json_value(FILE *out, gts_dtype dtype, const void *value);

#endif
