/* Binds positional and keyword arguments to parameters, with the errors that a Python function would raise. */
#include "python/host.h"

/* ---- Refusals -------------------------------------------------------------------------------------------------- */

/* Joins names as Python does: 'a'; 'a' and 'b'; 'a', 'b', and 'c'. */
static PyObject *join_names(PyObject *names)
{
    const Py_ssize_t count = PyList_GET_SIZE(names);
    PyObject *text = PyUnicode_FromFormat("%R", PyList_GET_ITEM(names, 0));
    for (Py_ssize_t i = 1; i < count && text != NULL; ++i) {
        const char *const separator = i < count - 1 ? ", " : count == 2 ? " and " : ", and ";
        Py_SETREF(text, PyUnicode_FromFormat("%U%s%R", text, separator, PyList_GET_ITEM(names, i)));
    }
    return text;
}

int gts_py_refuse_missing(const char *function, const char *kind, PyObject *missing)
{
    const Py_ssize_t count = PyList_GET_SIZE(missing);
    PyObject *const names = join_names(missing);
    if (names != NULL)
        PyErr_Format(PyExc_TypeError, "%s() missing %zd required %s argument%s: %U", function, count, kind,
                     count == 1 ? "" : "s", names);
    Py_XDECREF(names);
    return -1;
}

int gts_py_refuse_surplus(const char *function, Py_ssize_t taken, Py_ssize_t given, Py_ssize_t keywords)
{
    const char *const plural = taken == 1 ? "" : "s";
    if (keywords == 0)
        return gts_py_fail(PyExc_TypeError, "%s() takes %zd positional argument%s but %zd %s given", function, taken,
                           plural, given, given == 1 ? "was" : "were");
    return gts_py_fail(PyExc_TypeError,
                       "%s() takes %zd positional argument%s but %zd positional argument%s (and %zd keyword-only "
                       "argument%s) were given",
                       function, taken, plural, given, given == 1 ? "" : "s", keywords, keywords == 1 ? "" : "s");
}

int gts_py_refuse_keyword(const char *function, PyObject *keyword, bool known)
{
    if (known)
        return gts_py_fail(PyExc_TypeError, "%s() got multiple values for argument '%U'", function, keyword);
    return gts_py_fail(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", function, keyword);
}

/* ---- Binding --------------------------------------------------------------------------------------------------- */

Py_ssize_t gts_py_find_name(PyObject *names, PyObject *name)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(names);
    PyObject *const *const items = ((PyTupleObject *)names)->ob_item;
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (items[i] == name)
            return i;
    }
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (PyUnicode_Compare(items[i], name) == 0)
            return i;
    }
    return -1;
}

static GTS_COLD int refuse_missing(const gts_py_program *self)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(self->parameters);
    PyObject *const missing = PyList_New(0);
    bool failed = missing == NULL;
    for (Py_ssize_t i = 0; i < count && !failed; ++i)
        failed = self->argv[i] == NULL && PyList_Append(missing, PyTuple_GET_ITEM(self->parameters, i)) < 0;
    if (!failed)
        (void)gts_py_refuse_missing(self->program->stub->name, "positional", missing);
    Py_XDECREF(missing);
    return -1;
}

int gts_py_bind_any(gts_py_program *self, PyObject *const *args, Py_ssize_t given, PyObject *keywords)
{
    const char *const function = self->program->stub->name;
    const Py_ssize_t count = PyTuple_GET_SIZE(self->parameters);
    const Py_ssize_t keyword_count = keywords == NULL ? 0 : PyTuple_GET_SIZE(keywords);
    for (Py_ssize_t i = 0; i <= count; ++i)
        self->argv[i] = i < given && i < count ? args[i] : NULL;
    for (Py_ssize_t i = 0; i < keyword_count; ++i) {
        PyObject *const keyword = PyTuple_GET_ITEM(keywords, i);
        Py_ssize_t place = gts_py_find_name(self->parameters, keyword);
        if (place < 0 && PyUnicode_Compare(self->state->name.offset_provider, keyword) == 0)
            place = count;
        if (place < 0 || self->argv[place] != NULL)
            return gts_py_refuse_keyword(function, keyword, place >= 0);
        self->argv[place] = args[given + i];
    }
    if (given > count)
        return gts_py_refuse_surplus(function, count, given, self->argv[count] != NULL);
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (self->argv[i] == NULL)
            return refuse_missing(self);
    }
    if (self->argv[count] == NULL && self->needs_offset_provider)
        return gts_py_fail(PyExc_TypeError, "%s() missing 1 required keyword-only argument: 'offset_provider'",
                           function);
    return 0;
}
