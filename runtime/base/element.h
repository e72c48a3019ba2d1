/* Shared by the runtime and the Python host: reads an element of any type as a number. */
#ifndef GTSTUB_BASE_ELEMENT_H
#define GTSTUB_BASE_ELEMENT_H

#include <string.h>

#include "gtstub/gtstub.h"

/* The value of an integer, or 0 or 1 for a bool. A uint64 is converted to int64; converting it back restores it. */
static inline int64_t gts_element_integer(gts_dtype dtype, const void *element)
{
    switch (dtype) {
    case GTS_BOOL:
        return *(const uint8_t *)element != 0;
    case GTS_INT8:
        return *(const int8_t *)element;
    case GTS_UINT8:
        return *(const uint8_t *)element;
    case GTS_INT16:
        return *(const int16_t *)element;
    case GTS_UINT16:
        return *(const uint16_t *)element;
    case GTS_INT32:
        return *(const int32_t *)element;
    case GTS_UINT32:
        return *(const uint32_t *)element;
    default:
        return *(const int64_t *)element;
    }
}

/* The value of a float32 or a float64. */
static inline double gts_element_float(gts_dtype dtype, const void *element)
{
    float narrow;
    double wide;
    if (dtype == GTS_FLOAT32) {
        (void)memcpy(&narrow, element, sizeof narrow);
        return (double)narrow;
    }
    (void)memcpy(&wide, element, sizeof wide);
    return wide;
}

#endif
