/*
 * Reads scalars, in every call. A value that its dtype cannot represent is refused, never truncated; a number of another
 * type is taken if its value is kept: 1.0 for an integer, True for a number, 0 for a truth value.
 */
#include <math.h>

#include "base/element.h"
#include "python/host.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#include <numpy/ndarraytypes.h>
#include <numpy/arrayscalars.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first bytes of an integer must be its low ones");

/* A numpy scalar of any dtype has its value directly after the object head. */
#define OBVAL_OFFSET offsetof(PyDoubleScalarObject, obval)
_Static_assert(offsetof(PyBoolScalarObject, obval) == OBVAL_OFFSET &&
                   offsetof(PyIntScalarObject, obval) == OBVAL_OFFSET &&
                   offsetof(PyCFloatScalarObject, obval) == OBVAL_OFFSET &&
                   offsetof(PyCDoubleScalarObject, obval) == OBVAL_OFFSET,
               "numpy's scalars have heads of different sizes");

/* ---- Refusals -------------------------------------------------------------------------------------------------- */

static GTS_COLD int refuse_type(const gts_py_argument *argument, PyObject *object)
{
    const char *const dtype = gts_dtype_name(argument->dtype);
    return GTS_PY_REFUSE(argument, GTS_TYPE_ERROR, "must be %s '%s', not '%s'.", *dtype == 'i' ? "an" : "a", dtype,
                         Py_TYPE(object)->tp_name);
}

static GTS_COLD int refuse_value(const gts_py_argument *argument, const char *value)
{
    return GTS_PY_REFUSE(argument, GTS_VALUE_ERROR, "is %.100s, which does not fit '%s'.", value,
                         gts_dtype_name(argument->dtype));
}

static GTS_COLD int refuse_integer(const gts_py_argument *argument, PyObject *integer)
{
    PyObject *const text = PyObject_Str(integer);
    const char *const value = text == NULL ? NULL : PyUnicode_AsUTF8(text);
    if (value == NULL)
        PyErr_Clear(); /* Python does not print integers of thousands of digits */
    const int status = refuse_value(argument, value == NULL ? "an integer of too many digits" : value);
    Py_XDECREF(text);
    return status;
}

/* ---- Integers -------------------------------------------------------------------------------------------------- */

/* Stores `number` in *value; false if it does not fit the dtype. */
static bool store_integer(gts_dtype dtype, int64_t number, void *value)
{
    if (GTS_LIKELY(dtype == GTS_INT64)) {
        memcpy(value, &number, sizeof number);
        return true;
    }
    if (GTS_UNLIKELY(gts_element_integer(dtype, &number) != number) || GTS_UNLIKELY(dtype == GTS_UINT64 && number < 0))
        return false;
    memcpy(value, &number, gts_dtype_size(dtype));
    return true;
}

static int read_long(const gts_py_argument *argument, PyObject *integer, void *value)
{
    if (GTS_LIKELY(PyUnstable_Long_IsCompact((PyLongObject *)integer))) {
        if (GTS_LIKELY(store_integer(argument->dtype, PyUnstable_Long_CompactValue((PyLongObject *)integer), value)))
            return 0;
        return refuse_integer(argument, integer);
    }
    int overflow;
    const int64_t number = PyLong_AsLongLongAndOverflow(integer, &overflow);
    if (overflow == 0 && store_integer(argument->dtype, number, value))
        return 0;
    if (overflow > 0 && argument->dtype == GTS_UINT64) {
        const uint64_t large = PyLong_AsUnsignedLongLong(integer);
        if (!PyErr_Occurred()) {
            *(uint64_t *)value = large;
            return 0;
        }
        PyErr_Clear();
    }
    return refuse_integer(argument, integer);
}

static bool is_numpy_bool(PyObject *object)
{
    return gts_py.numpy.ndarray != NULL && Py_TYPE(object) == gts_py.numpy.scalar[GTS_BOOL];
}

static bool is_numpy_float(PyObject *object)
{
    return gts_py.numpy.ndarray != NULL && PyObject_TypeCheck(object, gts_py.numpy.floating);
}

/* Reads a float, also one of numpy, that is an integer. */
static int read_whole_float(const gts_py_argument *argument, PyObject *object, void *value)
{
    const double number = PyFloat_AsDouble(object);
    if (!isfinite(number))
        return PyErr_Occurred() ? -1 : refuse_type(argument, object);
    PyObject *const integer = PyNumber_Long(object);
    if (integer == NULL)
        return -1;
    const int is_whole = PyObject_RichCompareBool(object, integer, Py_EQ);
    const int status = is_whole < 0 ? -1
                       : is_whole   ? read_long(argument, integer, value)
                                    : refuse_type(argument, object);
    Py_DECREF(integer);
    return status;
}

