/*
 * Padding: a call whose SDFG reads elements that an array lacks, but uses nothing of them, runs on a copy that has them.
 *
 * gt4py computes some temporaries on a larger domain than is used. Its programs then read outside of their arguments,
 * and overwrite or ignore what follows from that. The missing elements of a copy are NaN, so that a result shows it if
 * it does depend on one of them. Those of integers, which may be indices, are as the nearest element.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>

#include "base/layout.h"
#include "base/refuse.h"
#include "base/section.h"
#include "program/counting.h"
#include "program/observe.h"

/* The most bytes of a copy, besides twice those of the array. */
#define MOST_BYTES (INT64_C(16) << 20)

/* What a call reads of one argument. */
typedef struct pad {
    bool is_read;                                    /* outside the argument */
    int64_t first[GTS_MAX_RANK], last[GTS_MAX_RANK]; /* the indices that the copy must have */
    gts_array array;                                 /* the argument */
    gts_array copy;                                  /* all of its copy; no data if it cannot be copied */
    size_t size;                                     /* of the memory of the copy, in bytes; 0 if there is none */
} pad;

struct gts_padding {
    bool is_needed;  /* by the call that is being checked */
    bool is_running; /* an SDFG runs on the copies, so that nothing is missing */
    bool was_said;
    pad pads[]; /* [leaf_count] */
};

/* ---- Checking -------------------------------------------------------------------------------------------------- */

static gts_padding *find_padding(gts_program *self)
{
    if (self->runtime->padding == NULL)
        self->runtime->padding = calloc(1, sizeof(gts_padding) + self->stub->leaf_count * sizeof(pad));
    return self->runtime->padding;
}

int gts_pad(gts_program *self, uint32_t leaf, int32_t axis, int64_t lowest, int64_t highest)
{
    gts_padding *const padding = find_padding(self);
    if (padding == NULL)
        return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR, "cannot be padded: out of memory.");
    if (padding->is_running)
        return 0;
    for (uint32_t i = 0; !padding->is_needed && i < self->stub->leaf_count; ++i)
        padding->pads[i].is_read = false; /* what an earlier call has read */
    padding->is_needed = true;
    pad *const pad = &padding->pads[leaf];
    const gts_array *const array = gts_array_of(self, leaf);
    for (int32_t i = 0; !pad->is_read && i < array->rank; ++i) {
        pad->first[i] = array->origin[i];
        pad->last[i] = gts_stop(array, i) - 1;
    }
    pad->is_read = true;
    pad->first[axis] = gts_min(pad->first[axis], lowest);
    pad->last[axis] = gts_max(pad->last[axis], highest);
    return 0;
}

int gts_padding_is_needed(gts_program *self)
{
    gts_padding *const padding = self->runtime->padding;
    if (GTS_LIKELY(padding == NULL) || !padding->is_needed)
        return 0;
    padding->is_needed = false;
    self->has_new_array = true; /* the next call checks again */
    return 1;
}

/* ---- Copies ---------------------------------------------------------------------------------------------------- */

/* The next axis after `axis` (-1 for the first one) in the order of strides; -1 if there is none. */
static int32_t next_axis(const gts_array *array, int32_t axis)
{
    int32_t next = -1;
    for (int32_t i = 0; i < array->rank; ++i) {
        const bool is_later = axis < 0 || array->strides[i] > array->strides[axis] ||
                              (array->strides[i] == array->strides[axis] && i > axis);
        if (is_later && (next < 0 || array->strides[i] < array->strides[next]))
            next = i;
    }
    return next;
}

