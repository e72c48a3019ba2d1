/* Running the steps of a bound granule, looking at its arrays and changing them. open.c opens it, bind.c binds it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arguments/fortran.h"
#include "base/element.h"
#include "base/error.h"
#include "base/strided.h"
#include "program/counting.h"
#include "steps/granule/private.h"

int gts_granule_refuse_closed(const gts_granule *self)
{
    if (self == NULL || self->name == NULL)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "The granule is not open.");
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Granule '%s' is not open: it was closed.", self->name);
}

static GTS_COLD int refuse_unbound(const gts_granule *self)
{
    if (!gts_granule_is_open(self))
        return gts_granule_refuse_closed(self);
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Granule '%s' is not bound: bind its arguments first.",
                         self->descriptor->name);
}

static GTS_COLD int refuse_after_fork(const gts_granule *self)
{
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                         "Granule '%s' was opened before this process was forked; open it again in the child.",
                         self->descriptor->name);
}

static GTS_COLD int refuse_running(const gts_granule *self)
{
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                         "Granule '%s' is running, in another thread or because one of its hooks uses it.",
                         self->descriptor->name);
}

static bool is_bound(const gts_granule *self)
{
    return self != NULL && self->steps != NULL;
}

static bool is_of_parent(const gts_granule *self)
{
    return self->generation != gts_forks;
}

/* Takes a bound granule for the caller alone. */
static int enter_granule(const gts_granule *self)
{
    if (GTS_UNLIKELY(!is_bound(self)))
        return refuse_unbound(self);
    if (GTS_UNLIKELY(is_of_parent(self)))
        return refuse_after_fork(self);
    return GTS_LIKELY(gts_step_enter(self->all) == 0) ? 0 : refuse_running(self);
}

int gts_granule_check_not_running(const gts_granule *self)
{
    if (self->steps == NULL)
        return 0;
    if (gts_step_enter(self->all) != 0)
        return refuse_running(self);
    gts_step_leave(self->all);
    return 0;
}

int gts_granule_check_idle(const gts_granule *self)
{
    if (!gts_granule_is_open(self))
        return gts_granule_refuse_closed(self);
    return is_of_parent(self) ? refuse_after_fork(self) : gts_granule_check_not_running(self);
}

/* Refuses a negative size, with which programs would do nothing. */
static GTS_COLD int check_size(const gts_granule *self, const gts_granule_scalar *scalar, const void *value)
{
    const int64_t size = gts_element_integer(scalar->dtype, value);
    if (size >= 0)
        return 0;
    return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                         "Scalar '%s' of granule '%s' is a size, and must not be negative: it is %" PRId64 ".",
                         scalar->name, self->descriptor->name, size);
}

/* Whether two scalars are the same; without a call for the usual sizes. */
static bool is_same(const gts_granule_value *a, const void *b, size_t size)
{
    return (size == 8 ? memcmp(a, b, 8) : size == 4 ? memcmp(a, b, 4) : memcmp(a, b, size)) == 0;
}

int gts_granule_set(gts_granule *self, uint32_t index, const void *value)
{
    if (GTS_UNLIKELY(!is_bound(self)))
        return refuse_unbound(self);
    const gts_granule_scalar *const scalar = &self->descriptor->scalars[index];
    const size_t size = gts_dtype_size(scalar->dtype);
    if (GTS_LIKELY(is_same(&self->values[index], value, size)))
        return 0;
    GTS_TRY(gts_granule_check_idle(self));
    if (scalar->is_size)
        GTS_TRY(check_size(self, scalar, value));
    memcpy(&self->values[index], value, size);
    ++self->change;
    return 0;
}

