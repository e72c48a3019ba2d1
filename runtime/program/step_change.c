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

/* The memory of an array; all of it if that is not known. */
static gts_range range_of(const gts_array *array)
{
    gts_range found;
    return gts_find_range(array, &found) ? found : (gts_range){0, UINTPTR_MAX};
}

static bool have_common(const gts_range *a, const gts_range *b)
{
    return a->low < b->high && b->low < a->high;
}

static bool contains(const gts_range *self, const void *data)
{
    return (uintptr_t)data >= self->low && (uintptr_t)data < self->high;
}

/* Two arrays that are exchanged, and their memory. If no program has them, they have an address only. */
typedef struct exchange {
    gts_array a, b;
    gts_range memory[2];
    bool is_memory;       /* they are bytes, and whatever lies in them moves */
    bool may_be_sections; /* they are arguments: the host may mean larger arrays that begin there */
} exchange;

static exchange exchange_of(const gts_array *a, const gts_array *b)
{
    return (exchange){.a = *a, .b = *b, .memory = {range_of(a), range_of(b)}};
}

/* Whether an array of a call begins before one of the two ends, and ends after it begins. */
static bool may_have_elements(const gts_bound_call *call, const void *what)
{
    const gts_range *const memory = ((const exchange *)what)->memory;
    for (uint32_t leaf = 0; leaf < call->stub->leaf_count; ++leaf) {
        const gts_array *const array = array_of(call, leaf);
        const gts_range found = array == NULL ? (gts_range){0, 0} : range_of(array);
        if (have_common(&found, &memory[0]) || have_common(&found, &memory[1]))
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

/* Whether an array moves with one of the two: it is a section of it, or lies in its memory. */
static bool moves(const gts_array *array, const exchange *self, bool with_b)
{
    const gts_range *const memory = &self->memory[with_b], found = range_of(array);
    if (self->is_memory)
        return found.low < found.high && found.low >= memory->low && found.high <= memory->high;
    return gts_is_section(array, with_b ? &self->b : &self->a);
}

/* Refuses an array that would be torn apart, or may belong to one of the two. Returns 1 for one that moves. */
static int check_array(gts_program *program, const gts_contract *contract, const gts_array *array,
                       const exchange *arrays)
{
    if (moves(array, arrays, false) || moves(array, arrays, true))
        return 1;
    const gts_range found = range_of(array);
    for (int i = 0; i < 2; ++i) {
        const char *const which = i == 0 ? "first" : "second";
        if (gts_overlap(array, i == 0 ? &arrays->a : &arrays->b))
            return GTS_REFUSE(program, contract, GTS_VALUE_ERROR,
                              "has elements of the %s array that is swapped, and others: it would have both arrays.",
                              which);
        if (arrays->may_be_sections && have_common(&found, &arrays->memory[i]))
            return GTS_REFUSE(program, contract, GTS_VALUE_ERROR,
                              "lies between the elements of the %s array that is swapped, as another section of the "
                              "same array would: swap the memory of the whole array.",
                              which);
    }
    return 0;
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
        const int status = check_array(program, contract, array, arrays);
        if (status < 0)
            return -1;
        if (status == 0)
            continue;
        const bool is_a = moves(array, arrays, false);
        array->data = other_of(arrays, array->data);
        array->readonly = is_a ? arrays->b.readonly : arrays->a.readonly;
        changed = 1;
    }
    return changed;
}

/* Refuses an array of a function that may belong to one of the two. */
static int check_function(const gts_place *place, const exchange *arrays)
{
    const gts_role *const role = gts_position_of(place)->role;
    for (size_t i = 0; arrays->may_be_sections && i < role->array_count; ++i) {
        void *const data = role->arrays[i];
        const bool is_first = contains(&arrays->memory[0], data);
        if (other_of(arrays, data) == data && (is_first || contains(&arrays->memory[1], data)))
            return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                                 "Step '%s' cannot be changed at position %zu, function '%s': array %zu lies between "
                                 "the elements of the %s array that is swapped, as another section of the same array "
                                 "would: swap the memory of the whole array. Nothing has changed.",
                                 place->step->name, place->position + 1, role->name, i + 1,
                                 is_first ? "first" : "second");
    }
    return 0;
}

static int check_place(gts_place *place, const void *arrays)
{
    return call_at(place) == NULL ? check_function(place, arrays)
                                  : check_call(place, &(const request){change_arrays, arrays, may_have_elements});
}

/* Exchanges two arrays in all calls and functions. */
static int exchange_all(const gts_step_tree *self, const exchange *arrays)
{
    if (gts_step_tree_change(self, check_place, change_call, arrays) != 0)
        return -1;
    for (size_t i = 0; i < self->place_count; ++i) {
        gts_role *const role = gts_position_of(&self->places[i])->role;
        for (size_t array = 0; array < role->array_count; ++array)
            role->arrays[array] = other_of(arrays, role->arrays[array]);
    }
    return 0;
}

/* ---- Finding what is swapped ----------------------------------------------------------------------------------- */

/* Whether a call has an array with memory at an address. *is_readonly becomes true if the host says so of one of them. */
static bool has_memory(const gts_step_tree *self, const gts_range *memory, bool *is_readonly)
{
    bool is_there = false;
    for (size_t i = 0; i < self->place_count; ++i) {
        const gts_bound_call *const call = call_at(&self->places[i]);
        for (uint32_t leaf = 0; call != NULL && leaf < call->stub->leaf_count; ++leaf) {
            const gts_array *const array = array_of(call, leaf);
            const gts_range found = array == NULL ? (gts_range){0, 0} : range_of(array);
            if (!have_common(&found, memory))
                continue;
            is_there = true;
            *is_readonly |= array->readonly;
        }
    }
    return is_there;
}

