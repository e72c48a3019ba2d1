/* What recording and replaying are made of: distances of values, and strided memory as packed values. */
#include "record/compare.c"
#include "base/layout.c"

#include "harness.h"

/* ---- Distances ------------------------------------------------------------------------------------------------- */

static uint64_t distance(double a, double b)
{
    const uint64_t there = gts_distance(GTS_FLOAT64, &a, &b);
    CHECK(gts_distance(GTS_FLOAT64, &b, &a) == there);
    return there;
}

static uint64_t distance_of_singles(float a, float b)
{
    const uint64_t there = gts_distance(GTS_FLOAT32, &a, &b);
    CHECK(gts_distance(GTS_FLOAT32, &b, &a) == there);
    return there;
}

static void test_neighbors_are_one_apart(void)
{
    const double numbers[] = {0.0, 1.0, -1.0, 1e300, -1e-300, 4e-324, 1.0 - 0x1p-53, -0x1p-1022};
    for (unsigned int i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
        CHECK(distance(numbers[i], nextafter(numbers[i], INFINITY)) == 1);
        CHECK(distance(nextafter(numbers[i], -INFINITY), nextafter(numbers[i], INFINITY)) == 2);
        CHECK(distance_of_singles((float)numbers[i], nextafterf((float)numbers[i], -INFINITY)) ==
              (isfinite((float)numbers[i]) ? 1 : GTS_APART));
    }
    CHECK(distance(1.0, 2.0) == UINT64_C(1) << 52);
    CHECK(distance_of_singles(1.0f, 2.0f) == UINT64_C(1) << 23);
    CHECK(distance(-4e-324, 4e-324) == 2);
    CHECK(distance(-1.7976931348623157e308, 1.7976931348623157e308) == 2 * UINT64_C(0x7fefffffffffffff));
}

static void test_what_has_no_neighbors(void)
{
    double other_nan;
    const uint64_t bits = UINT64_C(0xfff800000000beef);
    (void)memcpy(&other_nan, &bits, sizeof bits);
    CHECK(distance(0.0, -0.0) == 0);
    CHECK(distance_of_singles(0.0f, -0.0f) == 0);
    CHECK(distance((double)NAN, other_nan) == 0);
    CHECK(distance((double)NAN, 1.0) == GTS_APART);
    CHECK(distance((double)INFINITY, (double)INFINITY) == 0);
    CHECK(distance((double)INFINITY, 1.7976931348623157e308) == GTS_APART);
    CHECK(distance((double)INFINITY, -(double)INFINITY) == GTS_APART);
    CHECK(distance_of_singles(NAN, 1.0f) == GTS_APART);
    CHECK(distance_of_singles(NAN, NAN) == 0);
}

static void test_everything_else_is_equal_or_not(void)
{
    const int32_t a = 1, b = 2;
    CHECK(gts_distance(GTS_INT32, &a, &a) == 0);
    CHECK(gts_distance(GTS_INT32, &a, &b) == GTS_APART);
    const uint8_t no = 0, yes = 1, also = 0xff;
    CHECK(gts_distance(GTS_BOOL, &yes, &also) == 0);
    CHECK(gts_distance(GTS_BOOL, &no, &also) == GTS_APART);
    CHECK(gts_distance(GTS_UINT8, &yes, &also) == GTS_APART);
}

static void test_half_numbers(void)
{
    const uint16_t one = 0x3c00, next = 0x3c01, small = 1, minus_small = 0x8001, infinite = 0x7c00, nan = 0x7e00;
    CHECK(gts_distance(GTS_FLOAT16, &one, &next) == 1);
    CHECK(gts_distance(GTS_FLOAT16, &small, &minus_small) == 2);
    CHECK(gts_distance(GTS_FLOAT16, &one, &infinite) == GTS_APART);
    CHECK(gts_distance(GTS_FLOAT16, &one, &nan) == GTS_APART);
    CHECK(gts_element_half(&next) == 1 + 0x1p-10 && gts_element_half(&minus_small) == -0x1p-24);
    CHECK(isnan(gts_element_half(&nan)) && isinf(gts_element_half(&infinite)));
}

/* The part that differs more counts. */
static void test_complex_numbers(void)
{
    const double a[] = {1, 2}, real[] = {nextafter(1, 2), 2}, both[] = {nextafter(1, 2), 2 + 0x1p-49};
    const double nan[] = {(double)NAN, 2}, other_nan[] = {-(double)NAN, 2};
    CHECK(gts_distance(GTS_COMPLEX128, a, a) == 0);
    CHECK(gts_distance(GTS_COMPLEX128, a, real) == 1 && gts_distance(GTS_COMPLEX128, real, a) == 1);
    CHECK(gts_distance(GTS_COMPLEX128, a, both) == 4);
    CHECK(gts_distance(GTS_COMPLEX128, a, nan) == GTS_APART && gts_distance(GTS_COMPLEX128, nan, other_nan) == 0);
    const float narrow[] = {0.0f, 1}, same[] = {-0.0f, 1}, above[] = {0, nextafterf(1, 2)};
    CHECK(gts_distance(GTS_COMPLEX64, narrow, same) == 0 && gts_distance(GTS_COMPLEX64, narrow, above) == 1);
}

