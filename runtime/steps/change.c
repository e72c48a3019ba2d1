/* Changes steps, with the steps inside them: scalars, and arrays that are swapped. */
#include <stdio.h>

#include "base/error.h"
#include "base/refuse.h"
#include "base/strided.h"
#include "program/private.h"
#include "steps/steps.h"

static gts_bound_call *call_at(const gts_place *place)
{
    return gts_position_of(place)->call;
}

int gts_place_refuse(const gts_place *place, gts_error_kind kind, const char *reason)
{
    gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                  "Step '%s' cannot be changed at position %zu, %s '%s': %s Nothing has changed.", place->step->name,
                  place->position + 1, gts_position_of(place)->role->kind,
                  gts_step_name_at(place->step, place->position), reason);
    gts_own_error.kind = kind;
    return -1;
}

/* Refuses a change because of the error of a bound call, which may be gts_own_error itself. */
static GTS_COLD int fail_to_change(const gts_place *place)
{
    const gts_error error = *gts_last_error(gts_bound_program(call_at(place)));
    return gts_place_refuse(place, error.kind, error.message);
}

/* What may wait for a call of a program that is running. */
typedef struct binding {
    gts_place *place;
    gts_bound_changer change;
    const void *what;
} binding;

static int bind_again(void *context)
{
    const binding *const self = context;
    return gts_bound_change(call_at(self->place), self->change, self->what, &self->place->changed);
}

/* Does something with the call of a place that may wait for its program. */
static int wait(const gts_step_tree *self, const gts_place *place, int (*act)(void *), void *context)
{
    gts_program *const program = gts_bound_program(call_at(place));
    const int status = program == NULL      ? gts_bound_refuse_closed(call_at(place))
                       : self->wait == NULL ? act(context)
                                            : self->wait(program, act, context);
    return status < 0 ? fail_to_change(place) : 0;
}

/* Binds the call of a place with other arguments. */
static int change_call(const gts_step_tree *self, gts_place *place, gts_bound_changer change, const void *what)
{
    return wait(self, place, bind_again, &(binding){place, change, what});
}

static int enter_and_leave(void *program)
{
    GTS_TRY(gts_enter_open(program));
    gts_leave(program);
    return 0;
}

/* Refuses a program that cannot be entered to change a call in place, such as one whose callback this is. */
static int check_entry(const gts_step_tree *self, const gts_place *place)
{
    gts_program *const program = gts_bound_program(call_at(place));
    const bool is_free = program != NULL && !gts_belongs_to_parent(program) &&
                         __atomic_load_n(&program->is_busy, __ATOMIC_RELAXED) == 0;
    return GTS_LIKELY(is_free) ? 0 : wait(self, place, enter_and_leave, program);
}

/* ---- Scalars --------------------------------------------------------------------------------------------------- */

/* Refuses a scalar that no call has. */
static int check_names(const gts_step_tree *self, const gts_scalar *scalars, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        bool is_known = false;
        for (size_t place = 0; place < self->place_count && !is_known; ++place) {
            const gts_bound_call *const call = call_at(&self->places[place]);
            is_known = call != NULL && gts_bound_find(call->stub, scalars[i].argument) >= 0;
        }
        if (!is_known)
            return gts_error_set(&gts_own_error, GTS_TYPE_ERROR, "No program of step '%s' has an argument '%s'.",
                                 self->steps[0]->name, scalars[i].argument);
    }
    return 0;
}

/* Prepares a change of the scalars that the call of a place has, which are checked together. */
static int set(const gts_step_tree *self, gts_place *place, const gts_scalars *scalars, gts_place_read read, void *host)
{
    const gts_bound_call *const call = call_at(place);
    bool has_any = false;
    for (size_t i = 0; call != NULL && i < scalars->count && !has_any; ++i)
        has_any = gts_bound_find(call->stub, scalars->scalars[i].argument) >= 0;
    if (!has_any)
        return 0;
    GTS_TRY(read == NULL ? 0 : read(place, host));
    return change_call(self, place, gts_bound_change_scalars, scalars);
}

