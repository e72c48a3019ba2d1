/*
 * Looks for values that are outside of the limits.
 *
 * The first look reads the array once, in the order of its memory, and only answers whether there may be such a value:
 * NaN and limits are compared at the same time, as doubles, without a branch. If so, the second look counts all of them.
 */
#include "observers/debug/scan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/element.h"
#include "base/json.h"
#include "base/strided.h"
#include "base/wide.h"
#include "gtstub/arrays.h"

/* ---- The first look -------------------------------------------------------------------------------------------- */

/* Looks at `count` elements that are `stride` elements apart. */
typedef bool look(const void *data, int64_t count, int64_t stride, gts_limits limits);

/* The bytes of a vector, and the number of vectors in one pass of a loop. */
enum { VECTOR = 32, UNROLLED = 4 };

typedef double vector __attribute__((vector_size(VECTOR)));
typedef int64_t mask __attribute__((vector_size(VECTOR)));

/*
 * The looks at elements of one type, which are compared as doubles. A comparison with NaN is false. Vectors are those of
 * gcc and clang, which any processor can compute with; compilers make slower code of the loop over single elements.
 */
#define DEFINE_LOOKS(name, type)                                                                                       \
    typedef type elements_##name __attribute__((vector_size(VECTOR / sizeof(double) * sizeof(type))));                 \
                                                                                                                       \
    static bool any_##name(const type *data, int64_t count, int64_t stride, gts_limits limits)                         \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; ++i) {                                                                          \
            const double value = (double)data[i * stride];                                                             \
            if (limits.refuses_nan ? !(value >= limits.low && value <= limits.high)                                    \
                                   : value < limits.low || value > limits.high)                                        \
                return true;                                                                                           \
        }                                                                                                              \
        return false;                                                                                                  \
    }                                                                                                                  \
                                                                                                                       \
    /* Returns how many elements were looked at. */                                                                    \
    static inline GTS_ALWAYS_INLINE int64_t look_at_vectors_##name(const type *data, int64_t count, gts_limits limits, \
                                                                   bool refuses_nan, bool *finds)                      \
    {                                                                                                                  \
        const int64_t step = VECTOR / (int64_t)sizeof(double);                                                         \
        const vector lows = limits.low + (vector){0}, highs = limits.high + (vector){0};                               \
        mask inside = ~(mask){0}, outside = {0};                                                                       \
        int64_t i = 0;                                                                                                 \
        for (; i + UNROLLED * step <= count; i += UNROLLED * step) {                                                   \
            for (int64_t j = 0; j < UNROLLED; ++j) {                                                                   \
                elements_##name elements;                                                                              \
                memcpy(&elements, data + i + j * step, sizeof elements);                                               \
                const vector values = __builtin_convertvector(elements, vector);                                       \
                if (refuses_nan)                                                                                       \
                    inside &= (mask)(values >= lows) & (mask)(values <= highs);                                        \
                else                                                                                                   \
                    outside |= (mask)(values < lows) | (mask)(values > highs);                                         \
            }                                                                                                          \
        }                                                                                                              \
        const mask found = refuses_nan ? ~inside : outside, none = {0};                                                \
        *finds = memcmp(&found, &none, sizeof found) != 0;                                                             \
        return i;                                                                                                      \
    }                                                                                                                  \
                                                                                                                       \
    GTS_WIDE static bool consecutive_##name(const type *data, int64_t count, gts_limits limits)                        \
    {                                                                                                                  \
        bool finds;                                                                                                    \
        const int64_t done = limits.refuses_nan ? look_at_vectors_##name(data, count, limits, true, &finds)            \
                                                : look_at_vectors_##name(data, count, limits, false, &finds);          \
        return finds || any_##name(data + done, count - done, 1, limits);                                              \
    }                                                                                                                  \
                                                                                                                       \
    static bool look_at_##name(const void *data, int64_t count, int64_t stride, gts_limits limits)                     \
    {                                                                                                                  \
        return stride == 1 ? consecutive_##name(data, count, limits) : any_##name(data, count, stride, limits);        \
    }

DEFINE_LOOKS(int8, int8_t)
DEFINE_LOOKS(uint8, uint8_t)
DEFINE_LOOKS(int16, int16_t)
DEFINE_LOOKS(uint16, uint16_t)
DEFINE_LOOKS(int32, int32_t)
DEFINE_LOOKS(uint32, uint32_t)
DEFINE_LOOKS(int64, int64_t)
DEFINE_LOOKS(uint64, uint64_t)
DEFINE_LOOKS(float32, float)
DEFINE_LOOKS(float64, double)

