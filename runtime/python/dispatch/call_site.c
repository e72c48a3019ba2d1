/* Call sites: what one place in the source passes is found out once. */
#include "python/dispatch/dispatcher.h"

gts_py_site *gts_py_find_equal_site(gts_py_dispatcher *self, Py_ssize_t given, PyObject *keywords)
{
    const Py_ssize_t count = keywords == NULL ? 0 : PyTuple_GET_SIZE(keywords);
    for (gts_py_site *site = self->site; count > 0 && site < self->site + GTS_PY_SITES; ++site) {
        Py_ssize_t equal = 0;
        if (site->given != given || site->keywords == NULL || PyTuple_GET_SIZE(site->keywords) != count)
            continue;
        while (equal < count && PyTuple_GET_ITEM(site->keywords, equal) == PyTuple_GET_ITEM(keywords, equal))
            ++equal; /* names are interned */
        if (equal == count)
            return site;
    }
    return NULL;
}

/* Whether all names are of type str, as they are in source text. Other objects may run code when they are released. */
static bool is_plain(PyObject *keywords)
{
    for (Py_ssize_t i = 0; keywords != NULL && i < PyTuple_GET_SIZE(keywords); ++i) {
        if (!PyUnicode_CheckExact(PyTuple_GET_ITEM(keywords, i)))
            return false;
    }
    return true;
}

gts_py_site *gts_py_remember_site(gts_py_dispatcher *self, const gts_py_site *found)
{
    if (!is_plain(found->keywords))
        return NULL;
    gts_py_site *site = gts_py_find_site(self, found->given, found->keywords);
    if (site == NULL) {
        site = &self->site[self->next_site];
        self->next_site = (self->next_site + 1) % GTS_PY_SITES;
    }
    PyObject *const keywords = site->keywords, *const target = site->target;
    *site = *found;
    Py_XINCREF(site->keywords);
    Py_XINCREF(site->target);
    Py_XDECREF(keywords);
    Py_XDECREF(target);
    return site;
}

void gts_py_forget_sites(gts_py_dispatcher *self)
{
    for (gts_py_site *site = self->site; site < self->site + GTS_PY_SITES; ++site) {
        PyObject *const keywords = site->keywords, *const target = site->target;
        site->keywords = site->target = NULL;
        site->given = -1;
        Py_XDECREF(keywords);
        Py_XDECREF(target);
    }
}

PyObject *gts_py_choose(const gts_py_dispatcher *self, PyObject *const *args, size_t flagged_given, PyObject *keywords)
{
    if (GTS_UNLIKELY(self->choose == NULL)) /* the garbage collector has cleared it */
        return PyErr_Format(PyExc_RuntimeError, "Program '%U' was called by a finalizer after its end.", self->name);
    return PyObject_Vectorcall(self->choose, args, flagged_given, keywords);
}