int gts_step_set(gts_step *step, const gts_scalar *scalars, size_t count, gts_waiting wait, gts_place_read read,
                 void *host)
{
    gts_step_tree tree;
    int status = gts_step_tree_begin(&tree, &step, 1, wait);
    if (status == 0)
        status = check_names(&tree, scalars, count);
    for (size_t i = 0; i < tree.place_count && status == 0; ++i)
        status = set(&tree, &tree.places[i], &(const gts_scalars){scalars, count}, read, host);
    if (status == 0)
        gts_step_tree_commit(&tree);
    gts_step_tree_end(&tree);
    return status;
}

int gts_step_set_scalar(gts_step *self, const char *argument, gts_dtype dtype, const void *value)
{
    return gts_step_set(self, &(const gts_scalar){argument, dtype, value}, 1, NULL, NULL, NULL);
}

/* ---- Arrays ---------------------------------------------------------------------------------------------------- */

static bool have_common(const gts_swapped *a, uintptr_t low, uintptr_t high)
{
    return (a->low < high) & (low < a->high); /* one branch: most arrays are not near each other */
}

/* Whether an array moves as a section of a swapped one, or because it lies in its memory. */
static bool is_inside(const gts_swap *swap, const gts_swapped *of, const gts_held_array *held)
{
    if (swap->is_memory)
        return held->low < held->high && held->low >= of->low && held->high <= of->high;
    if (gts_is_address(held->array))
        return gts_has_element(&of->array, held->array->data);
    return swap->moves_sections && gts_is_section(held->array, &of->array);
}

/* The names of an array of a place, and of one that is swapped. */
typedef struct names {
    char array[192], swapped[48];
} names;

static GTS_COLD names names_of(const gts_place *place, const gts_swap *swap, size_t number, size_t index)
{
    const gts_bound_call *const call = call_at(place);
    names all;
    if (call != NULL)
        snprintf(all.array, sizeof all.array, "Argument '%.80s' of program '%.80s'", call->stub->leaves[index].path,
                 call->stub->name);
    else
        snprintf(all.array, sizeof all.array, "array %zu", index + 1);
    if (swap->moves_sections)
        snprintf(all.swapped, sizeof all.swapped, "the %s array that is swapped", number == 0 ? "first" : "second");
    else
        snprintf(all.swapped, sizeof all.swapped, "array %zu of the swap", number + 1);
    return all;
}

/* Refuses an array that has elements of one that is swapped, or may belong to it. */
static GTS_COLD int refuse_array(const gts_place *place, const gts_swap *swap, size_t number,
                                 const gts_held_array *held, bool shares)
{
    const names all = names_of(place, swap, number, held->index);
    const char *relation, *reason;
    if (!shares) {
        relation = "lies between the elements of";
        reason = swap->moves_sections
                     ? "as another section of the same array would: swap the memory of the whole array."
                     : "as another section of the same array would: swap both in Python.";
    } else if (held->is_inside) {
        relation = "has inside it";
        reason = "where no swap reaches it: pass the array itself.";
    } else if (swap->moves_sections) {
        relation = "has elements of";
        reason = "and others: it would have both arrays.";
    } else {
        relation = "shares elements with";
        reason = "but differs in address, type, size, stride or origin: it would need an object that nobody has made.";
    }
    gts_error error;
    gts_error_set(&error, GTS_VALUE_ERROR, "%s %s %s, %s", all.array, relation, all.swapped, reason);
    return gts_place_refuse(place, error.kind, error.message);
}

/* Refuses an array that would be torn apart, or may belong to one that is swapped. */
static int check_others(const gts_place *place, const gts_swap *swap, const gts_held_array *held)
{
    for (size_t i = 0; i < swap->count; ++i) {
        const gts_swapped *const each = &swap->arrays[i];
        if (!have_common(each, held->low, held->high))
            continue;
        const bool shares = gts_overlap(held->array, &each->array);
        if (shares || swap->may_be_parts)
            return refuse_array(place, swap, i, held, shares);
    }
    return 0;
}

