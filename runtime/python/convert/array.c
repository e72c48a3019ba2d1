/* Reads arrays: numpy's by their C structure, all others by the protocols in exchange.c. */
#include "python/convert/convert.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#include <numpy/ndarraytypes.h>

static const unsigned char DTYPE_OF_TYPE_NUMBER[] = {
    [NPY_BOOL] = GTS_BOOL,          [NPY_BYTE] = GTS_INT8,        [NPY_UBYTE] = GTS_UINT8,
    [NPY_SHORT] = GTS_INT16,        [NPY_USHORT] = GTS_UINT16,    [NPY_INT] = GTS_INT32,
    [NPY_UINT] = GTS_UINT32,        [NPY_LONG] = GTS_INT64,       [NPY_ULONG] = GTS_UINT64,
    [NPY_LONGLONG] = GTS_INT64,     [NPY_ULONGLONG] = GTS_UINT64, [NPY_FLOAT] = GTS_FLOAT32,
    [NPY_DOUBLE] = GTS_FLOAT64,     [NPY_HALF] = GTS_FLOAT16,     [NPY_CFLOAT] = GTS_COMPLEX64,
    [NPY_CDOUBLE] = GTS_COMPLEX128,
};

_Static_assert(sizeof(long) == 8 && sizeof(npy_intp) == sizeof(int64_t), "gtstub runs on LP64 machines");

static GTS_COLD int refuse_descr(const gts_py_argument *argument, PyObject *descr)
{
    PyObject *const text = PyObject_Str(descr);
    const char *const found = text == NULL ? NULL : PyUnicode_AsUTF8(text);
    const int status = found == NULL ? -1 : gts_py_refuse_dtype(argument, found);
    Py_XDECREF(text);
    return status;
}

static int read_numpy(const gts_py_argument *argument, const PyArrayObject *object, gts_array *array)
{
    const PyArrayObject_fields *const fields = (const PyArrayObject_fields *)object;
    const PyArray_Descr *const descr = fields->descr;
    const int type = descr->type_num;
    if (GTS_UNLIKELY(type < 0 || (size_t)type >= sizeof DTYPE_OF_TYPE_NUMBER || DTYPE_OF_TYPE_NUMBER[type] == 0 ||
                     !PyArray_ISNBO(descr->byteorder)))
        return refuse_descr(argument, (PyObject *)fields->descr);
    array->data = fields->data;
    array->dtype = (gts_dtype)DTYPE_OF_TYPE_NUMBER[type];
    array->device = GTS_CPU;
    array->rank = (int16_t)fields->nd; /* numpy has at most 64 */
    array->readonly = (fields->flags & NPY_ARRAY_WRITEABLE) == 0;
    if (GTS_UNLIKELY(array->rank > GTS_MAX_RANK))
        return 0; /* the contract's check refuses this rank */
    for (int32_t axis = 0; axis < array->rank; ++axis) {
        array->origin[axis] = 0;
        array->shape[axis] = fields->dimensions[axis];
        array->dims[axis] = NULL;
    }
    return gts_py_set_strides(argument, array, (const int64_t *)fields->strides);
}

/* Reads an array of a class that is derived from numpy's. */
static GTS_NOINLINE int read_derived(const gts_py_argument *argument, PyObject *object, gts_array *array)
{
    PyObject *mask;
    const int found = PyObject_GetOptionalAttr(object, argument->state->name.mask, &mask);
    if (found == 0)
        return read_numpy(argument, (const PyArrayObject *)object, array);
    if (found < 0)
        return -1;
    Py_DECREF(mask);
    return gts_py_refuse_mask(argument);
}

int gts_py_read_array(const gts_py_argument *argument, PyObject *object, gts_array *array, PyObject **owner)
{
    *owner = NULL;
    gts_py_state *const state = argument->state;
    if (GTS_LIKELY(Py_TYPE(object) == state->numpy.ndarray))
        return read_numpy(argument, (const PyArrayObject *)object, array);
    if (gts_py_find_numpy(state) && PyObject_TypeCheck(object, state->numpy.ndarray))
        return read_derived(argument, object, array); /* or numpy's own, in the first call */
    return PyErr_Occurred() ? -1 : gts_py_read_exchange(argument, object, array, owner);
}
