/* The Overloads type: it finds the Overload for a call by its call site, and by its arguments if that one refuses. */
#include <stddef.h>

#include "python/dispatch/overloads.h"

#define TRIES 64 /* targets that a call tries, each after the one before has refused it */

typedef struct site {
    gts_py_call_site call;
    PyObject *target; /* an Overload, or any callable that takes the arguments as they are */
} site;

typedef struct overloads {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyTypeObject *overload_type;
    PyObject *name;   /* str */
    PyObject *choose; /* choose(args, kwargs) returns the target for these arguments */
    site site[GTS_PY_SITES];
    unsigned int next_site;
} overloads;

/* ---- Choosing -------------------------------------------------------------------------------------------------- */

static Py_ssize_t count_arguments(Py_ssize_t given, PyObject *keywords)
{
    return given + (keywords == NULL ? 0 : PyTuple_GET_SIZE(keywords));
}

static PyObject *make_keywords(PyObject *const *values, PyObject *keywords)
{
    PyObject *const found = PyDict_New();
    for (Py_ssize_t i = 0; found != NULL && keywords != NULL && i < PyTuple_GET_SIZE(keywords); ++i) {
        if (PyDict_SetItem(found, PyTuple_GET_ITEM(keywords, i), values[i]) < 0) {
            Py_DECREF(found);
            return NULL;
        }
    }
    return found;
}

/* A new reference to the target for these arguments, which is built first if need be; NULL after an exception. */
static PyObject *choose(const overloads *self, PyObject *const *args, Py_ssize_t given, PyObject *keywords)
{
    if (self->choose == NULL) /* the garbage collector has cleared it */
        return PyErr_Format(PyExc_RuntimeError, "Program '%U' was called by a finalizer after its end.", self->name);
    PyObject *const positional = PyTuple_New(given);
    PyObject *const named = make_keywords(args + given, keywords);
    PyObject *target = NULL;
    for (Py_ssize_t i = 0; positional != NULL && i < given; ++i)
        PyTuple_SET_ITEM(positional, i, Py_NewRef(args[i]));
    if (positional != NULL && named != NULL)
        target = PyObject_CallFunctionObjArgs(self->choose, positional, named, NULL);
    Py_XDECREF(positional);
    Py_XDECREF(named);
    const Py_ssize_t count = count_arguments(given, keywords);
    if (target != NULL && Py_IS_TYPE(target, self->overload_type) &&
        ((const gts_py_overload *)target)->least_arguments > count) {
        PyErr_Format(PyExc_ValueError, "A call of program '%U' with %zd arguments cannot use an Overload of %d.",
                     self->name, count, (int)((const gts_py_overload *)target)->least_arguments);
        Py_CLEAR(target);
    }
    return target;
}

/* A new reference to the target of a call site with an equal tuple of names, or NULL: func(*args, **kwargs) makes one. */
static GTS_COLD PyObject *find_equal(const overloads *self, Py_ssize_t given, PyObject *keywords)
{
    const Py_ssize_t count = keywords == NULL ? 0 : PyTuple_GET_SIZE(keywords);
    for (int i = 0; count > 0 && i < GTS_PY_SITES; ++i) {
        const gts_py_call_site *const site = &self->site[i].call;
        Py_ssize_t equal = 0;
        if (site->given != given || site->keywords == NULL || PyTuple_GET_SIZE(site->keywords) != count)
            continue;
        while (equal < count && PyTuple_GET_ITEM(site->keywords, equal) == PyTuple_GET_ITEM(keywords, equal))
            ++equal; /* names are interned */
        if (equal == count)
            return Py_NewRef(self->site[i].target);
    }
    return NULL;
}

/* Remembers the target of a call site, if its names are plain. */
static void remember(overloads *self, Py_ssize_t given, PyObject *keywords, PyObject *target)
{
    if (!gts_py_is_plain(keywords))
        return;
    site *entry = gts_py_find_site(self->site, sizeof *self->site, given, keywords);
    if (entry == NULL) {
        entry = &self->site[self->next_site];
        self->next_site = (self->next_site + 1) % GTS_PY_SITES;
    }
    const site old = *entry;
    *entry = (site){{Py_XNewRef(keywords), given}, Py_NewRef(target)};
    Py_XDECREF(old.call.keywords);
    Py_XDECREF(old.target);
}

/* ---- Calling --------------------------------------------------------------------------------------------------- */

static PyObject *call_target(const overloads *self, PyObject *target, PyObject *const *args, size_t flagged_given,
                             PyObject *keywords, gts_py_refusal *refused)
{
    *refused = GTS_PY_NOT_REFUSED;
    if (GTS_LIKELY(Py_IS_TYPE(target, self->overload_type)))
        return gts_py_call_overload((gts_py_overload *)target, args, refused);
    return PyObject_Vectorcall(target, args, flagged_given, keywords);
}

/*
 * Calls another target for these very arguments, after one has refused them; or the same one, if it is the target, with
 * converted arguments. While another thread changes values, each of them may refuse, and be right at the next moment.
 */
