/*
 * Calls Python callables from a C loop, so that a benchmark measures the call and not the interpreter around it.
 *
 * empty(...)                            a vectorcall that takes anything and does nothing: the floor of every call
 * repeat(callable, calls, names, count) calls `callable` `count` times, with the argument tuples in `calls` in turn, the
 *                                       last len(names) of each being keyword arguments; returns the seconds it took
 * in_turn(calls, count)                 makes all calls, each (callable, arguments, names), one after another, `count`
 *                                       times; returns the seconds it took
 * cold(callable, call, names)           makes one call, with empty caches but for `call`, `names` and the stack, and
 *                                       within the function call_cold
 * instrument(on)                        tells callgrind to instrument what follows, or to stop: until then a program runs
 *                                       twenty times as fast under callgrind, and nothing is counted
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <time.h>

#if __has_include(<valgrind/callgrind.h>) /* machines without valgrind measure times alone */
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#endif

#include "cold.h"

typedef struct empty_object {
    PyObject_HEAD vectorcallfunc vectorcall;
} empty_object;

static PyObject *empty_call(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    (void)self;
    (void)args;
    (void)count;
    (void)names;
    Py_RETURN_NONE;
}

static PyTypeObject empty_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "caller.Empty",
    .tp_basicsize = sizeof(empty_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(empty_object, vectorcall),
    .tp_call = PyVectorcall_Call,
};

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static PyObject *repeat(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *callable, *calls, *names;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "OO!O!n", &callable, &PyList_Type, &calls, &PyTuple_Type, &names, &count))
        return NULL;
    const Py_ssize_t different = PyList_GET_SIZE(calls);
    const Py_ssize_t keywords = PyTuple_GET_SIZE(names);
    const double begin = now();
    for (Py_ssize_t i = 0, next = 0; i < count; ++i) {
        PyObject *const call = PyList_GET_ITEM(calls, next);
        const size_t given = (size_t)(PyTuple_GET_SIZE(call) - keywords);
        PyObject *const result = PyObject_Vectorcall(callable, ((PyTupleObject *)call)->ob_item, given,
                                                     keywords == 0 ? NULL : names);
        if (result == NULL)
            return NULL;
        Py_DECREF(result);
        next = next + 1 == different ? 0 : next + 1;
    }
    return PyFloat_FromDouble(now() - begin);
}

static PyObject *in_turn(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *calls;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "O!n", &PyList_Type, &calls, &count))
        return NULL;
    const double begin = now();
    for (Py_ssize_t i = 0; i < count; ++i) {
        for (Py_ssize_t next = 0; next < PyList_GET_SIZE(calls); ++next) {
            PyObject *const call = PyList_GET_ITEM(calls, next);
            PyObject *const given = PyTuple_GET_ITEM(call, 1), *const names = PyTuple_GET_ITEM(call, 2);
            const Py_ssize_t keywords = PyTuple_GET_SIZE(names);
            PyObject *const result = PyObject_Vectorcall(PyTuple_GET_ITEM(call, 0), ((PyTupleObject *)given)->ob_item,
                                                         (size_t)(PyTuple_GET_SIZE(given) - keywords),
                                                         keywords == 0 ? NULL : names);
            if (result == NULL)
                return NULL;
            Py_DECREF(result);
        }
    }
    return PyFloat_FromDouble(now() - begin);
}

PyObject *call_cold(PyObject *callable, PyObject *const *args, size_t given, PyObject *names);

__attribute__((noinline)) PyObject *call_cold(PyObject *callable, PyObject *const *args, size_t given, PyObject *names)
{
    PyObject *const result = PyObject_Vectorcall(callable, args, given, names);
    __asm__ volatile(""); /* not a tail call, which would not return to this function */
    return result;
}

static PyObject *cold(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *callable, *call, *names;
    if (!PyArg_ParseTuple(args, "OO!O!", &callable, &PyTuple_Type, &call, &PyTuple_Type, &names))
        return NULL;
    const Py_ssize_t given = PyTuple_GET_SIZE(call), keywords = PyTuple_GET_SIZE(names);
    PyObject *const *const items = ((PyTupleObject *)call)->ob_item;
    evict();
    warm(items, (size_t)given * sizeof *items);
    warm(names, sizeof(PyTupleObject) + (size_t)keywords * sizeof *items);
    warm_stack();
    return call_cold(callable, items, (size_t)(given - keywords), keywords == 0 ? NULL : names);
}

static PyObject *instrument(PyObject *self, PyObject *on)
{
    (void)self;
    if (on == Py_True) {
        CALLGRIND_START_INSTRUMENTATION;
    } else {
        CALLGRIND_STOP_INSTRUMENTATION;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"instrument", instrument, METH_O, NULL},
    {"repeat", repeat, METH_VARARGS, NULL},
    {"cold", cold, METH_VARARGS, NULL},
    {"in_turn", in_turn, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "caller", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit_caller(void)
{
    if (PyType_Ready(&empty_type) < 0)
        return NULL;
    PyObject *const self = PyModule_Create(&module);
    empty_object *const empty = PyObject_New(empty_object, &empty_type);
    if (self == NULL || empty == NULL)
        return NULL;
    empty->vectorcall = empty_call;
    return PyModule_AddObjectRef(self, "empty", (PyObject *)empty) < 0 ? NULL : self;
}
