/* Hands steps over to C and Fortran, which run and change them from any thread, with the GIL only where it is needed. */
#include "python/step/step.h"

/* ---- Errors ---------------------------------------------------------------------------------------------------- */

/*
 * Makes the exception that is set gts_last_error(NULL). If it has a traceback, it goes to sys.unraisablehook, too. `call`
 * says that it is from a bound call, whose refusals are plain messages.
 */
static GTS_COLD void keep_exception(PyObject *where, bool is_call)
{
    PyObject *const exception = PyErr_GetRaisedException();
    PyObject *text;
    const char *const reason = gts_py_message(exception, &text);
    const char *const end = reason == NULL || *reason == '\0' ? "" : &reason[strlen(reason) - 1];
    char message[900];
    if (is_call && gts_py_is_refusal(exception))
        PyOS_snprintf(message, sizeof message, "%s", reason == NULL ? "" : reason);
    else
        PyOS_snprintf(message, sizeof message, "%.100s%s%.700s%s", Py_TYPE(exception)->tp_name,
                      *end == '\0' ? "" : ": ", reason == NULL ? "" : reason, *end == '.' ? "" : ".");
    Py_XDECREF(text);
    PyObject *const traceback = PyException_GetTraceback(exception);
    Py_XDECREF(traceback);
    const gts_error_kind kind = PyErr_GivenExceptionMatches(exception, PyExc_TypeError)    ? GTS_TYPE_ERROR
                                : PyErr_GivenExceptionMatches(exception, PyExc_ValueError) ? GTS_VALUE_ERROR
                                                                                           : GTS_RUNTIME_ERROR;
    PyErr_SetRaisedException(exception);
    if (traceback != NULL)
        PyErr_WriteUnraisable(where);
    PyErr_Clear();
    gts_step_set_error(kind, message); /* now, because sys.unraisablehook may use gtstub */
}

/* ---- Running --------------------------------------------------------------------------------------------------- */

static int run_entered(gts_step *step);

/* Whether a call of a step is a run of it: a subclass may have a __call__ of its own. */
static bool is_plain(const gts_step *step)
{
    return Py_TYPE((PyObject *)step->owner)->tp_call == PyVectorcall_Call;
}

/* Does an action that needs the GIL. */
static GTS_NOINLINE int act(const gts_position *at)
{
    gts_step *const inner = at->role->step; /* which need not be handed over itself */
    int status = -1;
    if (inner != NULL && is_plain(inner)) {
        if (gts_step_enter(inner) != 0)
            return -1;
        status = run_entered(inner);
        gts_step_leave(inner);
        return status;
    }
    const PyGILState_STATE gil = PyGILState_Ensure();
    status = gts_py_act(at);
    if (status != 0)
        keep_exception(at->role->data, at->call != NULL);
    PyGILState_Release(gil);
    return status;
}

static const gts_position *start_known(const void *Py_UNUSED(host), const gts_position *at, const gts_position *end,
                                       int *status)
{
    at = gts_step_start_known(at, end, status);
    if (GTS_UNLIKELY(*status < 0)) {
        const gts_error *const error = &at->call->program->error;
        gts_step_set_error(error->kind, error->message);
    }
    return at;
}

static int run_entered(gts_step *step)
{
    gts_py_step *const self = step->owner;
    size_t position;
    const bool is_slow = gts_step_is_timed() || !gts_py_are_levels_known(self);
    const int status = GTS_UNLIKELY(is_slow) ? gts_py_do_slowly(self, &position, act)
                                             : gts_step_do(step, &position, act, start_known, NULL);
    if (GTS_LIKELY(status == 0))
        return 0;
    const gts_error error = *gts_last_error(NULL);
    return gts_step_fail(step, position, error.kind, error.message);
}

/* ---- Changing -------------------------------------------------------------------------------------------------- */

static void swapped(const gts_step_tree *tree, const gts_swap *arrays)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    gts_py_swapped(tree, arrays);
    PyGILState_Release(gil);
}

static const gts_step_host HOST = {run_entered, swapped};

/* ---- Handing over ---------------------------------------------------------------------------------------------- */

static bool have_steps_ended; /* protected by the GIL */

PyObject *gts_py_hand_over(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *object;
    const char *name;
    if (!PyArg_ParseTuple(args, "Os:hand_over", &object, &name))
        return NULL;
    if (!PyObject_TypeCheck(object, gts_py.step_type))
        return PyErr_Format(PyExc_TypeError, "Argument 'step' of 'hand_over' must be a step, not '%s'.",
                            Py_TYPE(object)->tp_name);
    gts_step *const step = ((gts_py_step *)object)->step;
    if (have_steps_ended)
        return PyErr_Format(PyExc_RuntimeError, "Step '%s' cannot be handed over at the end of the interpreter.",
                            step->name);
    if (!is_plain(step))
        return PyErr_Format(
            PyExc_TypeError,
            "Step '%s' cannot be handed over: its class '%s' has a '__call__' of its own, which C would "
            "not call.",
            step->name, Py_TYPE(object)->tp_name);
    step->host = &HOST;
    if (gts_step_hand_over(step, name) != 0)
        return gts_py_answer(-1);
    Py_INCREF(object);
    Py_RETURN_NONE;
}

/* Frees a step that was taken back. */
static void free_taken(gts_step *step)
{
    PyObject *const owner = step->owner;
    gts_step_free(&step);
    Py_DECREF(owner);
}

PyObject *gts_py_take_back(PyObject *Py_UNUSED(module), PyObject *name)
{
    const char *const text = PyUnicode_AsUTF8(name);
    gts_step *step;
    if (text == NULL)
        return NULL;
    if (gts_step_take_back(text, &step) != 0)
        return gts_py_answer(-1);
    free_taken(step);
    Py_RETURN_NONE;
}

PyObject *gts_py_end_steps(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    have_steps_ended = true;
    for (;;) {
        gts_step *const step = GTS_PY_WITHOUT_GIL(gts_step_end_one());
        if (step == NULL)
            Py_RETURN_NONE;
        free_taken(step);
    }
}
