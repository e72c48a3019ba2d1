/* gt4py's metrics. Users change the level between calls: a call reads it if its namespace has changed. */
#include "python/host.h"

PyObject *gts_py_set_metrics(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"namespace", "key", "threshold", "sample", NULL};
    gts_py_program *const self = (gts_py_program *)object;
    PyObject *namespace, *key, *sample;
    int threshold;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!UiO:set_metrics", names, &PyDict_Type, &namespace, &key,
                                     &threshold, &sample))
        return NULL;
    if (!PyCallable_Check(sample))
        return PyErr_Format(PyExc_TypeError, "Argument 'sample' of 'set_metrics' must be callable, not '%s'.",
                            Py_TYPE(sample)->tp_name);
    if (!self->program->stub->has_metrics)
        Py_RETURN_NONE;
    if (gts_py_enter(self) != 0)
        return NULL;
    const gts_py_metrics old = self->metrics;
    self->metrics = (gts_py_metrics){Py_NewRef(namespace), Py_NewRef(key), Py_NewRef(sample), threshold};
    self->reads_metrics_level = true;
    gts_py_leave(self);
    Py_XDECREF(old.namespace);
    Py_XDECREF(old.key);
    Py_XDECREF(old.sample);
    Py_RETURN_NONE;
}

int gts_py_read_metrics_level(gts_py_program *self)
{
    const bool is_watched = gts_py_watch(self->metrics.namespace);
    PyObject *const level = PyDict_GetItemWithError(self->metrics.namespace, self->metrics.key);
    if (GTS_UNLIKELY(level == NULL || !PyLong_Check(level)))
        return PyErr_Occurred()
                   ? -1
                   : gts_py_fail(PyExc_TypeError, "The metrics level '%U' of program '%s' must be an 'int', not '%s'.",
                                 self->metrics.key, self->program->stub->name,
                                 level == NULL ? "missing" : Py_TYPE(level)->tp_name);
    int overflow;
    const long value = PyLong_AsLongAndOverflow(level, &overflow);
    self->program->metrics_level = overflow != 0 || value > INT32_MAX ? INT32_MAX : (int32_t)value;
    self->wants_sample = self->program->metrics_level >= self->metrics.threshold;
    self->reads_metrics_level = !is_watched;
    return 0;
}

PyObject *gts_py_sample(gts_py_program *self, double compute_time)
{
    PyObject *const sample = Py_XNewRef(self->metrics.sample);
    PyObject *const result = sample == NULL ? NULL : PyObject_CallFunction(sample, "d", compute_time);
    Py_XDECREF(sample);
    if (result == NULL)
        return NULL;
    Py_DECREF(result);
    Py_RETURN_NONE;
}
