/* Offset providers. gt4py may compile in their contents, so a call uses the one that its variant was compiled for. */
#include "python/dispatch/dispatcher.h"

int gts_py_set_providers(gts_py_dispatcher *self, PyObject *providers)
{
    const Py_ssize_t count = providers == NULL ? 0 : PyTuple_GET_SIZE(providers);
    self->providers = PyTuple_New(count);
    for (Py_ssize_t i = 0; self->providers != NULL && i < count; ++i) {
        PyObject *const copy = PyDict_New();
        if (copy == NULL || PyDict_Update(copy, PyTuple_GET_ITEM(providers, i)) < 0) {
            Py_XDECREF(copy);
            return -1;
        }
        PyTuple_SET_ITEM(self->providers, i, copy);
    }
    if (self->providers == NULL)
        return -1;
    if (count == 1)
        self->takes.bound[PyTuple_GET_SIZE(self->takes.parameters)] = Py_NewRef(PyTuple_GET_ITEM(self->providers, 0));
    return 0;
}

/* Whether a mapping has all objects of a compiled offset provider, under the same names; -1 after an exception. */
static int has_objects(PyObject *mapping, PyObject *compiled)
{
    Py_ssize_t position = 0;
    PyObject *name, *expected; /* of our own copy, which no other code can change */
    while (PyDict_Next(compiled, &position, &name, &expected)) {
        if (GTS_LIKELY(PyDict_CheckExact(mapping))) {
            PyObject *const found = PyDict_GetItemWithError(mapping, name);
            if (found != expected)
                return PyErr_Occurred() ? -1 : 0;
            continue;
        }
        PyObject *const found = PyObject_GetItem(mapping, name);
        Py_XDECREF(found);
        if (found == NULL && !PyErr_ExceptionMatches(PyExc_KeyError))
            return -1;
        PyErr_Clear();
        if (found != expected)
            return 0;
    }
    return 1;
}

/* Refuses an offset provider that is none of the compiled ones, and names a connectivity that it lacks. */
static GTS_COLD int refuse_provider(const gts_py_dispatcher *self, PyObject *provider)
{
    Py_ssize_t position = 0;
    PyObject *name;
    while (PyTuple_GET_SIZE(self->providers) == 1 &&
           PyDict_Next(PyTuple_GET_ITEM(self->providers, 0), &position, &name, NULL)) {
        const int has = PySequence_Contains(provider, name);
        if (has < 0)
            return -1;
        if (has == 0)
            return gts_py_fail(
                PyExc_ValueError,
                "Program '%U' was compiled for an offset provider with '%S', which the one that was passed does not "
                "have.",
                self->name, name);
    }
    return gts_py_fail(
        PyExc_ValueError,
        "Program '%U' was not compiled for the offset provider that was passed: compile it for this one too.",
        self->name);
}

int gts_py_find_provider(const gts_py_dispatcher *self, PyObject **provider, uint64_t *number)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(self->providers);
    if (GTS_UNLIKELY(!PyDict_CheckExact(*provider)) && gts_py_check_mapping(self->takes.function, *provider) != 0)
        return -1;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject *const compiled = PyTuple_GET_ITEM(self->providers, i);
        const int same = has_objects(*provider, compiled);
        if (same < 0)
            return -1;
        if (same > 0) {
            *provider = compiled;
            *number = (uint64_t)i;
            return 0;
        }
    }
    return refuse_provider(self, *provider);
}