static bool look_at_float16(const void *data, int64_t count, int64_t stride, gts_limits limits)
{
    for (int64_t i = 0; i < count; ++i) {
        const double value = gts_element_half((const uint16_t *)data + i * stride);
        if (any_float64(&value, 1, 1, limits))
            return true;
    }
    return false;
}

/* The parts of complex numbers are looked at as numbers of their own. */
#define DEFINE_LOOK_AT_COMPLEX(name, part, type)                                                                       \
    static bool look_at_##name(const void *data, int64_t count, int64_t stride, gts_limits limits)                     \
    {                                                                                                                  \
        return stride == 1 ? look_at_##part(data, 2 * count, 1, limits)                                                \
                           : look_at_##part(data, count, 2 * stride, limits) ||                                        \
                                 look_at_##part((const type *)data + 1, count, 2 * stride, limits);                    \
    }

DEFINE_LOOK_AT_COMPLEX(complex64, float32, float)
DEFINE_LOOK_AT_COMPLEX(complex128, float64, double)

static look *const LOOKS[] = {
    [GTS_BOOL] = look_at_uint8,          [GTS_INT8] = look_at_int8,
    [GTS_UINT8] = look_at_uint8,         [GTS_INT16] = look_at_int16,
    [GTS_UINT16] = look_at_uint16,       [GTS_INT32] = look_at_int32,
    [GTS_UINT32] = look_at_uint32,       [GTS_INT64] = look_at_int64,
    [GTS_UINT64] = look_at_uint64,       [GTS_FLOAT32] = look_at_float32,
    [GTS_FLOAT64] = look_at_float64,     [GTS_FLOAT16] = look_at_float16,
    [GTS_COMPLEX64] = look_at_complex64, [GTS_COMPLEX128] = look_at_complex128,
};

#define BEYOND_INTEGERS 0x1p64

/* Whether an integer of 64 bits beside a limit may not be a double. */
static bool is_rounded(double limit)
{
    return fabs(limit) >= 0x1p53 && fabs(limit) <= BEYOND_INTEGERS;
}

bool gts_scan_finds(const gts_array *array, gts_limits limits)
{
    const bool is_float = array->dtype >= GTS_FLOAT32;
    const double most = is_float ? INFINITY : BEYOND_INTEGERS; /* that an element can be */
    limits.refuses_nan = limits.refuses_nan && is_float;
    gts_elements found;
    if (!is_float && gts_dtype_size(array->dtype) == sizeof(int64_t) &&
        (is_rounded(limits.low) || is_rounded(limits.high)))
        return !gts_is_empty(array); /* the second look decides */
    const bool refuses_nothing = !limits.refuses_nan && limits.low <= -most && limits.high >= most;
    if (refuses_nothing || !gts_find_elements(array, &found))
        return false;
    gts_axes *const axes = &found.axes;
    gts_join_axes(axes);
    const int32_t last = axes->rank - 1; /* a line of elements; without axes, one element */
    const int64_t count = last < 0 ? 1 : axes->shape[last], stride = last < 0 ? 1 : axes->strides[last];
    look *const look = LOOKS[array->dtype];
    int64_t position[GTS_MAX_RANK] = {0};
    const char *place = (const char *)found.first;
    for (bool is_done = false; !is_done;) {
        if (look(place, count, stride, limits))
            return true;
        is_done = true;
        for (int32_t axis = last - 1; is_done && axis >= 0; --axis) { /* to the next line */
            const int64_t step = axes->strides[axis] * found.size;
            is_done = ++position[axis] == axes->shape[axis];
            place += is_done ? -step * (axes->shape[axis] - 1) : step;
            position[axis] = is_done ? 0 : position[axis];
        }
    }
    return false;
}

/* ---- The second look ------------------------------------------------------------------------------------------- */

