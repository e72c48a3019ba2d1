/*
 * Shared by the files of the Python host: the Program type.
 *
 * A function that returns int returns 0 for success. It returns -1 after it has written a refusal to the program's
 * error, or after a Python exception. Only the thread that has entered a program and holds the GIL may use its
 * gts_py_program.
 */
#pragma once

#include <pthread.h>

#include "program/host.h"
#include "python/convert/convert.h"

/* The metrics of gt4py, as set_metrics() has set them. */
typedef struct gts_py_metrics {
    PyObject *namespace; /* a dict whose `key` is the level */
    PyObject *key;
    PyObject *sample;  /* called with the compute time */
    int32_t threshold; /* the lowest level at which `sample` is called */
} gts_py_metrics;

/* The arguments of the running call, [parameters], and the objects that a callback gets in their place, or NULL. */
typedef struct gts_py_owned {
    PyObject *const *argv;
    PyObject *const *owners;
} gts_py_owned;

typedef struct gts_py_program {
    /* All members that a call with known arguments needs: at most two cache lines. */
    PyObject_HEAD vectorcallfunc vectorcall;
    gts_program *program;
    int (*convert)(gts_program *, const gts_host *, void *const *args); /* of the stub */
    int (*run)(gts_program *);                                          /* of the stub */
    PyObject *provider_keyword;                                         /* gts_py.name.offset_provider */
    PyThreadState *caller; /* the thread that is in a call; NULL if none is */
    uint32_t parameter_count;
    uint32_t held_count;
    bool may_keep_gil;        /* no thread but the caller's can call Python while the SDFG runs */
    bool reads_metrics_level; /* in the next call */
    bool wants_sample;        /* of gt4py's metrics, at the level that was read last */

    bool needs_offset_provider;
    bool on_cpu;                 /* the SDFG uses host memory only */
    PyObject *parameters;        /* tuple of interned names */
    pthread_t thread;            /* of `caller`, if the program has callbacks */
    PyObject *callback_error;    /* the exception of the first callback that has failed in this call */
    gts_py_owned owned;          /* NULL if callbacks get the arguments themselves */
    PyObject **argv;             /* [parameters + 1], borrowed for one call */
    int32_t *source;             /* [parameters + 1], of gts_py_match() for one call */
    gts_py_leaf *leaf;           /* [leaf_count] */
    PyObject **references;       /* [leaf_count][2]: for both objects of gts_leaf; see remember.c */
    PyObject *forget;            /* the callback of the weak references */
    uint32_t first_connectivity; /* leaf_count if there is none */
    const PyObject *provider;    /* the offset provider that was passed last; not a reference */
    PyObject **keys;             /* [collection_count], tuples of interned names */
    PyObject **held;             /* [3 * leaf_count + keys], objects that must live until the call ends, or NULL */
    bool refused;                /* of a call that has failed: the arguments were refused, and nothing was called */
    PyObject **workspace;        /* [workspace_count], owners of the lent memory */
    PyObject *stream;            /* the stream of this program alone; NULL if it has none */
    gts_py_metrics metrics;
    PyObject *path;              /* of the stub's file; NULL if it is not known */
    struct gts_py_program *next; /* the program that was created before this one */
} gts_py_program;

static inline gts_py_program *gts_py_of(const gts_program *program)
{
    return program->host;
}

static inline gts_py_argument gts_py_argument_of(const gts_py_program *self, const char *path, gts_dtype dtype,
                                                 gts_device device)
{
    gts_program *const program = self->program;
    return (gts_py_argument){.program = program->stub->name,
                             .path = path,
                             .dtype = dtype,
                             .device = device,
                             .error = &program->error,
                             .waiting = device == GTS_CPU ? NULL : program};
}

/* ---- program.c ------------------------------------------------------------------------------------------------- */

extern PyType_Spec gts_py_program_spec;
/* Creates a Program that owns `program`; NULL after an exception, and then `program` has been closed. */
PyObject *gts_py_program_new(gts_program *program);

/* ---- enter.c --------------------------------------------------------------------------------------------------- */

/* All programs, protected by the GIL. */
extern gts_py_program *gts_py_programs;