/* Whether a program of a step gets a scalar. */
static bool has_scalar(const gts_granule *self, const gts_granule_step *step, uint32_t index)
{
    for (uint32_t position = 0; position < step->count; ++position) {
        const gts_granule_argument *const arguments = step->positions[position].arguments;
        const uint32_t count = arguments == NULL ? 0
                                                 : self->programs[step->positions[position].index]->stub->leaf_count;
        for (uint32_t i = 0; i < count; ++i) {
            if (arguments[i].source == GTS_VARIABLE && arguments[i].index == index)
                return true;
        }
    }
    return false;
}

/* Gives the calls of a step the scalars of the host that have changed: all at once, or after -1 none. */
static GTS_NOINLINE int use_scalars(gts_granule *self, uint32_t step)
{
    const gts_granule_descriptor *const descriptor = self->descriptor;
    gts_granule_value *const used = gts_granule_used(self, step);
    size_t count = 0;
    for (uint32_t i = 0; i < descriptor->scalar_count; ++i) {
        const gts_granule_scalar *const scalar = &descriptor->scalars[i];
        if (!is_same(&used[i], &self->values[i], gts_dtype_size(scalar->dtype)) &&
            has_scalar(self, &descriptor->steps[step], i))
            self->changed[count++] = (gts_scalar){scalar->name, scalar->dtype, &self->values[i]};
    }
    if (count > 0)
        GTS_TRY(gts_step_set(self->steps[step], self->changed, count, NULL, NULL, NULL));
    memcpy(used, self->values, descriptor->scalar_count * sizeof *used);
    self->run_with[step] = self->change;
    return 0;
}

int gts_granule_run(gts_granule *self, uint32_t step)
{
    GTS_TRY(enter_granule(self));
    int status = GTS_LIKELY(self->run_with[step] == self->change) ? 0 : use_scalars(self, step);
    if (GTS_LIKELY(status == 0))
        status = gts_step_run(self->steps[step]);
    gts_step_leave(self->all);
    return status;
}

static int find_array(const gts_granule *self, const char *name, uint32_t *index)
{
    if (!gts_granule_is_open(self))
        return gts_granule_refuse_closed(self);
    for (*index = 0; *index < self->descriptor->array_count; ++*index) {
        if (strcmp(self->descriptor->arrays[*index].name, name) == 0)
            return 0;
    }
    return gts_error_set(&gts_own_error, GTS_VALUE_ERROR, "Granule '%s' has no array '%s'.", self->descriptor->name,
                         name);
}

/* Whether a program at a position has an array, or a section of it. */
static bool has_array(const gts_granule *self, const gts_granule_position *position, uint32_t index)
{
    const gts_granule_argument *const arguments = position->arguments;
    const uint32_t count = arguments == NULL ? 0 : self->programs[position->index]->stub->leaf_count;
    for (uint32_t i = 0; i < count; ++i) {
        if ((arguments[i].source == GTS_WHOLE || arguments[i].source == GTS_SECTION) && arguments[i].index == index)
            return true;
    }
    return false;
}

/* Whether a step that has an array has run. */
static bool was_written(const gts_granule *self, uint32_t index)
{
    for (uint32_t i = 0; i < self->descriptor->step_count; ++i) {
        const gts_granule_step *const step = &self->descriptor->steps[i];
        for (uint32_t position = 0; self->run_with[i] != 0 && position < step->count; ++position) {
            if (has_array(self, &step->positions[position], index))
                return true;
        }
    }
    return false;
}

/* Refuses to look at a temporary before a step has written it. */
static int check_content(const gts_granule *self, uint32_t index)
{
    if (!self->is_temporary[index] || was_written(self, index))
        return 0;
    const char *const name = self->descriptor->arrays[index].name;
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                         "Array '%s' of granule '%s' is a temporary, which has no values before a step has run: export "
                         "the granule with kept={'%s': ...} to keep them.",
                         name, self->descriptor->name, name);
}

int gts_granule_array(const gts_granule *self, const char *name, gts_array *array)
{
    uint32_t index = 0;
    GTS_TRY(find_array(self, name, &index));
    if (self->descriptor->arrays[index].is_argument && !is_bound(self))
        return refuse_unbound(self);
    GTS_TRY(check_content(self, index));
    *array = self->arrays[index];
    return 0;
}

