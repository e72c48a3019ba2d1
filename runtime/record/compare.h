/* Inside the runtime: how far two values are from each other. */
#ifndef GTSTUB_RECORD_COMPARE_H
#define GTSTUB_RECORD_COMPARE_H

#include "gtstub/gtstub.h"

/* The distance of values that no number of units in the last place joins. */
#define GTS_APART UINT64_MAX

/* What a comparison has found. */
typedef struct gts_difference {
    size_t differ; /* elements that are not equal */
    size_t beyond; /* of these, how many by more than was tolerated */
    size_t worst;  /* the first one of the greatest distance; of no meaning where differ is 0 */
    uint64_t ulp;  /* its distance */
} gts_difference;

/*
 * Units in the last place between two elements: 0 where they are equal, as are 0 and -0, and any two NaNs. GTS_APART
 * where they differ and are integers, or one is NaN or infinite.
 */
uint64_t gts_distance(gts_dtype dtype, const void *a, const void *b);

/* Compares `count` elements, one after the other. */
gts_difference gts_compare(gts_dtype dtype, size_t count, const void *expected, const void *found, uint64_t tolerance);

#endif