/* Raises an exception with a message in the format of PyErr_Format(). Returns -1. */
GTS_COLD int gts_py_fail(PyObject *exception, const char *format, ...);
/* Raises an exception again, which it steals, with another message or a note. */
void gts_py_raise_again(PyObject *exception, bool gets_message, const char *text);
/* Whether an exception is of a kind that gtstub raises itself: any other may need other arguments than a message. */
bool gts_py_is_refusal(const PyObject *exception);
/* The message of an exception, which lives as long as *text, a new reference; NULL if it has none. */
const char *gts_py_message(PyObject *exception, PyObject **text);
/* Raises the exception that `error` describes, unless an exception is set. Returns -1. */
GTS_COLD int gts_py_raise(const gts_error *error);
/* None, or NULL after an exception: that of the last error of the runtime, unless one is set. */
PyObject *gts_py_answer(int status);
extern int gts_py_captures;         /* that have begun in any thread, and not ended */
extern Py_ssize_t gts_py_elsewhere; /* calls until now of threads that captured nothing while another one captured */
extern __thread bool gts_py_is_in_action; /* this thread runs a function of a step that it captures */
/* gts_py_enter() while another call may be running. */
GTS_COLD int gts_py_enter_slowly(gts_py_program *);
/*
 * Waits until the program can be entered, or refuses: code of its own arguments must not wait for it. -1 after an exception,
 * or with the program's error.
 */
int gts_py_await(const gts_py_program *);
/* Releases what gts_py_hold() has kept. */
GTS_COLD void gts_py_release_held(gts_py_program *);
/* Refuses what waits for the calls of all programs while this thread is in one, or in its callback. */
int gts_py_refuse_in_call(const char *what);
/* Evaluates an expression without the GIL, which another thread may need meanwhile. */
#define GTS_PY_WITHOUT_GIL(expression)                                                                                 \
    ({                                                                                                                 \
        PyThreadState *const caller_ = PyEval_SaveThread();                                                            \
        __auto_type const result_ = expression;                                                                        \
        PyEval_RestoreThread(caller_);                                                                                 \
        result_;                                                                                                       \
    })

/* Keeps a new reference until gts_py_leave(). */
void gts_py_hold(gts_py_program *, PyObject *object);

/* Enters the program in the most frequent case (gts_try_enter()). The GIL is held all the time. */
static inline bool gts_py_try_enter(gts_py_program *self)
{
    if (GTS_UNLIKELY(!gts_try_enter(self->program)))
        return false;
    self->caller = PyThreadState_Get();
    return true;
}

/* Enters the program, waiting without the GIL for other calls. After -1 an exception is set and nothing was entered. */
static inline int gts_py_enter(gts_py_program *self)
{
    return GTS_LIKELY(gts_py_try_enter(self)) ? 0 : gts_py_enter_slowly(self);
}

static inline void gts_py_leave(gts_py_program *self)
{
    if (GTS_UNLIKELY(self->held_count > 0))
        gts_py_release_held(self);
    self->caller = NULL;
    gts_leave(self->program);
}

/*
 * Whether no other thread can need the GIL while the SDFG runs: there is no Python thread but `thread`, and no thread of
 * a device or of OpenMP that could become one by calling Python. Releasing and taking the GIL costs as much as the rest
 * of a call.
 */
static inline bool gts_py_is_alone(const gts_py_program *self, PyThreadState *thread)
{
    return self->may_keep_gil && thread->next == NULL && thread->prev == NULL;
}

/* ---- call.c ---------------------------------------------------------------------------------------------------- */

PyObject *gts_py_call(PyObject *callable, PyObject *const *args, size_t flagged_given, PyObject *keywords);
/* argv: one object for each parameter, then the offset provider, which may be NULL if the program needs none. */
PyObject *gts_py_call_in_order(gts_py_program *, PyObject *const *argv);

/* The same. A callback that would get argv[i] gets owners[i] instead, unless this is NULL; [parameters]. */
PyObject *gts_py_call_for_owners(gts_py_program *, PyObject *const *argv, PyObject *const *owners);

/* Converts the arguments of a call that was entered; `argv` as above. -1 after an error, which gts_py_complete() raises. */
int gts_py_convert(gts_py_program *, PyObject *const *argv);

/* Ends a call that was entered: runs the SDFG unless `status` is an error, and leaves. None, or NULL after an exception. */
PyObject *gts_py_complete(gts_py_program *, int status);

extern const gts_host gts_py_host;

/* ---- callback.c ------------------------------------------------------------------------------------------------ */

