/* Binds granules: checks the arguments of the host, and makes steps of bound calls and hooks. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/new.h"
#include "base/strided.h"
#include "steps/granule/private.h"
#include "program/counting.h"

/* ---- Arguments ------------------------------------------------------------------------------------------------- */

/* "axis 1 ('K')", "axis 1", or "dimension 2 ('K')" for a Fortran host. */
static gts_short_text axis_text(const gts_granule *self, const gts_granule_array_descriptor *array, int32_t axis)
{
    return gts_axis_text_for(self->from_fortran, axis, array->dims[axis]);
}

static int check_argument(const gts_granule *granule, const gts_granule_array_descriptor *wanted,
                          const gts_array *given)
{
    const gts_granule_descriptor *const self = granule->descriptor;
    if (given->dtype != wanted->dtype || given->rank != wanted->rank)
        return GTS_REFUSE_GRANULE(self, wanted, GTS_TYPE_ERROR,
                                  "must be an array of type '%s' and rank %" PRId32 ", not of type '%s' and rank %d.",
                                  gts_dtype_name(wanted->dtype), wanted->rank, gts_dtype_name(given->dtype),
                                  given->rank);
    if (given->device != GTS_CPU)
        return GTS_REFUSE_GRANULE(self, wanted, GTS_VALUE_ERROR, "must be in memory of the CPU.");
    for (int32_t axis = 0; axis < wanted->rank; ++axis) {
        const char *const dim = wanted->dims[axis];
        if (given->dims[axis] != NULL && dim != NULL && strcmp(given->dims[axis], dim) != 0)
            return GTS_REFUSE_GRANULE(self, wanted, GTS_VALUE_ERROR,
                                      "must have dimension '%s', not '%s', on axis %" PRId32 ".", dim,
                                      given->dims[axis], axis);
        if (given->shape[axis] != wanted->shape[axis])
            return GTS_REFUSE_GRANULE(self, wanted, GTS_VALUE_ERROR,
                                      "must have %" PRId64 " elements on %s, as when it was exported, not %" PRId64 ".",
                                      wanted->shape[axis], axis_text(granule, wanted, axis).text, given->shape[axis]);
    }
    gts_range memory;
    if (!gts_find_range(given, &memory))
        return GTS_REFUSE_GRANULE(self, wanted, GTS_VALUE_ERROR, "has strides that no address can hold.");
    if (given->data == NULL && memory.size > 0)
        return GTS_REFUSE_GRANULE(self, wanted, GTS_TYPE_ERROR, "must be an array, not NULL.");
    if (given->readonly && wanted->written)
        return GTS_REFUSE_GRANULE(self, wanted, GTS_VALUE_ERROR, "is read-only, but a step writes it.");
    for (int32_t axis = 0; axis < wanted->rank; ++axis) {
        if (wanted->written && given->strides[axis] == 0 && !gts_is_any_stride(given, axis))
            return GTS_REFUSE_GRANULE(self, wanted, GTS_VALUE_ERROR, "has stride 0 on %s, but a step writes it.",
                                      axis_text(granule, wanted, axis).text);
    }
    return 0;
}

/* The memory of an array, which has at least one element. */
typedef struct span {
    gts_range memory;
    uint32_t array; /* index */
} span;

static int compare_spans(const void *a, const void *b)
{
    const span *const first = a, *const second = b;
    return (first->memory.low > second->memory.low) - (first->memory.low < second->memory.low);
}

static int check_pair(const gts_granule_descriptor *self, const gts_array *arrays, uint32_t a, uint32_t b)
{
    const bool is_first = self->arrays[a].is_argument; /* kept arrays share nothing */
    const gts_granule_array_descriptor *const first = &self->arrays[is_first ? a : b],
                                              *const second = &self->arrays[is_first ? b : a];
    if ((!first->written && !second->written) || !gts_overlap(&arrays[a], &arrays[b]))
        return 0;
    return GTS_REFUSE_GRANULE(
        self, first, GTS_VALUE_ERROR,
        "shares memory with array '%s', but did not when the granule was exported, and a step writes one.",
        second->name);
}

