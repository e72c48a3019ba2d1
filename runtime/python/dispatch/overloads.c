/* Calls of a Dispatcher without parameters: by the Overload of the call site, or by another one if that one refuses. */
#include "python/dispatch/overloads.h"

#define TRIES 64 /* targets that a call tries, each after the one before has refused it */

static Py_ssize_t count_arguments(size_t flagged_given, PyObject *keywords)
{
    return PyVectorcall_NARGS(flagged_given) + (keywords == NULL ? 0 : PyTuple_GET_SIZE(keywords));
}

static inline bool is_overload(const gts_py_dispatcher *self, PyObject *target)
{
    return Py_IS_TYPE(target, self->overload_type);
}

/* A new reference to the target for these arguments, which is built first if need be; NULL after an exception. */
static PyObject *choose(const gts_py_dispatcher *self, PyObject *const *args, size_t flagged_given, PyObject *keywords)
{
    PyObject *const target = gts_py_choose(self, args, flagged_given, keywords);
    const Py_ssize_t count = count_arguments(flagged_given, keywords);
    if (target == NULL || !is_overload(self, target) || ((gts_py_overload *)target)->least_arguments <= count)
        return target;
    PyErr_Format(PyExc_ValueError, "A call of program '%U' with %zd arguments cannot use an Overload of %d.",
                 self->name, count, (int)((gts_py_overload *)target)->least_arguments);
    Py_DECREF(target);
    return NULL;
}

static PyObject *call_target(const gts_py_dispatcher *self, PyObject *target, PyObject *const *args,
                             size_t flagged_given, PyObject *keywords, gts_py_refusal *refused)
{
    if (GTS_LIKELY(is_overload(self, target)))
        return gts_py_call_overload((gts_py_overload *)target, args, refused);
    *refused = GTS_PY_NOT_REFUSED;
    return PyObject_Vectorcall(target, args, flagged_given, keywords);
}

static void remember(gts_py_dispatcher *self, Py_ssize_t given, PyObject *keywords, PyObject *target)
{
    const gts_py_site site = {.keywords = keywords, .given = (int32_t)given, .target = target};
    gts_py_remember_site(self, &site);
}

/*
 * Calls another target for these very arguments, after one has refused them; or the same one, if it is the target, with
 * converted arguments. While another thread changes values, each of them may refuse, and be right at the next moment.
 */
static GTS_COLD PyObject *call_another(gts_py_dispatcher *self, PyObject *refusing, gts_py_refusal refused,
                                       PyObject *const *args, size_t flagged_given, PyObject *keywords)
{
    PyObject *last = Py_NewRef(refusing), *result = NULL;
    for (int i = 0; refused != GTS_PY_NOT_REFUSED && i < TRIES; ++i) {
        PyObject *const error = PyErr_GetRaisedException();
        PyObject *const target = choose(self, args, flagged_given, keywords);
        const gts_py_refusal refusal = refused;
        refused = GTS_PY_NOT_REFUSED;
        const bool is_last = target == last;
        if (is_last && !(refusal == GTS_PY_CHANGED && ((gts_py_overload *)target)->recompiles)) {
            PyErr_SetRaisedException(Py_NewRef(error));
            if (refusal == GTS_PY_REFUSED)
                result = gts_py_call_converted((gts_py_overload *)target, args,
                                               count_arguments(flagged_given, keywords));
        } else if (target != NULL) {
            if (!is_last)
                remember(self, PyVectorcall_NARGS(flagged_given), keywords, target);
            result = call_target(self, target, args, flagged_given, keywords, &refused);
        }
        Py_DECREF(error);
        Py_DECREF(last);
        last = target;
    }
    Py_XDECREF(last);
    return result;
}

PyObject *gts_py_call_overloads(PyObject *object, PyObject *const *args, size_t flagged_given, PyObject *keywords)
{
    gts_py_dispatcher *const self = (gts_py_dispatcher *)object;
    const Py_ssize_t given = PyVectorcall_NARGS(flagged_given);
    const gts_py_site *const site = gts_py_find_site(self, given, keywords);
    PyObject *target;
    if (GTS_LIKELY(site != NULL)) {
        target = Py_NewRef(site->target); /* another thread may replace it */
    } else {
        target = choose(self, args, flagged_given, keywords);
        if (target == NULL)
            return NULL;
        remember(self, given, keywords, target);
    }
    gts_py_refusal refused;
    PyObject *result = call_target(self, target, args, flagged_given, keywords, &refused);
    if (GTS_UNLIKELY(refused != GTS_PY_NOT_REFUSED))
        result = call_another(self, target, refused, args, flagged_given, keywords);
    Py_DECREF(target);
    return result;
}
