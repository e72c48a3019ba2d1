/*
 * Shared by the files of bound calls and steps of the Python host. Functions that return int return 0 for success and
 * -1 after an exception. Only the thread that has the GIL may use them.
 */
#pragma once

#include "python/host.h"

#include "steps/steps.h"

/* What keeps the memory of an argument. */
typedef struct gts_py_kept {
    PyObject *object; /* what was passed; NULL for scalars */
    PyObject *owner;  /* of the memory, if the object makes its array anew for each call; or NULL */
} gts_py_kept;

/* A bound call. */
typedef struct gts_py_bound {
    PyObject_HEAD vectorcallfunc vectorcall;
    gts_bound_call *call;
    gts_py_program *program; /* owned */
    gts_py_kept *kept;       /* [leaf_count]; NULL after the collector cleared it */
    /* Before each start, and if there are callbacks, after it, with the GIL: -1 refuses; NULL if nothing is checked. */
    int (*check)(PyObject *checked, bool has_run);
    PyObject *checked; /* owned; NULL without `check` */
} gts_py_bound;

/* A function with the arrays that it uses. */
typedef struct gts_py_action {
    PyObject_HEAD PyObject *function;
    Py_ssize_t count; /* of the objects that the function is called with, which are the first ones of `kept` */
    Py_ssize_t kept_count;
    gts_py_kept *kept; /* [kept_count] */
    gts_held *held;    /* those that are arrays, and the arrays inside others */
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

/* ---- bound.c --------------------------------------------------------------------------------------------------- */

extern PyType_Spec gts_py_bound_spec;
/* A bound call with the arguments that the program, which is entered, has now; NULL after an exception. */
PyObject *gts_py_bound_new(gts_py_program *);
/* Starts a bound call that gts_start_known() has not started. */
int gts_py_start_slowly(gts_py_bound *);
/* Whether the level of gt4py's metrics is the one that the program has, and asks for no sample. */
bool gts_py_is_level_known(const gts_py_program *);
void gts_py_clear_kept(gts_py_kept **, Py_ssize_t count);
static inline int gts_py_visit_kept(const gts_py_kept *kept, Py_ssize_t count, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; kept != NULL && i < count; ++i) {
        Py_VISIT(kept[i].object);
        Py_VISIT(kept[i].owner);
    }
    return 0;
}

/* ---- action.c -------------------------------------------------------------------------------------------------- */

extern PyType_Spec gts_py_action_spec;
/* An action with the same function and arrays, which a swap changes by itself. */
PyObject *gts_py_action_copy(PyObject *action);

/* ---- capture.c ------------------------------------------------------------------------------------------------- */

/* Has the bound call of the call that has just ended, if there is one, checked before each start. Owns `checked`. */
void gts_py_check_bound(const gts_py_program *, int (*check)(PyObject *, bool), PyObject *checked);
PyObject *gts_py_bind(PyObject *module, PyObject *args, PyObject *keywords);
PyObject *gts_py_bind_program(PyObject *callable, PyObject *args, PyObject *keywords);
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

PyObject *gts_py_set_in_call(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *gts_py_set_in_step(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *gts_py_swap_in_step(PyObject *self, PyObject *const *arrays, Py_ssize_t count);
PyObject *gts_py_swap(PyObject *module, PyObject *const *args, Py_ssize_t count);
/* The gts_waiting of Python, which releases the GIL. */
int gts_py_wait(gts_program *, int (*act)(void *), void *context);
/* gts_step_host.swapped(), with the GIL. */
void gts_py_swapped(const gts_step_tree *, const gts_swap *);

/* ---- hand_over.c ----------------------------------------------------------------------------------------------- */

PyObject *gts_py_hand_over(PyObject *module, PyObject *args);
PyObject *gts_py_take_back(PyObject *module, PyObject *name);
PyObject *gts_py_end_steps(PyObject *module, PyObject *unused);
