/* Measures strided arrays, and copies and packs them. */
#include "base/layout.h"

#include <string.h>

#include "gtstub/arrays.h"

bool gts_measure(const gts_array *array, size_t *size, gts_extent *extent)
{
    const int64_t element = (int64_t)gts_dtype_size(array->dtype);
    int64_t bytes = element;
    for (int32_t i = 0; i < array->rank; ++i) {
        if (array->shape[i] < 0 || __builtin_mul_overflow(bytes, array->shape[i], &bytes))
            return false;
    }
    *size = (size_t)bytes;
    *extent = (gts_extent){0, bytes == 0 ? 0 : element};
    for (int32_t i = 0; bytes != 0 && i < array->rank; ++i) {
        int64_t reach;
        int64_t *const end = array->strides[i] < 0 ? &extent->low : &extent->high;
        if (__builtin_mul_overflow(array->shape[i] - 1, array->strides[i], &reach) ||
            __builtin_mul_overflow(reach, element, &reach) || __builtin_add_overflow(*end, reach, end))
            return false;
    }
    return true;
}

bool gts_find_range(const gts_array *array, gts_range *range)
{
    size_t size;
    gts_extent extent;
    if (!gts_measure(array, &size, &extent))
        return false;
    const uintptr_t data = (uintptr_t)array->data;
    *range = (gts_range){data + (uintptr_t)extent.low, data + (uintptr_t)extent.high};
    return true;
}

bool gts_same_array(const gts_array *a, const gts_array *b)
{
    const size_t bytes = (size_t)a->rank * sizeof(int64_t);
    return a->data == b->data && a->dtype == b->dtype && a->device == b->device && a->rank == b->rank &&
           a->readonly == b->readonly && memcmp(a->origin, b->origin, bytes) == 0 &&
           memcmp(a->shape, b->shape, bytes) == 0 && memcmp(a->strides, b->strides, bytes) == 0;
}

/* The number of leading axes that are contiguous in the memory of both arrays, and the number of elements on them. */
static int32_t leading_axes(const gts_array *a, const gts_array *b, size_t *elements)
{
    int64_t count = 1;
    int32_t axis = 0;
    while (axis < a->rank && (a->shape[axis] == 1 || (a->strides[axis] == count && b->strides[axis] == count)))
        count *= a->shape[axis++];
    *elements = (size_t)count;
    return axis;
}

void gts_copy(const gts_array *from, const gts_array *to)
{
    const int64_t element = (int64_t)gts_dtype_size(from->dtype);
    size_t elements;
    const int32_t first = leading_axes(from, to, &elements);
    if (gts_is_empty(from))
        return;
    int64_t position[GTS_MAX_RANK] = {0};
    const char *source = from->data;
    char *target = to->data;
    for (bool is_done = false; !is_done;) {
        (void)memcpy(target, source, elements * (size_t)element);
        is_done = true;
        for (int32_t axis = first; is_done && axis < from->rank; ++axis) { /* to the next contiguous run */
            is_done = ++position[axis] == from->shape[axis];
            const int64_t steps = is_done ? 1 - from->shape[axis]
                                          : 1; /* 0 for size 1, where strides may be any number */
            source += steps * (steps == 0 ? 0 : from->strides[axis]) * element;
            target += steps * (steps == 0 ? 0 : to->strides[axis]) * element;
            position[axis] = is_done ? 0 : position[axis];
        }
    }
}

void gts_pack(const gts_array *array, void *packed)
{
    gts_array to = *array;
    to.data = packed;
    for (int32_t axis = 0; axis < array->rank; ++axis)
        to.strides[axis] = axis == 0 ? 1 : to.strides[axis - 1] * to.shape[axis - 1];
    gts_copy(array, &to);
}
