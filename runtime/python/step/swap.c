/* Exchanges arrays in all bound calls and actions of steps. An array is known by its memory, whatever object has it. */
#include <stdlib.h>

#include "python/step/step.h"

#include "base/strided.h"

/* The object of a swapped array. */
typedef struct member {
    gts_py_kept kept;  /* borrowed, but the owner if `leaf` is not NULL */
    gts_py_leaf *leaf; /* what has read it; NULL if a call has it */
} member;

/* Objects that are exchanged, each even one with the next, and the same of their arrays. */
typedef struct members {
    member *member;
    gts_swapped *arrays;
    size_t count;
    PyObject *dropped; /* list of objects that nothing needs any more; or NULL */
} members;

/* What keeps an array of a place; NULL while the collector frees it. */
static gts_py_kept *kept_at(const gts_place *place, uint32_t index)
{
    const gts_position *const at = gts_position_of(place);
    gts_py_kept *const kept = at->call != NULL ? ((gts_py_bound *)at->role->data)->kept
                                               : ((gts_py_action *)at->role->data)->kept;
    return kept == NULL ? NULL : &kept[index];
}

/* Does something with each array of all places. */
#define FOR_EACH_ARRAY(tree, place, each)                                                                              \
    for (const gts_place *place = (tree)->places; place != (tree)->places + (tree)->place_count; ++place)              \
        for (gts_held_array *each = place->held->array; each != place->held->array + place->held->count; ++each)

/* ---- What is exchanged ----------------------------------------------------------------------------------------- */

/* Finds the array of an object that a call has. */
static bool find_known(const gts_step_tree *tree, const PyObject *object, member *found, gts_swapped *swapped)
{
    FOR_EACH_ARRAY(tree, place, each)
    {
        const gts_py_kept *const kept = kept_at(place, each->index);
        if (kept == NULL || kept->object != object || gts_position_of(place)->call == NULL)
            continue;
        found->kept = *kept;
        *swapped = (gts_swapped){.array = *each->array, .low = each->low, .high = each->high};
        return true;
    }
    return false;
}

static int read_new(PyObject *object, size_t number, member *new, gts_swapped *swapped)
{
    new->kept.object = object;
    new->leaf = gts_new(1, sizeof *new->leaf);
    const int status = gts_py_read_any(new->leaf, object, &swapped->array, &new->kept.owner);
    if (status == 0)
        return gts_py_fail(PyExc_TypeError, "Argument %zu of swap() is no array of up to %d axes.", number,
                           GTS_MAX_RANK);
    gts_find_memory(&swapped->array, &swapped->low, &swapped->high);
    swapped->is_there = false;
    return status < 0 ? -1 : 0;
}

static int check_distinct(const members *all, size_t i)
{
    const gts_swapped *const new = &all->arrays[i];
    for (size_t j = 0; j < i; ++j) {
        const gts_swapped *const other = &all->arrays[j];
        const bool meet = new->low < other->high && other->low < new->high;
        if (all->member[j].kept.object == all->member[i].kept.object || (meet && other->array.data == new->array.data))
            return gts_py_fail(PyExc_ValueError, "Arrays %zu and %zu of swap() are the same.", j + 1, i + 1);
        if (meet && gts_overlap(&other->array, &new->array))
            return gts_py_fail(PyExc_ValueError, "Arrays %zu and %zu of swap() share elements.", j + 1, i + 1);
    }
    return 0;
}

/* ---- Exchanging what keeps the arrays --------------------------------------------------------------------------- */

/* Drops an object when the step can be used again, because a finalizer may use it. */
static void drop(members *all, PyObject *object)
{
    bool is_member = object == NULL; /* then the caller has it, too */
    for (size_t i = 0; i < all->count && !is_member; ++i)
        is_member = all->member[i].kept.object == object;
    if (!is_member && all->dropped == NULL)
        all->dropped = PyList_New(0);
    if (is_member || (all->dropped != NULL && PyList_Append(all->dropped, object) == 0))
        Py_XDECREF(object);
    else
        PyErr_Clear(); /* no memory: the object stays for good */
}

static void exchange(members *all, const gts_step_tree *tree)
{
    FOR_EACH_ARRAY(tree, place, each)
    {
        gts_py_kept *const kept = each->by == NULL ? NULL : kept_at(place, each->index);
        if (kept == NULL)
            continue;
        const gts_py_kept old = *kept, *const by = &all->member[each->by - all->arrays].kept;
        kept->object = Py_XNewRef(by->object);
        kept->owner = Py_XNewRef(by->owner);
        drop(all, old.object);
        drop(all, old.owner);
    }
}