/* Whether a function has an array that begins in some memory. */
static bool has_function(const gts_step_tree *self, const gts_range *memory)
{
    for (size_t i = 0; i < self->place_count; ++i) {
        const gts_role *const role = gts_position_of(&self->places[i])->role;
        for (size_t array = 0; array < role->array_count; ++array) {
            if (role->arrays[array] != NULL && contains(memory, role->arrays[array]))
                return true;
        }
    }
    return false;
}

static GTS_COLD int refuse_missing(const gts_step_tree *self, bool is_first)
{
    return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                         "Arrays of step '%s' cannot be swapped: no program of it has the %s one.",
                         self->steps[0]->name, is_first ? "first" : "second");
}

static GTS_COLD int refuse_unknown(const gts_step_tree *self, bool is_first)
{
    return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                         "Arrays of step '%s' cannot be swapped: only a function has the %s one, whose layout is not "
                         "known.",
                         self->steps[0]->name, is_first ? "first" : "second");
}

static GTS_COLD int refuse_same(const gts_step_tree *self)
{
    return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                         "Arrays of step '%s' cannot be swapped: the two are the same.", self->steps[0]->name);
}

static GTS_COLD int refuse_common(const gts_step_tree *self)
{
    return gts_error_set(&gts_own_error, GTS_VALUE_ERROR, "Arrays of step '%s' cannot be swapped: they share elements.",
                         self->steps[0]->name);
}

/* Exchanges the arrays at two addresses, which are all that the host says. */
static int swap(const gts_step_tree *self, void *a, void *b)
{
    void *const data[] = {a, b};
    const gts_array *found[2];
    bool is_inside[2] = {false, false}; /* of an array that begins elsewhere */
    for (int i = 0; i < 2; ++i) {
        const gts_range first = {(uintptr_t)data[i], (uintptr_t)data[i] + 1};
        bool ignored = false;
        found[i] = data[i] == NULL ? NULL : find_array(self, data[i]);
        is_inside[i] = found[i] == NULL && has_memory(self, &first, &ignored);
        if (data[i] == NULL || (found[i] == NULL && !has_function(self, &first)))
            return refuse_missing(self, i == 0);
    }
    if (a == b)
        return refuse_same(self);
    if ((found[0] == NULL) != (found[1] == NULL) || is_inside[0] || is_inside[1])
        return refuse_unknown(self, found[0] == NULL && (found[1] != NULL || is_inside[0]));
    if (found[0] == NULL)
        return exchange_all(self, &(exchange){.a.data = a, .b.data = b});
    if (!gts_have_one_layout(found[0], found[1]))
        return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                             "Arrays of step '%s' cannot be swapped: they differ in type, size, stride or origin.",
                             self->steps[0]->name);
    if (gts_overlap(found[0], found[1]))
        return refuse_common(self);
    exchange arrays = exchange_of(found[0], found[1]);
    arrays.may_be_sections = true;
    return exchange_all(self, &arrays);
}

/* Exchanges the memory of two arrays, whatever calls and functions have of them. */
static int swap_memory(const gts_step_tree *self, void *a, void *b, size_t size)
{
    const int64_t bytes = (int64_t)(size < SIZE_MAX / 8 ? size : SIZE_MAX / 8); /* more than any memory has */
    void *const data[] = {a, b};
    gts_array memory[2];
    for (int i = 0; i < 2; ++i) {
        memory[i] = (gts_array){.data = data[i], .dtype = GTS_UINT8, .rank = 1, .shape = {bytes}, .strides = {1}};
        const gts_range range = range_of(&memory[i]);
        const bool is_in_call = has_memory(self, &range, &memory[i].readonly);
        if (data[i] == NULL || (!is_in_call && !has_function(self, &range)))
            return refuse_missing(self, i == 0);
    }
    if (a == b)
        return refuse_same(self);
    if (gts_overlap(&memory[0], &memory[1]))
        return refuse_common(self);
    exchange arrays = exchange_of(&memory[0], &memory[1]);
    arrays.is_memory = true;
    return exchange_all(self, &arrays);
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

int gts_step_swap_memory(gts_step *self, const void *a, const void *b, size_t bytes)
{
    if (self != NULL && self->host != NULL)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                             "Step '%s' was handed over: its arrays are objects, which are swapped one by one with "
                             "gts_step_swap().",
                             self->name);
    gts_step_tree all;
    int status = gts_step_tree_begin(&all, self, sizeof(gts_bound_call *));
    if (status == 0)
        status = swap_memory(&all, (void *)(uintptr_t)a, (void *)(uintptr_t)b, bytes);
    gts_step_tree_end(&all, release_call);
    return status;
}

int gts_step_swap_arrays(gts_step *self, const gts_array *a, const gts_array *b)
{
    gts_step_tree all;
    int status = gts_step_tree_begin(&all, self, sizeof(gts_bound_call *));
    if (status == 0) {
        const exchange arrays = exchange_of(a, b);
        status = exchange_all(&all, &arrays);
    }
    gts_step_tree_end(&all, release_call);
    return status;
}