/* Refuses arguments that share memory, also with kept arrays, because they did not when the granule was exported. */
static int check_overlaps(const gts_granule_descriptor *self, const gts_array *arrays, span *spans)
{
    size_t count = 0;
    for (uint32_t i = 0; i < self->array_count; ++i) {
        gts_range memory;
        if (gts_find_range(&arrays[i], &memory) && memory.low < memory.high)
            spans[count++] = (span){memory, i};
    }
    qsort(spans, count, sizeof *spans, compare_spans);
    for (size_t i = 0; i < count; ++i) {
        for (size_t j = i + 1; j < count && spans[j].memory.low < spans[i].memory.high; ++j)
            GTS_TRY(check_pair(self, arrays, spans[i].array, spans[j].array));
    }
    return 0;
}

/* Takes the arguments of the host, in the order of the arrays that are arguments. */
static int take_arguments(const gts_granule *granule, const gts_array *given, gts_array *arrays)
{
    const gts_granule_descriptor *const self = granule->descriptor;
    for (uint32_t i = 0; i < self->array_count; ++i) {
        if (!self->arrays[i].is_argument)
            continue;
        GTS_TRY(check_argument(granule, &self->arrays[i], given));
        memcpy(arrays[i].strides, given->strides, sizeof arrays[i].strides);
        arrays[i].data = given->data;
        arrays[i].readonly = given->readonly;
        ++given;
    }
    return 0;
}

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

/* What is bound anew, and takes the place of what was bound before. */
typedef struct bound {
    const gts_granule *granule;
    const gts_array *arrays;
    const gts_hook *hooks;
    gts_step **steps; /* [step_count] */
    gts_step *all;
    gts_hook_call *hook_calls;
} bound;

static void take_section(gts_array *array, const gts_array *whole, const gts_section *section)
{
    int64_t first = 0;
    for (int32_t axis = 0; axis < whole->rank; ++axis)
        first += section->first[axis] * whole->strides[axis];
    array->rank = (int16_t)section->rank;
    array->data = (char *)whole->data + first * (int64_t)gts_dtype_size(whole->dtype);
    for (int32_t axis = 0; axis < GTS_MAX_RANK; ++axis) {
        const bool is_there = axis < section->rank;
        array->shape[axis] = is_there ? section->shape[axis] : 0;
        array->strides[axis] = is_there ? section->step[axis] * whole->strides[section->axis[axis]] : 0;
    }
}

static gts_array array_for(const bound *self, const gts_granule_argument *argument)
{
    gts_array array = self->arrays[argument->index];
    if (argument->source == GTS_SECTION)
        take_section(&array, &self->arrays[argument->index], argument->section);
    memset(array.dims, 0, sizeof array.dims); /* what the granule was exported with */
    for (int32_t axis = 0; argument->origin != NULL && axis < array.rank; ++axis)
        array.origin[axis] = argument->origin[axis];
    return array;
}

/* The arguments of a program at its first position. */
static const gts_granule_argument *arguments_of(const gts_granule_descriptor *self, uint32_t program)
{
    for (uint32_t step = 0; step < self->step_count; ++step) {
        for (uint32_t i = 0; i < self->steps[step].count; ++i) {
            const gts_granule_position *const at = &self->steps[step].positions[i];
            if (at->arguments != NULL && at->index == program)
                return at->arguments;
        }
    }
    return NULL;
}

/*
 * Says what the tables of all programs begin with: `base` for those of the host. A program gets either a table of the host
 * or a kept one for an argument, at all positions. It forgets its tables, so it is told once: its calls share one copy.
 */
static int set_index_bases(const gts_granule *self, int64_t base)
{
    for (uint32_t i = 0; i < self->descriptor->program_count; ++i) {
        gts_program *const program = self->programs[i];
        const gts_granule_argument *const arguments = arguments_of(self->descriptor, i);
        for (uint32_t leaf = 0; arguments != NULL && leaf < program->stub->leaf_count; ++leaf) {
            const gts_contract *const contract = &program->stub->leaves[leaf];
            if (contract->kind != GTS_CONNECTIVITY)
                continue;
            const bool is_argument = self->descriptor->arrays[arguments[leaf].index].is_argument;
            program->leaf[leaf].is_base_known |= !is_argument; /* Python has exported it */
            if (gts_set_index_base(program, contract->path, is_argument ? base : 0) != 0) {
                gts_own_error = *gts_last_error(program);
                return -1;
            }
        }
    }
    return 0;
}

