/* Shared by the runtime and the Python host: reads an element of any type as a number. */
#pragma once

#include <string.h>

#include "gtstub/gtstub.h"

/* The value of an integer, or 0 or 1 for a bool. A uint64 is converted to int64; converting it back restores it. */
static inline int64_t gts_element_integer(gts_dtype dtype, const void *element)
{
/* memcpy(), because the memory may be declared with another type. */
#define GTS_READ(type)                                                                                                 \
    {                                                                                                                  \
        type number;                                                                                                   \
        (void)memcpy(&number, element, sizeof number);                                                                 \
        return number;                                                                                                 \
    }
    switch (dtype) {
    case GTS_BOOL:
        return *(const unsigned char *)element != 0;
    case GTS_INT8:
        GTS_READ(int8_t)
    case GTS_UINT8:
        GTS_READ(uint8_t)
    case GTS_INT16:
        GTS_READ(int16_t)
    case GTS_UINT16:
        GTS_READ(uint16_t)
    case GTS_INT32:
        GTS_READ(int32_t)
    case GTS_UINT32:
        GTS_READ(uint32_t)
    default:
        GTS_READ(int64_t)
    }
#undef GTS_READ
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
