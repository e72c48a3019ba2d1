/* Changes scalars in all bound calls of a step. */
#include "python/step/change.h"

/* Gives a bound call those of the new scalars that it has. */
static int choose_for(gts_py_change *change, const gts_py_bound *bound, PyObject *scalars)
{
    Py_ssize_t position = 0;
    PyObject *name, *value;
    while (PyDict_Next(scalars, &position, &name, &value)) {
        const int has = gts_py_has_argument(bound, name);
        if (has > 0 && change->scalars == NULL && (change->scalars = PyDict_New()) == NULL)
            return -1;
        if (has < 0 || (has > 0 && PyDict_SetItem(change->scalars, name, value) != 0))
            return -1;
    }
    return 0;
}

/* Refuses a name that no program has. */
static int check_names(const gts_step_tree *self, PyObject *scalars)
{
    Py_ssize_t position = 0;
    PyObject *name, *value;
    while (PyDict_Next(scalars, &position, &name, &value)) {
        int has = 0;
        for (size_t i = 0; i < self->place_count && has == 0; ++i) {
            const PyObject *const chosen = gts_py_change_of(&self->places[i])->scalars;
            has = chosen == NULL ? 0 : PyDict_Contains((PyObject *)chosen, name);
        }
        if (has == 0)
            return gts_py_fail(PyExc_TypeError, "No program of step '%s' has an argument '%U'.", self->steps[0]->name,
                               name);
        if (has < 0)
            return -1;
    }
    return 0;
}

static int choose(const gts_step_tree *self, void *scalars)
{
    for (size_t i = 0; i < self->place_count; ++i) {
        const gts_place *const place = &self->places[i];
        const gts_py_bound *const bound = gts_py_call_at(place);
        if (bound != NULL && choose_for(gts_py_change_of(place), bound, scalars) != 0)
            return -1;
    }
    return check_names(self, scalars);
}

PyObject *gts_py_set_in_step(PyObject *step, PyObject *args, PyObject *keywords)
{
    if (PyTuple_GET_SIZE(args) != 0)
        return PyErr_Format(PyExc_TypeError, "set() takes scalars by keyword only.");
    if (keywords == NULL)
        Py_RETURN_NONE;
    return gts_py_change_step(step, choose, keywords) == 0 ? Py_NewRef(Py_None) : NULL;
}
