/* Inside the runtime: looks for values of an array that checks refuse. The array is in host memory. */
#pragma once

#include "gtstub/gtstub.h"

/* The values that checks accept. NaN is outside no limit. */
typedef struct gts_limits {
    double low, high; /* infinite if there is no limit */
    bool refuses_nan;
} gts_limits;

#define GTS_NO_LIMITS ((gts_limits){-INFINITY, INFINITY, false})

/* The elements of an array that are outside of the limits. */
typedef struct gts_finding {
    uint64_t count;              /* number of these elements; if it is 0, the members below mean nothing */
    uint64_t old_count;          /* those of them whose element of `before` is outside of the limits, too */
    uint64_t total;              /* number of all elements */
    int64_t index[GTS_MAX_RANK]; /* of the first of them that the call has written, or else of the first */
    const void *element;         /* at this index, which is one of the array's index space */
} gts_finding;

/* Whether an element may be outside of the limits: gts_scan_find() decides. Reads the array at most once. */
bool gts_scan_finds(const gts_array *array, gts_limits limits);

/* Finds all elements that are outside of the limits, slowly. `before` is a copy from gts_pack(), or NULL. */
gts_finding gts_scan_find(const gts_array *array, gts_limits limits, const void *before);

/* The offset of an index, in elements; false if the array does not have this index. */
bool gts_scan_offset(const gts_array *array, const int64_t *index, int64_t *offset);

/* Writes an element with as few digits as tell it from others, independently of the locale. */
void gts_element_text(gts_dtype dtype, const void *element, char *text, size_t size);