/* Writes the `struct <name>_args` of a program. */
static void fill_args(const bound *self, const gts_program *program, const gts_granule_argument *arguments,
                      const gts_granule_value *values, char *args)
{
    for (uint32_t i = 0; i < program->stub->leaf_count; ++i) {
        const gts_contract *const contract = &program->stub->leaves[i];
        const gts_granule_argument *const from = &arguments[i];
        char *const to = args + contract->member;
        if (from->source == GTS_COMPILED_IN)
            continue;
        if (!gts_is_array(contract->kind)) {
            const void *const value = from->source == GTS_VARIABLE ? (const void *)&values[from->index] : from->value;
            memcpy(to, value, gts_dtype_size(contract->dtype));
            continue;
        }
        const gts_array array = array_for(self, from);
        memcpy(to, &array, sizeof array);
    }
}

static GTS_COLD int fail_to_bind(const bound *self, const gts_granule_step *step, uint32_t position,
                                 const gts_program *program)
{
    const gts_error error = *gts_last_error(program);
    gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Granule '%s' cannot be bound at position %u of step '%s': %s",
                  self->granule->descriptor->name, position + 1, step->name, error.message);
    gts_own_error.kind = error.kind;
    return -1;
}

static int bind_call(const bound *self, const gts_granule_step *step, uint32_t position, gts_action *action)
{
    const gts_granule_position *const at = &step->positions[position];
    gts_program *const program = self->granule->programs[at->index];
    void *const args = gts_new(1, program->stub->args_size);
    const uint32_t number = (uint32_t)(step - self->granule->descriptor->steps);
    fill_args(self, program, at->arguments, gts_granule_used(self->granule, number), args);
    const int status = gts_bind(program, args, &action->call);
    free(args);
    return status == 0 ? 0 : fail_to_bind(self, step, position, program);
}

/* ---- Steps ----------------------------------------------------------------------------------------------------- */

static int call_hook(void *data, void *const *arrays)
{
    gts_hook_call *const self = data;
    for (uint32_t i = 0; i < self->count; ++i)
        self->arrays[i].data = arrays[i];
    return self->hook.function(self->hook.data, self->arrays);
}

/* Makes what a step calls in place of a hook. */
static gts_hook_call *new_hook_call(bound *self, const gts_granule_position *at)
{
    gts_hook_call *const call = gts_new(1, sizeof *call + at->array_count * sizeof *call->arrays);
    *call = (gts_hook_call){.next = self->hook_calls, .hook = self->hooks[at->index], .count = at->array_count};
    for (uint32_t i = 0; i < at->array_count; ++i)
        call->arrays[i] = self->arrays[at->arrays[i]];
    self->hook_calls = call;
    return call;
}

static void add_hook(bound *self, const gts_granule_position *at, gts_action *action)
{
    gts_hook_call *const call = new_hook_call(self, at);
    void **const arrays = gts_new(at->array_count, sizeof *arrays);
    for (uint32_t i = 0; i < at->array_count; ++i)
        arrays[i] = call->arrays[i].data;
    *action = (gts_action){
        .array_function = call_hook,
        .data = call,
        .name = self->granule->descriptor->hooks[at->index],
        .arrays = arrays,
        .array_count = at->array_count,
    };
}

static int make_actions(bound *self, const gts_granule_step *step, gts_action *actions)
{
    for (uint32_t i = 0; i < step->count; ++i) {
        const gts_granule_position *const at = &step->positions[i];
        if (at->arguments == NULL)
            add_hook(self, at, &actions[i]);
        else
            GTS_TRY(bind_call(self, step, i, &actions[i]));
    }
    return 0;
}

static int make_step(bound *self, const gts_granule_step *step, gts_step **made)
{
    gts_action *const actions = gts_new(step->count, sizeof *actions);
    int status = make_actions(self, step, actions);
    if (status == 0)
        status = gts_step_new(step->name, actions, step->count, made);
    for (uint32_t i = 0; i < step->count; ++i) { /* the step has its own */
        gts_unbind(&actions[i].call);
        free((void *)(uintptr_t)actions[i].arrays);
    }
    free(actions);
    return status;
}

