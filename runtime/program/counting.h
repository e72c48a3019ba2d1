/*
 * Inside the runtime: how messages count for the host of a program. Axes count from 0 and indices are those of gt4py; for
 * a Fortran host dimensions count from 1, and indices from the lower bounds of its arrays.
 */
#pragma once

#include "gtstub/program.h"

/* A short text of a message. */
typedef struct gts_short_text {
    char text[512];
} gts_short_text;

/* "axis 0", or "dimension 1". */
gts_short_text gts_axis_text(const gts_program *self, int32_t axis);

/* The same with the name of the dimension, unless it is NULL: "axis 0 ('K')". */
gts_short_text gts_axis_text_for(bool is_fortran, int32_t axis, const char *dim);

/* What is added to the index of gt4py on an axis of an argument, so that it counts as that of the host. */
int64_t gts_index_shift(const gts_program *self, uint32_t leaf, const gts_array *array, int32_t axis);

/* An element of an argument, by an index of the host: "Edge 5, K 7", or "vn(6,8)". */
gts_short_text gts_place_text(const gts_program *self, uint32_t leaf, const int64_t *index);

/* Whether messages count as Fortran does. */
static inline bool gts_counts_as_fortran(const gts_program *self)
{
    return self->from_fortran && self->host == NULL;
}