/* Finds what takes the place of an array. */
static int check_array(const gts_place *place, const gts_swap *swap, gts_held_array *held)
{
    const gts_array *const array = held->array;
    const bool is_empty = held->low == held->high;
    bool is_near = false;
    for (size_t i = 0; i < swap->count; ++i) {
        gts_swapped *const each = &swap->arrays[i];
        if (GTS_LIKELY(!have_common(each, held->low, held->high)) &&
            (GTS_LIKELY(!is_empty) || array->data != each->array.data || each->low != each->high))
            continue;
        is_near = true;
        if (held->is_inside || (!(array->data == each->array.data && gts_have_one_layout(array, &each->array)) &&
                                !is_inside(swap, each, held)))
            continue;
        held->by = &swap->arrays[i ^ 1];
        held->to = (char *)held->by->array.data + ((char *)array->data - (char *)each->array.data);
        each->is_there = true;
        return 0;
    }
    return is_near ? check_others(place, swap, held) : 0;
}

/* Whether two arrays of the same layout have the same dimensions, as far as their hosts have said. */
static bool have_same_dims(const gts_array *a, const gts_array *b)
{
    for (int32_t axis = 0; axis < a->rank; ++axis) {
        const char *const one = a->dims[axis], *const other = b->dims[axis];
        if (one != other && one != NULL && other != NULL && strcmp(one, other) != 0)
            return false;
    }
    return true;
}

/* Whether an array gets another address in a slot, and what was checked when the call was bound stays true. */
static bool is_patched(const gts_swap *swap, const gts_held_array *held)
{
    const gts_array *const by = &held->by->array;
    return held->is_patched && !(held->written && by->readonly) &&
           (swap->moves_sections || (gts_have_one_layout(held->array, by) && have_same_dims(held->array, by)));
}

typedef struct moves {
    const gts_swap *swap;
    const gts_held *held;
} moves;

/* A gts_bound_changer. */
static int move_arrays(gts_program *program, void *args, const void *what)
{
    const moves *const self = what;
    for (size_t i = 0; i < self->held->count; ++i) {
        const gts_held_array *const each = &self->held->array[i];
        const gts_contract *const contract = &program->stub->leaves[each->index];
        if (each->by == NULL || (!gts_is_array(contract->kind) && is_patched(self->swap, each)))
            continue;
        if (!gts_is_array(contract->kind))
            return GTS_REFUSE(program, contract, GTS_VALUE_ERROR,
                              "has no axes: it is swapped only with an array of its type without axes, which may be "
                              "written if the program writes it.");
        gts_array *const array = gts_array_in(args, contract);
        if (!self->swap->moves_sections) /* it may have another layout */
            *array = each->by->array;
        array->data = each->to;
        array->readonly = each->by->array.readonly;
    }
    return 1;
}

static int check_place(const gts_step_tree *self, gts_place *place, const gts_swap *swap)
{
    gts_held *const held = place->held;
    bool moves_any = false, is_patch = true;
    for (size_t i = 0; held != NULL && i < held->count; ++i) {
        gts_held_array *const each = &held->array[i];
        GTS_TRY(check_array(place, swap, each));
        moves_any |= each->by != NULL;
        is_patch = is_patch && (each->by == NULL || is_patched(swap, each));
    }
    if (!moves_any || call_at(place) == NULL)
        return 0;
    return is_patch ? check_entry(self, place) : change_call(self, place, move_arrays, &(const moves){swap, held});
}

/* Gives a place the other arrays. */
static void move_place(const gts_step_tree *self, const gts_place *place)
{
    const gts_position *const at = gts_position_of(place);
    if (place->held == NULL || place->changed != NULL)
        return;
    void *const slots = at->call != NULL ? at->call->slots : at->role->arrays;
    bool is_entered = false;
    for (size_t i = 0; i < place->held->count; ++i) {
        gts_held_array *const each = &place->held->array[i];
        if (each->by == NULL)
            continue;
        if (at->call != NULL && !is_entered)
            is_entered = gts_bound_enter(at->call->program, self->wait);
        const uintptr_t distance = (uintptr_t)each->to - (uintptr_t)each->array->data;
        each->low += distance;
        each->high += distance;
        if (at->call == NULL && !gts_is_address(each->array)) { /* it may have another layout */
            *each->array = each->by->array;
            memset(each->array->dims, 0, sizeof each->array->dims); /* whose texts may not live as long */
            gts_find_memory(each->array, &each->low, &each->high);
        }
        each->array->data = each->to;
        each->array->readonly = each->by->array.readonly;
        if (each->slot != GTS_NO_SLOT)
            memcpy((char *)slots + each->slot, &each->to, sizeof each->to);
    }
    if (is_entered)
        gts_leave(at->call->program);
}

