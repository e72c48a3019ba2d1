/*
 * Changes steps of C and Fortran hosts, with the steps inside them: scalars, and arrays that are swapped. Everything is
 * checked before anything changes.
 */
#include <stdlib.h>

#include "base/error.h"
#include "base/layout.h"
#include "base/refuse.h"
#include "base/section.h"
#include "program/private.h"

/* ---- All that a step contains ---------------------------------------------------------------------------------- */

/* The bound call at a position, and the one that takes its place. */
typedef struct place {
    const gts_step *step;
    size_t position;
    gts_bound_call *changed; /* owned; NULL if nothing of it changes */
} place;

/* A step and those inside it, and their bound calls, each once. All of these steps are entered. */
typedef struct tree {
    gts_step **steps;
    size_t step_count;
    place *places;
    size_t place_count;
} tree;

static gts_bound_call *call_at(const place *place)
{
    return place->step->positions[place->position].call;
}

static GTS_COLD int refuse_memory(void)
{
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Out of memory.");
}

/* Makes room for one more element of an array, whose room is a power of two; NULL when memory runs out. */
static void *grow(void *array, size_t count, size_t size)
{
    const bool is_full = count == 0 || (count & (count - 1)) == 0;
    return is_full ? realloc(array, (count == 0 ? 1 : 2 * count) * size) : array;
}

static int add_call(tree *self, const gts_step *step, size_t position)
{
    for (size_t i = 0; i < self->place_count; ++i) {
        if (call_at(&self->places[i]) == step->positions[position].call)
            return 0;
    }
    place *const places = grow(self->places, self->place_count, sizeof *places);
    if (places == NULL)
        return refuse_memory();
    self->places = places;
    places[self->place_count++] = (place){step, position, NULL};
    return 0;
}

/* Enters a step, and adds it. */
static int add_step(tree *self, gts_step *step)
{
    for (size_t i = 0; i < self->step_count; ++i) {
        if (self->steps[i] == step)
            return 0;
    }
    gts_step **const steps = grow(self->steps, self->step_count, sizeof *steps);
    if (steps == NULL)
        return refuse_memory();
    self->steps = steps;
    if (gts_step_enter(step) != 0)
        return -1;
    steps[self->step_count++] = step;
    return 0;
}

/* Adds a step and what it contains, outer steps first. After an error, release() releases what was added. */
static int add_all(tree *self, gts_step *step)
{
    int status = add_step(self, step);
    for (size_t i = 0; i < self->step_count; ++i) {
        const gts_step *const outer = self->steps[i];
        for (size_t position = 0; position < outer->count && status == 0; ++position) {
            const gts_position *const at = &outer->positions[position];
            if (at->call != NULL)
                status = add_call(self, outer, position);
            else if (at->role->step != NULL)
                status = add_step(self, at->role->step);
        }
    }
    return status;
}

static void release(tree *self)
{
    for (size_t i = 0; i < self->place_count; ++i)
        gts_unbind(&self->places[i].changed);
    for (size_t i = 0; i < self->step_count; ++i)
        gts_step_leave(self->steps[i]);
    free(self->places);
    free(self->steps);
}

/* ---- Changing -------------------------------------------------------------------------------------------------- */

/* Refuses a change because of the error of a bound call, which may be gts_own_error itself. */
static GTS_COLD int fail_to_change(const place *place)
{
    const gts_error error = *gts_last_error(gts_bound_program(call_at(place)));
    (void)gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                        "Step '%s' cannot be changed at position %zu, program '%s': %s Nothing has changed.",
                        place->step->name, place->position + 1, gts_step_name_at(place->step, place->position),
                        error.message);
    gts_own_error.kind = error.kind;
    return -1;
}

/* Changes the arguments of all bound calls or, after an error, of none. Returns 1 if no call had anything to change. */
static int change_calls(const tree *self, gts_bound_changer change, const void *what)
{
    size_t count = 0;
    for (size_t i = 0; i < self->place_count; ++i) {
        place *const place = &self->places[i];
        if (gts_bound_change(call_at(place), change, what, &place->changed) < 0)
            return fail_to_change(place);
        count += place->changed != NULL;
    }
    for (size_t i = 0; i < self->place_count; ++i) {
        if (self->places[i].changed != NULL)
            gts_bound_replace(call_at(&self->places[i]), self->places[i].changed);
    }
    return count > 0 ? 0 : 1;
}

/* ---- Scalars --------------------------------------------------------------------------------------------------- */

int gts_step_set_scalar(gts_step *self, const char *argument, gts_dtype dtype, const void *value)
{
    tree all = {0};
    int status = add_all(&all, self);
    if (status == 0)
        status = change_calls(&all, gts_bound_change_scalar, &(gts_scalar){argument, dtype, value});
    if (status > 0)
        status = gts_error_set(&gts_own_error, GTS_TYPE_ERROR, "No program of step '%s' has an argument '%s'.",
                               self->name, argument);
    release(&all);
    return status;
}

/* ---- Arrays ---------------------------------------------------------------------------------------------------- */

/* The array of a leaf of a bound call; NULL if the leaf is none. */
static const gts_array *array_of(const gts_bound_call *call, uint32_t leaf)
{
    const gts_contract *const contract = &call->stub->leaves[leaf];
    return gts_is_array(contract->kind) ? (const gts_array *)((const char *)call->args + contract->member) : NULL;
}

