/* Compares values in units in the last place. */
#include "record/compare.h"

#include <math.h>
#include <string.h>

#include "base/element.h"

/* The position of a number among all numbers of its type: 0 for 0 and -0, and 1 more for each next larger number. */
static int64_t place_of(gts_dtype dtype, const void *value)
{
    int16_t half;
    int32_t narrow;
    int64_t wide;
    if (dtype == GTS_FLOAT16) {
        (void)memcpy(&half, value, sizeof half);
        return half < 0 ? (int64_t)INT16_MIN - half : half;
    }
    if (dtype == GTS_FLOAT32) {
        (void)memcpy(&narrow, value, sizeof narrow);
        return narrow < 0 ? (int64_t)INT32_MIN - narrow : narrow;
    }
    (void)memcpy(&wide, value, sizeof wide);
    return wide < 0 ? INT64_MIN - wide : wide;
}

uint64_t gts_distance(gts_dtype dtype, const void *a, const void *b)
{
    if (memcmp(a, b, gts_dtype_size(dtype)) == 0)
        return 0;
    if (dtype == GTS_BOOL) /* any byte but 0 is true */
        return gts_element_integer(dtype, a) == gts_element_integer(dtype, b) ? 0 : GTS_APART;
    if (dtype < GTS_FLOAT32)
        return GTS_APART;
    if (gts_is_complex(dtype)) {
        const gts_dtype part = gts_part_dtype(dtype);
        const size_t size = gts_dtype_size(part);
        const uint64_t real = gts_distance(part, a, b);
        const uint64_t imaginary = gts_distance(part, (const char *)a + size, (const char *)b + size);
        return real > imaginary ? real : imaginary;
    }
    const double x = gts_element_float(dtype, a), y = gts_element_float(dtype, b);
    if (x == y || (isnan(x) && isnan(y)))
        return 0;
    if (!isfinite(x) || !isfinite(y))
        return GTS_APART;
    const int64_t place = place_of(dtype, a), other = place_of(dtype, b);
    return place < other ? (uint64_t)other - (uint64_t)place : (uint64_t)place - (uint64_t)other;
}

gts_difference gts_compare(gts_dtype dtype, size_t count, const void *expected, const void *found, uint64_t tolerance)
{
    const size_t size = gts_dtype_size(dtype);
    const char *const a = expected, *const b = found;
    gts_difference difference = {0};
    for (size_t i = 0; i < count; ++i) {
        const uint64_t ulp = gts_distance(dtype, a + i * size, b + i * size);
        if (ulp == 0)
            continue;
        ++difference.differ;
        difference.beyond += ulp == GTS_APART || ulp > tolerance;
        if (ulp > difference.ulp) {
            difference.ulp = ulp;
            difference.worst = i;
        }
    }
    return difference;
}
