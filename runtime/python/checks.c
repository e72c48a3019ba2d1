/* Begins and ends debug checks for gtstub.checks(). */
#include "python/host.h"

static const char RUNNING[] = "gts_checks";
static const char ENDED[] = "gts_checks that have ended";

PyObject *gts_py_begin_checks(PyObject *Py_UNUSED(module), PyObject *text)
{
    if (!PyUnicode_Check(text)) {
        PyErr_Format(PyExc_TypeError, "Argument 'text' of 'begin_checks' must be a str, not '%s'.",
                     Py_TYPE(text)->tp_name);
        return NULL;
    }
    const char *const utf8 = PyUnicode_AsUTF8(text);
    if (utf8 == NULL)
        return NULL;
    gts_checks *const checks = gts_checks_begin(utf8);
    if (checks != NULL)
        return PyCapsule_New(checks, RUNNING, NULL);
    (void)gts_py_raise(gts_last_error(NULL));
    return NULL;
}

/* Running checks; NULL after an exception. */
static gts_checks *checks_of(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, RUNNING))
        return PyCapsule_GetPointer(capsule, RUNNING);
    if (PyCapsule_IsValid(capsule, ENDED))
        PyErr_SetString(PyExc_ValueError, "The checks have already ended.");
    else
        PyErr_Format(PyExc_TypeError, "Argument 'checks' of 'end_checks' must be a result of 'begin_checks', not '%s'.",
                     Py_TYPE(capsule)->tp_name);
    return NULL;
}

/* Checks end after the calls that are running. Refuses to wait for a call of this thread, or one without end. */
static int check_calls_can_end(void)
{
    const gts_py_program *const called = gts_py_called_here();
    if (called != NULL)
        return gts_py_fail(PyExc_RuntimeError, "Checks cannot end within a call of program '%s'.",
                           called->program->stub->name);
    if (!Py_IsFinalizing())
        return 0;
    return gts_py_fail(PyExc_RuntimeError, "Checks cannot end at the end of the interpreter.");
}

PyObject *gts_py_end_checks(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    gts_checks *checks = checks_of(capsule);
    if (checks == NULL || check_calls_can_end() != 0 || PyCapsule_SetName(capsule, ENDED) != 0)
        return NULL;
    PyThreadState *const thread = PyEval_SaveThread();
    gts_checks_end(&checks);
    PyEval_RestoreThread(thread);
    Py_RETURN_NONE;
}
