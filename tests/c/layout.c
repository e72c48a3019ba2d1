/* What recordings are made of: strided memory as packed values. */
#include "base/layout.c"

#include "harness.h"

static gts_array array_of(int32_t *data, int16_t rank, const int64_t *shape, const int64_t *strides)
{
    gts_array array = {.data = data, .dtype = GTS_INT32, .device = GTS_CPU, .rank = rank};
    (void)memcpy(array.shape, shape, (size_t)rank * sizeof *shape);
    (void)memcpy(array.strides, strides, (size_t)rank * sizeof *strides);
    return array;
}

/* Packs an array whose memory counts, and compares with `expected`. */
static void check_packed(int16_t rank, const int64_t *shape, const int64_t *strides, int64_t first,
                         const int32_t *expected, size_t count, gts_extent extent)
{
    int32_t memory[64], packed[64];
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

int main(void)
{
    test_packing();
    test_sizes_that_no_memory_has();
    return 0;
}
