/*
 * What the files of the Python host share.
 *
 * Functions that return int return 0 for success and -1 after a refusal, which stands either in the program's error or,
 * where Python code or memory failed, in Python's own exception. A gts_py_program is used by the thread that has
 * entered its program, and while it holds the GIL.
 */
#ifndef GTSTUB_HOST_H
#define GTSTUB_HOST_H

#include <Python.h>

#include "gtstub/stub.h"

#if PY_VERSION_HEX < 0x030D0000
#define PyObject_GetOptionalAttr _PyObject_LookupAttr
#define Py_IsFinalizing _Py_IsFinalizing
#endif

/* Attributes and keywords that the host looks up, as interned strings: gts_py_state.name.<name>. */
#define GTS_PY_NAMES(X)                                                                                                \
    X(__cuda_array_interface__)                                                                                        \
    X(__dlpack__)                                                                                                      \
    X(_domain)                                                                                                         \
    X(_ndarray)                                                                                                        \
    X(as_scalar)                                                                                                       \
    X(data)                                                                                                            \
    X(dims)                                                                                                            \
    X(domain)                                                                                                          \
    X(item)                                                                                                            \
    X(keys)                                                                                                            \
    X(max_version)                                                                                                     \
    X(ndarray)                                                                                                         \
    X(numpy)                                                                                                           \
    X(offset_provider)                                                                                                 \
    X(ranges)                                                                                                          \
    X(shape)                                                                                                           \
    X(start)                                                                                                           \
    X(stop)                                                                                                            \
    X(strides)                                                                                                         \
    X(typestr)                                                                                                         \
    X(value)

typedef struct gts_py_names {
#define X(name) PyObject *name;
    GTS_PY_NAMES(X)
#undef X
} gts_py_names;

/* numpy's types; NULL until numpy has been imported by somebody. */
typedef struct gts_py_numpy {
    PyTypeObject *ndarray;
    PyTypeObject *generic;
    PyTypeObject *integer;
    PyTypeObject *floating;
    PyTypeObject *scalar[GTS_FLOAT64 + 1]; /* by dtype */
} gts_py_numpy;

/* The state of the module. */
typedef struct gts_py_state {
    PyTypeObject *program_type;
    PyTypeObject *dispatcher_type;
    gts_py_numpy numpy;
    gts_py_names name;
} gts_py_state;

/* A domain that was decoded: as long as fields come with the very same object, it need not be decoded again. */
typedef struct gts_py_domain {
    PyObject *object;
    int32_t rank;
    int64_t origin[GTS_MAX_RANK];
    int64_t shape[GTS_MAX_RANK];
    const char *dims[GTS_MAX_RANK];
} gts_py_domain;

/* What the host remembers of a leaf, besides what stands in gts_leaf. All objects are strong references. */
typedef struct gts_py_leaf {
    PyObject *name; /* of a connectivity, interned */
    gts_py_domain domain;
    PyObject *dimension[GTS_MAX_RANK]; /* those whose names were found to be the contract's */
    const PyObject *passed[2];         /* addresses of the last two objects that came first; not references */
} gts_py_leaf;

typedef struct gts_py_metrics {
    PyObject *namespace; /* dict whose `key` is the level */
    PyObject *key;
    PyObject *sample; /* called with the compute time */
    int32_t threshold;
} gts_py_metrics;

/* The Program type of Python. */
typedef struct gts_py_program {
    PyObject_HEAD vectorcallfunc vectorcall;
    gts_program *program;
    gts_py_state *state;
    PyObject *parameters; /* tuple of interned names */
    bool needs_offset_provider;
    bool on_cpu;                     /* the SDFG works on host memory alone */
    PyInterpreterState *interpreter; /* that the program belongs to */
    PyThreadState *caller;           /* thread that is in a call, NULL when none is */
    void **argv;                     /* [parameters + 1], borrowed for one call */
    gts_py_leaf *leaf;               /* [leaf_count] */
    PyObject **keys;                 /* [collection_count], tuples of interned names */
    PyObject **held;                 /* [2 * leaf_count + keys], objects that must live to the end of the call */
    uint32_t held_count;
    PyObject **workspace; /* [workspace_count], owners of the lent memory */
    gts_py_metrics metrics;
    struct gts_py_program *next; /* the program that was made before */
} gts_py_program;

static inline gts_py_program *gts_py_of(const gts_program *program)
{
    return program->host;
}

/* module.c */
/* The state of the module that a type or its base was made by; NULL after an exception. */
gts_py_state *gts_py_find_state(PyTypeObject *type);

