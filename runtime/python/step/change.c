/* Changes a step with all that it contains: program/step_tree.c says when, and this what. */
#include "python/step/change.h"

/* ---- Errors ---------------------------------------------------------------------------------------------------- */

int gts_py_fail_to_change(const gts_place *place)
{
    const gts_step *const step = place->step;
    PyObject *const exception = PyErr_GetRaisedException();
    char where[512];
    (void)PyOS_snprintf(where, sizeof where, "Step '%.200s' cannot be changed at position %zu, %s '%.200s'", step->name,
                        place->position + 1, gts_position_of(place)->role->kind,
                        gts_step_name_at(step, place->position));
    if (gts_py_is_refusal(exception)) {
        PyErr_Format((PyObject *)Py_TYPE(exception), "%s: %S", where, exception);
        Py_DECREF(exception);
    } else {
        (void)PyOS_snprintf(where + strlen(where), sizeof where - strlen(where), ".");
        gts_py_raise_again(exception, false, where);
    }
    return -1;
}

/* ---- Changing -------------------------------------------------------------------------------------------------- */

static int check(gts_place *place, const void *Py_UNUSED(what))
{
    gts_py_change *const change = gts_py_change_of(place);
    gts_py_bound *const bound = gts_py_call_at(place);
    if (bound == NULL || (change->objects == NULL && change->scalars == NULL))
        return 0;
    PyObject *const objects = Py_XNewRef(change->objects != NULL ? change->objects : bound->arguments.objects);
    const int status = gts_py_check_arguments(bound, objects, change->scalars, false, &change->changed);
    Py_XDECREF(objects);
    return status == 0 ? 0 : gts_py_fail_to_change(place);
}

static void exchange(gts_place *place)
{
    gts_py_change *const change = gts_py_change_of(place);
    gts_py_bound *const bound = gts_py_call_at(place);
    if (bound != NULL && change->changed.slots != NULL) {
        gts_py_exchange_arguments(bound, &change->changed);
    } else if (bound == NULL && change->objects != NULL) {
        gts_py_action *const action = gts_py_action_at(place);
        PyObject *const arrays = action->arrays;
        action->arrays = change->objects;
        change->objects = arrays;
    }
}

/* What is freed may run finalizers, which may use the steps. */
static void release(gts_place *place)
{
    gts_py_change *const change = gts_py_change_of(place);
    gts_py_clear_arguments(&change->changed);
    Py_XDECREF(change->objects);
    Py_XDECREF(change->scalars);
}

int gts_py_change_step(PyObject *step, int (*choose)(const gts_step_tree *, void *what), void *what)
{
    gts_step_tree all;
    int status = gts_step_tree_begin(&all, ((gts_py_step *)step)->step, sizeof(gts_py_change));
    if (status != 0)
        (void)gts_py_raise(gts_last_error(NULL));
    else if (choose(&all, what) != 0)
        status = -1;
    else
        status = gts_step_tree_change(&all, check, exchange, NULL);
    gts_step_tree_end(&all, release);
    return status;
}