/* Whether limits refuse an element, or one of the parts of a complex number. */
static bool is_outside(gts_dtype dtype, const void *element, const gts_limits *limits)
{
    if (gts_is_complex(dtype)) {
        const gts_dtype part = gts_part_dtype(dtype);
        return is_outside(part, element, limits) ||
               is_outside(part, (const char *)element + gts_dtype_size(part), limits);
    }
    long double value; /* has all values of 64 bits on the processors that have such integers in models */
    if (dtype >= GTS_FLOAT32) {
        value = (long double)gts_element_float(dtype, element);
        if (isnan(value))
            return limits->refuses_nan;
    } else {
        const int64_t integer = gts_element_integer(dtype, element);
        value = dtype == GTS_UINT64 ? (long double)(uint64_t)integer : (long double)integer;
    }
    return value < (long double)limits->low || value > (long double)limits->high;
}

gts_finding gts_scan_find(const gts_array *array, gts_limits limits, const void *before)
{
    gts_finding finding = {.total = 1};
    const int64_t size = (int64_t)gts_dtype_size(array->dtype);
    for (int32_t axis = 0; axis < array->rank; ++axis)
        finding.total *= (uint64_t)array->shape[axis];
    for (uint64_t i = 0; i < finding.total; ++i) {
        int64_t position[GTS_MAX_RANK], offset = 0, packed = 0; /* offsets in the array, and in a packed copy of it */
        uint64_t rest = i;
        for (int32_t axis = array->rank - 1; axis >= 0; --axis) { /* the last axis is the fastest */
            position[axis] = (int64_t)(rest % (uint64_t)array->shape[axis]);
            rest /= (uint64_t)array->shape[axis];
            offset += position[axis] * array->strides[axis];
            packed = packed * array->shape[axis] + position[axis];
        }
        const char *const element = (const char *)array->data + offset * size;
        if (!is_outside(array->dtype, element, &limits))
            continue;
        const bool is_old = before != NULL && is_outside(array->dtype, (const char *)before + packed * size, &limits);
        const bool is_first = finding.count == 0 || (!is_old && finding.count == finding.old_count);
        ++finding.count;
        finding.old_count += is_old;
        if (!is_first)
            continue;
        finding.element = element;
        for (int32_t axis = 0; axis < array->rank; ++axis)
            finding.index[axis] = array->origin[axis] + position[axis];
    }
    return finding;
}

/* ---- One element ----------------------------------------------------------------------------------------------- */

bool gts_scan_offset(const gts_array *array, const int64_t *index, int64_t *offset)
{
    *offset = 0;
    for (int32_t axis = 0; axis < array->rank; ++axis) {
        const int64_t position = (int64_t)((uint64_t)index[axis] - (uint64_t)array->origin[axis]);
        if (position < 0 || position >= array->shape[axis])
            return false;
        *offset += position * array->strides[axis];
    }
    return true;
}

static void float_text(gts_dtype dtype, double value, char *text, size_t size)
{
    const bool is_wide = dtype == GTS_FLOAT64; /* float16 has the digits of float32 */
    int digits = is_wide ? 15 : 6;
    for (; digits < (is_wide ? 17 : 9); ++digits) {
        snprintf(text, size, "%.*g", digits, value);
        if (is_wide ? strtod(text, NULL) == value : strtof(text, NULL) == (float)value)
            break;
    }
    gts_float_text(value, digits, text, size);
}

/* As Python writes it: "(1-2j)". */
static void complex_text(gts_dtype dtype, const void *element, char *text, size_t size)
{
    const gts_dtype part = gts_part_dtype(dtype);
    const gts_complex number = gts_element_complex(dtype, element);
    char real[32], imaginary[32];
    float_text(part, number.real, real, sizeof real);
    float_text(part, number.imaginary, imaginary, sizeof imaginary);
    snprintf(text, size, "(%s%s%sj)", real, *imaginary == '-' ? "" : "+", imaginary);
}

void gts_element_text(gts_dtype dtype, const void *element, char *text, size_t size)
{
    if (gts_is_complex(dtype))
        complex_text(dtype, element, text, size);
    else if (dtype >= GTS_FLOAT32)
        float_text(dtype, gts_element_float(dtype, element), text, size);
    else if (dtype == GTS_BOOL)
        snprintf(text, size, "%s", gts_element_integer(dtype, element) != 0 ? "True" : "False");
    else if (dtype == GTS_UINT64)
        snprintf(text, size, "%" PRIu64, (uint64_t)gts_element_integer(dtype, element));
    else
        snprintf(text, size, "%" PRId64, gts_element_integer(dtype, element));
}
