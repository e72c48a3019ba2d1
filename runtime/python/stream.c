/* The streams of programs for GPUs, as Python libraries represent them. */
#include "python/host.h"

/* ---- Reading --------------------------------------------------------------------------------------------------- */

/* An address as an integer: 0 is the default stream. */
static int read_address(PyObject *integer, void **stream)
{
    *stream = (void *)PyLong_AsUnsignedLong(integer);
    if (!PyErr_Occurred())
        return 0;
    PyErr_Clear();
    return gts_py_fail(PyExc_ValueError, "A stream must be an address, but is %.100R.", integer);
}

/*
 * A stream of another library: cuda.core, cupy and others have the method __cuda_stream__(), and cupy before version 14
 * the attribute `ptr` alone. https://nvidia.github.io/cuda-python/cuda-core/latest/interoperability.html
 */
static int read_object(PyObject *object, void **stream)
{
    PyObject *attribute;
    int found = PyObject_GetOptionalAttr(object, gts_py.name.__cuda_stream__, &attribute);
    if (found > 0) {
        PyObject *const result = PyCallable_Check(attribute) ? PyObject_CallNoArgs(attribute) : Py_NewRef(attribute);
        int status = -1;
        if (result != NULL && PyTuple_Check(result) && PyTuple_GET_SIZE(result) == 2 &&
            PyLong_Check(PyTuple_GET_ITEM(result, 1))) /* the version of the protocol, 0, and the address */
            status = read_address(PyTuple_GET_ITEM(result, 1), stream);
        else if (result != NULL)
            gts_py_fail(PyExc_TypeError, "'__cuda_stream__' of a stream must return (0, address), but returned %.100R.",
                        result);
        Py_XDECREF(result);
        Py_DECREF(attribute);
        return status;
    }
    if (found == 0)
        found = PyObject_GetOptionalAttr(object, gts_py.name.ptr, &attribute);
    if (found > 0) {
        const int status = PyLong_Check(attribute) ? read_address(attribute, stream) : -2;
        Py_DECREF(attribute);
        if (status != -2)
            return status;
    }
    if (found < 0)
        return -1;
    return gts_py_fail(PyExc_TypeError,
                       "A stream must be None, 'current', an address, or an object with '__cuda_stream__', not '%s'.",
                       Py_TYPE(object)->tp_name);
}

/*
 * Reads None, an address, or an object with `__cuda_stream__`; for the stream of one program also 'current', else
 * `is_current` is NULL. -1 after an exception.
 */
static int read_stream(PyObject *object, bool *is_current, void **stream)
{
    *stream = NULL;
    if (is_current != NULL)
        *is_current = PyUnicode_Check(object) && PyUnicode_CompareWithASCIIString(object, "current") == 0;
    if (object == Py_None || (is_current != NULL && *is_current))
        return 0;
    return PyLong_Check(object) && !PyBool_Check(object) ? read_address(object, stream) : read_object(object, stream);
}

PyObject *gts_py_check_stream(PyObject *Py_UNUSED(module), PyObject *value)
{
    bool is_current;
    void *stream;
    return read_stream(value, &is_current, &stream) != 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- Of one program -------------------------------------------------------------------------------------------- */

PyObject *gts_py_get_stream(PyObject *object, void *Py_UNUSED(closure))
{
    const gts_py_program *const self = (gts_py_program *)object;
    PyObject *const stream = self->stream != NULL ? self->stream : gts_py.stream;
    return Py_NewRef(stream == NULL ? Py_None : stream);
}

int gts_py_set_stream(PyObject *object, PyObject *value, void *Py_UNUSED(closure))
{
    gts_py_program *const self = (gts_py_program *)object;
    bool is_current;
    void *stream;
    if (value == NULL)
        return gts_py_fail(PyExc_AttributeError, "Attribute 'stream' cannot be deleted; set it to 'current'.");
    if (read_stream(value, &is_current, &stream) != 0)
        return -1;
    if (self->caller == PyThreadState_Get())
        return gts_py_fail(PyExc_RuntimeError, "The stream of program '%s' cannot be set within a call of it.",
                           self->program->stub->name);
    if (GTS_PY_WITHOUT_GIL(is_current ? gts_reset_stream(self->program) : gts_set_stream(self->program, stream)) != 0)
        return gts_py_raise(&self->program->error);
    if (is_current || gts_stream(self->program) == stream) /* else another thread has set another one meanwhile */
        Py_XSETREF(self->stream, is_current ? NULL : Py_NewRef(value));
    return 0;
}

/* ---- Of all programs ------------------------------------------------------------------------------------------- */

PyObject *gts_py_get_current_stream(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return Py_NewRef(gts_py.stream == NULL ? Py_None : gts_py.stream);
}

PyObject *gts_py_set_current_stream(PyObject *Py_UNUSED(module), PyObject *value)
{
    void *stream;
    if (read_stream(value, NULL, &stream) != 0 ||
        gts_py_refuse_in_call("The stream of all programs cannot be set") != 0)
        return NULL;
    const int status = GTS_PY_WITHOUT_GIL(gts_set_stream(NULL, stream));
    if (status == 0 &&
        gts_stream(NULL) == stream) /* else another thread has set another one, and keeps that one's object */
        Py_XSETREF(gts_py.stream, Py_NewRef(value));
    return gts_py_answer(status);
}
