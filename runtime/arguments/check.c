/* Checks arrays against the contracts of their arguments. docs/refusals.md lists every message of this file. */
#include <inttypes.h>

#include "arguments/table.h"
#include "base/refuse.h"
#include "program/private.h"

static GTS_COLD int refuse_rank(gts_program *self, const gts_contract *leaf, int32_t rank)
{
    char dims[256] = "";
    for (int32_t i = 0; i < leaf->rank; ++i)
        gts_append_name(dims, sizeof dims, leaf->axes[i].dim);
    return GTS_REFUSE(self, leaf, GTS_TYPE_ERROR, "must have %" PRId32 " dimension%s (%s), not %" PRId32 ".",
                      leaf->rank, leaf->rank == 1 ? "" : "s", dims, rank);
}

/* Messages show indices, rows and columns as the host counts them. */
int gts_refuse_indices(gts_program *self, const gts_contract *leaf, int32_t axis, const gts_array *array,
                       int64_t lowest, int64_t highest)
{
    const bool is_table = leaf->kind == GTS_CONNECTIVITY;
    const uint32_t index = (uint32_t)(leaf - self->stub->leaves);
    const int64_t shift = is_table ? gts_row_shift(self, index, array, axis)
                                   : gts_index_shift(self, index, array, axis);
    const uint64_t first = (uint64_t)array->origin[axis] + (uint64_t)shift;
    char has[64] = "but it is empty";
    if (array->shape[axis] > 0)
        snprintf(has, sizeof has, "not %" PRId64 " to %" PRId64, (int64_t)first,
                 (int64_t)(first + (uint64_t)array->shape[axis] - 1));
    if (is_table)
        return GTS_REFUSE_TABLE(self, leaf, GTS_VALUE_ERROR,
                                "must have the %s %" PRId64 " to %" PRId64
                                ", which this call uses, %s." GTS_BOUNDS_HINT,
                                axis == 0 ? "rows" : "columns", lowest + shift, highest + shift, has);
    return GTS_REFUSE(self, leaf, GTS_VALUE_ERROR,
                      "must have the indices %" PRId64 " to %" PRId64
                      " on %s ('%s'), which this call uses, %s." GTS_BOUNDS_HINT,
                      lowest + shift, highest + shift, gts_axis_text(self, axis).text, leaf->axes[axis].dim, has);
}

int gts_refuse_extent(gts_program *self, const char *what, int32_t axis, int64_t size, const char *text)
{
    return gts_error_set(&self->error, GTS_VALUE_ERROR,
                         "%s of program '%s' must not have a negative size on axis %" PRId32 ", but %s is %" PRId64
                         " in this call.",
                         what, self->stub->name, axis, text, size);
}

/* Whether a property of an axis has its value if it was fixed, and is in the range of int32 if a slot takes it. */
static inline bool fits(const gts_axis *axis, unsigned int property, int64_t expected, int64_t found)
{
    return ((axis->fixed & property) == 0 || expected == found) &&
           ((axis->slots & property) == 0 || found == (int32_t)found);
}

/* The axis after `axis` that has not the size that was fixed, from which a wrong stride follows; -1 if there is none. */
static int32_t find_wrong_size(const gts_contract *leaf, int32_t axis, const gts_array *array)
{
    for (int32_t other = axis + 1; other < leaf->rank; ++other) {
        if ((leaf->axes[other].fixed & GTS_SIZE) != 0 && leaf->axes[other].size != array->shape[other])
            return other;
    }
    return -1;
}

/* Refuses a property that does not fit, unless it is a stride on which no access depends. */
static GTS_COLD int refuse_property(gts_program *self, const gts_contract *leaf, int32_t axis, const gts_array *array,
                                    const char *name, unsigned int property, int64_t expected, int64_t found)
{
    const char *const dim = leaf->axes[axis].dim;
    if (property == GTS_STRIDE && gts_is_any_stride(array, axis))
        return 0;
    const int32_t wrong = property == GTS_STRIDE ? find_wrong_size(leaf, axis, array) : -1;
    if (wrong >= 0)
        return refuse_property(self, leaf, wrong, array, "size", GTS_SIZE, leaf->axes[wrong].size, array->shape[wrong]);
    const gts_short_text where = gts_axis_text(self, axis);
    if ((leaf->axes[axis].fixed & property) != 0 && expected != found)
        return GTS_REFUSE(self, leaf, GTS_VALUE_ERROR, "must have %s %" PRId64 " on %s ('%s'), not %" PRId64 ".", name,
                          expected, where.text, dim, found);
    return GTS_REFUSE(self, leaf, GTS_VALUE_ERROR, "has %s %" PRId64 " on %s ('%s'), which does not fit 'int32'.", name,
                      found, where.text, dim);
}

static inline int check_property(gts_program *self, const gts_contract *leaf, int32_t axis, const gts_array *array,
                                 const char *name, unsigned int property, int64_t expected, int64_t found)
{
    if (GTS_LIKELY(fits(&leaf->axes[axis], property, expected, found)))
        return 0;
    return refuse_property(self, leaf, axis, array, name, property, expected, found);
}