int gts_step_tree_hold(const gts_step_tree *self)
{
    for (size_t i = 0; i < self->place_count; ++i) {
        gts_place *const place = &self->places[i];
        gts_bound_call *const call = call_at(place);
        if (call == NULL)
            continue;
        if (GTS_UNLIKELY(call->held == NULL) && gts_bound_hold(call) != 0)
            return fail_to_change(place);
        place->held = call->held;
    }
    return 0;
}

int gts_step_tree_swap(gts_step_tree *self, const gts_swap *swap)
{
    for (size_t i = 0; i < self->place_count; ++i)
        GTS_TRY(check_place(self, &self->places[i], swap));
    for (size_t i = 0; i < swap->count && !swap->moves_sections; ++i) {
        if (!swap->arrays[i].is_there)
            return gts_error_set(&gts_own_error, GTS_VALUE_ERROR, "No program of step '%s' has array %zu of swap().",
                                 self->steps[0]->name, i + 1);
    }
    for (size_t i = 0; i < self->place_count; ++i)
        move_place(self, &self->places[i]);
    gts_step_tree_commit(self);
    return 0;
}

/* ---- Finding what is swapped ----------------------------------------------------------------------------------- */

/* The array at an address that reaches over the most memory, because a call may have a section of it; NULL if none. */
static const gts_array *find_array(const gts_step_tree *self, const void *data)
{
    const gts_held_array *widest = NULL;
    for (size_t i = 0; i < self->place_count; ++i) {
        const gts_held *const held = self->places[i].held;
        for (size_t array = 0; held != NULL && array < held->count; ++array) {
            const gts_held_array *const each = &held->array[array];
            if (each->array->data == data && !gts_is_address(each->array) &&
                (widest == NULL || each->high - each->low > widest->high - widest->low))
                widest = each;
        }
    }
    return widest == NULL ? NULL : widest->array;
}

/*
 * Whether something has memory of a swapped array, which becomes read-only if the host says so of an array: a function that
 * has an address alone, or anything else.
 */
static bool has_memory(const gts_step_tree *self, gts_swapped *swapped, bool is_address)
{
    bool is_there = false;
    for (size_t i = 0; i < self->place_count; ++i) {
        const gts_held *const held = self->places[i].held;
        for (size_t array = 0; held != NULL && array < held->count; ++array) {
            const gts_held_array *const each = &held->array[array];
            if (gts_is_address(each->array) != is_address || !have_common(swapped, each->low, each->high))
                continue;
            is_there = true;
            swapped->array.readonly |= each->array->readonly;
        }
    }
    return is_there;
}

static GTS_COLD int refuse_swap(const gts_step_tree *self, const char *reason)
{
    return gts_error_set(&gts_own_error, GTS_VALUE_ERROR, "Arrays of step '%s' cannot be swapped: %s.",
                         self->steps[0]->name, reason);
}

/* Refuses one of two arrays that no program has. */
static GTS_COLD int refuse_missing(const gts_step_tree *self, int which)
{
    return refuse_swap(self, which == 0 ? "no program of it has the first one" : "no program of it has the second one");
}

