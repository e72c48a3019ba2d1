/* Exchanges arrays in all bound calls and actions of a step. An array is known by its memory, whatever object has it. */
#include "base/section.h"
#include "python/step/change.h"

/* An array that is exchanged with another one. */
typedef struct member {
    PyObject *object;
    PyObject *owner; /* of the memory, if that is not the object; a strong reference */
    bool has_memory; /* is an array with elements */
    gts_array array; /* if it has; without names of dimensions */
    bool is_there;   /* something of the step has it */
} member;

typedef struct members {
    gts_py_state *state;
    const char *step; /* its name */
    member *member;   /* [count]; each even one is exchanged with the next */
    Py_ssize_t count;
    const void **memory; /* [2], addresses from C; NULL from Python */
    PyObject *pairs;     /* tuple [count] */
} members;

/* Reads the array of any object. Returns 1, 0 if it is none, or -1 after an exception that is no Exception. */
static int read_array(const members *all, PyObject *object, gts_array *array, PyObject **owner)
{
    static const gts_contract ANY = {.rank = 0};
    gts_error refusal;
    gts_py_leaf leaf = {
        .argument = {.state = all->state, .program = all->step, .path = "array", .error = &refusal},
        .contract = &ANY,
    };
    const int status = gts_py_read_field(&leaf, object, array, owner);
    gts_py_forget_domain(&leaf);
    const bool is_array = status == 0 && gts_has_element(array, array->data);
    if (!is_array)
        Py_CLEAR(*owner);
    if (status != 0 && PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Clear();
    return is_array;
}

/* ---- What is exchanged ----------------------------------------------------------------------------------------- */

static int read_members(const members *all)
{
    for (Py_ssize_t i = 0; i < all->count; ++i) {
        member *const new = &all->member[i];
        new->object = PyTuple_GET_ITEM(all->pairs, i);
        const int status = read_array(all, new->object, &new->array, &new->owner);
        if (status < 0)
            return -1;
        new->has_memory = status > 0;
        for (Py_ssize_t j = 0; j < i; ++j) {
            const member *const other = &all->member[j];
            const bool have_memory = other->has_memory && new->has_memory;
            if (other->object == new->object || (have_memory && other->array.data == new->array.data))
                return gts_py_fail(PyExc_ValueError, "Arrays %zd and %zd of swap() are the same.", j + 1, i + 1);
            if (have_memory && gts_overlap(&other->array, &new->array))
                return gts_py_fail(PyExc_ValueError, "Arrays %zd and %zd of swap() share elements.", j + 1, i + 1);
        }
    }
    return 0;
}

/*
 * Refuses an array between the elements of one that C swaps: C knows addresses alone, so both may be sections of an array
 * that it means. -1, or -2 after an exception.
 */
static Py_ssize_t check_between(const members *all, const gts_array *array)
{
    for (Py_ssize_t i = 0; all->memory != NULL && array != NULL && i < all->count; ++i) {
        if (!all->member[i].has_memory || !gts_meet(array, &all->member[i].array))
            continue;
        (void)gts_py_fail(
            PyExc_ValueError,
            "Array %zd of gts_step_swap() has another one between its elements, as another section of the "
            "same array would be: swap both in Python.",
            i + 1);
        return -2;
    }
    return -1;
}

/*
 * Finds the member that an object of a place is; `array` is the array of the object, or NULL. Returns its index, -1 if it
 * is none, or -2 after an exception.
 */
static Py_ssize_t find_member(const members *all, const PyObject *object, const gts_array *array)
{
    for (Py_ssize_t i = 0; i < all->count; ++i) {
        member *const each = &all->member[i];
        const bool is_it = each->object == object && object != Py_None;
        if (!is_it && (array == NULL || !each->has_memory || !gts_overlap(array, &each->array)))
            continue;
        if (!is_it && (array->data != each->array.data || !gts_have_one_layout(array, &each->array))) {
            (void)gts_py_fail(PyExc_ValueError,
                              "Array %zd of swap() shares elements with another array there, which differs in address, "
                              "type, size, stride or origin.",
                              i + 1);
            return -2;
        }
        each->is_there = true;
        return i;
    }
    return check_between(all, array);
}

/* ---- Where it is exchanged ------------------------------------------------------------------------------------- */

static Py_ssize_t find(const members *, const gts_py_bound *, Py_ssize_t, PyObject *);

/* Refuses what has a member as an element or attribute: no swap reaches it there. -1, or -2 after an exception. */
static Py_ssize_t check_inside(const members *all, PyObject *object, Py_ssize_t depth)
{
    const bool has_elements = PyList_Check(object) || PyTuple_Check(object) || PyDict_Check(object);
    PyObject *const has = has_elements ? Py_NewRef(object) : PyObject_GenericGetDict(object, NULL);
    PyObject *const each = has == NULL ? NULL : PyDict_Check(has) ? PyDict_Values(has) : PySequence_List(has);
    PyErr_Clear(); /* It has no attributes. */
    Py_ssize_t found = -1;
    for (Py_ssize_t i = 0; each != NULL && found == -1 && i < PyList_GET_SIZE(each); ++i)
        found = find(all, NULL, has_elements ? depth - 1 : 0, PyList_GET_ITEM(each, i));
    Py_XDECREF(has);
    Py_XDECREF(each);
    if (found < 0)
        return found;
    (void)gts_py_fail(PyExc_ValueError,
                      "Array %zd of swap() is inside a '%s', where no swap reaches it: pass the array itself.",
                      found + 1, Py_TYPE(object)->tp_name);
    return -2;
}

/* Finds the member that an object of a place is. `index` is the leaf's; in an action, the depth of check_inside(). */
static Py_ssize_t find(const members *all, const gts_py_bound *bound, Py_ssize_t index, PyObject *object)
{
    const gts_leaf_kind kind = bound == NULL ? GTS_ZERO_DIM_FIELD : bound->call->stub->leaves[index].kind;
    if (kind != GTS_ZERO_DIM_FIELD)
        return find_member(all, object, gts_is_array(kind) ? &bound->arguments.arrays[index] : NULL);
    Py_ssize_t found = find_member(all, object, NULL);
    if (found >= 0)
        return found;
    gts_array array; /* is not known */
    PyObject *owner;
    const int status = read_array(all, object, &array, &owner);
    if (status <= 0)
        return status < 0 ? -2 : bound == NULL && index > 0 ? check_inside(all, object, index) : -1;
    found = find_member(all, object, &array);
    Py_XDECREF(owner);
    return found;
}

/*
 * The objects of a place; NULL if it has none. Whoever reads them needs a reference: reading one may run code of users,
 * which may change the place through another step that contains it.
 */
static PyObject *objects_at(const gts_place *place)
{
    const gts_py_bound *const bound = gts_py_call_at(place);
    return bound != NULL ? bound->arguments.objects : gts_py_action_at(place)->arrays;
}

/* Writes the new objects of a place, if there are any. */
static int exchange_in(const members *all, const gts_place *place)
{
    const gts_py_bound *const bound = gts_py_call_at(place);
    PyObject *const objects = Py_XNewRef(objects_at(place));
    const Py_ssize_t count = objects == NULL ? 0 : PyTuple_GET_SIZE(objects);
    PyObject *const new = PyList_New(0);
    bool has_changed = false;
    int status = new == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; i < count && status == 0; ++i) {
        PyObject *object = PyTuple_GET_ITEM(objects, i);
        const Py_ssize_t found = find(all, bound, bound == NULL ? 4 : i, object);
        if (found >= 0)
            object = all->member[found ^ 1].object;
        has_changed |= found >= 0;
        status = found < -1 ? -1 : PyList_Append(new, object);
    }
    if (status == 0 && objects != objects_at(place))
        status = gts_py_fail(PyExc_RuntimeError, "Its arrays were changed meanwhile, through another step.");
    if (status == 0 && has_changed)
        status = (gts_py_change_of(place)->objects = PyList_AsTuple(new)) == NULL ? -1 : 0;
    Py_XDECREF(new);
    Py_XDECREF(objects);
    return status == 0 ? 0 : gts_py_fail_to_change(place);
}

