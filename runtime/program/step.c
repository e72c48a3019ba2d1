/* Steps: bound calls and functions of the host that are done in order. */
#define _POSIX_C_SOURCE 200809L
#include "gtstub/bound.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/layout.h"
#include "program/hooks.h"

/* ---- Errors ---------------------------------------------------------------------------------------------------- */

const char *gts_step_name_at(const gts_step *self, size_t position)
{
    const gts_action *const action = &self->actions[position];
    if (action->call != NULL)
        return action->call->stub->name;
    return action->name == NULL ? "" : action->name;
}

int gts_step_fail(const gts_step *self, size_t position, gts_error_kind kind, const char *reason)
{
    const char *const what = self->actions[position].call != NULL ? "program" : "function";
    char before[64] = "No position has run";
    if (position == 1)
        (void)snprintf(before, sizeof before, "Position 1 has run");
    else if (position > 1)
        (void)snprintf(before, sizeof before, "The positions 1 to %zu have run", position);
    const bool has_reason = *reason != '\0';
    (void)gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                        "Step '%s' has stopped at position %zu of %zu, %s '%s'%s%s %s.", self->name, position + 1,
                        self->count, what, gts_step_name_at(self, position), has_reason ? ": " : ".", reason, before);
    gts_own_error.kind = kind;
    return -1;
}

int gts_step_enter(gts_step *self)
{
    if (GTS_UNLIKELY(self == NULL))
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                             "The step cannot be used: it was freed, or never made.");
    unsigned int free = 0;
    if (GTS_LIKELY(__atomic_compare_exchange_n(&self->is_running, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
        return 0;
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                         "Step '%s' is running, in another thread or because one of its functions uses it.",
                         self->name);
}

/* Refuses a change because of the error at a position, which may be gts_own_error itself. */
static GTS_COLD int fail_to_change(const gts_step *self, size_t position)
{
    const gts_error error = *gts_last_error(gts_bound_program(self->actions[position].call));
    (void)gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                        "Step '%s' cannot be changed at position %zu, program '%s': %s Nothing has changed.",
                        self->name, position + 1, gts_step_name_at(self, position), error.message);
    gts_own_error.kind = error.kind;
    return -1;
}

/* ---- Making ---------------------------------------------------------------------------------------------------- */

void gts_step_free(gts_step **step)
{
    gts_step *const self = *step;
    *step = NULL;
    if (self == NULL)
        return;
    gts_profile_release_step(self);
    for (size_t i = 0; self->actions != NULL && i < self->count; ++i)
        free((char *)self->actions[i].name);
    free(self->actions);
    free(self->name);
    free(self);
}

/* Copies the actions; false when memory runs out. */
static bool copy_actions(gts_step *self, const gts_action *actions, size_t count)
{
    self->actions = calloc(count == 0 ? 1 : count, sizeof *actions);
    if (self->actions == NULL)
        return false;
    for (size_t i = 0; i < count; ++i) {
        self->actions[i] = actions[i];
        self->actions[i].name = actions[i].name == NULL ? NULL : strdup(actions[i].name);
        self->count = i + 1;
        if (actions[i].name != NULL && self->actions[i].name == NULL)
            return false;
    }
    return true;
}

int gts_step_new(const char *name, const gts_action *actions, size_t count, gts_step **step)
{
    *step = NULL;
    for (size_t i = 0; i < count; ++i) {
        if ((actions[i].call == NULL) == (actions[i].function == NULL))
            return gts_error_set(&gts_own_error, GTS_TYPE_ERROR,
                                 "Position %zu of step '%s' must have either a bound call or a function.", i + 1, name);
    }
    static uint64_t last_id;
    gts_step *self = calloc(1, sizeof *self);
    if (self != NULL) {
        self->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
        self->name = strdup(name);
    }
    if (self == NULL || self->name == NULL || !copy_actions(self, actions, count)) {
        gts_step_free(&self);
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Step '%s' cannot be made: out of memory.", name);
    }
    *step = self;
    return 0;
}

/* ---- Running --------------------------------------------------------------------------------------------------- */

static GTS_COLD int fail(const gts_step *self, size_t position, int status)
{
    const gts_action *const action = &self->actions[position];
    if (action->call == NULL) {
        char reason[64];
        (void)snprintf(reason, sizeof reason, "it has returned %d.", status);
        return gts_step_fail(self, position, GTS_RUNTIME_ERROR, reason);
    }
    const gts_error error = *gts_last_error(gts_bound_program(action->call));
    return gts_step_fail(self, position, error.kind, error.message);
}

static GTS_NOINLINE int run_timed(const gts_step *self)
{
    for (size_t i = 0; i < self->count; ++i) {
        const gts_action *const action = &self->actions[i];
        const uint64_t begin = gts_clock_ns();
        const int status = action->call != NULL ? gts_start(action->call) : action->function(action->data);
        if (status != 0)
            return fail(self, i, status);
        gts_step_add_time(self, i, begin);
    }
    return 0;
}

static int run(const gts_step *self)
{
    const gts_action *const end = self->actions + self->count;
    for (const gts_action *action = self->actions; action != end; ++action) {
        int status;
        if (GTS_LIKELY(action->call != NULL)) {
            status = gts_start_known(action->call);
            if (GTS_UNLIKELY(status > 0))
                status = gts_start(action->call);
        } else {
            status = action->function(action->data);
        }
        if (GTS_UNLIKELY(status != 0))
            return fail(self, (size_t)(action - self->actions), status);
    }
    return 0;
}

