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

static GTS_COLD int refuse_unknown(const gts_step_tree *self, PyObject *name)
{
    return gts_py_fail(PyExc_TypeError, "No program of step '%s' has an argument '%U'.", self->steps[0]->name, name);
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
            return refuse_unknown(self, name);
    }
    return 0;
}

/* ---- From C ---------------------------------------------------------------------------------------------------- */

typedef struct value {
    const char *argument;
    gts_dtype dtype;
    const void *bytes;
} value;

/* give(), after it has compared the type with that of the argument. */
static int give_value(const gts_place *place, const value *new, PyObject *name)
{
    const gts_py_bound *const bound = gts_py_call_at(place);
    gts_program *const program = bound == NULL ? NULL : bound->program->program;
    const int64_t leaf = bound == NULL ? -1 : gts_bound_find(program, new->argument);
    if (leaf < 0)
        return 0;
    const gts_contract *const contract = &program->stub->leaves[leaf];
    int status = gts_bound_check_value(program, contract, new->dtype);
    if (status != 0) {
        (void)gts_py_raise(&program->error);
        return gts_py_fail_to_change(place);
    }
    PyObject *const object = gts_py_scalar_object(contract->dtype, new->bytes);
    status = object == NULL ? -1 : give(gts_py_change_of(place), bound, name, object);
    Py_XDECREF(object);
    return status;
}

static int choose_value(const gts_step_tree *self, void *what)
{
    const value *const new = what;
    PyObject *const name = PyUnicode_FromString(new->argument);
    int status = name == NULL ? -1 : 0;
    bool is_known = false;
    for (size_t i = 0; i < self->place_count && status >= 0; ++i) {
        status = give_value(&self->places[i], new, name);
        is_known |= status > 0;
    }
    if (status >= 0 && !is_known)
        status = refuse_unknown(self, name);
    Py_XDECREF(name);
    return status < 0 ? -1 : 0;
}

int gts_py_set_value_in_step(PyObject *step, const char *argument, gts_dtype dtype, const void *bytes)
{
    return gts_py_change_step(step, choose_value, &(value){argument, dtype, bytes});
}

/* ---- From Python ----------------------------------------------------------------------------------------------- */

PyObject *gts_py_set_in_step(PyObject *step, PyObject *args, PyObject *keywords)
{
    if (PyTuple_GET_SIZE(args) != 0)
        return PyErr_Format(PyExc_TypeError, "set() takes scalars by keyword only.");
    if (keywords == NULL)
        Py_RETURN_NONE;
    return gts_py_change_step(step, choose, keywords) == 0 ? Py_NewRef(Py_None) : NULL;
}
