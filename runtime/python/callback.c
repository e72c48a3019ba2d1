/* Calls functions of Python from a running SDFG, from the thread that has called the program or from any other. */
#include <pthread.h>

#include "gtstub/stub.h"
#include "python/host.h"

#if PY_VERSION_HEX < 0x030D0000
#define PyThreadState_GetUnchecked _PyThreadState_UncheckedGet
#endif

int gts_py_callback(gts_program *program, uint32_t index, void *object)
{
    gts_py_program *const self = gts_py_of(program);
    const gts_contract *const leaf = &program->stub->leaves[index];
    if (GTS_UNLIKELY(!PyCallable_Check((PyObject *)object)))
        return GTS_REFUSE(program, leaf, GTS_TYPE_ERROR, "must be callable, not '%s'.",
                          Py_TYPE((PyObject *)object)->tp_name);
    self->leaf[index].callable = object;
    self->thread = pthread_self();
    memset((char *)program->slots + leaf->slot, 0, sizeof(gts_function)); /* it is no function of C */
    return 0;
}

/* ---- Values ---------------------------------------------------------------------------------------------------- */

static bool is_array_of(const gts_array *array, const gts_callback_value *value)
{
    if (array->data != value->data || array->dtype != value->dtype || array->rank != value->rank)
        return false;
    for (int32_t axis = 0; axis < value->rank; ++axis) {
        if (array->shape[axis] != value->shape[axis] ||
            (array->strides[axis] != value->strides[axis] && !gts_is_any_stride(array, axis)))
            return false;
    }
    return true;
}

/* The object that the caller has passed for this very array, borrowed; NULL if there is none. */
static PyObject *find_object(const gts_program *program, const gts_callback_value *value)
{
    for (uint32_t i = 0; i < program->stub->leaf_count; ++i) {
        if (program->stub->leaves[i].kind != GTS_FIELD)
            continue;
        const void *const known = gts_known_object(program, i); /* NULL until its second call */
        if (is_array_of(gts_array_of(program, i), value))
            return known != NULL ? (PyObject *)known : gts_py_of(program)->leaf[i].object;
    }
    return NULL;
}

/* A numpy array of the memory of a value, which belongs to the SDFG; NULL after an exception. */
static PyObject *make_array(const gts_callback_value *value)
{
    if (GTS_UNLIKELY(!gts_py_find_numpy())) {
        PyObject *const numpy = PyErr_Occurred() ? NULL : PyImport_ImportModule("numpy");
        Py_XDECREF(numpy);
        if (numpy == NULL || !gts_py_find_numpy())
            return NULL;
    }
    const int64_t itemsize = (int64_t)gts_dtype_size(value->dtype);
    int64_t low = 0, high = itemsize; /* the bytes around `data` */
    for (int32_t axis = 0; axis < value->rank; ++axis) {
        const int64_t reach = (value->shape[axis] - 1) * value->strides[axis] * itemsize;
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    PyObject *const memory = PyMemoryView_FromMemory((char *)value->data + low, high - low, PyBUF_WRITE);
    return PyObject_CallFunction((PyObject *)gts_py.numpy.ndarray, "NONLN",
                                 gts_py_numbers(value->shape, value->rank, 1), gts_py.numpy.scalar[value->dtype],
                                 memory, (long long)-low, gts_py_numbers(value->strides, value->rank, itemsize));
}

/* A new reference to the Python object of a value that is an array; NULL after an exception. */
static PyObject *array_of(const gts_program *program, const gts_callback_value *value)
{
    PyObject *const known = find_object(program, value);
    return known != NULL ? Py_NewRef(known) : make_array(value);
}

/* A new reference to what a callback gets for a value: the object that has the array, if its caller has passed that one. */
static PyObject *object_of(const gts_program *program, const gts_callback_value *value)
{
    const gts_py_owned *const owned = &gts_py_of(program)->owned;
    if (value->rank == 0)
        return gts_py_scalar_object(value->dtype, value->data);
    PyObject *const array = array_of(program, value);
    for (uint32_t i = 0; array != NULL && owned->owners != NULL && i < program->stub->parameter_count; ++i) {
        if (owned->argv[i] == array && owned->owners[i] != NULL) {
            Py_DECREF(array);
            return Py_NewRef(owned->owners[i]);
        }
    }
    return array;
}

/* ---- Results --------------------------------------------------------------------------------------------------- */

/* Assigns to the elements of an array, as numpy does, but for None, which numpy takes for NaN. */
static int write_array(const gts_program *program, const char *path, const gts_callback_value *value, PyObject *object)
{
    if (object == Py_None)
        return gts_py_fail(PyExc_TypeError, "Callback '%s' of program '%s' must return an array of '%s', not None.",
                           path, program->stub->name, gts_dtype_name(value->dtype));
    PyObject *const array = array_of(program, value);
    if (array == NULL)
        return -1;
    const int status = PyObject_SetItem(array, Py_Ellipsis, object);
    if (status != 0 && (PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_TypeError))) {
        PyObject *const reason = PyErr_GetRaisedException();
        PyObject *const shape = PyObject_GetAttrString(array, "shape");
        if (shape != NULL)
            PyErr_Format(PyExc_ValueError,
                         "Callback '%s' of program '%s' must return an array of '%s' that fits the shape %S: %S.", path,
                         program->stub->name, gts_dtype_name(value->dtype), shape, reason);
        Py_XDECREF(shape);
        Py_DECREF(reason);
    }
    Py_DECREF(array);
    return status;
}

