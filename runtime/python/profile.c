/* Profiles, as gtstub.profiling begins and ends them. */
#include <stdlib.h>

#include "host.h"

static const char KIND[] = "gts_profile";

PyObject *gts_py_begin_profile(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing))
{
    gts_profile *const profile = gts_profile_begin();
    return profile == NULL ? PyErr_NoMemory() : PyCapsule_New(profile, KIND, NULL);
}

PyObject *gts_py_end_profile(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    gts_profile *const profile = PyCapsule_GetPointer(capsule, KIND);
    if (profile == NULL || PyCapsule_SetName(capsule, "gts_profile that has ended") != 0)
        return NULL;
    PyThreadState *const thread = PyEval_SaveThread();
    char *const report = gts_profile_end(profile);
    PyEval_RestoreThread(thread);
    PyObject *const text = report == NULL ? PyErr_NoMemory() : PyUnicode_FromString(report);
    free(report);
    return text;
}