/* ---- From Python ----------------------------------------------------------------------------------------------- */

static int swap_in(members *all, gts_step_tree *tree, PyObject *const *objects, size_t count)
{
    if (gts_step_tree_hold(tree) != 0)
        return gts_py_raise(gts_last_error(NULL));
    while (all->count < count) {
        const size_t i = all->count++;
        all->member[i] = (member){{NULL, NULL}, NULL};
        if (!find_known(tree, objects[i], &all->member[i], &all->arrays[i]) &&
            read_new(objects[i], i + 1, &all->member[i], &all->arrays[i]) != 0)
            return -1;
        if (check_distinct(all, i) != 0)
            return -1;
    }
    if (gts_step_tree_swap(tree, &(const gts_swap){.arrays = all->arrays, .count = count}) != 0)
        return gts_py_raise(gts_last_error(NULL));
    exchange(all, tree);
    return 0;
}

/* Swaps pairs of arrays in some steps. */
static PyObject *swap(gts_step *const *steps, size_t step_count, PyObject *const *objects, Py_ssize_t count)
{
    if (count <= 0 || count % 2 != 0)
        return PyErr_Format(PyExc_TypeError, "swap() takes pairs of arrays, not %zd argument%s.", count,
                            count == 1 ? "" : "s");
    member few_members[8];
    gts_swapped few_arrays[8];
    members all = {.member = few_members, .arrays = few_arrays};
    const bool is_few = (size_t)count <= sizeof few_members / sizeof *few_members;
    if (!is_few) {
        all.member = gts_new((size_t)count, sizeof *all.member);
        all.arrays = gts_new((size_t)count, sizeof *all.arrays);
    }
    gts_step_tree tree;
    const int status = gts_step_tree_begin(&tree, steps, step_count, gts_py_wait) != 0
                           ? gts_py_raise(gts_last_error(NULL))
                           : swap_in(&all, &tree, objects, (size_t)count);
    gts_step_tree_end(&tree);
    for (size_t i = 0; i < all.count; ++i) {
        if (all.member[i].leaf == NULL)
            continue;
        Py_XDECREF(all.member[i].kept.owner);
        gts_py_forget_domain(all.member[i].leaf);
        free(all.member[i].leaf);
    }
    if (!is_few) {
        free(all.member);
        free(all.arrays);
    }
    Py_XDECREF(all.dropped);
    return status == 0 ? Py_NewRef(Py_None) : NULL;
}

PyObject *gts_py_swap_in_step(PyObject *step, PyObject *const *arrays, Py_ssize_t count)
{
    return swap(&((gts_py_step *)step)->step, 1, arrays, count);
}

PyObject *gts_py_swap(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    PyObject *const steps = PySequence_Tuple(count == 0 ? Py_None : args[0]);
    if (steps == NULL)
        return NULL;
    const size_t step_count = (size_t)PyTuple_GET_SIZE(steps);
    gts_step **const all = gts_new(step_count, sizeof(gts_step *));
    bool are_steps = step_count > 0;
    for (size_t i = 0; i < step_count && are_steps; ++i) {
        PyObject *const each = PyTuple_GET_ITEM(steps, (Py_ssize_t)i);
        are_steps = PyObject_TypeCheck(each, gts_py.step_type);
        all[i] = are_steps ? ((gts_py_step *)each)->step : NULL;
    }
    PyObject *const result = are_steps ? swap(all, step_count, args + 1, count - 1)
                                       : PyErr_Format(PyExc_TypeError, "The first argument of swap() must be steps.");
    free(all);
    Py_DECREF(steps);
    return result;
}

/* ---- From C ---------------------------------------------------------------------------------------------------- */

void gts_py_swapped(const gts_step_tree *tree, const gts_swap *swap)
{
    member found[2] = {{.leaf = NULL}, {.leaf = NULL}};
    members all = {.member = found, .arrays = swap->arrays, .count = 2};
    FOR_EACH_ARRAY(tree, place, each)
    {
        const gts_py_kept *const kept = each->by == NULL ? NULL : kept_at(place, each->index);
        gts_py_kept *const old = &found[each->by == swap->arrays].kept;
        if (kept != NULL && old->object == NULL)
            *old = (gts_py_kept){Py_NewRef(kept->object), Py_XNewRef(kept->owner)};
    }
    exchange(&all, tree);
    for (int i = 0; i < 2; ++i) {
        Py_XDECREF(found[i].kept.object);
        Py_XDECREF(found[i].kept.owner);
    }
    Py_XDECREF(all.dropped);
}
