/* Changes scalars in all bound calls of a step. */
#include <stdlib.h>

#include "python/step/step.h"

int gts_py_wait(gts_program *program, int (*act)(void *), void *context)
{
    if (program != NULL)
        GTS_TRY(gts_py_await(gts_py_of(program)));
    return GTS_PY_WITHOUT_GIL(act(context));
}

/* Says where the exception that is set was raised. Returns -1. */
static GTS_COLD int fail_at(const gts_place *place)
{
    PyObject *const exception = PyErr_GetRaisedException();
    const bool gets_message = gts_py_is_refusal(exception);
    PyObject *text = NULL;
    const char *const reason = gets_message ? gts_py_message(exception, &text) : NULL;
    (void)gts_place_refuse(place, GTS_VALUE_ERROR, reason == NULL ? "a scalar could not be read." : reason);
    Py_XDECREF(text);
    gts_py_raise_again(exception, gets_message, gts_last_error(NULL)->message);
    return -1;
}

static int set_in(gts_step_tree *self, gts_py_scalars *scalars)
{
    if (gts_step_tree_check_names(self, scalars->scalars, scalars->count) != 0)
        return gts_py_raise(gts_last_error(NULL));
    for (size_t i = 0; i < self->place_count; ++i) {
        gts_place *const place = &self->places[i];
        const gts_position *const at = gts_position_of(place);
        if (at->call == NULL)
            continue;
        if (gts_py_read_scalars(((gts_py_bound *)at->role->data)->program, scalars) != 0)
            return fail_at(place);
        if (gts_place_set(self, place, scalars->scalars, scalars->count) != 0)
            return gts_py_raise(gts_last_error(NULL));
    }
    gts_step_tree_commit(self);
    return 0;
}

PyObject *gts_py_set_in_step(PyObject *step, PyObject *args, PyObject *keywords)
{
    gts_py_scalars scalars;
    if (gts_py_begin_scalars(&scalars, args, keywords) != 0)
        return NULL;
    gts_step_tree all;
    const int status = gts_step_tree_begin(&all, &((gts_py_step *)step)->step, 1, gts_py_wait) != 0
                           ? gts_py_raise(gts_last_error(NULL))
                           : set_in(&all, &scalars);
    gts_step_tree_end(&all);
    free(scalars.scalars);
    return status == 0 ? Py_NewRef(Py_None) : NULL;
}