/*
 * Reads integers of any type, but not arrays of one integer, truth values, and floats that are integers: what a truth
 * value or an integer holds exactly.
 */
static int read_index(const gts_py_argument *argument, PyObject *object, void *value)
{
    if (is_numpy_bool(object))
        return store_integer(argument->dtype, PyObject_IsTrue(object), value) ? 0 : -1;
    if (PyFloat_Check(object) || is_numpy_float(object))
        return read_whole_float(argument, object, value);
    if (!PyIndex_Check(object))
        return refuse_type(argument, object);
    if (!PyLong_Check(object)) {
        PyObject *array;
        const int found = PyObject_GetOptionalAttr(object, gts_py.name.__dlpack__, &array);
        if (found < 0)
            return -1;
        if (found > 0) {
            Py_DECREF(array);
            return refuse_type(argument, object);
        }
    }
    PyObject *const integer = PyNumber_Index(object);
    if (integer == NULL)
        return -1;
    const int status = read_long(argument, integer, value);
    Py_DECREF(integer);
    return status;
}

/* ---- Complex numbers ------------------------------------------------------------------------------------------- */

static int store_complex(const gts_py_argument *argument, Py_complex number, void *value)
{
    if (argument->dtype == GTS_COMPLEX128) {
        memcpy(value, &number, sizeof number);
        return 0;
    }
    const float narrow[] = {(float)number.real, (float)number.imag};
    if ((isinf(narrow[0]) && !isinf(number.real)) || (isinf(narrow[1]) && !isinf(number.imag)))
        return GTS_PY_REFUSE(argument, GTS_VALUE_ERROR, "is (%g%+gj), which does not fit '%s'.", number.real,
                             number.imag, gts_dtype_name(argument->dtype));
    memcpy(value, narrow, sizeof narrow);
    return 0;
}

/* Reads a number that is complex itself. Those of numpy may be longer than two doubles. */
static int read_complex(const gts_py_argument *argument, PyObject *object, void *value)
{
    if (!PyComplex_Check(object) &&
        (gts_py.numpy.ndarray == NULL || !PyObject_TypeCheck(object, gts_py.numpy.complexfloating)))
        return refuse_type(argument, object);
    const Py_complex number = PyComplex_AsCComplex(object);
    if (PyErr_Occurred())
        return -1;
    if (!PyComplex_Check(object) && (isinf(number.real) || isinf(number.imag))) {
        PyObject *const converted = PyComplex_FromCComplex(number);
        const int same = converted == NULL ? -1 : PyObject_RichCompareBool(object, converted, Py_EQ);
        Py_XDECREF(converted);
        if (same <= 0)
            return same < 0 ? -1 : refuse_value(argument, "a number above 1.8e308");
    }
    return store_complex(argument, number, value);
}

/* ---- Floats ---------------------------------------------------------------------------------------------------- */

static int store_float(const gts_py_argument *argument, double number, void *value)
{
    if (argument->dtype == GTS_FLOAT64) {
        *(double *)value = number;
        return 0;
    }
    if (gts_is_complex(argument->dtype))
        return store_complex(argument, (Py_complex){number, 0}, value);
    const float narrow = (float)number;
    if (GTS_UNLIKELY(isinf(narrow) && !isinf(number)))
        return GTS_PY_REFUSE(argument, GTS_VALUE_ERROR, "is %g, which does not fit '%s'.", number,
                             gts_dtype_name(argument->dtype));
    *(float *)value = narrow;
    return 0;
}

/* Reads a float of numpy, which may be longer than a double. */
static int read_numpy_float(const gts_py_argument *argument, PyObject *object, void *value)
{
    PyObject *const converted = PyNumber_Float(object);
    if (converted == NULL)
        return -1;
    const double number = PyFloat_AS_DOUBLE(converted);
    const int same = isinf(number) ? PyObject_RichCompareBool(object, converted, Py_EQ) : 1;
    Py_DECREF(converted);
    if (same < 0)
        return -1;
    return same ? store_float(argument, number, value) : refuse_value(argument, "a number above 1.8e308");
}

/* Reads a number that is not complex, for an argument that may be so. */
static int read_float(const gts_py_argument *argument, PyObject *object, void *value)
{
    if (PyFloat_Check(object))
        return store_float(argument, PyFloat_AS_DOUBLE(object), value);
    if (PyLong_Check(object)) {
        const double number = PyLong_AsDouble(object);
        if (number == -1.0 && PyErr_Occurred()) {
            if (!PyErr_ExceptionMatches(PyExc_OverflowError))
                return -1;
            PyErr_Clear();
            return refuse_integer(argument, object);
        }
        return store_float(argument, number, value);
    }
    if (gts_py.numpy.ndarray != NULL &&
        !PyObject_TypeCheck(object, gts_py.numpy.timedelta64) && /* an integer that has a unit */
        (is_numpy_float(object) || is_numpy_bool(object) || PyObject_TypeCheck(object, gts_py.numpy.integer)))
        return read_numpy_float(argument, object, value);
    return gts_is_complex(argument->dtype) ? read_complex(argument, object, value) : refuse_type(argument, object);
}

