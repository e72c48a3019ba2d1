/* Shared by the runtime and the Python host: arrays that share elements, and arrays with the same layout. */
#ifndef GTSTUB_BASE_SECTION_H
#define GTSTUB_BASE_SECTION_H

#include "gtstub/gtstub.h"

/* Whether two arrays have the same type, sizes, strides and origin. A stride of an axis of size 1 may be any number. */
bool gts_have_one_layout(const gts_array *a, const gts_array *b);

/* Whether an address is that of an element. */
bool gts_has_element(const gts_array *array, const void *data);

/*
 * Whether all elements of an array, which has at least one, are elements of another array. Some sections are not
 * recognised: those with elements on both sides of a gap of the other array, at distances that are not along its axes.
 */
bool gts_is_section(const gts_array *section, const gts_array *of);

/*
 * Whether two arrays share memory. In doubt they do: arrays of elements of different sizes if each begins before the
 * other one ends, and arrays of which too many combinations of indices would have to be tried.
 */
bool gts_overlap(const gts_array *a, const gts_array *b);

#endif