static int choose(const gts_step_tree *self, void *what)
{
    members *const all = what;
    all->step = self->steps[0]->name;
    if (read_members(all) != 0)
        return -1;
    for (size_t i = 0; i < self->place_count; ++i) {
        if (exchange_in(all, &self->places[i]) != 0)
            return -1;
    }
    for (Py_ssize_t i = 0; i < all->count; ++i) {
        if (!all->member[i].is_there)
            return gts_py_fail(PyExc_ValueError, "No program of step '%s' has array %zd of swap().", all->step, i + 1);
    }
    return 0;
}

static int swap(PyObject *step, PyObject *pairs, int (*choose_them)(const gts_step_tree *, void *), const void **memory)
{
    members all = {.state = gts_py_find_state(Py_TYPE(step)), .memory = memory, .pairs = pairs};
    all.count = pairs == NULL ? 2 : PyTuple_GET_SIZE(pairs);
    all.member = all.state == NULL ? NULL : gts_py_calloc((size_t)all.count, sizeof *all.member);
    if (all.member == NULL)
        return -1;
    const int status = gts_py_change_step(step, choose_them, &all);
    for (Py_ssize_t i = 0; i < all.count; ++i)
        Py_XDECREF(all.member[i].owner);
    if (pairs == NULL)
        Py_XDECREF(all.pairs);
    PyMem_Free(all.member);
    return status;
}

