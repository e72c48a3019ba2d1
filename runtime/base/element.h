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
        memcpy(&number, element, sizeof number);                                                                       \
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

/* The value of a float16 as IEEE 754 has it, without the compiler's own type, which not every compiler has. */
static inline double gts_element_half(const void *element)
{
    uint16_t bits;
    double value;
    memcpy(&bits, element, sizeof bits);
    const uint64_t exponent = (bits >> 10) & 0x1f, fraction = bits & 0x3ff;
    if (exponent == 0) {
        value = (double)fraction * 0x1p-24;
    } else {
        const uint64_t wide = (exponent == 0x1f ? UINT64_C(0x7ff) : exponent + (1023 - 15)) << 52 | fraction << 42;
        memcpy(&value, &wide, sizeof value);
    }
    return bits >> 15 != 0 ? -value : value;
}

/* The value of a float16, a float32 or a float64. */
static inline double gts_element_float(gts_dtype dtype, const void *element)
{
    float narrow;
    double wide;
    if (dtype == GTS_FLOAT32) {
        memcpy(&narrow, element, sizeof narrow);
        return (double)narrow;
    }
    if (dtype == GTS_FLOAT16)
        return gts_element_half(element);
    memcpy(&wide, element, sizeof wide);
    return wide;
}

/* A complex number as two numbers of C. */
typedef struct gts_complex {
    double real;
    double imaginary;
} gts_complex;

static inline bool gts_is_complex(gts_dtype dtype)
{
    return dtype >= GTS_COMPLEX64;
}

/* The type of both parts of a complex number, of which the imaginary one follows the real one. */
static inline gts_dtype gts_part_dtype(gts_dtype dtype)
{
    return dtype == GTS_COMPLEX64 ? GTS_FLOAT32 : GTS_FLOAT64;
}

/* The value of a complex number, or of a floating-point number. */
static inline gts_complex gts_element_complex(gts_dtype dtype, const void *element)
{
    if (!gts_is_complex(dtype))
        return (gts_complex){gts_element_float(dtype, element), 0};
    const gts_dtype part = gts_part_dtype(dtype);
    return (gts_complex){gts_element_float(part, element),
                         gts_element_float(part, (const char *)element + gts_dtype_size(part))};
}
