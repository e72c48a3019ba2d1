/* Positional and keyword arguments to parameters, with the errors that a Python function would raise. */
#include "host.h"

/* ---- Refusals -------------------------------------------------------------------------------------------------- */

/* 'a', 'a' and 'b', or 'a', 'b', and 'c' */
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

static GTS_COLD int refuse_missing(const gts_py_program *self)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(self->parameters);
    PyObject *const missing = PyList_New(0);
    if (missing == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (self->argv[i] == NULL && PyList_Append(missing, PyTuple_GET_ITEM(self->parameters, i)) < 0) {
            Py_DECREF(missing);
            return -1;
        }
    }
    PyObject *const names = join_names(missing);
    if (names != NULL)
        PyErr_Format(PyExc_TypeError, "%s() missing %zd required positional argument%s: %U", self->program->stub->name,
                     PyList_GET_SIZE(missing), PyList_GET_SIZE(missing) == 1 ? "" : "s", names);
    Py_DECREF(missing);
    Py_XDECREF(names);
    return -1;
}

static GTS_COLD int refuse_surplus(const gts_py_program *self, Py_ssize_t given)
{
    const char *const name = self->program->stub->name;
    const Py_ssize_t count = PyTuple_GET_SIZE(self->parameters);
    const char *const plural = count == 1 ? "" : "s";
    if (self->argv[count] != NULL)
        PyErr_Format(PyExc_TypeError,
                     "%s() takes %zd positional argument%s but %zd positional argument%s (and 1 keyword-only argument) "
                     "were given",
                     name, count, plural, given, given == 1 ? "" : "s");
    else
        PyErr_Format(PyExc_TypeError, "%s() takes %zd positional argument%s but %zd %s given", name, count, plural,
                     given, given == 1 ? "was" : "were");
    return -1;
}

static GTS_COLD int refuse_keyword(const gts_py_program *self, PyObject *keyword, bool known)
{
    if (known)
        PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'", self->program->stub->name, keyword);
    else
        PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", self->program->stub->name,
                     keyword);
    return -1;
}

/* ---- Binding --------------------------------------------------------------------------------------------------- */

/* The place of a keyword in argv; -1 if there is none. Names of keywords in source text are interned, like ours. */
static Py_ssize_t find_keyword(const gts_py_program *self, PyObject *keyword)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(self->parameters);
    PyObject *const *const names = ((PyTupleObject *)self->parameters)->ob_item;
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (names[i] == keyword)
            return i;
    }
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (PyUnicode_Compare(names[i], keyword) == 0)
            return i;
    }
    return PyUnicode_Compare(self->state->name.offset_provider, keyword) == 0 ? count : -1;
}

int gts_py_bind_any(gts_py_program *self, PyObject *const *args, Py_ssize_t given, PyObject *keywords)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(self->parameters);
    const Py_ssize_t keyword_count = keywords == NULL ? 0 : PyTuple_GET_SIZE(keywords);
    for (Py_ssize_t i = 0; i <= count; ++i)
        self->argv[i] = i < given && i < count ? args[i] : NULL;
    for (Py_ssize_t i = 0; i < keyword_count; ++i) {
        PyObject *const keyword = PyTuple_GET_ITEM(keywords, i);
        const Py_ssize_t place = find_keyword(self, keyword);
        if (place < 0 || self->argv[place] != NULL)
            return refuse_keyword(self, keyword, place >= 0);
        self->argv[place] = args[given + i];
    }
    if (given > count)
        return refuse_surplus(self, given);
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (self->argv[i] == NULL)
            return refuse_missing(self);
    }
    if (self->argv[count] == NULL && self->needs_offset_provider) {
        PyErr_Format(PyExc_TypeError, "%s() missing 1 required keyword-only argument: 'offset_provider'",
                     self->program->stub->name);
        return -1;
    }
    return 0;
}
