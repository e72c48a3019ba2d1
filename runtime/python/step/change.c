/* Changes the arguments of all bound calls of a step: scalars, and arrays that are swapped. */
#include "python/step/step.h"

/*
 * Gives the new arguments of the bound call at a position: a tuple of objects, and a dict of scalars or NULL; new
 * references. Returns 1, 0 if nothing changes, or -1 after an exception.
 */
typedef int change(const gts_py_bound *, PyObject *what, PyObject **objects, PyObject **scalars);

static GTS_COLD int fail_to_change(const gts_py_step *self, size_t position)
{
    PyObject *const exception = PyErr_GetRaisedException();
    char where[512];
    (void)PyOS_snprintf(where, sizeof where, "Step '%.200s' cannot be changed at position %zu, program '%.200s'",
                        self->step->name, position + 1, gts_step_name_at(self->step, position));
    if (gts_py_is_refusal(exception)) {
        PyErr_Format((PyObject *)Py_TYPE(exception), "%s: %S", where, exception);
        Py_DECREF(exception);
    } else {
        (void)PyOS_snprintf(where + strlen(where), sizeof where - strlen(where), ".");
        gts_py_add_note(exception, where);
        PyErr_SetRaisedException(exception);
    }
    return -1;
}

/* Checks the new arguments of a bound call; 1 if it has any. */
static int check(gts_py_bound *bound, change *change, PyObject *what, gts_py_arguments *changed)
{
    PyObject *objects = NULL, *scalars = NULL;
    int status = change(bound, what, &objects, &scalars);
    if (status > 0)
        status = gts_py_check_arguments(bound, objects, scalars, changed) == 0 ? 1 : -1;
    Py_XDECREF(objects);
    Py_XDECREF(scalars);
    return status;
}

/* Changes all bound calls or, after an exception, none. Returns the number of those that were changed, or -1. */
static Py_ssize_t change_all(gts_py_step *self, change *change, PyObject *what)
{
    const size_t count = self->step->count;
    if (gts_step_enter(self->step) != 0)
        return gts_py_raise(gts_last_error(NULL));
    gts_py_arguments *const changed = PyMem_Calloc(count + 1, sizeof *changed);
    Py_ssize_t done = 0;
    if (changed == NULL) {
        PyErr_NoMemory();
        done = -1;
    }
    for (size_t i = 0; i < count && done >= 0; ++i) {
        if (gts_step_is_repeated(self->step, i))
            continue;
        const int status = check(gts_py_bound_at(self, i), change, what, &changed[i]);
        done = status < 0 ? fail_to_change(self, i) : done + status;
    }
    for (size_t i = 0; i < count && done > 0; ++i) {
        if (changed[i].slots != NULL)
            gts_py_exchange_arguments(gts_py_bound_at(self, i), &changed[i]);
    }
    gts_step_leave(self->step);
    for (size_t i = 0; changed != NULL && i < count; ++i)
        gts_py_clear_arguments(&changed[i]);
    PyMem_Free(changed);
    return done;
}

static int change_scalars(const gts_py_bound *bound, PyObject *what, PyObject **objects, PyObject **scalars)
{
    *objects = Py_XNewRef(bound->arguments.objects);
    *scalars = PyDict_New();
    Py_ssize_t position = 0;
    PyObject *name, *value;
    while (*scalars != NULL && PyDict_Next(what, &position, &name, &value)) {
        const int has = gts_py_has_argument(bound, name);
        if (has < 0 || (has > 0 && PyDict_SetItem(*scalars, name, value) != 0))
            return -1;
    }
    return *scalars == NULL ? -1 : PyDict_GET_SIZE(*scalars) > 0;
}

/* Refuses a name that no program has. */
static int check_names(const gts_py_step *self, PyObject *scalars)
{
    Py_ssize_t place = 0;
    PyObject *name, *value;
    while (PyDict_Next(scalars, &place, &name, &value)) {
        int has = 0;
        for (size_t i = 0; i < self->step->count && has == 0; ++i)
            has = gts_py_is_call(self, i) ? gts_py_has_argument(gts_py_bound_at(self, i), name) : 0;
        if (has == 0)
            return gts_py_fail(PyExc_TypeError, "No program of step '%s' has an argument '%U'.", self->step->name,
                               name);
        if (has < 0)
            return -1;
    }
    return 0;
}

PyObject *gts_py_set_in_step(PyObject *object, PyObject *args, PyObject *keywords)
{
    gts_py_step *const self = (gts_py_step *)object;
    if (PyTuple_GET_SIZE(args) != 0)
        return PyErr_Format(PyExc_TypeError, "set() takes scalars by keyword only.");
    if (keywords != NULL && (check_names(self, keywords) != 0 || change_all(self, change_scalars, keywords) < 0))
        return NULL;
    Py_RETURN_NONE;
}

/* The array that takes the place of `object`: the other one of its pair; `object` itself if it is in none. */
static PyObject *other_of(PyObject *pairs, PyObject *object)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(pairs); ++i) {
        if (PyTuple_GET_ITEM(pairs, i) == object)
            return PyTuple_GET_ITEM(pairs, i ^ 1);
    }
    return object;
}

static int change_objects(const gts_py_bound *bound, PyObject *what, PyObject **objects, PyObject **Py_UNUSED(scalars))
{
    PyObject *const own = bound->arguments.objects;
    const Py_ssize_t count = own == NULL ? 0 : PyTuple_GET_SIZE(own);
    int has_changed = 0;
    *objects = PyTuple_New(count);
    for (Py_ssize_t i = 0; *objects != NULL && i < count; ++i) {
        PyObject *const other = other_of(what, PyTuple_GET_ITEM(own, i));
        has_changed |= other != PyTuple_GET_ITEM(own, i);
        PyTuple_SET_ITEM(*objects, i, Py_NewRef(other));
    }
    return *objects == NULL ? -1 : has_changed;
}

static bool has_object(const gts_py_step *self, PyObject *object)
{
    for (size_t i = 0; i < self->step->count; ++i) {
        PyObject *const objects = gts_py_is_call(self, i) ? gts_py_bound_at(self, i)->arguments.objects : NULL;
        for (Py_ssize_t leaf = 0; objects != NULL && leaf < PyTuple_GET_SIZE(objects); ++leaf) {
            if (PyTuple_GET_ITEM(objects, leaf) == object)
                return true;
        }
    }
    return false;
}

PyObject *gts_py_swap_in_step(PyObject *object, PyObject *pairs)
{
    gts_py_step *const self = (gts_py_step *)object;
    const Py_ssize_t count = PyTuple_GET_SIZE(pairs);
    if (count == 0 || count % 2 != 0)
        return PyErr_Format(PyExc_TypeError, "swap() takes pairs of arrays, not %zd argument%s.", count,
                            count == 1 ? "" : "s");
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (PyTuple_GET_ITEM(pairs, i) == Py_None || !has_object(self, PyTuple_GET_ITEM(pairs, i)))
            return PyErr_Format(PyExc_ValueError, "No program of step '%s' has array %zd of swap().", self->step->name,
                                i + 1);
        for (Py_ssize_t j = 0; j < i; ++j) {
            if (PyTuple_GET_ITEM(pairs, i) == PyTuple_GET_ITEM(pairs, j))
                return PyErr_Format(PyExc_ValueError, "Arrays %zd and %zd of swap() are the same.", j + 1, i + 1);
        }
    }
    return change_all(self, change_objects, pairs) < 0 ? NULL : Py_NewRef(Py_None);
}
