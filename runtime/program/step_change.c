/* Changes steps of C and Fortran hosts, with the steps inside them: scalars, and arrays that are swapped. */
#include "base/error.h"
#include "base/layout.h"
#include "base/refuse.h"
#include "base/section.h"
#include "program/private.h"

/* Enters a step of a host that has its own objects, which changes it itself. */
static int enter_handed_over(gts_step *self)
{
    if (gts_step_enter(self) != 0)
        return -1;
    if (gts_step_check_access(self) == 0)
        return 0;
    gts_step_leave(self);
    return -1;
}

static gts_bound_call *call_at(const gts_place *place)
{
    return gts_position_of(place)->call;
}

/* The bound call with other arguments; NULL if nothing of it changes. */
static gts_bound_call **changed_call(const gts_place *place)
{
    return place->changed;
}

/* ---- Bound calls ----------------------------------------------------------------------------------------------- */

/* A change of the arguments of bound calls. */
typedef struct request {
    gts_bound_changer change;
    const void *what;
    bool (*may_change)(const gts_bound_call *, const void *what); /* a quick look; NULL: each call may */
} request;

/* Refuses a change because of the error of a bound call, which may be gts_own_error itself. */
static GTS_COLD int fail_to_change(const gts_place *place)
{
    const gts_error error = *gts_last_error(gts_bound_program(call_at(place)));
    (void)gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                        "Step '%s' cannot be changed at position %zu, program '%s': %s Nothing has changed.",
                        place->step->name, place->position + 1, gts_step_name_at(place->step, place->position),
                        error.message);
    gts_own_error.kind = error.kind;
    return -1;
}

/* Binds the call of a place, if it has one, with other arguments. */
static int check_call(gts_place *place, const void *what)
{
    const request *const self = what;
    const gts_bound_call *const call = call_at(place);
    if (call == NULL || (self->may_change != NULL && !self->may_change(call, self->what)))
        return 0;
    return gts_bound_change(call, self->change, self->what, changed_call(place)) < 0 ? fail_to_change(place) : 0;
}

static void change_call(gts_place *place)
{
    if (*changed_call(place) != NULL)
        gts_bound_replace(call_at(place), *changed_call(place));
}

static void release_call(gts_place *place)
{
    gts_unbind(changed_call(place));
}

/* ---- Scalars --------------------------------------------------------------------------------------------------- */

/* Whether a program has an argument. A program that was closed is refused when it is changed. */
static bool has_argument(const gts_step_tree *self, const char *argument)
{
    for (size_t i = 0; i < self->place_count; ++i) {
        const gts_bound_call *const call = call_at(&self->places[i]);
        if (call != NULL && (call->program == NULL || gts_bound_find(call->program, argument) >= 0))
            return true;
    }
    return false;
}

static int check_arguments(const gts_step_tree *self, const gts_scalars *all)
{
    for (size_t i = 0; i < all->count; ++i) {
        if (!has_argument(self, all->scalars[i].argument))
            return gts_error_set(&gts_own_error, GTS_TYPE_ERROR, "No program of step '%s' has an argument '%s'.",
                                 self->steps[0]->name, all->scalars[i].argument);
    }
    return 0;
}

int gts_step_set_scalars(gts_step *self, const gts_scalar *scalars, size_t count)
{
    gts_step_tree tree;
    const gts_scalars all = {scalars, count};
    const request set = {gts_bound_change_scalars, &all, NULL};
    int status = gts_step_tree_begin(&tree, self, sizeof(gts_bound_call *));
    if (status == 0)
        status = check_arguments(&tree, &all);
    if (status == 0)
        status = gts_step_tree_change(&tree, check_call, change_call, &set);
    gts_step_tree_end(&tree, release_call);
    return status;
}

int gts_step_set_scalar(gts_step *self, const char *argument, gts_dtype dtype, const void *value)
{
    if (self != NULL && self->host != NULL)
        return enter_handed_over(self) == 0 ? self->host->set_scalar(self, argument, dtype, value) : -1;
    return gts_step_set_scalars(self, &(const gts_scalar){argument, dtype, value}, 1);
}

/* ---- Arrays ---------------------------------------------------------------------------------------------------- */

/* The array of a leaf of a bound call; NULL if the leaf is none. */
static const gts_array *array_of(const gts_bound_call *call, uint32_t leaf)
{
    const gts_contract *const contract = &call->stub->leaves[leaf];
    return gts_is_array(contract->kind) ? gts_array_in(call->args, contract) : NULL;
}

