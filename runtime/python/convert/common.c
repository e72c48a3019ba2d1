/* Shared by the readers of arrays: strides, and refusals. */
#include <inttypes.h>

#include "python/convert/convert.h"

/* ---- Strides --------------------------------------------------------------------------------------------------- */

static GTS_COLD int refuse_stride(const gts_py_argument *argument, int32_t axis, int64_t stride, size_t itemsize)
{
    return GTS_PY_REFUSE(argument, GTS_VALUE_ERROR,
                         "has a stride of %" PRId64 " bytes on axis %" PRId32
                         ", which is not a multiple of its element size %zu.",
                         stride, axis, itemsize);
}

/* Refuses an array that is not aligned to its element size, unless the parts of its complex numbers are aligned. */
static GTS_COLD int check_parts(const gts_py_argument *argument, const gts_array *array, size_t itemsize)
{
    if (array->dtype < GTS_COMPLEX64)
        return GTS_PY_REFUSE(argument, GTS_VALUE_ERROR, "must be aligned to its element size %zu.", itemsize);
    const size_t size = itemsize / 2; /* C and numpy ask for no more */
    if (((uintptr_t)array->data & (size - 1)) != 0)
        return GTS_PY_REFUSE(argument, GTS_VALUE_ERROR, "must be aligned to the size %zu of the parts of its elements.",
                             size);
    return 0;
}

int gts_py_check_alignment(const gts_py_argument *argument, const gts_array *array)
{
    const size_t itemsize = gts_dtype_size(array->dtype); /* a power of two */
    if (GTS_UNLIKELY(((uintptr_t)array->data & (itemsize - 1)) != 0))
        return check_parts(argument, array, itemsize);
    return 0;
}

int gts_py_set_strides(const gts_py_argument *argument, gts_array *array, const int64_t *byte_strides)
{
    const size_t itemsize = gts_dtype_size(array->dtype);
    const int shift = __builtin_ctzll(itemsize);
    GTS_TRY(gts_py_check_alignment(argument, array));
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
    return GTS_PY_REFUSE(argument, GTS_TYPE_ERROR, "must have dtype '%s', not '%s'.", gts_dtype_name(argument->dtype),
                         found);
}

int gts_py_refuse_mask(const gts_py_argument *argument)
{
    return GTS_PY_REFUSE(argument, GTS_TYPE_ERROR,
                         "is a masked array, but a program would use its masked elements too.");
}

bool gts_py_raise_property(PyObject *object, PyObject *name)
{
    PyObject *found;
    if (PyObject_GetOptionalAttr((PyObject *)Py_TYPE(object), name, &found) > 0) {
        Py_DECREF(found);
        found = PyObject_GetAttr(object, name);
        Py_XDECREF(found);
    }
    return PyErr_Occurred() != NULL;
}

int gts_py_refuse_object(const gts_py_argument *argument, PyObject *object)
{
    PyObject *const names[] = {gts_py.name._domain, gts_py.name._ndarray, gts_py.name.domain, gts_py.name.ndarray,
                               gts_py.name.__dlpack__};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        if (gts_py_raise_property(object, names[i]))
            return -1;
    }
    return GTS_PY_REFUSE(argument, GTS_TYPE_ERROR, "must be %s, not '%s'.", argument->is_plain ? "an array" : "a field",
                         Py_TYPE(object)->tp_name);
}