/* program.c */
extern PyType_Spec gts_py_program_spec;
/* All programs that exist, under the GIL: not in the module's state, which some of them may outlive. */
extern gts_py_program *gts_py_programs;
/* A new Program that owns `program`; NULL after an exception, and then the program has been unloaded. */
PyObject *gts_py_program_new(gts_py_state *, gts_program *program);

/* metrics.c */
PyObject *gts_py_set_metrics(PyObject *self, PyObject *args, PyObject *keywords);
int gts_py_read_metrics_level(gts_py_program *);
/* Passes one sample on; None, or NULL after an exception. */
PyObject *gts_py_sample(gts_py_program *, double compute_time);

/* profile.c */
PyObject *gts_py_begin_profile(PyObject *module, PyObject *nothing);
PyObject *gts_py_end_profile(PyObject *module, PyObject *profile);

/* workspace.c */
PyObject *gts_py_set_workspace(PyObject *self, PyObject *args, PyObject *keywords);

/* call.c */
PyObject *gts_py_call(PyObject *callable, PyObject *const *args, size_t flagged_given, PyObject *keywords);
/* argv: an object for each parameter, then the offset provider, which may be NULL where the program needs none. */
PyObject *gts_py_call_in_order(gts_py_program *, PyObject *const *argv);
/* One call at a time, waited for without the GIL. After an exception, as when the interpreter ends: not entered. */
int gts_py_enter(gts_py_program *);
void gts_py_leave(gts_py_program *);
/* Raises the exception that `error` describes. */
GTS_COLD void gts_py_raise(const gts_error *error);
/* Keeps a new reference until the call ends. */
void gts_py_hold(gts_py_program *, PyObject *object);

/* bind.c */
/* Fills argv with the arguments in the order of the parameters, then the offset provider, or raises. */
int gts_py_bind_any(gts_py_program *, PyObject *const *args, Py_ssize_t given, PyObject *keywords);
/* The index of a name in a tuple of interned names, -1 if it is not there. Keywords in source text are interned too. */
Py_ssize_t gts_py_find_name(PyObject *names, PyObject *name);
/* Raise the errors that a Python function would raise; `missing` is a list of names. */
GTS_COLD void gts_py_refuse_missing(const char *function, const char *kind, PyObject *missing);
GTS_COLD void gts_py_refuse_surplus(const char *function, Py_ssize_t taken, Py_ssize_t given, Py_ssize_t keywords);
GTS_COLD void gts_py_refuse_keyword(const char *function, PyObject *keyword, bool known);

/* walk.c */
void *const *gts_py_tuple(gts_program *, const char *path, void *object, uint32_t length);
void *const *gts_py_collection(gts_program *, uint32_t collection, void *object);
void *gts_py_connectivity(gts_program *, uint32_t leaf, void *offset_provider);
/* Refuses, by an exception, an offset provider of `program` that is no mapping. */
int gts_py_check_mapping(const gts_py_state *, const char *program, PyObject *provider);

/* field.c */
int gts_py_field(gts_program *, uint32_t leaf, void *object);
/*
 * Reads a field or an array, unchecked. Where its memory may not live as long as `object`, *owner becomes a new
 * reference to what keeps it, else NULL.
 */
int gts_py_read_field(gts_py_program *, uint32_t leaf, PyObject *object, gts_array *array, PyObject **owner);
GTS_COLD int gts_py_refuse_object(gts_program *, const gts_contract *, PyObject *object);

/* array.c, exchange.c: as gts_py_read_field, for arrays, which have no domain: origin 0, no dimension names. */
int gts_py_read_array(gts_py_program *, const gts_contract *, PyObject *object, gts_array *array, PyObject **owner);
int gts_py_read_exchange(gts_py_program *, const gts_contract *, PyObject *object, gts_array *array, PyObject **owner);
/* Finds numpy's types if numpy has been imported; false if it has not, or after an exception. */
bool gts_py_find_numpy(gts_py_state *);
GTS_COLD int gts_py_refuse_dtype(gts_program *, const gts_contract *, const char *found);
/* Sets the strides of `array`, whose other parts are set; elements that are not aligned are refused. */
int gts_py_set_strides(gts_program *, const gts_contract *, gts_array *array, const int64_t *byte_strides);

/* scalar.c */
int gts_py_scalar(gts_program *, uint32_t leaf, void *object, void *value);
int gts_py_zero_dim_field(gts_program *, uint32_t leaf, void *object, void *value);

/* static.c */
int gts_py_static_scalar(gts_program *, uint32_t leaf, void *object);

#endif