/* The array at an address that reaches over the most memory, because a call may have a section of it; NULL if none. */
static const gts_array *find_array(const gts_step_tree *self, const void *data)
{
    const gts_array *widest = NULL;
    int64_t width = -1;
    for (size_t i = 0; i < self->place_count; ++i) {
        const gts_bound_call *const call = call_at(&self->places[i]);
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

/* Whether a program or a function has an array. */
static bool is_there(const gts_step_tree *self, const void *data)
{
    for (size_t i = 0; i < self->place_count && data != NULL; ++i) {
        const gts_role *const role = gts_position_of(&self->places[i])->role;
        for (size_t array = 0; array < role->array_count; ++array) {
            if (role->arrays[array] == data)
                return true;
        }
    }
    return data != NULL && find_array(self, data) != NULL;
}

/* Two arrays that are exchanged, and their memory. If no program has them, they have an address only. */
typedef struct exchange {
    gts_array a, b;
    gts_range memory[2];
} exchange;

/* The memory of an array; all of it if that is not known. */
static gts_range range_of(const gts_array *array)
{
    gts_range found;
    return gts_find_range(array, &found) ? found : (gts_range){0, UINTPTR_MAX};
}

/* Whether an array of a call begins before one of the two ends, and ends after it begins. */
static bool may_have_elements(const gts_bound_call *call, const void *what)
{
    const gts_range *const memory = ((const exchange *)what)->memory;
    for (uint32_t leaf = 0; leaf < call->stub->leaf_count; ++leaf) {
        const gts_array *const array = array_of(call, leaf);
        const gts_range found = array == NULL ? (gts_range){0, 0} : range_of(array);
        if ((found.low < memory[0].high && memory[0].low < found.high) ||
            (found.low < memory[1].high && memory[1].low < found.high))
            return true;
    }
    return false;
}

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

/* Exchanges two arrays in all calls and functions; in functions alone if no program has them. */
static int exchange_all(const gts_step_tree *self, const exchange *arrays, bool is_in_calls)
{
    if (is_in_calls &&
        gts_step_tree_change(self, check_call, change_call, &(request){change_arrays, arrays, may_have_elements}) != 0)
        return -1;
    for (size_t i = 0; i < self->place_count; ++i) {
        gts_role *const role = gts_position_of(&self->places[i])->role;
        for (size_t array = 0; array < role->array_count; ++array)
            role->arrays[array] = other_of(arrays, role->arrays[array]);
    }
    return 0;
}

static int swap(const gts_step_tree *self, void *a, void *b)
{
    if (!is_there(self, a) || !is_there(self, b))
        return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                             "Arrays of step '%s' cannot be swapped: no program of it has the %s one.",
                             self->steps[0]->name, is_there(self, a) ? "second" : "first");
    if (a == b)
        return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                             "Arrays of step '%s' cannot be swapped: the two are the same.", self->steps[0]->name);
    const gts_array *const first = find_array(self, a), *const second = find_array(self, b);
    if ((first == NULL) != (second == NULL))
        return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                             "Arrays of step '%s' cannot be swapped: only a function has the %s one, whose layout is "
                             "not known.",
                             self->steps[0]->name, first == NULL ? "first" : "second");
    exchange arrays = {.a.data = a, .b.data = b};
    if (first != NULL) {
        if (!gts_have_one_layout(first, second))
            return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                                 "Arrays of step '%s' cannot be swapped: they differ in type, size, stride or origin.",
                                 self->steps[0]->name);
        if (gts_overlap(first, second))
            return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                                 "Arrays of step '%s' cannot be swapped: they share elements.", self->steps[0]->name);
        arrays = (exchange){*first, *second, {range_of(first), range_of(second)}};
    }
    return exchange_all(self, &arrays, first != NULL);
}

int gts_step_swap(gts_step *self, const void *a, const void *b)
{
    if (self != NULL && self->host != NULL)
        return enter_handed_over(self) == 0 ? self->host->swap(self, a, b) : -1;
    gts_step_tree all;
    int status = gts_step_tree_begin(&all, self, sizeof(gts_bound_call *));
    if (status == 0)
        status = swap(&all, (void *)(uintptr_t)a, (void *)(uintptr_t)b); /* they become addresses of arrays */
    gts_step_tree_end(&all, release_call);
    return status;
}

int gts_step_swap_arrays(gts_step *self, const gts_array *a, const gts_array *b)
{
    gts_step_tree all;
    int status = gts_step_tree_begin(&all, self, sizeof(gts_bound_call *));
    if (status == 0)
        status = exchange_all(&all, &(exchange){*a, *b, {range_of(a), range_of(b)}}, true);
    gts_step_tree_end(&all, release_call);
    return status;
}
