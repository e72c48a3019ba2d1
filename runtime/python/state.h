/* Shared by the files of the Python host: what the module gtstub._host has once for the process. */
#pragma once

#include <Python.h>

#include "base/new.h"
#include "gtstub/stub.h"

#if PY_VERSION_HEX < 0x030D0000
#define PyObject_GetOptionalAttr _PyObject_LookupAttr
#define Py_IsFinalizing _Py_IsFinalizing
#endif

/* Attributes and keywords that the host looks up, as interned strings: gts_py.name.<name>. */
#define GTS_PY_NAMES(X)                                                                                                \
    X(__code__)                                                                                                        \
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
#define GTS_PY_NUMPY_TYPES(X)                                                                                          \
    X(generic)                                                                                                         \
    X(integer)                                                                                                         \
    X(floating)                                                                                                        \
    X(complexfloating)                                                                                                 \
    X(timedelta64)                                                                                                     \
    X(ndarray) /* the last one: if it is set, all others are */

typedef struct gts_py_numpy {
#define X(name) PyTypeObject *name;
    GTS_PY_NUMPY_TYPES(X)
#undef X
    PyTypeObject *scalar[GTS_LAST_DTYPE + 1]; /* by dtype */
} gts_py_numpy;

/* The module's types: gts_py.<name>_type, and gts_py_<name>_spec. */
#define GTS_PY_TYPES(X)                                                                                                \
    X(program)                                                                                                         \
    X(dispatcher)                                                                                                      \
    X(overload)                                                                                                        \
    X(bound)                                                                                                           \
    X(step)                                                                                                            \
    X(action)

typedef struct gts_py_state {
#define X(name) PyTypeObject *name##_type;
    GTS_PY_TYPES(X)
#undef X
    PyObject *stream; /* of all programs that have none of their own; NULL until it is set */
    int watcher;      /* of the dicts that offset providers are; -1 if the interpreter has too many watchers */
    gts_py_numpy numpy;
    gts_py_names name;
} gts_py_state;

/* Set when the module is imported, and never freed: programs may be called after the module has ended. */
extern gts_py_state gts_py;

/* Finds numpy's types if numpy has been imported; false if it has not, or after an exception. */
bool gts_py_find_numpy(void);

/* The spec of a type, whose SLOTS are those of the file. */
#define GTS_PY_SPEC(type, object, more_flags)                                                                          \
    {                                                                                                                  \
        .name = "gtstub._host." type,                                                                                  \
        .basicsize = sizeof(object),                                                                                   \
        .slots = SLOTS,                                                                                                \
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | (more_flags),                    \
    }

/* The flags of a type whose objects are called without a tuple of arguments. */
#define GTS_PY_CALLED (Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_MANAGED_WEAKREF)

/* The last that the deallocator of an object of such a type does. */
static inline void gts_py_free(PyObject *object)
{
    PyTypeObject *const type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}
