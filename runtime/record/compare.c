/* Compares values in units in the last place. */
#include "record/compare.h"

#include <math.h>
#include <string.h>

/* The position of a number among all numbers of its type: 0 for 0 and -0, and 1 more for each next larger number. */
static int64_t place_of_float(const void *value)
{
    int32_t bits;
    (void)memcpy(&bits, value, sizeof bits);
    return bits < 0 ? (int64_t)INT32_MIN - bits : bits;
}

static int64_t place_of_double(const void *value)
{
    int64_t bits;
    (void)memcpy(&bits, value, sizeof bits);
    return bits < 0 ? INT64_MIN - bits : bits;
}

static uint64_t distance_of_floats(double a, double b, int64_t place_a, int64_t place_b)
{
    if (a == b || (isnan(a) && isnan(b)))
        return 0;
    if (!isfinite(a) || !isfinite(b))
        return GTS_APART;
    return place_a < place_b ? (uint64_t)place_b - (uint64_t)place_a : (uint64_t)place_a - (uint64_t)place_b;
}

uint64_t gts_distance(gts_dtype dtype, const void *a, const void *b)
{
    const size_t size = gts_dtype_size(dtype);
    if (memcmp(a, b, size) == 0)
        return 0;
    if (dtype == GTS_FLOAT32) {
        float x, y;
        (void)memcpy(&x, a, sizeof x);
        (void)memcpy(&y, b, sizeof y);
        return distance_of_floats(x, y, place_of_float(a), place_of_float(b));
    }
    if (dtype == GTS_FLOAT64) {
        double x, y;
        (void)memcpy(&x, a, sizeof x);
        (void)memcpy(&y, b, sizeof y);
        return distance_of_floats(x, y, place_of_double(a), place_of_double(b));
    }
    if (dtype == GTS_BOOL) /* any byte but 0 is true */
        return (*(const uint8_t *)a != 0) == (*(const uint8_t *)b != 0) ? 0 : GTS_APART;
    return GTS_APART;
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
