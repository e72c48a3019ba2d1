/*
 * Arrays that share elements: every answer is compared with the lists of both arrays' elements, for random arrays in one
 * memory and for the sections that hosts pass. strided.c is included, because the runtime does not export it.
 */
#include "base/strided.c"

#include "harness.h"

enum { N = 5, MEMORY = 48, ROUNDS = 200000 };

static double memory[MEMORY];

static gts_array array_at(ptrdiff_t first, int64_t size, int64_t stride)
{
    return (gts_array){.data = memory + first,
                       .dtype = GTS_FLOAT64,
                       .device = GTS_CPU,
                       .rank = 1,
                       .shape = {size},
                       .strides = {stride}};
}

/* ---- The oracle ------------------------------------------------------------------------------------------------ */

/* Marks the elements of an array of at most 3 axes; false if one is outside of the memory. */
static bool mark(const gts_array *array, bool marked[MEMORY])
{
    memset(marked, 0, MEMORY * sizeof *marked);
    int64_t shape[3] = {1, 1, 1}, strides[3] = {0};
    for (int axis = 0; axis < array->rank; ++axis) {
        shape[axis] = array->shape[axis];
        strides[axis] = array->strides[axis];
    }
    for (int64_t i = 0; i < shape[0]; ++i)
        for (int64_t j = 0; j < shape[1]; ++j)
            for (int64_t k = 0; k < shape[2]; ++k) {
                const int64_t place = (double *)array->data - memory + i * strides[0] + j * strides[1] + k * strides[2];
                if (place < 0 || place >= MEMORY)
                    return false;
                marked[place] = true;
            }
    return true;
}

static int64_t count(const bool marked[MEMORY])
{
    int64_t sum = 0;
    for (int i = 0; i < MEMORY; ++i)
        sum += marked[i];
    return sum;
}

/* ---- Random arrays --------------------------------------------------------------------------------------------- */

static uint64_t state = 1;

static int64_t draw(int64_t low, int64_t high)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((state >> 33) % (uint64_t)(high - low + 1));
}

/* A field or a section of one: each stride is longer than the axes of the shorter ones, in any order and direction. */
static gts_array draw_array(void)
{
    gts_array array = array_at(draw(0, MEMORY - 1), 1, 1);
    array.rank = (int16_t)draw(0, 3);
    int64_t stride = draw(1, 3);
    const int first = (int)draw(0, 2);
    for (int i = 0; i < array.rank; ++i) {
        const int axis = (first + i) % array.rank;
        array.shape[axis] = draw(0, 20) == 0 ? 0 : draw(1, 4);
        array.strides[axis] = draw(0, 3) == 0 ? -stride : stride;
        stride = stride * (array.shape[axis] == 0 ? 1 : array.shape[axis]) + draw(0, 2);
    }
    return array;
}

static void test_random_arrays(void)
{
    int64_t tried = 0, shared = 0, sections = 0, missed = 0;
    for (int round = 0; round < ROUNDS; ++round) {
        const gts_array a = draw_array(), b = draw_array();
        bool of_a[MEMORY], of_b[MEMORY], of_both[MEMORY];
        if (!mark(&a, of_a) || !mark(&b, of_b))
            continue;
        for (int i = 0; i < MEMORY; ++i) {
            of_both[i] = of_a[i] && of_b[i];
            CHECK(gts_has_element(&a, memory + i) == of_a[i]);
        }
        const bool is_section = count(of_a) > 0 && count(of_both) == count(of_a);
        CHECK(gts_overlap(&a, &b) == (count(of_both) > 0));
        CHECK(is_section || !gts_is_section(&a, &b));
        ++tried;
        shared += count(of_both) > 0;
        sections += is_section;
        missed += is_section && !gts_is_section(&a, &b);
    }
    CHECK(tried > 10000 && shared > 1000 && sections > 500 && 10 * missed < sections);
}

/* ---- Chosen arrays --------------------------------------------------------------------------------------------- */

/* An array of every second element, and others that begin or end with some of them, or have some in between. */
static void test_sections_of_every_second_element(void)
{
    const gts_array whole = array_at(N, N, 2);
    const struct {
        ptrdiff_t first;
        int64_t size, stride;
        bool overlaps, is_section;
    } cases[] = {
        {N, N, 1, true, false},
        {N, N, 4, true, false},
        {N, 2 * N - 1, 1, true, false},
        {N + 8, 2, -8, true, true},
        {N + 2, 2, 4, true, true},
        {N + 2, 2, -4, true, false},
        {N - 1, 5, 1, true, false},
        {0, N, 3, true, false},
        {N + 1, N, 2, false, false},
        {N + 2 * N, N, 1, false, false},
        {N + 2 * N - 2, 1, 7, true, true},
        {N, 0, 1, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const gts_array part = array_at(cases[i].first, cases[i].size, cases[i].stride);
        CHECK(gts_overlap(&part, &whole) == cases[i].overlaps);
        CHECK(gts_overlap(&whole, &part) == cases[i].overlaps);
        CHECK(gts_is_section(&part, &whole) == cases[i].is_section);
    }
}

/* Elements of another size are not compared one by one. */
static void test_elements_of_other_sizes(void)
{
    const gts_array whole = array_at(4, N, 2);
    gts_array bytes = array_at(5, 8, 1);
    bytes.dtype = GTS_UINT8;
    CHECK(gts_overlap(&bytes, &whole) && !gts_is_section(&bytes, &whole));
    bytes.data = (char *)memory + 4 * 8 - 8;
    CHECK(!gts_overlap(&bytes, &whole));
    bytes.data = memory + 4 + 2 * N;
    CHECK(!gts_overlap(&bytes, &whole));
}

static void test_layouts(void)
{
    const gts_array a = array_at(0, N, 2);
    gts_array b = array_at(N, N, 2);
    CHECK(gts_have_one_layout(&a, &b));
    b.strides[0] = 1;
    CHECK(!gts_have_one_layout(&a, &b));
    gts_array one = array_at(0, 1, 2), other = array_at(0, 1, 3);
    CHECK(gts_have_one_layout(&one, &other)); /* the stride of one element says nothing */
    other.origin[0] = 1;
    CHECK(!gts_have_one_layout(&one, &other));
}

int main(void)
{
    test_random_arrays();
    test_sections_of_every_second_element();
    test_elements_of_other_sizes();
    test_layouts();
    return 0;
}