/* Swaps the arrays at two addresses, which are all that the host says. */
static int swap_found(gts_step_tree *self, void *const data[2])
{
    const gts_step_host *const host = self->steps[0]->host;
    const gts_array *found[2];
    gts_swapped arrays[2];
    bool is_part[2]; /* of an array that begins elsewhere */
    for (int i = 0; i < 2; ++i) {
        arrays[i] = (gts_swapped){.array.data = data[i], .low = (uintptr_t)data[i], .high = (uintptr_t)data[i] + 1};
        found[i] = data[i] == NULL ? NULL : find_array(self, data[i]);
        is_part[i] = found[i] == NULL && has_memory(self, &arrays[i], false);
        if (data[i] == NULL || (found[i] == NULL && !has_memory(self, &arrays[i], true)))
            return refuse_missing(self, i);
    }
    if (data[0] == data[1])
        return refuse_swap(self, "the two are the same");
    if ((found[0] == NULL) != (found[1] == NULL) || is_part[0] || is_part[1])
        return refuse_swap(self, found[0] == NULL && (found[1] != NULL || is_part[0])
                                     ? "only a function has the first one, whose layout is not known"
                                     : "only a function has the second one, whose layout is not known");
    for (int i = 0; i < 2 && found[0] != NULL; ++i) {
        arrays[i].array = *found[i];
        gts_find_memory(&arrays[i].array, &arrays[i].low, &arrays[i].high);
    }
    if (found[0] != NULL && !gts_have_one_layout(found[0], found[1]))
        return refuse_swap(self, "they differ in type, size, stride or origin");
    if (found[0] != NULL && gts_overlap(found[0], found[1]))
        return refuse_swap(self, "they share elements");
    const gts_swap swap = {
        .arrays = arrays, .count = 2, .moves_sections = host == NULL, .may_be_parts = found[0] != NULL};
    GTS_TRY(gts_step_tree_swap(self, &swap));
    if (host != NULL)
        host->swapped(self, &swap);
    return 0;
}

/* Swaps the memory of two arrays, whatever calls and functions have of them. */
static int swap_memory(gts_step_tree *self, void *const data[2], size_t size)
{
    const int64_t bytes = (int64_t)(size < SIZE_MAX / 8 ? size : SIZE_MAX / 8); /* more than any memory has */
    gts_swapped memory[2];
    for (int i = 0; i < 2; ++i) {
        memory[i].array = (gts_array){.data = data[i], .dtype = GTS_UINT8, .rank = 1, .shape = {bytes}, .strides = {1}};
        gts_find_memory(&memory[i].array, &memory[i].low, &memory[i].high);
        const bool is_in_call = has_memory(self, &memory[i], false);
        if (data[i] == NULL || (!is_in_call && !has_memory(self, &memory[i], true)))
            return refuse_missing(self, i);
    }
    if (data[0] == data[1])
        return refuse_swap(self, "the two are the same");
    if (gts_overlap(&memory[0].array, &memory[1].array))
        return refuse_swap(self, "they share elements");
    return gts_step_tree_swap(self, &(const gts_swap){memory, 2, .moves_sections = true, .is_memory = true});
}

/* Swaps what a host has said by addresses; `size` is NULL if it has not said how large it is. */
static int swap_at(gts_step *step, const void *a, const void *b, const size_t *size)
{
    void *const data[] = {(void *)(uintptr_t)a, (void *)(uintptr_t)b}; /* they become addresses of arrays */
    gts_step_tree all;
    int status = gts_step_tree_begin(&all, &step, 1, NULL);
    if (status == 0)
        status = gts_step_tree_hold(&all);
    if (status == 0)
        status = size == NULL ? swap_found(&all, data) : swap_memory(&all, data, *size);
    gts_step_tree_end(&all);
    return status;
}

int gts_step_swap(gts_step *self, const void *a, const void *b)
{
    return swap_at(self, a, b, NULL);
}

int gts_step_swap_memory(gts_step *self, const void *a, const void *b, size_t bytes)
{
    if (self != NULL && self->host != NULL)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                             "Step '%s' was handed over: its arrays are objects, which are swapped one by one with "
                             "gts_step_swap().",
                             self->name);
    return swap_at(self, a, b, &bytes);
}

int gts_step_swap_arrays(gts_step *self, const gts_array *a, const gts_array *b)
{
    gts_swapped arrays[] = {{.array = *a}, {.array = *b}};
    gts_find_memory(&arrays[0].array, &arrays[0].low, &arrays[0].high);
    gts_find_memory(&arrays[1].array, &arrays[1].low, &arrays[1].high);
    gts_step_tree all;
    int status = gts_step_tree_begin(&all, &self, 1, NULL);
    if (status == 0)
        status = gts_step_tree_hold(&all);
    if (status == 0)
        status = gts_step_tree_swap(&all, &(const gts_swap){arrays, 2, .moves_sections = true});
    gts_step_tree_end(&all);
    return status;
}
