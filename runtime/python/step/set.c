/* Changes scalars in all bound calls of a step. */
#include "python/step/change.h"

/* Gives a bound call a new scalar: 1, 0 if it has no argument of this name, or -1 after an exception. */
static int give(gts_py_change *change, const gts_py_bound *bound, PyObject *name, PyObject *value)
{
    const char *const text = PyUnicode_AsUTF8(name);
    if (bound == NULL || text == NULL || gts_bound_find(bound->program->program, text) < 0)
        return text == NULL ? -1 : 0;
    if (change->scalars == NULL)
        change->scalars = PyDict_New();
    return change->scalars == NULL || PyDict_SetItem(change->scalars, name, value) != 0 ? -1 : 1;
}

static int choose(const gts_step_tree *self, void *scalars)
{
    Py_ssize_t position = 0;
    PyObject *name, *value;
    while (PyDict_Next(scalars, &position, &name, &value)) {
        bool is_known = false;
        for (size_t i = 0; i < self->place_count; ++i) {
            const gts_place *const place = &self->places[i];
            const int has = give(gts_py_change_of(place), gts_py_call_at(place), name, value);
            if (has < 0)
                return -1;
            is_known |= has;
        }
        if (!is_known)
            return gts_py_fail(PyExc_TypeError, "No program of step '%s' has an argument '%U'.", self->steps[0]->name,
                               name);
    }
    return 0;
}

PyObject *gts_py_set_in_step(PyObject *step, PyObject *args, PyObject *keywords)
{
    if (PyTuple_GET_SIZE(args) != 0)
        return PyErr_Format(PyExc_TypeError, "set() takes scalars by keyword only.");
    if (keywords == NULL)
        Py_RETURN_NONE;
    return gts_py_change_step(step, choose, keywords) == 0 ? Py_NewRef(Py_None) : NULL;
}
