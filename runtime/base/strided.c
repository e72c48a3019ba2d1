#include "base/strided.h"

#include <string.h>

#include "gtstub/arrays.h"

/* The combinations of indices that gts_overlap() tries at most. Arrays of which each axis encloses the next need a few. */
#define MOST_TRIED 4096

bool gts_have_one_layout(const gts_array *a, const gts_array *b)
{
    if (a->dtype != b->dtype || a->device != b->device || a->rank != b->rank)
        return false;
    for (int32_t axis = 0; axis < a->rank; ++axis) {
        if (a->origin[axis] != b->origin[axis] || a->shape[axis] != b->shape[axis] ||
            (a->strides[axis] != b->strides[axis] && a->shape[axis] != 1))
            return false;
    }
    return true;
}

/* ---- The memory of an array ------------------------------------------------------------------------------------- */

bool gts_find_range(const gts_array *array, gts_range *range)
{
    const int64_t element = (int64_t)gts_dtype_size(array->dtype);
    int64_t size = element;
    for (int32_t i = 0; i < array->rank; ++i) {
        if (array->shape[i] < 0 || __builtin_mul_overflow(size, array->shape[i], &size))
            return false;
    }
    int64_t low = 0, high = size == 0 ? 0 : element; /* in bytes from array->data */
    for (int32_t i = 0; size != 0 && i < array->rank; ++i) {
        int64_t reach;
        int64_t *const end = array->strides[i] < 0 ? &low : &high;
        if (__builtin_mul_overflow(array->shape[i] - 1, array->strides[i], &reach) ||
            __builtin_mul_overflow(reach, element, &reach) || __builtin_add_overflow(*end, reach, end))
            return false;
    }
    const uintptr_t data = (uintptr_t)array->data;
    *range = (gts_range){data + (uintptr_t)low, data + (uintptr_t)high, 0 - (size_t)low, (size_t)size};
    return true;
}

