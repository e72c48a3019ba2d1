/* Inside the Python host: all that a step and the steps inside it contain, and how it is changed. */
#ifndef GTSTUB_PYTHON_STEP_TREE_H
#define GTSTUB_PYTHON_STEP_TREE_H

#include "python/step/step.h"

/* A position with a bound call or an action, and what takes the place of its arguments. */
typedef struct gts_py_place {
    const gts_py_step *step;
    size_t position;
    PyObject *objects;        /* the new ones, a tuple; NULL if no array changes */
    PyObject *scalars;        /* the new ones of a bound call, a dict; NULL if no scalar changes */
    gts_py_arguments changed; /* of a bound call, after they were checked */
} gts_py_place;

/* A step and those inside it, and their bound calls and actions, each once. All of these steps are entered. */
typedef struct gts_py_tree {
    gts_py_state *state;
    gts_py_step **steps; /* strong references */
    size_t step_count;
    gts_py_place *places;
    size_t place_count;
} gts_py_tree;

/* Enters a step and all inside it. gts_py_tree_end() must be called also after -1. */
int gts_py_tree_begin(gts_py_tree *, gts_py_step *);

/* Checks what takes the place of anything, and then changes all of it, or nothing after -1. */
int gts_py_tree_change(gts_py_tree *);

void gts_py_tree_end(gts_py_tree *);

/* Says in the exception that is set which position could not be changed. Returns -1. */
GTS_COLD int gts_py_tree_fail(const gts_py_place *);

/* The bound call at a place; NULL for an action. */
static inline gts_py_bound *gts_py_call_at(const gts_py_place *place)
{
    return gts_py_is_call(place->step, place->position) ? gts_py_bound_at(place->step, place->position) : NULL;
}

/* The action at a place without a bound call. */
static inline gts_py_action *gts_py_action_at(const gts_py_place *place)
{
    return (gts_py_action *)PyTuple_GET_ITEM(place->step->actions, (Py_ssize_t)place->position);
}

#endif
