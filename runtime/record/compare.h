/* Inside the runtime: the distance of values. */
#pragma once

#include "gtstub/gtstub.h"

/* The distance of different values that cannot be measured in units in the last place. */
#define GTS_APART UINT64_MAX

/* The result of a comparison. */
typedef struct gts_difference {
    size_t differ; /* number of elements that are not equal */
    size_t beyond; /* number of elements whose distance exceeds the tolerance */
    size_t worst;  /* index of the first element of the greatest distance, if differ > 0 */
    uint64_t ulp;  /* distance of that element */
} gts_difference;

/*
 * The distance of two elements in units in the last place. It is 0 if they are equal; so are 0 and -0, and any two NaN.
 * It is GTS_APART if they are different integers, or if only one is NaN, or one is infinite. That of complex numbers is the
 * greater one of the distances of their parts.
 */
uint64_t gts_distance(gts_dtype dtype, const void *a, const void *b);

/* Compares `count` elements of two packed arrays. */
gts_difference gts_compare(gts_dtype dtype, size_t count, const void *expected, const void *found, uint64_t tolerance);