int gts_check_shape_slowly(gts_program *self, uint32_t index, int32_t axis, unsigned int property, uint64_t expected,
                           const char *text)
{
    const gts_contract *const leaf = &self->stub->leaves[index];
    const gts_array *const array = gts_array_of(self, index);
    if (property == GTS_STRIDE && gts_is_any_stride(array, axis))
        return 0;
    if (property == GTS_SIZE && (int64_t)expected < 0)
        return GTS_REFUSE(self, leaf, GTS_VALUE_ERROR, "would have the negative size %s = %" PRId64 " on %s ('%s').",
                          text, (int64_t)expected, gts_axis_text(self, axis).text, leaf->axes[axis].dim);
    return GTS_REFUSE(self, leaf, GTS_VALUE_ERROR, "must have %s %s = %" PRId64 " on %s ('%s'), not %" PRId64 ".",
                      property == GTS_SIZE ? "size" : "stride", text, (int64_t)expected, gts_axis_text(self, axis).text,
                      leaf->axes[axis].dim, property == GTS_SIZE ? array->shape[axis] : array->strides[axis]);
}

static int check_axis(gts_program *self, const gts_contract *leaf, int32_t axis, const gts_array *array)
{
    const gts_axis *const expected = &leaf->axes[axis];
    const int64_t start = array->origin[axis];
    const int64_t size = array->shape[axis];
    if (GTS_UNLIKELY(size < 0))
        return GTS_REFUSE(self, leaf, GTS_VALUE_ERROR, "has the negative size %" PRId64 " on %s ('%s').", size,
                          gts_axis_text(self, axis).text, expected->dim);
    const int64_t stop = gts_stop(array, axis);
    GTS_TRY(check_property(self, leaf, axis, array, "size", GTS_SIZE, expected->size, size));
    GTS_TRY(check_property(self, leaf, axis, array, "start", GTS_START, expected->start, start));
    GTS_TRY(check_property(self, leaf, axis, array, "stop", GTS_STOP, expected->stop, stop));
    GTS_TRY(check_property(self, leaf, axis, array, "stride", GTS_STRIDE, expected->stride, array->strides[axis]));
    if (GTS_UNLIKELY(expected->used && (expected->lowest < start || expected->highest >= stop)))
        return gts_refuse_indices(self, leaf, axis, array, expected->lowest, expected->highest);
    return 0;
}

int gts_check_array(gts_program *self, uint32_t index, const gts_array *array)
{
    const gts_contract *const leaf = &self->stub->leaves[index];
    if (GTS_UNLIKELY(array->dtype != leaf->dtype))
        return GTS_REFUSE(self, leaf, GTS_TYPE_ERROR, "must have dtype '%s', not '%s'.", gts_dtype_name(leaf->dtype),
                          gts_dtype_name(array->dtype));
    if (GTS_UNLIKELY(array->device != leaf->device))
        return GTS_REFUSE(self, leaf, GTS_VALUE_ERROR, "must be on device '%s', not on '%s'.",
                          gts_device_name(leaf->device), gts_device_name(array->device));
    if (GTS_UNLIKELY(array->rank != leaf->rank))
        return refuse_rank(self, leaf, array->rank);
    if (GTS_UNLIKELY(leaf->written && array->readonly))
        return GTS_REFUSE(self, leaf, GTS_VALUE_ERROR, "is written by the program and must not be read-only.");
    for (int32_t axis = 0; axis < leaf->rank; ++axis) {
        const char *const dim = array->dims[axis];
        const char *const expected = leaf->axes[axis].dim;
        if (GTS_UNLIKELY(dim != NULL && dim != expected && strcmp(dim, expected) != 0))
            return GTS_REFUSE(self, leaf, GTS_TYPE_ERROR, "must have dimension '%s' on %s, not '%s'.", expected,
                              gts_axis_text(self, axis).text, dim);
        if (GTS_UNLIKELY(check_axis(self, leaf, axis, array) != 0))
            return -1;
    }
    /* The element of a zero-dimensional field is copied, from anywhere. An empty array may have any address. */
    if (leaf->device == GTS_CPU || leaf->rank == 0 || gts_is_empty(array))
        return 0;
    return gts_gpu_check_memory(self, leaf, array->data);
}

/* A text of a stub, as "size of axis 1 of 'vn'", with the dimension for a Fortran host. */
static gts_short_text for_host(const gts_program *self, const char *what)
{
    static const char axis[] = " of axis ";
    gts_short_text text;
    const char *const found = gts_counts_as_fortran(self) ? strstr(what, axis) : NULL;
    if (found == NULL) {
        snprintf(text.text, sizeof text.text, "%s", what);
        return text;
    }
    char *rest;
    const long number = strtol(found + sizeof axis - 1, &rest, 10);
    snprintf(text.text, sizeof text.text, "%.*s of dimension %ld%s", (int)(found - what), what, number + 1, rest);
    return text;
}

int gts_error_symbol(gts_program *self, const char *what, int64_t value, const char *other_what, int64_t other_value)
{
    const bool is_layout = strncmp(other_what, "stride of axis ", sizeof "stride of axis " - 1) == 0;
    return gts_error_set(&self->error, GTS_VALUE_ERROR,
                         "Arguments of program '%s' disagree: %s is %" PRId64 ", but %s is %" PRId64 "%s.",
                         self->stub->name, for_host(self, what).text, value, for_host(self, other_what).text,
                         other_value, is_layout ? "; pass a copy in the declared layout" : "");
}
