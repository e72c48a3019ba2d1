/* The Dispatcher type: it binds the arguments of a call, selects the variant and calls it. */
#include <stddef.h>

#include "python/dispatch/dispatcher.h"

/* ---- Calling --------------------------------------------------------------------------------------------------- */

/* Enters the program of the site's last calls, unless it has forgotten an argument since the last one. */
static inline bool enter_recent(const gts_py_site *site)
{
    return GTS_LIKELY(site->program != NULL) &&
           GTS_LIKELY(__atomic_load_n(&site->program->program->known_version, __ATOMIC_RELAXED) == site->version) &&
           GTS_LIKELY(gts_py_try_enter(site->program));
}

/* Whether the program of the site, which is entered, knows all arguments. Bound ones cannot change: the version is enough. */
static inline bool is_known(const gts_py_site *site, PyObject *const *args)
{
    const gts_program *const program = site->program->program;
    uintptr_t difference = (program->known_version ^ site->version) | site->program->reads_metrics_level;
    for (uint32_t i = 0; i < site->passed; ++i)
        difference |= (uintptr_t)program->known[site->leaf[i]] ^ (uintptr_t)args[i];
    return difference == 0;
}

/* The program or executable for the arguments, borrowed; NULL after an exception. */
static PyObject *find_callable(gts_py_dispatcher *self, const gts_py_site *site, PyObject **argv)
{
    if (site->selects)
        return gts_py_select(self, argv);
    if (self->default_callable == NULL)
        self->default_callable = gts_py_select(self, argv);
    return self->default_callable;
}

static GTS_NOINLINE PyObject *call_unknown(gts_py_dispatcher *self, gts_py_site *site, PyObject *const *args,
                                           Py_ssize_t given, PyObject *keywords)
{
    gts_py_site scratch;
    if (GTS_UNLIKELY(site == NULL))
        site = gts_py_add_site(self, given, keywords, &scratch);
    if (GTS_UNLIKELY(site == NULL))
        return NULL;
    PyObject *argv[GTS_PY_MAX_PARAMETERS + 1];
    const size_t parameters = (size_t)PyTuple_GET_SIZE(self->takes.parameters);
    memcpy(argv, self->takes.bound, (parameters + 1) * sizeof *argv);
    for (uint32_t i = 0; i < site->passed; ++i)
        argv[site->place[i]] = args[i];

    PyObject *const callable = find_callable(self, site, argv);
    if (GTS_UNLIKELY(callable == NULL))
        return NULL;
    if (GTS_LIKELY(Py_IS_TYPE(callable, self->state->program_type))) {
        gts_py_program *const program = (gts_py_program *)callable;
        if (GTS_UNLIKELY(gts_py_enter(program) != 0))
            return NULL;
        const uint64_t version = program->program->known_version;
        const int status = gts_py_convert(program, argv);
        /* Another thread may have made the entry another site's while this one waited. */
        if (status == 0 && program->program->known_version == version &&
            gts_py_find_site(self->site, sizeof *self->site, given, keywords) == site)
            gts_py_recognise_site(site, program);
        return gts_py_complete(program, status);
    }
    /* It is an executable of gt4py, which takes the offset provider by keyword. */
    PyObject *const held = Py_NewRef(callable);
    PyObject *const result = PyObject_Vectorcall(held, argv, parameters, self->keyword_of_provider);
    Py_DECREF(held);
    return result;
}

static PyObject *call(PyObject *object, PyObject *const *args, size_t flagged_given, PyObject *keywords)
{
    gts_py_dispatcher *const self = (gts_py_dispatcher *)object;
    const Py_ssize_t given = PyVectorcall_NARGS(flagged_given);
    gts_py_site *const site = gts_py_find_site(self->site, sizeof *self->site, given, keywords);
    if (GTS_LIKELY(site != NULL) && enter_recent(site)) {
        if (GTS_LIKELY(is_known(site, args)))
            return gts_py_complete(site->program, 0);
        gts_py_leave(site->program);
    }
    return call_unknown(self, site, args, given, keywords);
}

/* ---- Making ---------------------------------------------------------------------------------------------------- */

