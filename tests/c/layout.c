/* What recordings are made of: strided memory as packed values. */
#include "base/strided.c"

#include "harness.h"

static gts_array array_of(int32_t *data, int16_t rank, const int64_t *shape, const int64_t *strides)
{
    gts_array array = {.data = data, .dtype = GTS_INT32, .device = GTS_CPU, .rank = rank};
    memcpy(array.shape, shape, (size_t)rank * sizeof *shape);
    memcpy(array.strides, strides, (size_t)rank * sizeof *strides);
    return array;
}

/* Packs an array whose memory counts, and compares with `expected`. */
static void check_packed(int16_t rank, const int64_t *shape, const int64_t *strides, int64_t first,
                         const int32_t *expected, size_t count, ptrdiff_t low, ptrdiff_t high)
{
    int32_t memory[64], packed[64];
    for (int32_t i = 0; i < 64; ++i)
        memory[i] = i;
    const gts_array array = array_of(memory + first, rank, shape, strides);
    gts_range found;
    CHECK(gts_find_range(&array, &found));
    CHECK(found.size == count * sizeof *packed);
    CHECK(found.low == (uintptr_t)(memory + first + low) && found.high == (uintptr_t)(memory + first + high));
    CHECK(found.lead == (uintptr_t)array.data - found.low);
    gts_pack(&array, packed);
    CHECK(count == 0 || memcmp(packed, expected, found.size) == 0);
}

static void test_packing(void)
{
    check_packed(0, (const int64_t[]){0}, (const int64_t[]){0}, 7, (const int32_t[]){7}, 1, 0, 1);
    check_packed(1, (const int64_t[]){3}, (const int64_t[]){1}, 5, (const int32_t[]){5, 6, 7}, 3, 0, 3);
    check_packed(1, (const int64_t[]){3}, (const int64_t[]){-2}, 9, (const int32_t[]){9, 7, 5}, 3, -4, 1);
    check_packed(2, (const int64_t[]){2, 3}, (const int64_t[]){1, 2}, 0, (const int32_t[]){0, 1, 2, 3, 4, 5}, 6, 0, 6);
    check_packed(2, (const int64_t[]){2, 3}, (const int64_t[]){3, 1}, 0, (const int32_t[]){0, 3, 1, 4, 2, 5}, 6, 0, 6);
    check_packed(2, (const int64_t[]){2, 2}, (const int64_t[]){1, 8}, 1, (const int32_t[]){1, 2, 9, 10}, 4, 0, 10);
    check_packed(3, (const int64_t[]){2, 1, 2}, (const int64_t[]){-1, 99, 4}, 3, (const int32_t[]){3, 2, 7, 6}, 4, -1,
                 5);
    check_packed(2, (const int64_t[]){3, 0}, (const int64_t[]){1, 3}, 0, NULL, 0, 0, 0);
}

static void test_sizes_that_no_memory_has(void)
{
    gts_range range;
    const gts_array huge = array_of(NULL, 2, (const int64_t[]){INT64_MAX / 2, 8}, (const int64_t[]){1, 1});
    CHECK(!gts_find_range(&huge, &range));
    const gts_array far = array_of(NULL, 1, (const int64_t[]){3}, (const int64_t[]){INT64_MAX / 4});
    CHECK(!gts_find_range(&far, &range));
    const gts_array negative = array_of(NULL, 1, (const int64_t[]){-1}, (const int64_t[]){1});
    CHECK(!gts_find_range(&negative, &range));
}

int main(void)
{
    test_packing();
    test_sizes_that_no_memory_has();
    return 0;
}