PyObject *gts_py_swap_in_step(PyObject *step, PyObject *pairs)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(pairs);
    if (count == 0 || count % 2 != 0)
        return PyErr_Format(PyExc_TypeError, "swap() takes pairs of arrays, not %zd argument%s.", count,
                            count == 1 ? "" : "s");
    return swap(step, pairs, choose, NULL) == 0 ? Py_NewRef(Py_None) : NULL;
}

/* ---- From C ---------------------------------------------------------------------------------------------------- */

/* The object of a place that begins at an address, a new reference; NULL if there is none, or after an exception. */
static PyObject *find_at(const members *all, const gts_place *place, const void *memory)
{
    const gts_py_bound *const bound = gts_py_call_at(place);
    PyObject *const objects = Py_XNewRef(objects_at(place));
    const Py_ssize_t count = objects == NULL ? 0 : PyTuple_GET_SIZE(objects);
    PyObject *found = NULL;
    int status = 0;
    for (Py_ssize_t i = 0; i < count && found == NULL && status >= 0; ++i) {
        PyObject *const object = PyTuple_GET_ITEM(objects, i);
        bool is_it;
        if (bound != NULL) {
            is_it = gts_is_array(bound->call->stub->leaves[i].kind) && bound->arguments.arrays[i].data == memory;
        } else {
            gts_array array;
            PyObject *owner;
            status = read_array(all, object, &array, &owner);
            is_it = status > 0 && array.data == memory;
            if (status > 0)
                Py_XDECREF(owner);
        }
        if (is_it)
            found = Py_NewRef(object);
    }
    Py_XDECREF(objects);
    return found;
}

/* Finds the objects of two addresses, and chooses them. */
static int choose_memory(const gts_step_tree *self, void *what)
{
    members *const all = what;
    all->step = self->steps[0]->name;
    PyObject *found[2] = {NULL, NULL};
    for (int each = 0; each < 2; ++each) {
        for (size_t i = 0; i < self->place_count && found[each] == NULL && !PyErr_Occurred(); ++i)
            found[each] = find_at(all, &self->places[i], all->memory[each]);
        if (found[each] == NULL && !PyErr_Occurred())
            (void)gts_py_fail(PyExc_ValueError,
                              "Arrays of step '%s' cannot be swapped: no program of it has the %s one.", all->step,
                              each == 0 ? "first" : "second");
    }
    all->pairs = PyErr_Occurred() ? NULL : PyTuple_Pack(2, found[0], found[1]);
    Py_XDECREF(found[0]);
    Py_XDECREF(found[1]);
    return all->pairs == NULL ? -1 : choose(self, all);
}

int gts_py_swap_memory_in_step(PyObject *step, const void *a, const void *b)
{
    const void *memory[] = {a, b};
    return swap(step, NULL, choose_memory, memory);
}
