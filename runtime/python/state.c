/* The state of the module gtstub._host, and numpy's types in it. */
#include "python/state.h"

gts_py_state gts_py;

static PyTypeObject *find_type(PyObject *module, const char *name)
{
    PyObject *const type = PyObject_GetAttrString(module, name);
    if (type != NULL && !PyType_Check(type)) {
        PyErr_Format(PyExc_TypeError, "'numpy.%s' is not a type.", name);
        Py_DECREF(type);
        return NULL;
    }
    return (PyTypeObject *)type;
}

bool gts_py_find_numpy(void)
{
    gts_py_numpy *const numpy = &gts_py.numpy;
    if (numpy->ndarray != NULL)
        return true;
    PyObject *const module = PyImport_GetModule(gts_py.name.numpy);
    if (module == NULL)
        return false;
    bool found = true;
    for (gts_dtype i = GTS_BOOL; found && i <= GTS_LAST_DTYPE; ++i) {
        Py_XSETREF(numpy->scalar[i], find_type(module, i == GTS_BOOL ? "bool_" : gts_dtype_name(i)));
        found = numpy->scalar[i] != NULL;
    }
#define X(type)                                                                                                        \
    if (found)                                                                                                         \
        Py_XSETREF(numpy->type, find_type(module, #type));                                                             \
    found = found && numpy->type != NULL;
    GTS_PY_NUMPY_TYPES(X)
#undef X
    Py_DECREF(module);
    return found;
}