int gts_granule_refuse_fortran(const gts_granule *self, const char *name, gts_fortran_reason reason,
                               const gts_array *array)
{
    uint32_t index = 0;
    GTS_TRY(find_array(self, name, &index));
    const gts_granule_array_descriptor *const wanted = &self->descriptor->arrays[index];
    if (reason == GTS_FORTRAN_POINTER)
        return gts_error_set(&gts_own_error, GTS_TYPE_ERROR,
                             "Array '%s' of granule '%s' has type '%s' and rank %" PRId32
                             ": a pointer of type '%s' and rank %d cannot point to it.",
                             name, self->descriptor->name, gts_dtype_name(wanted->dtype), wanted->rank,
                             gts_dtype_name(array->dtype), array->rank);
    gts_array named = *array;
    memcpy(named.dims, wanted->dims, sizeof named.dims);
    gts_short_text subject;
    snprintf(subject.text, sizeof subject.text,
             wanted->is_argument ? GTS_GRANULE_ARGUMENT : "Array '%s' of granule '%s' ", name, self->descriptor->name);
    return gts_refuse_fortran_array(&gts_own_error, subject.text, "granule", reason, &named);
}

/* Whether an array that a step writes would get memory that is read-only. */
static bool would_be_readonly(const gts_granule *self, uint32_t array, uint32_t other)
{
    return self->descriptor->arrays[array].written && self->arrays[other].readonly;
}

/* Why two arrays cannot be swapped, or NULL. */
static const char *why_not_swapped(const gts_granule *self, uint32_t a, uint32_t b)
{
    const gts_granule_descriptor *const descriptor = self->descriptor;
    const gts_array *const first = &self->arrays[a], *const second = &self->arrays[b];
    if (a == b)
        return "they are the same";
    if (descriptor->arrays[a].is_argument != descriptor->arrays[b].is_argument)
        return "one is an argument, whose memory is the host's, and the granule keeps the other one";
    if (self->is_temporary[a] != self->is_temporary[b])
        return "one is a temporary, whose elements that no step writes have no values. Export the granule with both in "
               "kept={...}";
    if (!gts_have_one_layout(first, second))
        return "they differ in type, size or stride";
    if (gts_overlap(first, second))
        return "they share elements";
    if (would_be_readonly(self, a, b) || would_be_readonly(self, b, a))
        return "one is read-only, and a step writes the other one. Export the granule with both in kept={...}";
    return NULL;
}

static int check_swap(const gts_granule *self, uint32_t a, uint32_t b)
{
    const char *const reason = why_not_swapped(self, a, b);
    if (reason == NULL)
        return 0;
    return gts_error_set(&gts_own_error, GTS_VALUE_ERROR, "Arrays '%s' and '%s' of granule '%s' cannot be swapped: %s.",
                         self->descriptor->arrays[a].name, self->descriptor->arrays[b].name, self->descriptor->name,
                         reason);
}

int gts_granule_swap(gts_granule *self, const char *a, const char *b)
{
    uint32_t first = 0, second = 0;
    if (!is_bound(self))
        return refuse_unbound(self);
    GTS_TRY(gts_granule_check_idle(self));
    GTS_TRY(find_array(self, a, &first));
    GTS_TRY(find_array(self, b, &second));
    GTS_TRY(check_swap(self, first, second));
    if (was_written(self, first) != was_written(self, second)) { /* afterwards, get() could not tell which has values */
        GTS_TRY(check_content(self, first));
        GTS_TRY(check_content(self, second));
    }
    GTS_TRY(gts_step_swap_arrays(self->all, &self->arrays[first], &self->arrays[second]));
    const gts_array old = self->arrays[first];
    self->arrays[first] = self->arrays[second];
    self->arrays[second] = old;
    return 0;
}