void gts_copy(const gts_array *from, const gts_array *to)
{
    const int64_t element = (int64_t)gts_dtype_size(from->dtype);
    int64_t run = 1;   /* number of elements on the leading axes that are contiguous in the memory of both */
    int32_t first = 0; /* axis after these */
    while (first < from->rank &&
           (from->shape[first] == 1 || (from->strides[first] == run && to->strides[first] == run)))
        run *= from->shape[first++];
    int64_t position[GTS_MAX_RANK] = {0};
    const char *source = from->data;
    char *target = to->data;
    for (bool is_done = gts_is_empty(from); !is_done;) {
        memcpy(target, source, (size_t)(run * element));
        is_done = true;
        for (int32_t axis = first; is_done && axis < from->rank; ++axis) { /* to the next run */
            is_done = ++position[axis] == from->shape[axis];
            /* 0 for size 1, where strides may be any number */
            const int64_t steps = is_done ? 1 - from->shape[axis] : 1;
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

/* ---- Where the elements are ------------------------------------------------------------------------------------- */

static void add_axis(gts_axes *self, int64_t shape, int64_t stride)
{
    int32_t place = self->rank++;
    for (; place > 0 && self->strides[place - 1] < stride; --place) {
        self->shape[place] = self->shape[place - 1];
        self->strides[place] = self->strides[place - 1];
    }
    self->shape[place] = shape;
    self->strides[place] = stride;
}

bool gts_find_elements(const gts_array *array, gts_elements *found)
{
    *found = (gts_elements){.size = (int64_t)gts_dtype_size(array->dtype)};
    if (array->rank > GTS_MAX_RANK) /* then it has no sizes */
        return false;
    int64_t lowest = 0;
    for (int32_t axis = 0; axis < array->rank; ++axis) {
        const int64_t shape = array->shape[axis], stride = array->strides[axis];
        if (shape <= 0)
            return false;
        lowest += stride < 0 ? (shape - 1) * stride : 0;
        if (shape > 1 && stride != 0)
            add_axis(&found->axes, shape, stride < 0 ? -stride : stride);
    }
    found->first = (uintptr_t)array->data + (uintptr_t)(lowest * found->size);
    return array->data != NULL && found->size > 0;
}

void gts_join_axes(gts_axes *self)
{
    int32_t last = 0;
    for (int32_t axis = 1; axis < self->rank; ++axis) {
        const bool continues = self->strides[last] == self->shape[axis] * self->strides[axis];
        last += continues ? 0 : 1;
        self->shape[last] = self->shape[axis] * (continues ? self->shape[last] : 1);
        self->strides[last] = self->strides[axis];
    }
    self->rank = self->rank == 0 ? 0 : last + 1;
}

/*
 * Finds the indices of the element at an address; false if there is none. The axes are visited from the longest stride
 * to the shortest, and each contributes as many strides as fit: no two elements of a field share memory.
 */
static bool find_indices(const gts_elements *self, uintptr_t address, int64_t indices[])
{
    if (address < self->first || (address - self->first) % (uintptr_t)self->size != 0)
        return false;
    int64_t left = (int64_t)((address - self->first) / (uintptr_t)self->size);
    for (int32_t axis = 0; axis < self->axes.rank; ++axis) {
        indices[axis] = left / self->axes.strides[axis];
        left %= self->axes.strides[axis];
        if (indices[axis] >= self->axes.shape[axis])
            return false;
    }
    return left == 0;
}

bool gts_has_element(const gts_array *array, const void *data)
{
    gts_elements found;
    int64_t indices[GTS_MAX_RANK];
    return gts_find_elements(array, &found) && find_indices(&found, (uintptr_t)data, indices);
}

/* The indices of the elements move by the same numbers along an axis of the section, so that its corners decide. */
bool gts_is_section(const gts_array *section, const gts_array *of)
{
    gts_elements part, whole;
    int64_t first[GTS_MAX_RANK], next[GTS_MAX_RANK], low[GTS_MAX_RANK], high[GTS_MAX_RANK];
    if (!gts_find_elements(section, &part) || !gts_find_elements(of, &whole) || part.size != whole.size)
        return false;
    gts_join_axes(&whole.axes);
    if (!find_indices(&whole, part.first, first))
        return false;
    for (int32_t i = 0; i < whole.axes.rank; ++i)
        low[i] = high[i] = first[i];
    for (int32_t axis = 0; axis < part.axes.rank; ++axis) {
        if (!find_indices(&whole, part.first + (uintptr_t)(part.axes.strides[axis] * part.size), next))
            return false;
        for (int32_t i = 0; i < whole.axes.rank; ++i) {
            const int64_t distance = (part.axes.shape[axis] - 1) * (next[i] - first[i]);
            low[i] += distance < 0 ? distance : 0;
            high[i] += distance > 0 ? distance : 0;
        }
    }
    for (int32_t i = 0; i < whole.axes.rank; ++i) {
        if (low[i] < 0 || high[i] >= whole.axes.shape[i])
            return false;
    }
    return true;
}

/* ---- Arrays that share memory ----------------------------------------------------------------------------------- */

/* The distance from the first element to the last one, in elements, on the axes from one on. */
static int64_t reach(const gts_axes *self, int32_t axis)
{
    int64_t sum = 0;
    for (; axis < self->rank; ++axis)
        sum += (self->shape[axis] - 1) * self->strides[axis];
    return sum;
}

/* Whether an element is at this distance from the first one, on the axes from one on; true if `left` gets 0. */
static bool reaches(const gts_axes *self, int32_t axis, int64_t distance, int32_t *left)
{
    if (axis == self->rank || *left == 0)
        return distance == 0 || *left == 0;
    const int64_t stride = self->strides[axis], most = self->shape[axis] - 1, rest = reach(self, axis + 1);
    int64_t index = distance <= rest ? 0 : (distance - rest + stride - 1) / stride;
    for (; index <= most && index * stride <= distance; ++index) {
        *left -= *left > 0;
        if (reaches(self, axis + 1, distance - index * stride, left))
            return true;
    }
    return false;
}

/* They share an element if the differences of the indices of both, from the last one of `b` on, contain the distance. */
bool gts_overlap(const gts_array *a, const gts_array *b)
{
    gts_elements one, other;
    if (!gts_find_elements(a, &one) || !gts_find_elements(b, &other))
        return false;
    const int64_t distance = (int64_t)(other.first - one.first);
    if (distance >= (reach(&one.axes, 0) + 1) * one.size || -distance >= (reach(&other.axes, 0) + 1) * other.size)
        return false; /* one begins after the other one ends */
    if (one.size != other.size || distance % one.size != 0)
        return true;
    gts_axes both = one.axes;
    for (int32_t axis = 0; axis < other.axes.rank; ++axis)
        add_axis(&both, other.axes.shape[axis], other.axes.strides[axis]);
    int32_t left = MOST_TRIED;
    return reaches(&both, 0, distance / one.size + reach(&other.axes, 0), &left);
}
