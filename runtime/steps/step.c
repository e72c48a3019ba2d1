/* Steps: bound calls, functions of the host and other steps that are done in order. change.c changes them. */
#define _POSIX_C_SOURCE 200809L
#include "steps/steps.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/new.h"
#include "program/observe.h"

/* ---- Errors ---------------------------------------------------------------------------------------------------- */

int gts_step_fail(const gts_step *self, size_t position, gts_error_kind kind, const char *reason)
{
    const gts_role *const role = self->positions[position].role;
    char of[128] = "", before[256] = "";
    if (role->step != NULL) /* whose message may say what has run in it */
        snprintf(of, sizeof of, " of step '%.100s'", self->name);
    if (position == 1)
        snprintf(before, sizeof before, ". Position 1%s has run", of);
    else if (position > 1)
        snprintf(before, sizeof before, ". The positions 1 to %zu%s have run", position, of);
    const size_t length = strlen(reason);
    const bool ends = length > 0 && reason[length - 1] == '.';
    gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Step '%s' has stopped at position %zu of %zu, %s '%s'%s%.*s%s.",
                  self->name, position + 1, self->count, role->kind, role->name, length > 0 ? ": " : "",
                  (int)(ends ? length - 1 : length), reason, before);
    gts_own_error.kind = kind;
    return -1;
}

int gts_step_set_error(gts_error_kind kind, const char *text)
{
    gts_own_error.kind = kind;
    snprintf(gts_own_error.message, sizeof gts_own_error.message, "%s", text);
    return -1;
}

static GTS_COLD int refuse_running(const gts_step *self)
{
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                         "Step '%s' is running, in another thread or because one of its functions uses it.",
                         self->name);
}

