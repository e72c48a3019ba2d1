/* Begins and ends profiles for gtstub.profiling. */
#include <stdlib.h>

#include "python/host.h"

static const char RUNNING[] = "gts_profile";
static const char ENDED[] = "gts_profile that has ended";

PyObject *gts_py_begin_profile(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    gts_profile *const profile = gts_profile_begin();
    return profile == NULL ? PyErr_NoMemory() : PyCapsule_New(profile, RUNNING, NULL);
}

/* A running profile; NULL after an exception. */
static gts_profile *profile_of(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, RUNNING))
        return PyCapsule_GetPointer(capsule, RUNNING);
    if (PyCapsule_IsValid(capsule, ENDED))
        PyErr_SetString(PyExc_ValueError, "The profile has already ended.");
    else
        PyErr_Format(PyExc_TypeError,
                     "Argument 'profile' of 'end_profile' must be a result of 'begin_profile', not '%s'.",
                     Py_TYPE(capsule)->tp_name);
    return NULL;
}

/* A profile ends after the calls that are running. Refuses to wait for a call of this thread, or one without end. */
static int check_calls_can_end(void)
{
    const gts_py_program *const called = gts_py_called_here();
    if (called != NULL)
        return gts_py_fail(PyExc_RuntimeError, "A profile cannot end within a call of program '%s'.",
                           called->program->stub->name);
    if (!Py_IsFinalizing())
        return 0;
    return gts_py_fail(PyExc_RuntimeError, "A profile cannot end at the end of the interpreter.");
}

PyObject *gts_py_end_profile(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    gts_profile *const profile = profile_of(capsule);
    if (profile == NULL || check_calls_can_end() != 0 || PyCapsule_SetName(capsule, ENDED) != 0)
        return NULL;
    PyThreadState *const thread = PyEval_SaveThread();
    char *const report = gts_profile_end(profile);
    PyEval_RestoreThread(thread);
    PyObject *const text = report == NULL ? PyErr_NoMemory() : PyUnicode_FromString(report);
    free(report);
    return text;
}
