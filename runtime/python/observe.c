/*
 * Begins and ends what observes calls: profiles for gtstub.profile(), and debug checks for gtstub.checks(). Adds times to
 * the timeline of the process.
 */
#include <stdlib.h>

#include "python/host.h"

/* A kind of observer, which Python has in a capsule. */
typedef struct kind {
    const char *running; /* name of the capsule */
    const char *ended;   /* then */
    const char *argument;
    const char *it_has;
    const char *cannot_end;
} kind;

static const kind PROFILE = {"gts_profile", "gts_profile that has ended", "profile", "The profile has",
                             "A profile cannot end"};
static const kind CHECKS = {"gts_checks", "gts_checks that have ended", "checks", "The checks have",
                            "Checks cannot end"};

/*
 * Ends a capsule, and returns the running observer in it; NULL after an exception. An observer ends after the calls that
 * are running. Refuses to wait for a call of this thread, or one without end.
 */
static void *take_context(PyObject *capsule, const kind *self)
{
    if (PyCapsule_IsValid(capsule, self->ended))
        return PyErr_Format(PyExc_ValueError, "%s already ended.", self->it_has);
    if (!PyCapsule_IsValid(capsule, self->running))
        return PyErr_Format(PyExc_TypeError, "Argument '%s' of 'end_%s' must be a result of 'begin_%s', not '%s'.",
                            self->argument, self->argument, self->argument, Py_TYPE(capsule)->tp_name);
    if (gts_py_refuse_in_call(self->cannot_end) != 0)
        return NULL;
    if (Py_IsFinalizing())
        return PyErr_Format(PyExc_RuntimeError, "%s at the end of the interpreter.", self->cannot_end);
    void *const observer = PyCapsule_GetPointer(capsule, self->running);
    return PyCapsule_SetName(capsule, self->ended) == 0 ? observer : NULL;
}

PyObject *gts_py_begin_profile(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyCapsule_New(gts_profile_begin(), PROFILE.running, NULL);
}

PyObject *gts_py_end_profile(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    gts_profile *const profile = take_context(capsule, &PROFILE);
    if (profile == NULL)
        return NULL;
    char *const report = GTS_PY_WITHOUT_GIL(gts_profile_end(profile));
    PyObject *const text = report == NULL ? PyErr_NoMemory() : PyUnicode_FromString(report);
    free(report);
    return text;
}

PyObject *gts_py_pool(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyLong_FromSize_t(gts_pool_trim());
}

PyObject *gts_py_begin_checks(PyObject *Py_UNUSED(module), PyObject *text)
{
    if (!PyUnicode_Check(text))
        return PyErr_Format(PyExc_TypeError, "Argument 'text' of 'begin_checks' must be a str, not '%s'.",
                            Py_TYPE(text)->tp_name);
    const char *const utf8 = PyUnicode_AsUTF8(text);
    if (utf8 == NULL)
        return NULL;
    gts_checks *const checks = gts_checks_begin(utf8);
    return checks == NULL ? gts_py_answer(-1) : PyCapsule_New(checks, CHECKS.running, NULL);
}

PyObject *gts_py_end_checks(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    gts_checks *checks = take_context(capsule, &CHECKS);
    if (checks == NULL)
        return NULL;
    return gts_py_answer(GTS_PY_WITHOUT_GIL((gts_checks_end(&checks), 0)));
}

PyObject *gts_py_add_span(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *kind, *name, *track;
    unsigned long long begin, end;
    if (!PyArg_ParseTuple(args, "sszKK:add_span", &kind, &name, &track, &begin, &end))
        return NULL;
    gts_add_span(kind, name, track, begin, end);
    Py_RETURN_NONE;
}