int gts_step_enter(gts_step *self)
{
    if (GTS_UNLIKELY(self == NULL))
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                             "The step cannot be used: it was freed, or never made.");
    unsigned int free = 0;
    if (GTS_LIKELY(__atomic_compare_exchange_n(&self->is_running, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
        return 0;
    return refuse_running(self);
}

int gts_step_check_access(const gts_step *self)
{
    static const char *const REASONS[] = {
        [GTS_STEP_TAKEN_BACK] = "it was taken back",
        [GTS_STEP_OF_PARENT] = "it was handed over before this process was forked",
        [GTS_STEP_HOST_ENDED] = "Python has ended",
    };
    const gts_step_access access = self->access;
    if (GTS_LIKELY(access == GTS_STEP_HANDED_OVER))
        return 0;
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Step '%s' cannot be used: %s.", self->name,
                         REASONS[access]);
}

/* ---- Making ---------------------------------------------------------------------------------------------------- */

static int run_step(void *step)
{
    return gts_step_run(step);
}

static int call_array_function(void *data)
{
    const gts_role *const role = data;
    return role->array_function(role->data, role->arrays);
}

gts_step *gts_step_keep(gts_step *self)
{
    if (self != NULL)
        ++self->references;
    return self;
}

int gts_step_free(gts_step **step)
{
    gts_step *const self = *step;
    if (self != NULL && self->references == 1 && __atomic_load_n(&self->is_running, __ATOMIC_RELAXED) != 0)
        return refuse_running(self);
    *step = NULL;
    if (self == NULL || --self->references > 0)
        return 0;
    GTS_OBSERVE(free_step, self);
    for (size_t i = 0; i < self->count; ++i) {
        gts_unbind(&self->positions[i].call);
        gts_step_free(&self->positions[i].role->step); /* it runs only as a part of this one */
        if (self->positions[i].role->array_count > 0)
            free(self->positions[i].role->held);
        free(self->positions[i].role);
    }
    free(self->positions);
    free(self->name);
    free(self);
    return 0;
}

#define UNNAMED "unnamed"

/* A name, or what stands for none. */
static const char *name_or(const char *name, const char *other)
{
    return name == NULL || *name == '\0' ? other : name;
}

/* The name of an action in messages and profiles. */
static const char *name_of(const gts_action *action)
{
    if (action->call != NULL)
        return action->call->stub->name;
    return name_or(action->name, action->step != NULL ? action->step->name : UNNAMED);
}

/* Makes what a swap knows of the arrays of a function: their addresses. */
static gts_held *hold(void *const *arrays, size_t count)
{
    gts_held *const held = gts_new(1, sizeof *held + count * (sizeof *held->array + sizeof(gts_array)));
    for (; held->count < count; ++held->count) {
        const size_t i = held->count;
        gts_array *const array = (gts_array *)&held->array[count] + i;
        const uintptr_t address = (uintptr_t)(array->data = arrays[i]);
        held->array[i] = (gts_held_array){
            .array = array, .low = address, .high = address + 1, .index = (uint32_t)i, .slot = i * sizeof *arrays};
    }
    return held;
}

static gts_role *new_role(const gts_action *action)
{
    const char *const name = name_of(action);
    const size_t arrays = action->array_count * sizeof *action->arrays, length = strlen(name) + 1;
    gts_held *const held = arrays > 0 ? hold(action->arrays, action->array_count) : NULL;
    gts_role *const role = gts_new(1, sizeof *role + arrays + length);
    *role = (gts_role){
        .kind = action->call != NULL   ? "program"
                : action->step != NULL ? "step"
                                       : "function",
        .name = memcpy((char *)role->arrays + arrays, name, length),
        .step = gts_step_keep(action->step),
        .array_function = action->array_function,
        .data = action->data,
        .held = held,
        .array_count = action->array_count,
    };
    if (arrays > 0)
        memcpy(role->arrays, action->arrays, arrays);
    return role;
}

static gts_position position_of(const gts_action *action, gts_role *role)
{
    if (action->call != NULL)
        return (gts_position){.call = gts_bound_keep(action->call), .role = role};
    if (action->step != NULL)
        return (gts_position){.function = run_step, .data = action->step, .role = role};
    if (action->array_function != NULL)
        return (gts_position){.function = call_array_function, .data = role, .role = role};
    return (gts_position){.function = action->function, .data = action->data, .role = role};
}

static int check_action(const char *step, size_t position, const gts_action *action)
{
    const int given = (action->call != NULL) + (action->function != NULL) + (action->step != NULL) +
                      (action->array_function != NULL);
    if (given != 1)
        return gts_error_set(&gts_own_error, GTS_TYPE_ERROR,
                             "Position %zu of step '%s' must have either a bound call, a function or a step.", position,
                             step);
    if (action->array_count > 0 && action->array_function == NULL)
        return gts_error_set(&gts_own_error, GTS_TYPE_ERROR,
                             "Position %zu of step '%s' has arrays, but no 'array_function' that gets them.", position,
                             step);
    if (action->array_count > 0 && action->arrays == NULL)
        return gts_error_set(&gts_own_error, GTS_TYPE_ERROR,
                             "Position %zu of step '%s' has a number of arrays, but no arrays.", position, step);
    return 0;
}

int gts_step_new(const char *name, const gts_action *actions, size_t count, gts_step **step)
{
    name = name_or(name, UNNAMED);
    *step = NULL;
    for (size_t i = 0; i < count; ++i) {
        if (check_action(name, i + 1, &actions[i]) != 0)
            return -1;
    }
    static _Atomic uint64_t last_id;
    gts_step *const self = gts_new(1, sizeof *self);
    self->id = ++last_id;
    self->references = 1;
    self->name = gts_new_text("%s", name);
    self->positions = gts_new(count, sizeof *self->positions);
    for (; self->count < count; ++self->count)
        self->positions[self->count] = position_of(&actions[self->count], new_role(&actions[self->count]));
    *step = self;
    return 0;
}

void gts_step_exchange(gts_step *a, gts_step *b)
{
    const size_t count = a->count;
    gts_position *const positions = a->positions;
    const uint64_t id = a->id;
    a->count = b->count;
    a->positions = b->positions;
    a->id = b->id;
    b->count = count;
    b->positions = positions;
    b->id = id;
}

/* ---- Running --------------------------------------------------------------------------------------------------- */

static GTS_COLD int fail(const gts_step *self, size_t position, int status)
{
    const gts_position *const at = &self->positions[position];
    if (at->call == NULL && at->role->step == NULL) {
        char reason[64];
        snprintf(reason, sizeof reason, "it has returned %d.", status);
        return gts_step_fail(self, position, GTS_RUNTIME_ERROR, reason);
    }
    const gts_error error = *gts_last_error(gts_bound_program(at->call)); /* of a step: gts_own_error */
    return gts_step_fail(self, position, error.kind, error.message);
}

int gts_step_do_timed(const gts_step *self, size_t *position, gts_step_act act)
{
    int status = 0;
    const uint64_t step_begin = gts_ticks();
    for (*position = 0; *position < self->count; ++*position) {
        const uint64_t begin = gts_ticks(); /* not the end of the action before: observers have worked since */
        status = act(&self->positions[*position]);
        if (status != 0)
            break;
        const uint64_t end = gts_ticks();
        GTS_OBSERVE(time_action, self, *position, begin, end);
    }
    gts_observe_span("step", self->name, step_begin);
    return status;
}

static const gts_position *start(const void *host, const gts_position *at, const gts_position *end, int *status)
{
    (void)host;
    return gts_step_start_known(at, end, status);
}

static int act(const gts_position *at)
{
    return at->call != NULL ? gts_start(at->call) : at->function(at->data);
}

int gts_step_run(gts_step *self)
{
    if (GTS_UNLIKELY(gts_step_enter(self) != 0))
        return -1;
    int status;
    if (self->host != NULL) {
        status = GTS_LIKELY(gts_step_check_access(self) == 0) ? self->host->run(self) : -1;
    } else {
        size_t position;
        status = GTS_UNLIKELY(gts_step_is_timed()) ? gts_step_do_timed(self, &position, act)
                                                   : gts_step_do(self, &position, act, start, NULL);
        if (GTS_UNLIKELY(status != 0))
            status = fail(self, position, status);
    }
    gts_step_leave(self);
    return status;
}
