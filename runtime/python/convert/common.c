/* What several readers need: numpy's types, the strides of an array, and two refusals. */
#include <inttypes.h>

#include "base/refuse.h"
#include "python/convert/convert.h"

/* ---- numpy's types --------------------------------------------------------------------------------------------- */

static const char *const SCALAR_NAMES[] = {
    [GTS_BOOL] = "bool_",    [GTS_INT8] = "int8",       [GTS_UINT8] = "uint8",     [GTS_INT16] = "int16",
    [GTS_UINT16] = "uint16", [GTS_INT32] = "int32",     [GTS_UINT32] = "uint32",   [GTS_INT64] = "int64",
    [GTS_UINT64] = "uint64", [GTS_FLOAT32] = "float32", [GTS_FLOAT64] = "float64",
};

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

bool gts_py_find_numpy(gts_py_state *state)
{
    gts_py_numpy *const numpy = &state->numpy;
    if (numpy->ndarray != NULL)
        return true;
    PyObject *const module = PyImport_GetModule(state->name.numpy);
    if (module == NULL)
        return false;
    bool found = true;
    for (int i = GTS_BOOL; found && i <= GTS_FLOAT64; ++i) {
        Py_XSETREF(numpy->scalar[i], find_type(module, SCALAR_NAMES[i]));
        found = numpy->scalar[i] != NULL;
    }
    if (found) {
        Py_XSETREF(numpy->generic, find_type(module, "generic"));
        Py_XSETREF(numpy->integer, find_type(module, "integer"));
        Py_XSETREF(numpy->floating, find_type(module, "floating"));
        found = numpy->generic != NULL && numpy->integer != NULL && numpy->floating != NULL;
    }
    if (found)
        numpy->ndarray = find_type(module, "ndarray"); /* the last one: if it is set, all others are */
    Py_DECREF(module);
    return numpy->ndarray != NULL;
}

/* ---- Strides --------------------------------------------------------------------------------------------------- */

static GTS_COLD int refuse_stride(const gts_py_argument *argument, int32_t axis, int64_t stride, size_t itemsize)
{
    return gts_error_set(argument->error, GTS_VALUE_ERROR,
                         GTS_ARGUMENT "has a stride of %" PRId64 " bytes on axis %" PRId32
                                      ", which is not a multiple of its element size %zu.",
                         argument->path, argument->program, stride, axis, itemsize);
}

int gts_py_set_strides(const gts_py_argument *argument, gts_array *array, const int64_t *byte_strides)
{
    const size_t itemsize = gts_dtype_size(array->dtype); /* a power of two */
    const int shift = __builtin_ctzll(itemsize);
    if (GTS_UNLIKELY(((uintptr_t)array->data & (itemsize - 1)) != 0))
        return gts_error_set(argument->error, GTS_VALUE_ERROR, GTS_ARGUMENT "must be aligned to its element size %zu.",
                             argument->path, argument->program, itemsize);
    for (int32_t axis = 0; axis < array->rank; ++axis) {
        if (GTS_UNLIKELY(((uint64_t)byte_strides[axis] & (itemsize - 1)) != 0))
            return refuse_stride(argument, axis, byte_strides[axis], itemsize);
        array->strides[axis] = byte_strides[axis] >> shift;
    }
    return 0;
}

/* ---- Refusals -------------------------------------------------------------------------------------------------- */

int gts_py_refuse_dtype(const gts_py_argument *argument, const char *found)
{
    return gts_error_set(argument->error, GTS_TYPE_ERROR, GTS_ARGUMENT "must have dtype '%s', not '%s'.",
                         argument->path, argument->program, gts_dtype_name(argument->dtype), found);
}

int gts_py_refuse_object(const gts_py_argument *argument, PyObject *object)
{
    return gts_error_set(argument->error, GTS_TYPE_ERROR, GTS_ARGUMENT "must be a field, not '%s'.", argument->path,
                         argument->program, Py_TYPE(object)->tp_name);
}
