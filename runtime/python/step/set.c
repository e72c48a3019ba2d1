/* Changes scalars in all bound calls of a step. */
#include "python/step/tree.h"

/* Gives a bound call those of the new scalars that it has. */
static int choose(gts_py_place *place, const gts_py_bound *bound, PyObject *scalars)
{
    Py_ssize_t position = 0;
    PyObject *name, *value;
    while (PyDict_Next(scalars, &position, &name, &value)) {
        const int has = gts_py_has_argument(bound, name);
        if (has > 0 && place->scalars == NULL && (place->scalars = PyDict_New()) == NULL)
            return -1;
        if (has < 0 || (has > 0 && PyDict_SetItem(place->scalars, name, value) != 0))
            return -1;
    }
    return 0;
}

/* Refuses a name that no program has. */
static int check_names(const gts_py_tree *self, PyObject *scalars)
{
    Py_ssize_t position = 0;
    PyObject *name, *value;
    while (PyDict_Next(scalars, &position, &name, &value)) {
        int has = 0;
        for (size_t i = 0; i < self->place_count && has == 0; ++i) {
            const PyObject *const chosen = self->places[i].scalars;
            has = chosen == NULL ? 0 : PyDict_Contains((PyObject *)chosen, name);
        }
        if (has == 0)
            return gts_py_fail(PyExc_TypeError, "No program of step '%s' has an argument '%U'.",
                               self->steps[0]->step->name, name);
        if (has < 0)
            return -1;
    }
    return 0;
}

static int change(gts_py_tree *self, PyObject *scalars)
{
    for (size_t i = 0; i < self->place_count; ++i) {
        const gts_py_bound *const bound = gts_py_call_at(&self->places[i]);
        if (bound != NULL && choose(&self->places[i], bound, scalars) != 0)
            return -1;
    }
    return check_names(self, scalars) != 0 ? -1 : gts_py_tree_change(self);
}

PyObject *gts_py_set_in_step(PyObject *object, PyObject *args, PyObject *keywords)
{
    if (PyTuple_GET_SIZE(args) != 0)
        return PyErr_Format(PyExc_TypeError, "set() takes scalars by keyword only.");
    if (keywords == NULL)
        Py_RETURN_NONE;
    gts_py_tree all;
    int status = gts_py_tree_begin(&all, (gts_py_step *)object);
    if (status == 0)
        status = change(&all, keywords);
    gts_py_tree_end(&all);
    return status == 0 ? Py_NewRef(Py_None) : NULL;
}