/* Lays out the copy of an argument, in the same order of axes, but without memory. Returns why there is none, or NULL. */
static const char *lay_out(const gts_contract *contract, const gts_array *array, pad *pad)
{
    gts_array *const copy = &pad->copy;
    const int64_t bytes = (int64_t)gts_dtype_size(array->dtype);
    int64_t elements = 1, most = 2 * bytes;
    *copy = *array;
    copy->data = NULL;
    if (array->device != GTS_CPU)
        return "an array on a GPU is not copied";
    for (int32_t axis = next_axis(array, -1); axis >= 0; axis = next_axis(array, axis)) {
        copy->origin[axis] = pad->first[axis];
        if (__builtin_sub_overflow(pad->last[axis], pad->first[axis] - 1, &copy->shape[axis]))
            return "the copy would be too large";
        copy->strides[axis] = elements;
        if ((contract->axes[axis].fixed & GTS_STRIDE) != 0 && copy->shape[axis] > 1) {
            if (contract->axes[axis].stride < elements)
                return "its strides are compiled in";
            copy->strides[axis] = contract->axes[axis].stride;
        }
        if (array->strides[axis] <= 0 && array->shape[axis] > 1)
            return "its strides are not positive";
        if (__builtin_mul_overflow(copy->strides[axis], copy->shape[axis], &elements) || elements > INT32_MAX)
            return "the copy would be too large";
        most *= gts_max(array->shape[axis], 1);
    }
    return elements * bytes > most + MOST_BYTES ? "it would be too large" : NULL;
}

/* Whether another argument that the SDFG writes, or for a written argument any other one, has some of its memory. */
static bool shares_memory(const gts_program *self, uint32_t leaf)
{
    for (uint32_t i = 0; i < self->stub->leaf_count; ++i) {
        const gts_contract *const contract = &self->stub->leaves[i];
        if (i != leaf && gts_is_array(contract->kind) && (contract->written || self->stub->leaves[leaf].written) &&
            gts_overlap(gts_array_of(self, leaf), gts_array_of(self, i)))
            return true;
    }
    return false;
}

/* The part of a copy that the argument has. */
static gts_array part_of_copy(const pad *pad)
{
    gts_array part = pad->array;
    const int64_t bytes = (int64_t)gts_dtype_size(part.dtype);
    char *data = pad->copy.data;
    for (int32_t i = 0; i < part.rank; ++i) {
        data += (part.origin[i] - pad->copy.origin[i]) * pad->copy.strides[i] * bytes;
        part.strides[i] = pad->copy.strides[i];
    }
    part.data = data;
    return part;
}

/* An element of the argument that is nearest to an index of its copy; NULL if the argument has none. */
static const char *nearest(const pad *pad, const int64_t *index)
{
    const gts_array *const array = &pad->array;
    const char *data = array->data;
    for (int32_t i = 0; i < array->rank; ++i) {
        const int64_t position = gts_max(0, gts_min(index[i] - array->origin[i], array->shape[i] - 1));
        data += position * array->strides[i] * (int64_t)gts_dtype_size(array->dtype);
    }
    return gts_is_empty(array) ? NULL : data;
}

static bool is_real(const gts_array *array)
{
    return array->dtype >= GTS_FLOAT32; /* or complex */
}

/* Fills all `count` elements of a copy. */
static void fill(const pad *pad, size_t count)
{
    const gts_array *const copy = &pad->copy;
    const size_t bytes = gts_dtype_size(copy->dtype);
    memset(copy->data, is_real(copy) ? 0xff : 0, pad->size); /* NaN */
    for (size_t i = 0; i < count && !is_real(copy); ++i) {
        int64_t index[GTS_MAX_RANK];
        gts_index_of(copy, i, index);
        const char *const element = nearest(pad, index);
        char *place = copy->data;
        for (int32_t axis = 0; axis < copy->rank; ++axis)
            place += (index[axis] - copy->origin[axis]) * copy->strides[axis] * (int64_t)bytes;
        if (element != NULL)
            memcpy(place, element, bytes);
    }
}

/* Copies an argument, unless it cannot be copied. Returns why not, or NULL. */
static const char *copy_argument(const gts_program *self, uint32_t leaf, pad *pad)
{
    const gts_array old = pad->copy;
    gts_extent extent;
    size_t size;
    pad->array = *gts_array_of(self, leaf);
    const char *reason = lay_out(&self->stub->leaves[leaf], &pad->array, pad);
    if (reason == NULL && !gts_measure(&pad->copy, &size, &extent))
        reason = "the copy would be too large";
    if (reason == NULL && shares_memory(self, leaf))
        reason = "it shares memory with another argument";
    pad->copy.data = old.data;
    if (reason != NULL || old.data == NULL || !gts_same_array(&pad->copy, &old)) {
        free(old.data);
        pad->copy.data = NULL;
        if (reason != NULL)
            return reason;
        pad->size = (size_t)extent.high;
        pad->copy.data = malloc(pad->size);
        if (pad->copy.data == NULL)
            return "there is no memory for the copy";
        fill(pad, size / gts_dtype_size(pad->copy.dtype));
    }
    const gts_array part = part_of_copy(pad);
    gts_copy(&pad->array, &part);
    return NULL;
}