/* The array at an address that reaches over the most memory, because a call may have a section of it; NULL if none. */
static const gts_array *find_array(const tree *self, const void *data)
{
    const gts_array *widest = NULL;
    int64_t width = -1;
    for (size_t i = 0; i < self->place_count; ++i) {
        const gts_bound_call *const call = call_at(&self->places[i]);
        for (uint32_t leaf = 0; leaf < call->stub->leaf_count; ++leaf) {
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

/* Calls `visit` for each array of a function, until one returns true. Returns whether one has. */
static bool visit_functions(const tree *self, bool (*visit)(void **array, const void *what), const void *what)
{
    for (size_t i = 0; i < self->step_count; ++i) {
        for (size_t position = 0; position < self->steps[i]->count; ++position) {
            gts_role *const role = self->steps[i]->positions[position].role;
            for (size_t array = 0; array < role->array_count; ++array) {
                if (visit(&role->arrays[array], what))
                    return true;
            }
        }
    }
    return false;
}

static bool is_same(void **array, const void *data)
{
    return *array == data;
}

/* Whether a program or a function has an array. */
static bool is_there(const tree *self, const void *data)
{
    return data != NULL && (find_array(self, data) != NULL || visit_functions(self, is_same, data));
}

/* Two arrays that are exchanged. If no program has them, they have an address only. */
typedef struct exchange {
    gts_array a, b;
} exchange;

/* The address that takes the place of one in an array; the same one if it is in neither. */
static void *other_of(const exchange *self, void *data)
{
    if (data == self->a.data || gts_has_element(&self->a, data))
        return (char *)self->b.data + ((char *)data - (char *)self->a.data);
    if (data == self->b.data || gts_has_element(&self->b, data))
        return (char *)self->a.data + ((char *)data - (char *)self->b.data);
    return data;
}

/* Refuses an array that shares elements with one of the two, and has others, too. Returns 1 for a section of one. */
static int check_section(gts_program *program, const gts_contract *contract, const gts_array *array,
                         const exchange *arrays)
{
    if (gts_is_section(array, &arrays->a) || gts_is_section(array, &arrays->b))
        return 1;
    const bool is_a = gts_overlap(array, &arrays->a);
    if (!is_a && !gts_overlap(array, &arrays->b))
        return 0;
    return GTS_REFUSE(program, contract, GTS_VALUE_ERROR,
                      "has elements of the %s array that is swapped, and others: it would have both arrays.",
                      is_a ? "first" : "second");
}

static int change_arrays(gts_program *program, void *args, const void *what)
{
    const exchange *const arrays = what;
    int changed = 0;
    for (uint32_t leaf = 0; leaf < program->stub->leaf_count; ++leaf) {
        const gts_contract *const contract = &program->stub->leaves[leaf];
        if (!gts_is_array(contract->kind))
            continue;
        gts_array *const array = (gts_array *)((char *)args + contract->member);
        const int status = check_section(program, contract, array, arrays);
        if (status < 0)
            return -1;
        if (status == 0)
            continue;
        const bool is_a = gts_has_element(&arrays->a, array->data);
        array->data = other_of(arrays, array->data);
        array->readonly = is_a ? arrays->b.readonly : arrays->a.readonly;
        changed = 1;
    }
    return changed;
}

/* Exchanges the array of a function. */
static bool exchange_one(void **array, const void *arrays)
{
    *array = other_of(arrays, *array);
    return false;
}

static GTS_COLD int refuse_missing(const tree *self, const char *which)
{
    return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                         "Arrays of step '%s' cannot be swapped: no program of it has the %s one.",
                         self->steps[0]->name, which);
}

static GTS_COLD int refuse_unknown(const tree *self, const char *which)
{
    return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                         "Arrays of step '%s' cannot be swapped: only a function has the %s one, whose layout is not "
                         "known.",
                         self->steps[0]->name, which);
}

static int swap(const tree *self, void *a, void *b)
{
    if (!is_there(self, a) || !is_there(self, b))
        return refuse_missing(self, is_there(self, a) ? "second" : "first");
    if (a == b)
        return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                             "Arrays of step '%s' cannot be swapped: the two are the same.", self->steps[0]->name);
    const gts_array *const first = find_array(self, a), *const second = find_array(self, b);
    if ((first == NULL) != (second == NULL))
        return refuse_unknown(self, first == NULL ? "first" : "second");
    exchange arrays = {.a.data = a, .b.data = b};
    if (first != NULL) {
        if (!gts_have_one_layout(first, second))
            return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                                 "Arrays of step '%s' cannot be swapped: they differ in type, size, stride or origin.",
                                 self->steps[0]->name);
        arrays = (exchange){*first, *second};
        if (change_calls(self, change_arrays, &arrays) < 0)
            return -1;
    }
    (void)visit_functions(self, exchange_one, &arrays);
    return 0;
}

int gts_step_swap(gts_step *self, const void *a, const void *b)
{
    tree all = {0};
    int status = add_all(&all, self);
    if (status == 0)
        status = swap(&all, (void *)(uintptr_t)a, (void *)(uintptr_t)b); /* they become addresses of arrays */
    release(&all);
    return status;
}
