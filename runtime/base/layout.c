/* Measures strided arrays, and packs and unpacks them. */
#include "base/layout.h"

#include <string.h>

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

/* The number of leading axes that are contiguous in memory, and the number of elements on them. */
static int32_t leading_axes(const gts_array *array, size_t *elements)
{
    int64_t count = 1;
    int32_t axis = 0;
    while (axis < array->rank && (array->shape[axis] == 1 || array->strides[axis] == count))
        count *= array->shape[axis++];
    *elements = (size_t)count;
    return axis;
}

enum direction { OUT, BACK };

static void copy(const gts_array *array, char *packed, enum direction direction)
{
    const size_t element = gts_dtype_size(array->dtype);
    size_t elements;
    const int32_t first = leading_axes(array, &elements);
    const size_t run = elements * element;
    for (int32_t i = 0; i < array->rank; ++i) {
        if (array->shape[i] == 0)
            return;
    }
    int64_t position[GTS_MAX_RANK] = {0};
    char *place = array->data;
    for (bool is_done = false; !is_done; packed += run) {
        (void)memcpy(direction == OUT ? packed : place, direction == OUT ? place : packed, run);
        is_done = true;
        for (int32_t axis = first; is_done && axis < array->rank; ++axis) { /* to the next contiguous run */
            /* The stride of an axis of size 1 may be any number. */
            const int64_t step = array->shape[axis] == 1 ? 0 : array->strides[axis] * (int64_t)element;
            is_done = ++position[axis] == array->shape[axis];
            place += is_done ? -step * (array->shape[axis] - 1) : step;
            position[axis] = is_done ? 0 : position[axis];
        }
    }
}

void gts_pack(const gts_array *array, void *packed)
{
    copy(array, packed, OUT);
}

void gts_unpack(const gts_array *array, const void *packed)
{
    copy(array, (char *)packed, BACK);
}

void gts_index_of(const gts_array *array, size_t element, int64_t index[GTS_MAX_RANK])
{
    for (int32_t i = 0; i < array->rank; ++i) {
        const size_t size = (size_t)array->shape[i];
        index[i] = array->origin[i] + (int64_t)(element % size);
        element /= size;
    }
}