static int write_result(gts_program *program, uint32_t leaf, const gts_callback_value *value, PyObject *object)
{
    const char *const path = program->stub->leaves[leaf].path, *const name = program->stub->name;
    if (value->rank > 0)
        return write_array(program, path, value, object);
    gts_error error;
    const gts_py_argument argument = {
        .program = name, .path = path, .dtype = value->dtype, .device = GTS_CPU, .error = &error};
    if (GTS_LIKELY(gts_py_read_scalar(&argument, object, value->data) == 0))
        return 0;
    if (PyErr_Occurred())
        return -1;
    if (error.kind == GTS_VALUE_ERROR)
        return gts_py_fail(PyExc_ValueError, "Callback '%s' of program '%s' has returned %R, which does not fit '%s'.",
                           path, name, object, gts_dtype_name(value->dtype));
    return gts_py_fail(PyExc_TypeError, "Callback '%s' of program '%s' must return a scalar of '%s', not '%s'.", path,
                       name, gts_dtype_name(value->dtype), Py_TYPE(object)->tp_name);
}

static int write_results(gts_program *program, uint32_t leaf, const gts_callback_value *values, uint32_t count,
                         PyObject *returned)
{
    if (count == 0)
        return 0; /* as in DaCe, what such a function returns is ignored */
    if (count == 1)
        return write_result(program, leaf, values, returned);
    if (!PyTuple_Check(returned) || PyTuple_GET_SIZE(returned) != (Py_ssize_t)count)
        return gts_py_fail(PyExc_TypeError, "Callback '%s' of program '%s' must return a tuple of %u results.",
                           program->stub->leaves[leaf].path, program->stub->name, count);
    for (uint32_t i = 0; i < count; ++i) {
        if (write_result(program, leaf, &values[i], PyTuple_GET_ITEM(returned, i)) != 0)
            return -1;
    }
    return 0;
}

/* ---- Calling --------------------------------------------------------------------------------------------------- */

#define MOST_ARGUMENTS 100 /* as in the schema of the SDFG signature */

static int call_function(gts_program *program, uint32_t leaf, const gts_callback_value *values, uint32_t arguments,
                         uint32_t results)
{
    const gts_py_program *const self = gts_py_of(program);
    PyObject *room[1 + MOST_ARGUMENTS], *returned = NULL; /* a bound method puts its object before the arguments */
    PyObject **const argv = room + 1;
    uint32_t count = 0;
    while (count < arguments && (argv[count] = object_of(program, &values[count])) != NULL)
        ++count;
    if (count == arguments) {
        PyObject *const function = Py_NewRef(self->leaf[leaf].callable);
        returned = PyObject_Vectorcall(function, argv, count | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        Py_DECREF(function);
    }
    const int status = returned == NULL ? -1 : write_results(program, leaf, values + arguments, results, returned);
    Py_XDECREF(returned);
    while (count > 0)
        Py_DECREF(argv[--count]);
    return status;
}

/* Keeps the exception of the first callback that fails, until the SDFG has returned. Needs the GIL. */
static int call_and_keep_error(gts_program *program, uint32_t leaf, const gts_callback_value *values,
                               uint32_t arguments, uint32_t results)
{
    gts_py_program *const self = gts_py_of(program);
    if (self->callback_error != NULL) /* of another one, for which this thread has waited with the GIL */
        return -1;
    if (call_function(program, leaf, values, arguments, results) == 0)
        return 0;
    PyObject *const error = PyErr_GetRaisedException();
    if (self->callback_error == NULL)
        self->callback_error = error;
    else
        Py_XDECREF(error);
    return -1;
}

/*
 * In a thread of the SDFG, which Python does not know. Since CPython 3.14, such a thread gets the GIL also while the
 * interpreter ends, and would run code of modules that are gone; before, CPython ended the thread.
 */
static int call_from_another_thread(gts_program *program, uint32_t leaf, const gts_callback_value *values,
                                    uint32_t arguments, uint32_t results)
{
    if (Py_IsFinalizing())
        return -1;
    const PyGILState_STATE state = PyGILState_Ensure();
    if (Py_IsFinalizing()) { /* since then */
        PyEval_SaveThread();
        return -1;
    }
    const int status = call_and_keep_error(program, leaf, values, arguments, results);
    PyGILState_Release(state);
    return status;
}

int gts_py_call_back(gts_program *program, uint32_t leaf, const gts_callback_value *values, uint32_t arguments,
                     uint32_t results)
{
    gts_py_program *const self = gts_py_of(program);
    if (PyThreadState_GetUnchecked() == self->caller) /* the call has kept the GIL */
        return call_and_keep_error(program, leaf, values, arguments, results);
    if (pthread_equal(self->thread, pthread_self())) {
        PyEval_RestoreThread(self->caller);
        const int status = call_and_keep_error(program, leaf, values, arguments, results);
        PyEval_SaveThread();
        return status;
    }
    return call_from_another_thread(program, leaf, values, arguments, results);
}