static void test_comparisons_find_the_worst(void)
{
    const double expected[] = {1, 2, 3, 4, 5};
    double found[] = {1, 2, 3, 4, 5};
    CHECK(gts_compare(GTS_FLOAT64, 5, expected, found, 0).differ == 0);
    found[1] = nextafter(2, 3);
    found[3] = nextafter(nextafter(4, 5), 5);
    found[4] = nextafter(nextafter(5, 4), 4);
    gts_difference difference = gts_compare(GTS_FLOAT64, 5, expected, found, 1);
    CHECK(difference.differ == 3 && difference.beyond == 2 && difference.worst == 3 && difference.ulp == 2);
    found[4] = (double)NAN;
    difference = gts_compare(GTS_FLOAT64, 5, expected, found, UINT64_MAX);
    CHECK(difference.differ == 3 && difference.beyond == 1 && difference.worst == 4 && difference.ulp == GTS_APART);
    const int32_t one = 1, two = 2;
    CHECK(gts_compare(GTS_INT32, 1, &one, &two, UINT64_MAX).beyond == 1);
}

/* ---- Strided memory -------------------------------------------------------------------------------------------- */

static gts_array array_of(int32_t *data, int16_t rank, const int64_t *shape, const int64_t *strides)
{
    gts_array array = {.data = data, .dtype = GTS_INT32, .device = GTS_CPU, .rank = rank};
    (void)memcpy(array.shape, shape, (size_t)rank * sizeof *shape);
    (void)memcpy(array.strides, strides, (size_t)rank * sizeof *strides);
    return array;
}

/* Packs an array whose memory counts, compares with `expected`, and unpacks it to where it was. */
static void check_packed(int16_t rank, const int64_t *shape, const int64_t *strides, int64_t first,
                         const int32_t *expected, size_t count, gts_extent extent)
{
    int32_t memory[64], again[64] = {0}, packed[64];
    for (int32_t i = 0; i < 64; ++i)
        memory[i] = i;
    const gts_array array = array_of(memory + first, rank, shape, strides);
    size_t size;
    gts_extent found;
    CHECK(gts_measure(&array, &size, &found));
    CHECK(size == count * sizeof *packed);
    CHECK(found.low == extent.low * (int64_t)sizeof *packed && found.high == extent.high * (int64_t)sizeof *packed);
    gts_pack(&array, packed);
    CHECK(count == 0 || memcmp(packed, expected, size) == 0);
    const gts_array back = array_of(again + first, rank, shape, strides);
    gts_unpack(&back, packed);
    for (size_t i = 0; i < count; ++i)
        CHECK(again[expected[i]] == expected[i]);
    int used = 0;
    for (int i = 0; i < 64; ++i)
        used += again[i] != 0;
    CHECK((size_t)used <= count);
}

static void test_packing(void)
{
    check_packed(0, (const int64_t[]){0}, (const int64_t[]){0}, 7, (const int32_t[]){7}, 1, (gts_extent){0, 1});
    check_packed(1, (const int64_t[]){3}, (const int64_t[]){1}, 5, (const int32_t[]){5, 6, 7}, 3, (gts_extent){0, 3});
    check_packed(1, (const int64_t[]){3}, (const int64_t[]){-2}, 9, (const int32_t[]){9, 7, 5}, 3, (gts_extent){-4, 1});
    check_packed(2, (const int64_t[]){2, 3}, (const int64_t[]){1, 2}, 0, (const int32_t[]){0, 1, 2, 3, 4, 5}, 6,
                 (gts_extent){0, 6});
    check_packed(2, (const int64_t[]){2, 3}, (const int64_t[]){3, 1}, 0, (const int32_t[]){0, 3, 1, 4, 2, 5}, 6,
                 (gts_extent){0, 6});
    check_packed(2, (const int64_t[]){2, 2}, (const int64_t[]){1, 8}, 1, (const int32_t[]){1, 2, 9, 10}, 4,
                 (gts_extent){0, 10});
    check_packed(3, (const int64_t[]){2, 1, 2}, (const int64_t[]){-1, 99, 4}, 3, (const int32_t[]){3, 2, 7, 6}, 4,
                 (gts_extent){-1, 5});
    check_packed(2, (const int64_t[]){3, 0}, (const int64_t[]){1, 3}, 0, NULL, 0, (gts_extent){0, 0});
}

static void test_sizes_that_no_memory_has(void)
{
    size_t size;
    gts_extent extent;
    const gts_array huge = array_of(NULL, 2, (const int64_t[]){INT64_MAX / 2, 8}, (const int64_t[]){1, 1});
    CHECK(!gts_measure(&huge, &size, &extent));
    const gts_array far = array_of(NULL, 1, (const int64_t[]){3}, (const int64_t[]){INT64_MAX / 4});
    CHECK(!gts_measure(&far, &size, &extent));
    const gts_array negative = array_of(NULL, 1, (const int64_t[]){-1}, (const int64_t[]){1});
    CHECK(!gts_measure(&negative, &size, &extent));
}

static void test_indices(void)
{
    gts_array array = array_of(NULL, 2, (const int64_t[]){3, 4}, (const int64_t[]){1, 3});
    array.origin[0] = -2;
    array.origin[1] = 10;
    int64_t index[GTS_MAX_RANK];
    gts_index_of(&array, 0, index);
    CHECK(index[0] == -2 && index[1] == 10);
    gts_index_of(&array, 7, index);
    CHECK(index[0] == -1 && index[1] == 12);
}

int main(void)
{
    test_neighbors_are_one_apart();
    test_what_has_no_neighbors();
    test_everything_else_is_equal_or_not();
    test_half_numbers();
    test_complex_numbers();
    test_comparisons_find_the_worst();
    test_packing();
    test_sizes_that_no_memory_has();
    test_indices();
    return 0;
}