const gts_array *gts_padding_of(const gts_program *self, uint32_t leaf)
{
    const gts_padding *const padding = self->runtime->padding;
    if (padding == NULL || !padding->is_running || !padding->pads[leaf].is_read ||
        padding->pads[leaf].copy.data == NULL)
        return NULL;
    return &padding->pads[leaf].copy;
}

void gts_padding_free(gts_program *self)
{
    gts_padding *const padding = self->runtime->padding;
    for (uint32_t i = 0; padding != NULL && i < self->stub->leaf_count; ++i)
        free(padding->pads[i].copy.data);
    free(padding);
}

/* ---- Running --------------------------------------------------------------------------------------------------- */

/* Says which elements an argument lacks, and what is done about it. `reason` says why it is not copied, or is NULL. */
static void say(const gts_program *self, uint32_t leaf, const pad *pad, const char *reason)
{
    const gts_contract *const contract = &self->stub->leaves[leaf];
    const gts_array *const array = &pad->array;
    int32_t axis = 0;
    while (pad->first[axis] >= array->origin[axis] && pad->last[axis] < gts_stop(array, axis))
        ++axis;
    const int64_t shift = gts_index_shift(self, leaf, array, axis);
    char has[64];
    if (array->shape[axis] == 0)
        (void)snprintf(has, sizeof has, "which is empty");
    else
        (void)snprintf(has, sizeof has, "which has %" PRId64 " to %" PRId64, array->origin[axis] + shift,
                       gts_stop(array, axis) - 1 + shift);
    (void)fprintf(stderr,
                  "Program '%s' reads argument '%s' at the indices %" PRId64 " to %" PRId64
                  " on %s ('%s'), %s. No result should depend on the others: ",
                  self->stub->name, contract->path, pad->first[axis] + shift, pad->last[axis] + shift,
                  gts_axis_text(self, axis).text, contract->axes[axis].dim, has);
    if (reason != NULL)
        (void)fprintf(stderr, "the SDFG reads what is in memory there, because %s.\n", reason);
    else
        (void)fprintf(stderr, "each call passes a copy in which they are %s (%zu bytes).\n",
                      is_real(array) ? "NaN" : "as the nearest element", pad->size);
}

/* Exchanges the address and the strides of arguments and of their copies. */
static void exchange(gts_program *self, bool for_copies)
{
    for (uint32_t i = 0; i < self->stub->leaf_count; ++i) {
        const pad *const pad = &self->runtime->padding->pads[i];
        if (pad->is_read && pad->copy.data != NULL)
            self->leaf[i].current->array = for_copies ? part_of_copy(pad) : pad->array;
    }
    self->has_new_array = true;
}

int gts_run_padded(gts_program *self)
{
    gts_padding *const padding = self->runtime->padding;
    for (uint32_t i = 0; i < self->stub->leaf_count; ++i) {
        pad *const pad = &padding->pads[i];
        if (!pad->is_read)
            continue;
        const char *const reason = copy_argument(self, i, pad);
        if (!padding->was_said)
            say(self, i, pad, reason);
    }
    padding->was_said = true;
    exchange(self, true);
    padding->is_running = true;
    const int status = gts_run_observed(self, gts_observing, true);
    padding->is_running = false;
    exchange(self, false);
    for (uint32_t i = 0; i < self->stub->leaf_count; ++i) {
        const pad *const pad = &padding->pads[i];
        if (!pad->is_read || pad->copy.data == NULL || !self->stub->leaves[i].written)
            continue;
        const gts_array part = part_of_copy(pad);
        gts_copy(&part, &pad->array);
    }
    return status;
}