static int make_steps(bound *self)
{
    const gts_granule_descriptor *const descriptor = self->granule->descriptor;
    gts_action *const actions = gts_new(descriptor->step_count, sizeof *actions);
    int status = 0;
    self->steps = gts_new(descriptor->step_count, sizeof(gts_step *));
    for (uint32_t i = 0; i < descriptor->step_count && status == 0; ++i) {
        status = make_step(self, &descriptor->steps[i], &self->steps[i]);
        actions[i].step = self->steps[i];
    }
    if (status == 0)
        status = gts_step_new(descriptor->name, actions, descriptor->step_count, &self->all);
    free(actions);
    return status;
}

static void free_steps(const gts_granule_descriptor *descriptor, gts_step **steps, gts_step **all, gts_hook_call *calls)
{
    for (uint32_t i = 0; steps != NULL && i < descriptor->step_count; ++i)
        gts_step_free(&steps[i]);
    gts_step_free(all);
    free(steps);
    while (calls != NULL) {
        gts_hook_call *const next = calls->next;
        free(calls);
        calls = next;
    }
}

/* ---- Binding --------------------------------------------------------------------------------------------------- */

static int check_hooks(const gts_granule_descriptor *self, const gts_hook *hooks)
{
    for (uint32_t i = 0; i < self->hook_count; ++i) {
        if (hooks == NULL || hooks[i].function == NULL)
            return gts_error_set(&gts_own_error, GTS_TYPE_ERROR,
                                 "Hook '%s' of granule '%s' is missing: it must be a function.", self->hooks[i],
                                 self->name);
    }
    return 0;
}

static int bind_all(gts_granule *self, const gts_array *arguments, int64_t index_base, const gts_hook *hooks,
                    gts_array *arrays, span *spans)
{
    const gts_granule_descriptor *const descriptor = self->descriptor;
    memcpy(arrays, self->arrays, descriptor->array_count * sizeof *arrays);
    GTS_TRY(take_arguments(self, arguments, arrays));
    GTS_TRY(check_overlaps(descriptor, arrays, spans));
    bound new = {.granule = self, .arrays = arrays, .hooks = hooks};
    if (set_index_bases(self, index_base) != 0 || make_steps(&new) != 0) {
        const gts_error error = gts_own_error;
        if (self->steps != NULL)
            set_index_bases(self, self->index_base);
        gts_own_error = error;
        free_steps(descriptor, new.steps, &new.all, new.hook_calls);
        return -1;
    }
    gts_granule_unbind(self); /* it is idle */
    memcpy(self->arrays, arrays, descriptor->array_count * sizeof *arrays);
    self->steps = new.steps;
    self->all = new.all;
    self->hook_calls = new.hook_calls;
    self->index_base = index_base;
    return 0;
}

int gts_granule_bind(gts_granule *self, const gts_array *arguments, int64_t index_base, const gts_hook *hooks,
                     bool from_fortran)
{
    if (!gts_granule_is_open(self))
        return gts_granule_refuse_closed(self);
    const gts_granule_descriptor *const descriptor = self->descriptor;
    if (index_base != 0 && index_base != 1)
        return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                             "The index base of granule '%s' must be 0 or 1, not %" PRId64 ".", descriptor->name,
                             index_base);
    GTS_TRY(check_hooks(descriptor, hooks));
    GTS_TRY(gts_granule_check_idle(self));
    self->from_fortran = from_fortran;
    for (uint32_t i = 0; i < descriptor->program_count; ++i)
        self->programs[i]->from_fortran = from_fortran;
    gts_array *const arrays = gts_new(descriptor->array_count, sizeof *arrays);
    span *const spans = gts_new(descriptor->array_count, sizeof *spans);
    const int status = bind_all(self, arguments, index_base, hooks, arrays, spans);
    free(arrays);
    free(spans);
    return status;
}

int gts_granule_unbind(gts_granule *self)
{
    if (!gts_granule_is_open(self))
        return 0;
    GTS_TRY(gts_granule_check_not_running(self));
    free_steps(self->descriptor, self->steps, &self->all, self->hook_calls);
    self->steps = NULL;
    self->hook_calls = NULL;
    for (uint32_t i = 0; i < self->descriptor->array_count; ++i) {
        if (self->descriptor->arrays[i].is_argument)
            self->arrays[i].data = NULL;
    }
    return 0;
}
