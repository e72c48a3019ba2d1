/* Changes a step with all that it contains: everything is checked before anything changes. */
#include "python/step/tree.h"

/* ---- Errors ---------------------------------------------------------------------------------------------------- */

int gts_py_tree_fail(const gts_py_place *place)
{
    const gts_step *const step = place->step->step;
    PyObject *const exception = PyErr_GetRaisedException();
    char where[512];
    (void)PyOS_snprintf(where, sizeof where, "Step '%.200s' cannot be changed at position %zu, %s '%.200s'", step->name,
                        place->position + 1, step->positions[place->position].role->kind,
                        gts_step_name_at(step, place->position));
    if (gts_py_is_refusal(exception)) {
        PyErr_Format((PyObject *)Py_TYPE(exception), "%s: %S", where, exception);
        Py_DECREF(exception);
    } else {
        (void)PyOS_snprintf(where + strlen(where), sizeof where - strlen(where), ".");
        gts_py_add_note(exception, where);
        PyErr_SetRaisedException(exception);
    }
    return -1;
}

/* ---- Collecting ------------------------------------------------------------------------------------------------ */

/* Makes room for one more element of an array, whose room is a power of two; false after an exception. */
static bool grow(void *array, size_t count, size_t size)
{
    void **const memory = array;
    if ((count & (count - 1)) != 0)
        return true;
    void *const larger = PyMem_Realloc(*memory, (count == 0 ? 1 : 2 * count) * size);
    if (larger != NULL)
        *memory = larger;
    else
        PyErr_NoMemory();
    return larger != NULL;
}

/* Enters a step, and adds it. */
static int add_step(gts_py_tree *self, gts_py_step *step)
{
    for (size_t i = 0; i < self->step_count; ++i) {
        if (self->steps[i] == step)
            return 0;
    }
    if (!grow(&self->steps, self->step_count, sizeof(gts_py_step *)))
        return -1;
    if (gts_step_enter(step->step) != 0)
        return gts_py_raise(gts_last_error(NULL));
    self->steps[self->step_count++] = (gts_py_step *)Py_NewRef((PyObject *)step);
    return 0;
}

/* Adds the bound call or the action at a position. */
static int add_place(gts_py_tree *self, const gts_py_step *step, size_t position)
{
    const PyObject *const object = PyTuple_GET_ITEM(step->actions, (Py_ssize_t)position);
    for (size_t i = 0; i < self->place_count; ++i) {
        const gts_py_place *const other = &self->places[i];
        if (PyTuple_GET_ITEM(other->step->actions, (Py_ssize_t)other->position) == object)
            return 0;
    }
    if (!grow(&self->places, self->place_count, sizeof(gts_py_place)))
        return -1;
    self->places[self->place_count++] = (gts_py_place){.step = step, .position = position};
    return 0;
}

int gts_py_tree_begin(gts_py_tree *self, gts_py_step *step)
{
    *self = (gts_py_tree){.state = gts_py_find_state(Py_TYPE((PyObject *)step))};
    int status = self->state == NULL ? -1 : add_step(self, step);
    for (size_t i = 0; i < self->step_count; ++i) {
        const gts_py_step *const outer = self->steps[i];
        for (size_t position = 0; position < outer->step->count && status == 0; ++position) {
            PyObject *const item = PyTuple_GET_ITEM(outer->actions, (Py_ssize_t)position);
            if (gts_py_is_call(outer, position) || Py_IS_TYPE(item, self->state->action_type))
                status = add_place(self, outer, position);
            else if (PyObject_TypeCheck(item, self->state->step_type))
                status = add_step(self, (gts_py_step *)item);
        }
    }
    return status;
}

void gts_py_tree_end(gts_py_tree *self)
{
    for (size_t i = 0; i < self->step_count; ++i)
        gts_step_leave(self->steps[i]->step);
    for (size_t i = 0; i < self->place_count; ++i) { /* what is freed may run finalizers, which may use the steps */
        gts_py_clear_arguments(&self->places[i].changed);
        Py_XDECREF(self->places[i].objects);
        Py_XDECREF(self->places[i].scalars);
    }
    for (size_t i = 0; i < self->step_count; ++i)
        Py_DECREF((PyObject *)self->steps[i]);
    PyMem_Free(self->places);
    PyMem_Free(self->steps);
}

/* ---- Changing -------------------------------------------------------------------------------------------------- */

static void change_place(gts_py_place *place)
{
    gts_py_bound *const bound = gts_py_call_at(place);
    if (bound != NULL && place->changed.slots != NULL) {
        gts_py_exchange_arguments(bound, &place->changed);
    } else if (bound == NULL && place->objects != NULL) {
        gts_py_action *const action = gts_py_action_at(place);
        PyObject *const arrays = action->arrays;
        action->arrays = place->objects;
        place->objects = arrays;
    }
}

int gts_py_tree_change(gts_py_tree *self)
{
    for (size_t i = 0; i < self->place_count; ++i) {
        gts_py_place *const place = &self->places[i];
        gts_py_bound *const bound = gts_py_call_at(place);
        if (bound == NULL || (place->objects == NULL && place->scalars == NULL))
            continue;
        PyObject *const objects = Py_XNewRef(place->objects != NULL ? place->objects : bound->arguments.objects);
        const int status = gts_py_check_arguments(bound, objects, place->scalars, &place->changed);
        Py_XDECREF(objects);
        if (status != 0)
            return gts_py_tree_fail(place);
    }
    for (size_t i = 0; i < self->place_count; ++i)
        change_place(&self->places[i]);
    return 0;
}