int gts_step_run(gts_step *self)
{
    if (GTS_UNLIKELY(gts_step_enter(self) != 0))
        return -1;
    const int status = GTS_UNLIKELY(gts_step_is_timed()) ? run_timed(self) : run(self);
    gts_step_leave(self);
    return status;
}

/* ---- Changing -------------------------------------------------------------------------------------------------- */

bool gts_step_is_repeated(const gts_step *self, size_t position)
{
    const gts_bound_call *const call = self->actions[position].call;
    size_t first = 0;
    while (self->actions[first].call != call)
        ++first;
    return call == NULL || first < position;
}

/* Changes the arguments of all bound calls or, after an error, of none. The step is entered. */
static int change_entered(const gts_step *self, gts_bound_call **changed, gts_bound_changer change, const void *what)
{
    size_t count = 0;
    for (size_t i = 0; i < self->count; ++i) {
        if (gts_step_is_repeated(self, i))
            continue;
        if (gts_bound_change(self->actions[i].call, change, what, &changed[i]) < 0)
            return fail_to_change(self, i);
        count += changed[i] != NULL;
    }
    for (size_t i = 0; i < self->count; ++i) {
        if (changed[i] != NULL)
            gts_bound_replace(self->actions[i].call, changed[i]);
    }
    return count > 0 ? 0 : 1;
}

/* The same with the memory that this needs. Returns 1 if no call had anything to change. */
static int change_all(const gts_step *self, gts_bound_changer change, const void *what)
{
    gts_bound_call **const changed = calloc(self->count + 1, sizeof *changed);
    int status = changed == NULL ? gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Out of memory.")
                                 : change_entered(self, changed, change, what);
    for (size_t i = 0; changed != NULL && i < self->count; ++i)
        gts_unbind(&changed[i]);
    free(changed);
    return status;
}

int gts_step_set_scalar(gts_step *self, const char *argument, gts_dtype dtype, const void *value)
{
    if (gts_step_enter(self) != 0)
        return -1;
    int status = change_all(self, gts_bound_change_scalar, &(gts_scalar){argument, dtype, value});
    if (status > 0)
        status = gts_error_set(&gts_own_error, GTS_TYPE_ERROR, "No program of step '%s' has an argument '%s'.",
                               self->name, argument);
    gts_step_leave(self);
    return status;
}

/* The array of a leaf of a bound call; NULL if the leaf is none. */
static const gts_array *array_of(const gts_bound_call *call, uint32_t leaf)
{
    const gts_contract *const contract = &call->stub->leaves[leaf];
    return gts_is_array(contract->kind) ? (const gts_array *)((const char *)call->args + contract->member) : NULL;
}

/* The array at an address that reaches over the most memory, because a call may have a section of it; NULL if none. */
static const gts_array *find_array(const gts_step *self, const void *data)
{
    const gts_array *widest = NULL;
    int64_t width = -1;
    for (size_t i = 0; i < self->count; ++i) {
        const gts_bound_call *const call = self->actions[i].call;
        for (uint32_t leaf = 0; call != NULL && leaf < call->stub->leaf_count; ++leaf) {
            const gts_array *const array = array_of(call, leaf);
            size_t size;
            gts_extent extent;
            if (array == NULL || array->data != data || !gts_measure(array, &size, &extent) ||
                extent.high - extent.low <= width)
                continue;
            widest = array;
            width = extent.high - extent.low;
        }
    }
    return widest;
}

static bool have_one_layout(const gts_array *a, const gts_array *b)
{
    if (a->dtype != b->dtype || a->device != b->device || a->rank != b->rank)
        return false;
    for (int32_t axis = 0; axis < a->rank; ++axis) {
        if (a->origin[axis] != b->origin[axis] || a->shape[axis] != b->shape[axis] ||
            a->strides[axis] != b->strides[axis])
            return false;
    }
    return true;
}

/* The memory of an array. */
typedef struct memory {
    void *data;
    bool readonly;
} memory;

typedef struct exchange {
    memory a, b;
} exchange;

static int change_arrays(gts_program *program, void *args, const void *what)
{
    const exchange *const memories = what;
    int status = 0;
    for (uint32_t leaf = 0; leaf < program->stub->leaf_count; ++leaf) {
        const gts_contract *const contract = &program->stub->leaves[leaf];
        if (!gts_is_array(contract->kind))
            continue;
        gts_array *const array = (gts_array *)((char *)args + contract->member);
        const bool is_a = array->data == memories->a.data;
        if (!is_a && array->data != memories->b.data)
            continue;
        const memory *const other = is_a ? &memories->b : &memories->a;
        array->data = other->data;
        array->readonly = other->readonly;
        status = 1;
    }
    return status;
}

static int swap(const gts_step *self, const void *a, const void *b)
{
    const gts_array *const first = find_array(self, a), *const second = find_array(self, b);
    if (first == NULL || second == NULL)
        return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                             "Arrays of step '%s' cannot be swapped: no program of it has the %s one.", self->name,
                             first == NULL ? "first" : "second");
    if (!have_one_layout(first, second))
        return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                             "Arrays of step '%s' cannot be swapped: they differ in type, size, stride or origin.",
                             self->name);
    const exchange memories = {{first->data, first->readonly}, {second->data, second->readonly}};
    return change_all(self, change_arrays, &memories);
}

int gts_step_swap(gts_step *self, const void *a, const void *b)
{
    if (gts_step_enter(self) != 0)
        return -1;
    const int status = swap(self, a, b);
    gts_step_leave(self);
    return status;
}
