/* Binds positional and keyword arguments to parameters, with the errors that a Python function would raise. */
#include "python/host.h"

/* Whether a call may leave a parameter out; the last one is the offset provider. */
static inline bool is_bound(const gts_py_signature *self, Py_ssize_t parameter)
{
    return self->bound == NULL ? parameter == PyTuple_GET_SIZE(self->parameters) && !self->needs_provider
                               : self->bound[parameter] != NULL;
}

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

/* Names the parameters without an argument, positional ones first, as Python does. */
static GTS_COLD int refuse_missing(const gts_py_signature *self, const int32_t *source)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(self->parameters);
    PyObject *const missing[] = {PyList_New(0), PyList_New(0)}; /* positional and keyword-only */
    bool failed = missing[0] == NULL || missing[1] == NULL, by_keyword = false;
    for (Py_ssize_t i = 0; i <= count && !failed; ++i) {
        by_keyword = by_keyword || i == count || (self->overridable && is_bound(self, i));
        if (source[i] < 0 && !is_bound(self, i))
            failed = PyList_Append(missing[by_keyword],
                                   i < count ? PyTuple_GET_ITEM(self->parameters, i) : gts_py.name.offset_provider) < 0;
    }
    const bool only_keywords = !failed && PyList_GET_SIZE(missing[0]) == 0;
    PyObject *const names = failed ? NULL : join_names(missing[only_keywords]);
    if (names != NULL) {
        const Py_ssize_t lacking = PyList_GET_SIZE(missing[only_keywords]);
        gts_py_fail(PyExc_TypeError, "%s() missing %zd required %s argument%s: %U", self->function, lacking,
                    only_keywords ? "keyword-only" : "positional", lacking == 1 ? "" : "s", names);
    }
    Py_XDECREF(names);
    Py_XDECREF(missing[0]);
    Py_XDECREF(missing[1]);
    return -1;
}

static GTS_COLD int refuse_surplus(const char *function, Py_ssize_t taken, Py_ssize_t given, Py_ssize_t keywords)
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

int gts_py_match(const gts_py_signature *self, Py_ssize_t given, PyObject *keywords, int32_t *source)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(self->parameters);
    const Py_ssize_t keyword_count = keywords == NULL ? 0 : PyTuple_GET_SIZE(keywords);
    Py_ssize_t taken = 0;
    bool by_keyword = false;
    for (Py_ssize_t i = 0; i <= count; ++i) {
        const bool is_positional = i < count && !by_keyword && !is_bound(self, i);
        source[i] = is_positional && taken < given ? (int32_t)taken : -1;
        taken += is_positional;
        by_keyword = by_keyword || (self->overridable && is_bound(self, i));
    }
    for (Py_ssize_t i = 0; i < keyword_count; ++i) {
        PyObject *const keyword = PyTuple_GET_ITEM(keywords, i);
        Py_ssize_t place = gts_py_find_name(self->parameters, keyword);
        if (place < 0 && PyUnicode_Compare(gts_py.name.offset_provider, keyword) == 0)
            place = count;
        else if (place >= 0 && is_bound(self, place) && !self->overridable)
            place = -1;
        if (place < 0)
            return gts_py_fail(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", self->function,
                               keyword);
        if (source[place] >= 0)
            return gts_py_fail(PyExc_TypeError, "%s() got multiple values for argument '%U'", self->function, keyword);
        source[place] = (int32_t)(given + i);
    }
    if (given > taken) /* all others are keyword-only then */
        return refuse_surplus(self->function, taken, given, keyword_count);
    for (Py_ssize_t i = 0; i <= count; ++i) {
        if (source[i] < 0 && !is_bound(self, i))
            return refuse_missing(self, source);
    }
    return 0;
}
