/*
 * Shared by the files of the Python host: the Program type.
 *
 * A function that returns int returns 0 for success. It returns -1 after it has written a refusal to the program's
 * error, or after a Python exception. Only the thread that has entered a program and holds the GIL may use its
 * gts_py_program.
 */
#ifndef GTSTUB_PYTHON_HOST_H
#define GTSTUB_PYTHON_HOST_H

#include <pthread.h>

#include "python/convert/convert.h"

/* The metrics of gt4py, as set_metrics() has set them. */
typedef struct gts_py_metrics {
    PyObject *namespace; /* a dict whose `key` is the level */
    PyObject *key;
    PyObject *sample;  /* called with the compute time */
    int32_t threshold; /* the lowest level at which `sample` is called */
} gts_py_metrics;

typedef struct gts_py_program {
    PyObject_HEAD vectorcallfunc vectorcall;
    gts_program *program;
    gts_py_state *state;
    PyObject *parameters; /* tuple of interned names */
    bool needs_offset_provider;
    bool on_cpu;                     /* the SDFG uses host memory only */
    bool may_keep_gil;               /* no thread but the caller's can call Python while the SDFG runs */
    PyInterpreterState *interpreter; /* that the program belongs to */
    PyThreadState *caller;           /* the thread that is in a call; NULL if none is */
    pthread_t thread;                /* of `caller`, if the program has callbacks */
    PyObject *callback_error;        /* the exception of the first callback that has failed in this call */
    void **argv;                     /* [parameters + 1], borrowed for one call */
    gts_py_leaf *leaf;               /* [leaf_count] */
    PyObject **keys;                 /* [collection_count], tuples of interned names */
    PyObject **held;                 /* [2 * leaf_count + keys], objects that must live until the call ends */
    uint32_t held_count;
    bool refused;         /* of a call that has failed: the arguments were refused, and nothing was called */
    PyObject **workspace; /* [workspace_count], owners of the lent memory */
    PyObject *stream;     /* the stream of this program alone; NULL if it has none */
    gts_py_metrics metrics;
    struct gts_py_program *next; /* the program that was created before this one */
} gts_py_program;

static inline gts_py_program *gts_py_of(const gts_program *program)
{
    return program->host;
}

/* ---- program.c ------------------------------------------------------------------------------------------------- */

extern PyType_Spec gts_py_program_spec;
/* All programs, protected by the GIL. They are not in the module's state because some may outlive it. */
extern gts_py_program *gts_py_programs;
/* Creates a Program that owns `program`; NULL after an exception, and then `program` has been closed. */
PyObject *gts_py_program_new(gts_py_state *, gts_program *program);

/* ---- enter.c --------------------------------------------------------------------------------------------------- */

/* Raises an exception with a message in the format of PyErr_Format(). Returns -1. */
GTS_COLD int gts_py_fail(PyObject *exception, const char *format, ...);
/* Raises the exception that `error` describes, unless an exception is set. Returns -1. */
GTS_COLD int gts_py_raise(const gts_error *error);
/* Enters the program, waiting without the GIL for other calls. After -1 an exception is set and nothing was entered. */
int gts_py_enter(gts_py_program *);
void gts_py_leave(gts_py_program *);
/* The program that this thread is calling, or whose callback it runs; NULL outside calls. What waits for calls of all programs is refused in one. */
const gts_py_program *gts_py_called_here(void);
/* Keeps a new reference until gts_py_leave(). */
void gts_py_hold(gts_py_program *, PyObject *object);

/* ---- call.c ---------------------------------------------------------------------------------------------------- */

PyObject *gts_py_call(PyObject *callable, PyObject *const *args, size_t flagged_given, PyObject *keywords);
/* argv: one object for each parameter, then the offset provider, which may be NULL if the program needs none. */
PyObject *gts_py_call_in_order(gts_py_program *, PyObject *const *argv);

/* ---- callback.c ------------------------------------------------------------------------------------------------ */

/* gts_program.call_back of a Program. */
int gts_py_call_back(gts_program *, uint32_t leaf, const gts_callback_value *values, uint32_t arguments,
                     uint32_t results);

/* ---- bind.c ---------------------------------------------------------------------------------------------------- */

/* Fills self->argv with the arguments in the order of the parameters, then the offset provider, or raises. */
int gts_py_bind_any(gts_py_program *, PyObject *const *args, Py_ssize_t given, PyObject *keywords);
/* The index of a name in a tuple of interned names, or -1. */
Py_ssize_t gts_py_find_name(PyObject *names, PyObject *name);
/* These raise what a Python function would raise, and return -1; `missing` is a list of names. */
GTS_COLD int gts_py_refuse_missing(const char *function, const char *kind, PyObject *missing);
GTS_COLD int gts_py_refuse_surplus(const char *function, Py_ssize_t taken, Py_ssize_t given, Py_ssize_t keywords);
GTS_COLD int gts_py_refuse_keyword(const char *function, PyObject *keyword, bool known);

/* ---- checks.c, graph.c, metrics.c, profile.c, stream.c, workspace.c -------------------------------------------- */

PyObject *gts_py_set_metrics(PyObject *self, PyObject *args, PyObject *keywords);
int gts_py_read_metrics_level(gts_py_program *);
/* Calls metrics.sample with a compute time; None, or NULL after an exception. */
PyObject *gts_py_sample(gts_py_program *, double compute_time);
PyObject *gts_py_begin_profile(PyObject *module, PyObject *unused);
PyObject *gts_py_end_profile(PyObject *module, PyObject *profile);
PyObject *gts_py_begin_checks(PyObject *module, PyObject *text);
PyObject *gts_py_end_checks(PyObject *module, PyObject *checks);
PyObject *gts_py_begin_graph(PyObject *module, PyObject *unused);
PyObject *gts_py_end_graph(PyObject *module, PyObject *graph);
PyObject *gts_py_launch_graph(PyObject *module, PyObject *args);
/* Reads None, an address, or an object with `__cuda_stream__`; -1 after an exception. */
int gts_py_read_stream(const gts_py_state *, PyObject *object, void **stream);
PyObject *gts_py_check_stream(PyObject *module, PyObject *stream);
PyObject *gts_py_get_stream(PyObject *self, void *unused);
int gts_py_set_stream(PyObject *self, PyObject *value, void *unused);
PyObject *gts_py_get_current_stream(PyObject *module, PyObject *unused);
PyObject *gts_py_set_current_stream(PyObject *module, PyObject *stream);
PyObject *gts_py_set_workspace(PyObject *self, PyObject *args, PyObject *keywords);

/* ---- convert/: the functions of gts_host, which gtstub/stub.h describes ---------------------------------------- */

int gts_py_field(gts_program *, uint32_t leaf, void *object);
int gts_py_zero_dim_field(gts_program *, uint32_t leaf, void *object, void *value);
int gts_py_scalar(gts_program *, uint32_t leaf, void *object, void *value);
int gts_py_callback(gts_program *, uint32_t leaf, void *object);
int gts_py_static_scalar(gts_program *, uint32_t leaf, void *object);
void *const *gts_py_tuple(gts_program *, const char *path, void *object, uint32_t length);
void *const *gts_py_collection(gts_program *, uint32_t collection, void *object);
void *gts_py_connectivity(gts_program *, uint32_t leaf, void *offset_provider);

#endif
