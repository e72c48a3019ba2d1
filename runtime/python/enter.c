/* Entering and leaving a program from Python, and raising exceptions. */
#include "program/bound.h"
#include "gtstub/stub.h"
#include "python/host.h"

#include <stdarg.h>

gts_py_program *gts_py_programs;

int gts_py_fail(PyObject *exception, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    PyErr_FormatV(exception, format, values);
    va_end(values);
    return -1;
}

int gts_py_raise(const gts_error *error)
{
    if (PyErr_Occurred())
        return -1;
    PyObject *const kind = error->kind == GTS_TYPE_ERROR    ? PyExc_TypeError
                           : error->kind == GTS_VALUE_ERROR ? PyExc_ValueError
                                                            : PyExc_RuntimeError;
    /* A long message may have been cut off within a character. */
    PyObject *const message = PyUnicode_DecodeUTF8(error->message, (Py_ssize_t)strlen(error->message), "replace");
    if (message != NULL)
        PyErr_SetObject(kind, message);
    Py_XDECREF(message);
    return -1;
}

PyObject *gts_py_answer(int status)
{
    if (status == 0)
        Py_RETURN_NONE;
    gts_py_raise(gts_last_error(NULL));
    return NULL;
}

void gts_py_raise_again(PyObject *exception, bool gets_message, const char *text)
{
    if (gets_message) {
        PyErr_SetString((PyObject *)Py_TYPE(exception), text);
        Py_DECREF(exception);
        return;
    }
    PyObject *const result = PyObject_CallMethod(exception, "add_note", "s", text);
    Py_XDECREF(result);
    PyErr_SetRaisedException(exception); /* not what has kept the note out */
}

bool gts_py_is_refusal(const PyObject *exception)
{
    const PyObject *const kind = (PyObject *)Py_TYPE(exception);
    return kind == PyExc_TypeError || kind == PyExc_ValueError || kind == PyExc_RuntimeError;
}

const char *gts_py_message(PyObject *exception, PyObject **text)
{
    *text = PyObject_Str(exception);
    const char *const message = *text == NULL ? NULL : PyUnicode_AsUTF8(*text);
    if (message == NULL)
        PyErr_Clear();
    return message;
}

/* Waits without the GIL, which the other call may be waiting for, and until a signal such as Ctrl-C raises an exception. */
static int wait_in_turn(const gts_py_program *self)
{
    int status = gts_enter(self->program, false);
    if (status <= 0)
        return status;
    if (self->caller == PyThreadState_Get()) /* code of an argument has called the program again */
        return gts_py_fail(PyExc_RuntimeError,
                           "Program '%s' was called while it was reading the arguments of another call.",
                           self->program->stub->name);
    if (Py_IsFinalizing()) /* the other thread will not get the GIL again, so it would never leave */
        return gts_py_fail(PyExc_RuntimeError,
                           "Program '%s' was called at the end of the interpreter, while another thread was in a call.",
                           self->program->stub->name);
    do
        status = GTS_PY_WITHOUT_GIL(gts_enter(self->program, true));
    while (status > 0 && PyErr_CheckSignals() == 0);
    return status > 0 ? -1 : status;
}

int gts_py_await(const gts_py_program *self)
{
    GTS_TRY(wait_in_turn(self));
    gts_leave(self->program);
    return 0;
}

int gts_py_captures;
Py_ssize_t gts_py_elsewhere;
__thread bool gts_py_is_in_action;

int gts_py_enter_slowly(gts_py_program *self)
{
    self->refused = false; /* whatever fails here is no refusal of arguments, such as an earlier call may have left */
    gts_binding *const binding = gts_binding_here;
    gts_py_elsewhere += gts_py_captures > 0 && binding == NULL && !gts_py_is_in_action &&
                        gts_innermost_callback == NULL;
    if (GTS_UNLIKELY(binding != NULL && binding->before != NULL) && binding->before(binding) != 0)
        return -1;
    if (wait_in_turn(self) != 0)
        return gts_py_raise(&self->program->error);
    self->caller = PyThreadState_Get();
    return 0;
}

int gts_py_refuse_in_call(const char *what)
{
    const PyThreadState *const thread = PyThreadState_Get();
    const gts_py_program *called = gts_py_programs;
    while (called != NULL && called->caller != thread)
        called = called->next;
    if (gts_innermost_callback != NULL) /* in any thread of the SDFG */
        called = gts_py_of(gts_innermost_callback->program);
    return called == NULL ? 0
                          : gts_py_fail(PyExc_RuntimeError, "%s within a call of program '%s'.", what,
                                        called->program->stub->name);
}

void gts_py_hold(gts_py_program *self, PyObject *object)
{
    self->held[self->held_count++] = object;
}

void gts_py_release_held(gts_py_program *self)
{
    while (self->held_count > 0)
        Py_XDECREF(self->held[--self->held_count]); /* NULL in a collection that was refused */
}
