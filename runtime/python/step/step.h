/*
 * Shared by the files of bound calls and steps of the Python host. Functions that return int return 0 for success and
 * -1 after an exception. Only the thread that has the GIL may use them.
 */
#pragma once

#include "python/host.h"

#include "gtstub/bound.h"

/* The arguments of a bound call. */
typedef struct gts_py_arguments {
    void *slots;       /* of the stub's size */
    PyObject *objects; /* tuple [leaf_count]: what was passed for each leaf; None for scalars, which are slots */
    PyObject *held;    /* tuple: what owns the memory of arrays that their objects make anew for each call */
    gts_array *arrays; /* [leaf_count]: those of the leaves that are arrays, without names of dimensions */
} gts_py_arguments;

/* A bound call. */
typedef struct gts_py_bound {
    PyObject_HEAD vectorcallfunc vectorcall;
    gts_bound_call *call;
    gts_py_program *program; /* owned */
    gts_py_arguments
        arguments; /* the slots are those of `call`; the objects are NULL after the collector cleared them */
    /* Before each start, and if there are callbacks, after it, with the GIL: -1 refuses; NULL if nothing is checked. */
    int (*check)(PyObject *checked, bool has_run);
    PyObject *checked; /* owned; NULL without `check` */
} gts_py_bound;

/* A function with the arrays that it uses. */
typedef struct gts_py_action {
    PyObject_HEAD PyObject *function;
    PyObject *arrays; /* tuple: what the function is called with */
} gts_py_action;

/* A step. */
typedef struct gts_py_step {
    PyObject_HEAD vectorcallfunc vectorcall;
    gts_step *step;
    PyObject *actions;       /* tuple of bound calls, steps, actions and other callables */
    gts_py_program *sampled; /* borrowed: a program whose metrics are those of all programs; NULL if there is none */
    gts_py_program *alone;   /* borrowed: a program that may keep the GIL; NULL if some program may not */
    int32_t level;           /* of the metrics when all programs had it */
    bool has_levels;         /* the programs have metrics of several kinds */
} gts_py_step;

/* Whether a call that takes no arguments was given any. */
static inline bool gts_py_has_arguments(size_t flagged_given, PyObject *keywords)
{
    return PyVectorcall_NARGS(flagged_given) != 0 || (keywords != NULL && PyTuple_GET_SIZE(keywords) != 0);
}

static inline gts_py_bound *gts_py_bound_at(const gts_py_step *self, size_t position)
{
    return (gts_py_bound *)PyTuple_GET_ITEM(self->actions, (Py_ssize_t)position);
}

static inline bool gts_py_is_call(const gts_py_step *self, size_t position)
{
    return self->step->positions[position].call != NULL;
}

/* ---- bound.c --------------------------------------------------------------------------------------------------- */

extern PyType_Spec gts_py_bound_spec;
/* A bound call with the arguments that the program, which is entered, has now; NULL after an exception. */
PyObject *gts_py_bound_new(gts_py_program *);
/* Starts a bound call that gts_start_known() has not started. */
int gts_py_start_slowly(gts_py_bound *);
/* Whether the level of gt4py's metrics is the one that the program has, and asks for no sample. */
bool gts_py_is_level_known(const gts_py_program *);
/*
 * Checks other arguments: the objects of a tuple, and the scalars of a dict, which may be NULL. Writes them to *changed,
 * which must be cleared, or if `exchanges`, exchanges the arguments with them at once.
 */
int gts_py_check_arguments(gts_py_bound *, PyObject *objects, PyObject *scalars, bool exchanges,
                           gts_py_arguments *changed);
/* Exchanges the arguments of a bound call with others that were checked. Waits for a start that is running. */
void gts_py_exchange_arguments(gts_py_bound *, gts_py_arguments *);
void gts_py_clear_arguments(gts_py_arguments *);

/* ---- action.c -------------------------------------------------------------------------------------------------- */

extern PyType_Spec gts_py_action_spec;
/* An action with the same function and arrays, which a swap changes by itself. */
PyObject *gts_py_action_copy(PyObject *action);

/* ---- capture.c ------------------------------------------------------------------------------------------------- */

/* Has the bound call of the call that has just ended, if there is one, checked before each start. Owns `checked`. */
void gts_py_check_bound(const gts_py_program *, int (*check)(PyObject *, bool), PyObject *checked);
PyObject *gts_py_bind(PyObject *module, PyObject *args, PyObject *keywords);
PyObject *gts_py_bind_program(PyObject *self, PyObject *args, PyObject *keywords);
/* Does the action of a position that has no call and no step while this thread captures: the capture has it, too. */
GTS_COLD int gts_py_capture_action(const gts_position *);
PyObject *gts_py_begin_capture(PyObject *module, PyObject *args);
PyObject *gts_py_end_capture(PyObject *module, PyObject *capture);
PyObject *gts_py_calls_elsewhere(PyObject *module, PyObject *unused);
PyObject *gts_py_binding(PyObject *module, PyObject *unused);

/* ---- step.c ---------------------------------------------------------------------------------------------------- */

extern PyType_Spec gts_py_step_spec;
/* Does an action, whatever it is. */
int gts_py_act(const gts_position *);
/* Whether all programs have the metrics level that is set now, and it asks for no samples. Needs no GIL. */
bool gts_py_are_levels_known(const gts_py_step *);
/* Does all actions by ordinary calls, which are timed, checked or measured. Needs the GIL only if `act` does. */
GTS_NOINLINE int gts_py_do_slowly(gts_py_step *, size_t *position, gts_step_act act);

/* ---- set.c, swap.c --------------------------------------------------------------------------------------------- */

PyObject *gts_py_set_in_step(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *gts_py_swap_in_step(PyObject *self, PyObject *pairs);
/* The same for C: -1 after an exception. The addresses are those of arrays of the step. */
int gts_py_set_value_in_step(PyObject *self, const char *argument, gts_dtype dtype, const void *value);
int gts_py_swap_memory_in_step(PyObject *self, const void *a, const void *b);

/* ---- hand_over.c ----------------------------------------------------------------------------------------------- */

PyObject *gts_py_hand_over(PyObject *module, PyObject *args);
PyObject *gts_py_take_back(PyObject *module, PyObject *name);
PyObject *gts_py_end_steps(PyObject *module, PyObject *unused);
