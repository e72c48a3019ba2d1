/* Arrays: numpy's by their own structure, all others in exchange.c. */
#include "python/host.h"
#include "base/refuse.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#include <numpy/ndarraytypes.h>

#include <inttypes.h>

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
        numpy->ndarray = find_type(module, "ndarray"); /* last: it says that the others are there */
    Py_DECREF(module);
    return numpy->ndarray != NULL;
}

/* ---- Refusals -------------------------------------------------------------------------------------------------- */

int gts_py_refuse_dtype(gts_program *program, const gts_contract *contract, const char *found)
{
    return gts_error_set(&program->error, GTS_TYPE_ERROR, GTS_ARGUMENT "must have dtype '%s', not '%s'.",
                         contract->path, program->stub->name, gts_dtype_name(contract->dtype), found);
}

static GTS_COLD int refuse_descr(gts_program *program, const gts_contract *contract, PyObject *descr)
{
    PyObject *const text = PyObject_Str(descr);
    const char *const found = text == NULL ? NULL : PyUnicode_AsUTF8(text);
    const int status = found == NULL ? -1 : gts_py_refuse_dtype(program, contract, found);
    Py_XDECREF(text);
    return status;
}

static GTS_COLD int refuse_stride(gts_program *program, const gts_contract *contract, int32_t axis, int64_t stride,
                                  size_t itemsize)
{
    return gts_error_set(&program->error, GTS_VALUE_ERROR,
                         GTS_ARGUMENT "has a stride of %" PRId64 " bytes on axis %" PRId32
                                      ", which is not a multiple of its element size %zu.",
                         contract->path, program->stub->name, stride, axis, itemsize);
}

/* ---- Reading --------------------------------------------------------------------------------------------------- */

int gts_py_set_strides(gts_program *program, const gts_contract *contract, gts_array *array,
                       const int64_t *byte_strides)
{
    const size_t itemsize = gts_dtype_size(array->dtype); /* a power of two */
    const int shift = __builtin_ctzll(itemsize);
    if (GTS_UNLIKELY(((uintptr_t)array->data & (itemsize - 1)) != 0))
        return gts_error_set(&program->error, GTS_VALUE_ERROR, GTS_ARGUMENT "must be aligned to its element size %zu.",
                             contract->path, program->stub->name, itemsize);
    for (int32_t axis = 0; axis < array->rank; ++axis) {
        if (GTS_UNLIKELY(((uint64_t)byte_strides[axis] & (itemsize - 1)) != 0))
            return refuse_stride(program, contract, axis, byte_strides[axis], itemsize);
        array->strides[axis] = byte_strides[axis] >> shift;
    }
    return 0;
}

static const unsigned char DTYPE_OF_TYPE_NUMBER[] = {
    [NPY_BOOL] = GTS_BOOL,      [NPY_BYTE] = GTS_INT8,      [NPY_UBYTE] = GTS_UINT8,      [NPY_SHORT] = GTS_INT16,
    [NPY_USHORT] = GTS_UINT16,  [NPY_INT] = GTS_INT32,      [NPY_UINT] = GTS_UINT32,      [NPY_LONG] = GTS_INT64,
    [NPY_ULONG] = GTS_UINT64,   [NPY_LONGLONG] = GTS_INT64, [NPY_ULONGLONG] = GTS_UINT64, [NPY_FLOAT] = GTS_FLOAT32,
    [NPY_DOUBLE] = GTS_FLOAT64,
};

_Static_assert(sizeof(long) == 8 && sizeof(npy_intp) == sizeof(int64_t), "gtstub runs on LP64 machines");

static int read_numpy(gts_program *program, const gts_contract *contract, const PyArrayObject *object, gts_array *array)
{
    const PyArrayObject_fields *const fields = (const PyArrayObject_fields *)object;
    const PyArray_Descr *const descr = fields->descr;
    const int type = descr->type_num;
    if (GTS_UNLIKELY(type < 0 || (size_t)type >= sizeof DTYPE_OF_TYPE_NUMBER || DTYPE_OF_TYPE_NUMBER[type] == 0 ||
                     !PyArray_ISNBO(descr->byteorder)))
        return refuse_descr(program, contract, (PyObject *)fields->descr);
    array->data = fields->data;
    array->dtype = (gts_dtype)DTYPE_OF_TYPE_NUMBER[type];
    array->device = GTS_CPU;
    array->rank = (int16_t)fields->nd; /* numpy has at most 64 */
    array->readonly = (fields->flags & NPY_ARRAY_WRITEABLE) == 0;
    if (GTS_UNLIKELY(array->rank > GTS_MAX_RANK))
        return 0; /* the contract will refuse it by its rank */
    for (int32_t axis = 0; axis < array->rank; ++axis) {
        array->origin[axis] = 0;
        array->shape[axis] = fields->dimensions[axis];
        array->dims[axis] = NULL;
    }
    return gts_py_set_strides(program, contract, array, (const int64_t *)fields->strides);
}

int gts_py_read_array(gts_py_program *self, const gts_contract *contract, PyObject *object, gts_array *array,
                      PyObject **owner)
{
    *owner = NULL;
    gts_py_state *const state = self->state;
    if (GTS_LIKELY(Py_TYPE(object) == state->numpy.ndarray) ||
        (gts_py_find_numpy(state) && PyObject_TypeCheck(object, state->numpy.ndarray)))
        return read_numpy(self->program, contract, (const PyArrayObject *)object, array);
    return PyErr_Occurred() ? -1 : gts_py_read_exchange(self, contract, object, array, owner);
}
