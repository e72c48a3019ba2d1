/* Entering and leaving a program from Python, and raising exceptions. */
#include "gtstub/callback.h"
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

void gts_py_add_note(PyObject *exception, const char *text)
{
    PyObject *const result = PyObject_CallMethod(exception, "add_note", "s", text);
    if (result == NULL)
        PyErr_Clear();
    Py_XDECREF(result);
}

bool gts_py_is_refusal(const PyObject *exception)
{
    const PyObject *const kind = (PyObject *)Py_TYPE(exception);
    return kind == PyExc_TypeError || kind == PyExc_ValueError || kind == PyExc_RuntimeError;
}

/* Waits without the GIL, and until a signal such as Ctrl-C raises an exception. */
static int wait_to_enter(gts_program *program)
{
    for (;;) {
        PyThreadState *const thread = PyEval_SaveThread();
        const int status = gts_enter(program, true);
        PyEval_RestoreThread(thread);
        if (status <= 0)
            return status;
        if (PyErr_CheckSignals() != 0)
            return -1;
    }
}

/* Waits without the GIL, because the other call may be waiting for the GIL. */
static int wait_in_turn(const gts_py_program *self)
{
    const int status = gts_enter(self->program, false);
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
    return wait_to_enter(self->program);
}

int gts_py_enter_slowly(gts_py_program *self)
{
    if (wait_in_turn(self) != 0)
        return gts_py_raise(&self->program->error);
    self->caller = PyThreadState_Get();
    return 0;
}

const gts_py_program *gts_py_called_here(void)
{
    if (gts_innermost_callback != NULL) /* in any thread of the SDFG */
        return gts_py_of(gts_innermost_callback->program);
    const PyThreadState *const thread = PyThreadState_Get();
    const gts_py_program *program = gts_py_programs;
    while (program != NULL && program->caller != thread)
        program = program->next;
    return program;
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