/* ---- Any scalar ------------------------------------------------------------------------------------------------ */

/* Reads an object that is not of the one exact type that is passed most often for its dtype. */
static GTS_NOINLINE int read_other(const gts_py_argument *argument, PyObject *object, void *value)
{
    const gts_dtype dtype = argument->dtype;
    if (dtype == GTS_BOOL && PyBool_Check(object)) {
        *(bool *)value = object == Py_True;
        return 0;
    }
    if (dtype > GTS_BOOL && dtype < GTS_FLOAT32 && PyLong_CheckExact(object))
        return read_long(argument, object, value);
    if (gts_py_find_numpy() && Py_TYPE(object) == gts_py.numpy.scalar[dtype]) {
        memcpy(value, (const char *)object + OBVAL_OFFSET, gts_dtype_size(dtype));
        return 0;
    }
    if (PyErr_Occurred())
        return -1;
    return dtype >= GTS_FLOAT32 ? read_float(argument, object, value) : read_index(argument, object, value);
}

int gts_py_read_scalar(const gts_py_argument *argument, PyObject *object, void *value)
{
    if (PyFloat_CheckExact(object) && argument->dtype == GTS_FLOAT64) {
        *(double *)value = PyFloat_AS_DOUBLE(object);
        return 0;
    }
    if (PyLong_CheckExact(object) && argument->dtype == GTS_INT32 &&
        PyUnstable_Long_IsCompact((PyLongObject *)object)) {
        *(int32_t *)value = (int32_t)PyUnstable_Long_CompactValue((PyLongObject *)object); /* at most 30 bits */
        return 0;
    }
    return read_other(argument, object, value);
}

int gts_py_scalar(gts_program *program, uint32_t leaf, void *object, void *value)
{
    gts_py_program *const self = gts_py_of(program);
    GTS_TRY(gts_py_read_scalar(&self->leaf[leaf].argument, object, value));
    gts_py_keep(self, leaf, object);
    return 0;
}

/* ---- Zero-dimensional fields ----------------------------------------------------------------------------------- */

static bool is_scalar(const gts_py_argument *argument, PyObject *object)
{
    return PyFloat_Check(object) || PyLong_Check(object) ||
           (gts_py.numpy.ndarray != NULL && PyObject_TypeCheck(object, gts_py.numpy.generic)) ||
           (gts_is_complex(argument->dtype) && PyComplex_Check(object));
}

/*
 * Reads the element of a field in device memory by a method of the field, which waits for a stream of the field's
 * library alone. So this waits for the calls of the program first, which may have written the field.
 */
static int fetch_element(gts_program *program, const gts_py_argument *argument, PyObject *object, void *value)
{
    GTS_TRY(gts_gpu_wait(program));
    PyObject *method;
    int found = PyObject_GetOptionalAttr(object, gts_py.name.as_scalar, &method);
    if (found == 0)
        found = PyObject_GetOptionalAttr(object, gts_py.name.item, &method);
    if (found < 0)
        return -1;
    if (found == 0)
        return gts_py_refuse_object(argument, object);
    PyObject *const element = PyObject_CallNoArgs(method);
    Py_DECREF(method);
    if (element == NULL)
        return -1;
    const int status = gts_py_read_scalar(argument, element, value);
    Py_DECREF(element);
    return status;
}

int gts_py_zero_dim_field(gts_program *program, uint32_t index, void *object, void *value)
{
    gts_py_of(program)->leaf[index].object = object;
    gts_py_leaf *const leaf = &gts_py_of(program)->leaf[index];
    if (is_scalar(&leaf->argument, object))
        return gts_py_read_scalar(&leaf->argument, object, value);
    gts_array array;
    PyObject *owner;
    int status = gts_py_read_field(leaf, object, &array, &owner);
    if (GTS_UNLIKELY(status != 0) && PyComplex_CheckExact(object)) /* asked last: few fields are complex */
        return gts_py_read_scalar(&leaf->argument, object, value);
    if (status == 0) {
        const gts_device device = array.device;
        array.device = leaf->contract->device; /* the element is copied, so any device will do */
        status = gts_check_array(program, index, &array);
        if (status == 0 && device != GTS_CPU)
            status = fetch_element(program, &leaf->argument, object, value);
        else if (status == 0)
            memcpy(value, array.data, gts_dtype_size(array.dtype));
    }
    Py_XDECREF(owner);
    return status;
}
