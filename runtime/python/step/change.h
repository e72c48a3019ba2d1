/* Inside the Python host: changing all that a step and the steps inside it contain. */
#pragma once

#include "python/step/step.h"

/* What takes the place of the arguments of a bound call or an action. */
typedef struct gts_py_change {
    PyObject *objects;        /* the new ones, a tuple; NULL if no array changes */
    PyObject *scalars;        /* the new ones of a bound call, a dict; NULL if no scalar changes */
    gts_py_arguments changed; /* of a bound call, after they were checked */
} gts_py_change;

/*
 * Changes a step: `choose` writes gts_py_change_of() each place. All of this is checked before anything changes. -1 after
 * an exception; then nothing has changed.
 */
int gts_py_change_step(PyObject *step, int (*choose)(const gts_step_tree *, void *what), void *what);

/* Says in the exception that is set which position could not be changed. Returns -1. */
GTS_COLD int gts_py_fail_to_change(const gts_place *);

static inline gts_py_change *gts_py_change_of(const gts_place *place)
{
    return place->changed;
}

/* The bound call at a place; NULL for an action. */
static inline gts_py_bound *gts_py_call_at(const gts_place *place)
{
    const gts_position *const at = gts_position_of(place);
    return at->call != NULL ? at->role->data : NULL;
}

/* The action at a place without a bound call. */
static inline gts_py_action *gts_py_action_at(const gts_place *place)
{
    return gts_position_of(place)->role->data;
}
