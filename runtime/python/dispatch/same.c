/* Whether what a call reads is what was compiled in. */
#include "python/dispatch/overloads.h"

/* As gts_py_is_same(), for items of collections that may change while they are compared. */
static bool are_held_same(PyObject *a, PyObject *b)
{
    Py_INCREF(a);
    Py_INCREF(b);
    const bool is_same = gts_py_is_same(a, b);
    Py_DECREF(a);
    Py_DECREF(b);
    return is_same;
}

static bool are_items_same(PyObject *a, PyObject *b)
{
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(a);
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (PySequence_Fast_GET_SIZE(a) != count ||
            PySequence_Fast_GET_SIZE(b) != count) /* a comparison may change both */
            return false;
        if (!are_held_same(PySequence_Fast_GET_ITEM(a, i), PySequence_Fast_GET_ITEM(b, i)))
            return false;
    }
    return PySequence_Fast_GET_SIZE(a) == count && PySequence_Fast_GET_SIZE(b) == count;
}

/* The order counts, too, because a loop may go over the items. */
static bool are_dicts_same(PyObject *a, PyObject *b)
{
    PyObject *key_a, *key_b, *value_a, *value_b;
    Py_ssize_t at_a = 0, at_b = 0;
    if (PyDict_GET_SIZE(a) != PyDict_GET_SIZE(b))
        return false;
    while (PyDict_Next(a, &at_a, &key_a, &value_a)) {
        if (!PyDict_Next(b, &at_b, &key_b, &value_b))
            return false;
        if (!are_held_same(key_a, key_b) || !are_held_same(value_a, value_b))
            return false;
    }
    return true;
}

/* A set of the elements with their types: 1 and 1.0 are equal, but not the same. */
static PyObject *make_typed(PyObject *set)
{
    PyObject *const typed = PySet_New(NULL), *const iterator = PyObject_GetIter(set);
    PyObject *element = NULL;
    while (typed != NULL && iterator != NULL && (element = PyIter_Next(iterator)) != NULL) {
        PyObject *const text = PyObject_Repr(element);
        PyObject *const pair = text == NULL ? NULL : PyTuple_Pack(2, Py_TYPE(element), text);
        const int status = pair == NULL ? -1 : PySet_Add(typed, pair);
        Py_XDECREF(pair);
        Py_XDECREF(text);
        Py_DECREF(element);
        if (status != 0)
            break;
    }
    Py_XDECREF(iterator);
    if (PyErr_Occurred()) {
        Py_XDECREF(typed);
        return NULL;
    }
    return typed;
}

/*
 * Compares the bytes of two numbers or arrays of numpy, with which NaN is the same as NaN, but -0.0 is not 0.0. Arrays
 * that are not contiguous are not the same.
 */
static bool are_bytes_same(PyObject *a, PyObject *b)
{
    const int flags = PyBUF_ND | PyBUF_FORMAT;
    Py_buffer of_a, of_b;
    bool is_same = false;
    if (PyObject_GetBuffer(a, &of_a, flags) == 0) {
        if (PyObject_GetBuffer(b, &of_b, flags) == 0) {
            is_same = of_a.ndim == of_b.ndim && of_a.len == of_b.len && strcmp(of_a.format, of_b.format) == 0 &&
                      memcmp(of_a.shape, of_b.shape, (size_t)of_a.ndim * sizeof *of_a.shape) == 0 &&
                      memcmp(of_a.buf, of_b.buf, (size_t)of_a.len) == 0;
            PyBuffer_Release(&of_b);
        }
        PyBuffer_Release(&of_a);
    }
    PyErr_Clear();
    return is_same;
}

static bool are_equal(PyObject *a, PyObject *b)
{
    const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
    if (equal < 0)
        PyErr_Clear();
    return equal > 0;
}

static bool are_sets_same(PyObject *a, PyObject *b)
{
    if (!are_equal(a, b))
        return false;
    PyObject *const typed_a = make_typed(a), *const typed_b = typed_a == NULL ? NULL : make_typed(b);
    const bool is_same = typed_b != NULL && are_equal(typed_a, typed_b);
    PyErr_Clear();
    Py_XDECREF(typed_a);
    Py_XDECREF(typed_b);
    return is_same;
}

bool gts_py_is_same(PyObject *a, PyObject *b)
{
    if (a == b)
        return true;
    if (Py_TYPE(a) != Py_TYPE(b))
        return false;
    if (PyFloat_Check(a)) /* NaN is the same as NaN, but -0.0 is not 0.0 */
        return memcmp(&((PyFloatObject *)a)->ob_fval, &((PyFloatObject *)b)->ob_fval, sizeof(double)) == 0;
    if (PyComplex_Check(a))
        return memcmp(&((PyComplexObject *)a)->cval, &((PyComplexObject *)b)->cval, sizeof(Py_complex)) == 0;
    if (PyObject_CheckBuffer(a))
        return are_bytes_same(a, b);
    if (!PyTuple_CheckExact(a) && !PyList_CheckExact(a) && !PyDict_CheckExact(a) && !PyAnySet_CheckExact(a))
        return are_equal(a, b);
    if (Py_EnterRecursiveCall(" while comparing what a program reads") != 0) {
        PyErr_Clear();
        return false;
    }
    const bool is_same = PyDict_CheckExact(a)     ? are_dicts_same(a, b)
                         : PyAnySet_CheckExact(a) ? are_sets_same(a, b)
                                                  : are_items_same(a, b);
    Py_LeaveRecursiveCall();
    return is_same;
}
