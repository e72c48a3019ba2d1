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

static int read_at(const gts_place *place, void *scalars)
{
    const gts_py_bound *const call = gts_position_of(place)->role->data;
    return gts_py_read_scalars(call->program, scalars) == 0 ? 0 : fail_at(place);
}

PyObject *gts_py_set_in_step(PyObject *object, PyObject *args, PyObject *keywords)
{
    gts_step *const step = ((gts_py_step *)object)->step;
    gts_py_scalars scalars;
    if (gts_py_begin_scalars(&scalars, args, keywords) != 0)
        return NULL;
    const int status = gts_step_set(step, scalars.scalars, scalars.count, gts_py_wait, read_at, &scalars);
    free(scalars.scalars);
    return gts_py_answer(status);
}
