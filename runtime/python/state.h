/* Shared by the files of the Python host: the state of the module gtstub._host. */
#ifndef GTSTUB_PYTHON_STATE_H
#define GTSTUB_PYTHON_STATE_H

#include <Python.h>

#include "gtstub/stub.h"

#if PY_VERSION_HEX < 0x030D0000
#define PyObject_GetOptionalAttr _PyObject_LookupAttr
#define Py_IsFinalizing _Py_IsFinalizing
#endif

/* Attributes and keywords that the host looks up, as interned strings: gts_py_state.name.<name>. */
#define GTS_PY_NAMES(X)                                                                                                \
    X(__cuda_array_interface__)                                                                                        \
    X(__cuda_stream__)                                                                                                 \
    X(__dlpack__)                                                                                                      \
    X(__dlpack_device__)                                                                                               \
    X(_domain)                                                                                                         \
    X(_ndarray)                                                                                                        \
    X(as_scalar)                                                                                                       \
    X(data)                                                                                                            \
    X(dims)                                                                                                            \
    X(domain)                                                                                                          \
    X(item)                                                                                                            \
    X(keys)                                                                                                            \
    X(mask)                                                                                                            \
    X(max_version)                                                                                                     \
    X(ndarray)                                                                                                         \
    X(numpy)                                                                                                           \
    X(offset_provider)                                                                                                 \
    X(ptr)                                                                                                             \
    X(ranges)                                                                                                          \
    X(shape)                                                                                                           \
    X(start)                                                                                                           \
    X(stop)                                                                                                            \
    X(stream)                                                                                                          \
    X(strides)                                                                                                         \
    X(typestr)                                                                                                         \
    X(value)

typedef struct gts_py_names {
#define X(name) PyObject *name;
    GTS_PY_NAMES(X)
#undef X
} gts_py_names;

/* numpy's types; NULL until some module has imported numpy. */
typedef struct gts_py_numpy {
    PyTypeObject *ndarray;
    PyTypeObject *generic;
    PyTypeObject *integer;
    PyTypeObject *floating;
    PyTypeObject *timedelta;
    PyTypeObject *scalar[GTS_FLOAT64 + 1]; /* by dtype */
} gts_py_numpy;

typedef struct gts_py_state {
    PyTypeObject *program_type;
    PyTypeObject *dispatcher_type;
    PyTypeObject *overload_type;
    PyTypeObject *bound_type;
    PyTypeObject *step_type;
    PyTypeObject *action_type;
    PyTypeObject *forget_type;
    PyObject *stream; /* of all programs that have none of their own; NULL until it is set */
    int watcher;      /* of the dicts that offset providers are; -1 if the interpreter has too many watchers */
    gts_py_numpy numpy;
    gts_py_names name;
} gts_py_state;

/* Of the module, which PyInit__host() sets: what needs the state knows no more of module.c, which knows every type. */
extern PyModuleDef *gts_py_definition;

/* The state of the module that defined a type or its base; NULL after an exception. */
gts_py_state *gts_py_find_state(PyTypeObject *type);

#endif