static int intern_parameters(gts_py_dispatcher *self, PyObject *parameters)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(parameters);
    if (count > GTS_PY_MAX_PARAMETERS)
        return gts_py_fail(PyExc_ValueError, "Program '%s' has %zd parameters, which is more than %d.",
                           self->takes.function, count, GTS_PY_MAX_PARAMETERS);
    self->takes.parameters = PyTuple_New(count);
    self->takes.bound = gts_py_calloc((size_t)count + 1, sizeof *self->takes.bound);
    if (self->takes.parameters == NULL || self->takes.bound == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject *name = PyTuple_GET_ITEM(parameters, i);
        if (!PyUnicode_CheckExact(name))
            return gts_py_fail(PyExc_TypeError, "A parameter of program '%s' must be a 'str', not '%s'.",
                               self->takes.function, Py_TYPE(name)->tp_name);
        Py_INCREF(name);
        PyUnicode_InternInPlace(&name);
        PyTuple_SET_ITEM(self->takes.parameters, i, name);
    }
    return 0;
}

static int bind(gts_py_dispatcher *self, PyObject *bound)
{
    Py_ssize_t position = 0;
    PyObject *name, *value;
    while (PyDict_Next(bound, &position, &name, &value)) {
        const Py_ssize_t place = PyUnicode_Check(name) ? gts_py_find_name(self->takes.parameters, name) : -1;
        if (place < 0)
            return gts_py_fail(PyExc_TypeError, "Program '%s' has no parameter %R.", self->takes.function, name);
        self->takes.bound[place] = Py_NewRef(value);
    }
    return 0;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", "parameters", "build", "bound", "overridable", "statics", "offset_providers", NULL};
    PyObject *name, *parameters, *build, *bound, *statics, *providers;
    int overridable;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "UO!OO!pO!O!:Dispatcher", names, &name, &PyTuple_Type, &parameters,
                                     &build, &PyDict_Type, &bound, &overridable, &PyTuple_Type, &statics, &PyTuple_Type,
                                     &providers))
        return NULL;
    gts_py_dispatcher *const self = (gts_py_dispatcher *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = call;
    self->state = gts_py_find_state(type);
    self->name = Py_NewRef(name);
    self->takes.function = PyUnicode_AsUTF8(name);
    self->build = Py_NewRef(build);
    self->takes.overridable = overridable;
    self->takes.provider = self->state == NULL ? NULL : self->state->name.offset_provider;
    self->keyword_of_provider = self->state == NULL ? NULL : PyTuple_Pack(1, self->state->name.offset_provider);
    for (int i = 0; i < GTS_PY_SITES; ++i)
        self->site[i].call.given = -1;
    if (self->takes.function == NULL || self->keyword_of_provider == NULL || intern_parameters(self, parameters) != 0 ||
        bind(self, bound) != 0 || gts_py_set_providers(self, providers) != 0 ||
        gts_py_set_statics(self, statics) != 0 || gts_py_set_bound_key(self) != 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

/* ---- Ending ---------------------------------------------------------------------------------------------------- */

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    const gts_py_dispatcher *const self = (gts_py_dispatcher *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->build);
    Py_VISIT(self->providers);
    for (Py_ssize_t i = 0;
         self->takes.bound != NULL && self->takes.parameters != NULL && i <= PyTuple_GET_SIZE(self->takes.parameters);
         ++i)
        Py_VISIT(self->takes.bound[i]);
    for (uint32_t i = 0; i < self->variant_count; ++i)
        Py_VISIT(self->variants[i].callable);
    return 0;
}

/* Breaks cycles, which all contain `build`. The other members stay, because a finalizer may still call. */
static int clear(PyObject *object)
{
    gts_py_dispatcher *const self = (gts_py_dispatcher *)object;
    Py_CLEAR(self->build);
    return 0;
}

static void dealloc(PyObject *object)
{
    gts_py_dispatcher *const self = (gts_py_dispatcher *)object;
    PyObject_GC_UnTrack(object);
    PyObject_ClearWeakRefs(object);
    (void)clear(object);
    gts_py_free_variants(self);
    for (Py_ssize_t i = 0;
         self->takes.bound != NULL && self->takes.parameters != NULL && i <= PyTuple_GET_SIZE(self->takes.parameters);
         ++i)
        Py_XDECREF(self->takes.bound[i]);
    for (int i = 0; i < GTS_PY_SITES; ++i)
        Py_XDECREF(self->site[i].call.keywords);
    PyMem_Free(self->takes.bound);
    Py_XDECREF(self->providers);
    Py_XDECREF(self->takes.parameters);
    Py_XDECREF(self->keyword_of_provider);
    Py_XDECREF(self->name);
    gts_py_free(object);
}

/* ---- Attributes ------------------------------------------------------------------------------------------------ */

static PyObject *get_bound_args(PyObject *object, void *Py_UNUSED(closure))
{
    const gts_py_dispatcher *const self = (gts_py_dispatcher *)object;
    PyObject *const result = PyDict_New();
    for (Py_ssize_t i = 0; result != NULL && i < PyTuple_GET_SIZE(self->takes.parameters); ++i) {
        if (self->takes.bound[i] != NULL &&
            PyDict_SetItem(result, PyTuple_GET_ITEM(self->takes.parameters, i), self->takes.bound[i]) < 0) {
            Py_DECREF(result);
            return NULL;
        }
    }
    return result;
}

static PyObject *get_offset_providers(PyObject *object, void *Py_UNUSED(closure))
{
    PyObject *const providers = ((gts_py_dispatcher *)object)->providers;
    PyObject *const result = PyTuple_New(PyTuple_GET_SIZE(providers));
    for (Py_ssize_t i = 0; result != NULL && i < PyTuple_GET_SIZE(providers); ++i) {
        PyObject *const view = PyDictProxy_New(PyTuple_GET_ITEM(providers, i));
        if (view == NULL) {
            Py_DECREF(result);
            return NULL;
        }
        PyTuple_SET_ITEM(result, i, view);
    }
    return result;
}

static PyGetSetDef ATTRIBUTES[] = {
    {"bound_args", get_bound_args, NULL, "The bound arguments by name, including static ones.", NULL},
    {"offset_providers", get_offset_providers, NULL, "The offset providers that it was compiled for.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef MEMBERS[] = {
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(gts_py_dispatcher, vectorcall), Py_READONLY, NULL},
    {"__name__", Py_T_OBJECT_EX, offsetof(gts_py_dispatcher, name), Py_READONLY, "Name of the program."},
    {"parameters", Py_T_OBJECT_EX, offsetof(gts_py_dispatcher, takes.parameters), Py_READONLY,
     "Names of all parameters of the program, including bound ones."},
    {"variant_count", Py_T_UINT, offsetof(gts_py_dispatcher, variant_count), Py_READONLY, "Number of variants."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef METHODS[] = {
    {"add_variant", (PyCFunction)(void (*)(void))gts_py_add_variant, METH_VARARGS | METH_KEYWORDS,
     "add_variant($self, provider, values, label)\n--\n\n"
     "Adds a variant for the number of an offset provider and one value of each static scalar; returns its number.\n"
     "Its program is built by `build(number)` when it is first needed."},
    {"find_variant", (PyCFunction)(void (*)(void))gts_py_find_variant, METH_VARARGS | METH_KEYWORDS,
     "find_variant($self, provider, values)\n--\n\nReturns the number of the variant that was added for these, or "
     "None."},
    {"prepare_variant", gts_py_prepare_variant, METH_O,
     "prepare_variant($self, number, /)\n--\n\nBuilds a variant if need be, and returns its callable."},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(DOC, "Dispatcher(name, parameters, build, bound, overridable, statics, offset_providers)\n--\n\n"
                  "A program with bound arguments, and one compiled program for each variant. A call passes the "
                  "unbound parameters by\n"
                  "position or keyword. The values of the static parameters select the variant.");

static PyType_Slot SLOTS[] = {
    {Py_tp_doc, (void *)DOC},        {Py_tp_new, make},
    {Py_tp_call, PyVectorcall_Call}, {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},      {Py_tp_clear, clear},
    {Py_tp_getset, ATTRIBUTES},      {Py_tp_members, MEMBERS},
    {Py_tp_methods, METHODS},        {0, NULL},
};

PyType_Spec gts_py_dispatcher_spec = {
    .name = "gtstub._host.Dispatcher",
    .basicsize = sizeof(gts_py_dispatcher),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_MANAGED_WEAKREF,
    .slots = SLOTS,
};