/* gts_program.call_back of a Program. */
int gts_py_call_back(gts_program *, uint32_t leaf, const gts_callback_value *values, uint32_t arguments,
                     uint32_t results);

/* ---- bind.c ---------------------------------------------------------------------------------------------------- */

/* The parameters that a call takes. */
typedef struct gts_py_signature {
    const char *function; /* the name in messages */
    PyObject *parameters; /* tuple of interned names, including those of bound parameters */
    PyObject **bound; /* [parameters + 1], the provider is last: NULL if a call must pass it; NULL if none is bound */
    bool needs_provider; /* if none is bound */
    bool overridable;    /* a call may pass bound arguments by keyword, as functools.partial allows */
} gts_py_signature;

/*
 * Finds the number of the argument for each parameter, then for the offset provider: source[parameters + 1], -1 for what
 * the call does not pass. Raises what a Python function would raise.
 */
int gts_py_match(const gts_py_signature *, Py_ssize_t given, PyObject *keywords, int32_t *source);
/* The index of a name in a tuple of interned names, or -1. */
Py_ssize_t gts_py_find_name(PyObject *names, PyObject *name);

/* ---- metrics.c, observe.c, stream.c, workspace.c --------------------------------------------------------------- */

PyObject *gts_py_set_metrics(PyObject *self, PyObject *args, PyObject *keywords);
int gts_py_read_metrics_level(gts_py_program *);
/* Calls metrics.sample with a compute time; None, or NULL after an exception. */
PyObject *gts_py_sample(gts_py_program *, double compute_time);
PyObject *gts_py_pool(PyObject *module, PyObject *unused);
PyObject *gts_py_begin_profile(PyObject *module, PyObject *unused);
PyObject *gts_py_end_profile(PyObject *module, PyObject *profile);
PyObject *gts_py_begin_checks(PyObject *module, PyObject *text);
PyObject *gts_py_end_checks(PyObject *module, PyObject *checks);
PyObject *gts_py_add_span(PyObject *module, PyObject *args);
PyObject *gts_py_check_stream(PyObject *module, PyObject *stream);
PyObject *gts_py_get_stream(PyObject *self, void *unused);
int gts_py_set_stream(PyObject *self, PyObject *value, void *unused);
PyObject *gts_py_get_current_stream(PyObject *module, PyObject *unused);
PyObject *gts_py_set_current_stream(PyObject *module, PyObject *stream);
PyObject *gts_py_set_workspace(PyObject *self, PyObject *args, PyObject *keywords);

/* ---- convert/remember.c ---------------------------------------------------------------------------------------- */

/* Makes the callback of the weak references; -1 after an exception. */
int gts_py_prepare_references(gts_py_program *);
void gts_py_free_references(gts_py_program *);
/*
 * Makes `array` the current one of a leaf. The object it was read from is recognised as long as `reference`, a weak
 * reference with the callback self->forget that this function steals, is alive; never if the reference is NULL.
 */
void gts_py_remember(gts_py_program *, uint32_t leaf, const gts_array *array, PyObject *object, PyObject *reference);
/* Keeps the object of a scalar if it is immutable, so that the next calls recognise it. */
void gts_py_keep(gts_py_program *, uint32_t leaf, PyObject *object);

/* ---- watch.c --------------------------------------------------------------------------------------------------- */

/* Sets gts_py.watcher. */
void gts_py_add_watcher(void);
/* From here on programs forget what they know of a dict when it changes; false if it cannot be watched. */
bool gts_py_watch(PyObject *dict);

/* ---- convert/: the functions of gts_host, which gtstub/stub.h describes ---------------------------------------- */

int gts_py_field(gts_program *, uint32_t leaf, void *object);
int gts_py_zero_dim_field(gts_program *, uint32_t leaf, void *object, void *value);
int gts_py_scalar(gts_program *, uint32_t leaf, void *object, void *value);
int gts_py_callback(gts_program *, uint32_t leaf, void *object);
int gts_py_static_scalar(gts_program *, uint32_t leaf, void *object);
void *const *gts_py_tuple(gts_program *, const char *path, void *object, uint32_t length);
void *const *gts_py_collection(gts_program *, uint32_t collection, void *object);
void *gts_py_connectivity(gts_program *, uint32_t leaf, void *offset_provider);
int gts_py_remember_provider(gts_program *, void *offset_provider);
