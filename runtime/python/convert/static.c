/* Checks static arguments: scalars whose value was compiled in, so that a call with another value must not run. */
#include <math.h>

#include "base/element.h"
#include "python/host.h"

/* Compares bit for bit, because 1 / -0.0 is not 1 / 0.0. All NaN are equal, though. */
static bool is_same(gts_dtype dtype, const void *a, const void *b)
{
    return memcmp(a, b, gts_dtype_size(dtype)) == 0 ||
           (dtype >= GTS_FLOAT32 && isnan(gts_element_float(dtype, a)) && isnan(gts_element_float(dtype, b)));
}

/* ---- Objects of numbers ---------------------------------------------------------------------------------------- */

PyObject *gts_py_scalar_object(gts_dtype dtype, const void *value)
{
    gts_complex complex;
    switch (dtype) {
    case GTS_BOOL:
        return PyBool_FromLong(gts_element_integer(dtype, value));
    case GTS_UINT64:
        return PyLong_FromUnsignedLongLong((uint64_t)gts_element_integer(dtype, value));
    case GTS_FLOAT16:
    case GTS_FLOAT32:
    case GTS_FLOAT64:
        return PyFloat_FromDouble(gts_element_float(dtype, value));
    case GTS_COMPLEX64:
    case GTS_COMPLEX128:
        complex = gts_element_complex(dtype, value);
        return PyComplex_FromDoubles(complex.real, complex.imaginary);
    default:
        return PyLong_FromLongLong(gts_element_integer(dtype, value));
    }
}

PyObject *gts_py_numbers(const int64_t *numbers, int32_t count, int64_t times)
{
    PyObject *const tuple = PyTuple_New(count);
    for (int32_t i = 0; tuple != NULL && i < count; ++i) {
        PyObject *const number = PyLong_FromLongLong(numbers[i] * times);
        if (number == NULL) {
            Py_DECREF(tuple);
            return NULL;
        }
        PyTuple_SET_ITEM(tuple, i, number);
    }
    return tuple;
}

/* ---- Checking -------------------------------------------------------------------------------------------------- */

static GTS_COLD int refuse_static(gts_program *program, const gts_contract *contract, const void *value)
{
    PyObject *const passed = gts_py_scalar_object(contract->dtype, value);
    PyObject *const compiled = gts_py_scalar_object(contract->dtype, contract->value);
    if (passed != NULL && compiled != NULL)
        PyErr_Format(PyExc_ValueError,
                     GTS_ARGUMENT "is %R, but was compiled in as %R; compile the program for this value, too.",
                     contract->path, program->stub->name, passed, compiled);
    Py_XDECREF(passed);
    Py_XDECREF(compiled);
    return -1;
}

int gts_py_static_scalar(gts_program *program, uint32_t index, void *object)
{
    const gts_contract *const contract = &program->stub->leaves[index];
    gts_py_program *const self = gts_py_of(program);
    uint64_t value; /* room for an element of any dtype */
    GTS_TRY(gts_py_read_scalar(&self->leaf[index].argument, object, &value));
    if (GTS_UNLIKELY(!is_same(contract->dtype, &value, contract->value)))
        return refuse_static(program, contract, &value);
    gts_py_keep(self, index, object);
    return 0;
}