static GTS_COLD PyObject *call_another(overloads *self, PyObject *refusing, gts_py_refusal refused,
                                       PyObject *const *args, size_t flagged_given, PyObject *keywords)
{
    const Py_ssize_t given = PyVectorcall_NARGS(flagged_given);
    PyObject *last = Py_NewRef(refusing), *result = NULL;
    for (int i = 0; refused != GTS_PY_NOT_REFUSED && i < TRIES; ++i) {
        PyObject *const error = PyErr_GetRaisedException();
        PyObject *const target = choose(self, args, given, keywords);
        const gts_py_refusal refusal = refused;
        refused = GTS_PY_NOT_REFUSED;
        const bool is_last = target == last;
        if (is_last && !(refusal == GTS_PY_CHANGED && ((gts_py_overload *)target)->recompiles)) {
            PyErr_SetRaisedException(Py_NewRef(error));
            if (refusal == GTS_PY_REFUSED)
                result = gts_py_call_converted((gts_py_overload *)target, args, count_arguments(given, keywords));
        } else if (target != NULL) {
            if (!is_last)
                remember(self, given, keywords, target);
            result = call_target(self, target, args, flagged_given, keywords, &refused);
        }
        Py_DECREF(error);
        Py_DECREF(last);
        last = target;
    }
    Py_XDECREF(last);
    return result;
}

static PyObject *call(PyObject *object, PyObject *const *args, size_t flagged_given, PyObject *keywords)
{
    overloads *const self = (overloads *)object;
    const Py_ssize_t given = PyVectorcall_NARGS(flagged_given);
    const site *const entry = gts_py_find_site(self->site, sizeof *self->site, given, keywords);
    PyObject *target = GTS_LIKELY(entry != NULL) ? Py_NewRef(entry->target) /* another thread may replace it */
                                                 : find_equal(self, given, keywords);
    if (GTS_UNLIKELY(target == NULL)) {
        target = choose(self, args, given, keywords);
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

static PyObject *forget(PyObject *object, PyObject *Py_UNUSED(unused))
{
    overloads *const self = (overloads *)object;
    for (int i = 0; i < GTS_PY_SITES; ++i) {
        const site old = self->site[i];
        self->site[i] = (site){.call.given = -1};
        Py_XDECREF(old.call.keywords);
        Py_XDECREF(old.target);
    }
    Py_RETURN_NONE;
}

/* ---- Making and ending ----------------------------------------------------------------------------------------- */

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", "choose", NULL};
    PyObject *name, *chooser;
    gts_py_state *const state = gts_py_find_state(type);
    if (state == NULL || !PyArg_ParseTupleAndKeywords(args, keywords, "UO:Overloads", names, &name, &chooser))
        return NULL;
    overloads *const self = (overloads *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = call;
    self->overload_type = (PyTypeObject *)Py_NewRef(state->overload_type);
    self->name = Py_NewRef(name);
    self->choose = Py_NewRef(chooser);
    for (int i = 0; i < GTS_PY_SITES; ++i)
        self->site[i].call.given = -1;
    return (PyObject *)self;
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    const overloads *const self = (overloads *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->overload_type);
    Py_VISIT(self->choose);
    for (int i = 0; i < GTS_PY_SITES; ++i)
        Py_VISIT(self->site[i].target);
    return 0;
}

/* Breaks cycles, which all contain `choose`. The targets stay, because a finalizer may still call. */
static int clear(PyObject *object)
{
    overloads *const self = (overloads *)object;
    Py_CLEAR(self->choose);
    return 0;
}

static void dealloc(PyObject *object)
{
    overloads *const self = (overloads *)object;
    PyObject_GC_UnTrack(object);
    PyObject_ClearWeakRefs(object);
    (void)clear(object);
    Py_DECREF(forget(object, NULL));
    Py_XDECREF(self->name);
    Py_XDECREF(self->overload_type);
    gts_py_free(object);
}

static PyMemberDef MEMBERS[] = {
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(overloads, vectorcall), Py_READONLY, NULL},
    {"__name__", Py_T_OBJECT_EX, offsetof(overloads, name), Py_READONLY, "Name of the program."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef METHODS[] = {
    {"forget", forget, METH_NOARGS, "forget($self)\n--\n\nForgets the targets of all call sites."},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(DOC, "Overloads(name, choose)\n--\n\n"
                  "A program with one target for each kind of call: an Overload, or a callable. "
                  "`choose(args, kwargs)` returns the target\n"
                  "for the arguments of a call from a new call site, and for arguments that a target has refused.");

static PyType_Slot SLOTS[] = {
    {Py_tp_doc, (void *)DOC}, {Py_tp_new, make},          {Py_tp_call, PyVectorcall_Call},
    {Py_tp_dealloc, dealloc}, {Py_tp_traverse, traverse}, {Py_tp_clear, clear},
    {Py_tp_members, MEMBERS}, {Py_tp_methods, METHODS},   {0, NULL},
};

PyType_Spec gts_py_overloads_spec = {
    .name = "gtstub._host.Overloads",
    .basicsize = sizeof(overloads),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_MANAGED_WEAKREF,
    .slots = SLOTS,
};
