/* The Dispatcher type. With parameters, it binds the arguments of a call, selects the variant and calls it. */
#include <stdlib.h>

#include "python/dispatch/dispatcher.h"

/* ---- Recognising ----------------------------------------------------------------------------------------------- */

/* Whether the program knows the objects of all leaves. */
static bool knows_all(const gts_py_program *self)
{
    const gts_program *const program = self->program;
    const uint32_t count = program->stub->leaf_count;
    for (uint32_t i = 0; i < count; ++i) {
        if (gts_known_object(program, i) == NULL)
            return false;
    }
    return self->first_connectivity == count || gts_known_object(program, count) != NULL;
}

/* The number of the only leaf of a parameter, or -1. */
static int find_leaf(const gts_stub *stub, uint32_t parameter)
{
    for (uint32_t i = 0; i < stub->leaf_count && parameter < stub->parameter_count; ++i) {
        if (strcmp(stub->leaves[i].path, stub->parameters[parameter]) == 0)
            return (int)i;
    }
    return -1;
}

/* After a conversion in which the program knew all objects: lets the next calls compare only those that they pass. */
static void recognise(gts_py_site *site, gts_py_program *program)
{
    const bool is_same = site->target == (PyObject *)program;
    site->version = 0;
    if (!is_same) {
        Py_XSETREF(site->target, Py_NewRef((PyObject *)program)); /* a variant, which has its own reference */
        return;
    }
    if (site->always_reads || !knows_all(program))
        return;
    const gts_stub *const stub = program->program->stub;
    site->always_reads = stub->collection_count > 0;
    for (uint32_t i = 0; i < site->passed; ++i) {
        const int leaf = find_leaf(stub, site->place[i]);
        site->always_reads |= leaf < 0 || leaf > UINT16_MAX;
        site->leaf[i] = (uint16_t)leaf;
    }
    if (!site->always_reads)
        site->version = program->program->known_version;
}

/* ---- Calling --------------------------------------------------------------------------------------------------- */

/* Enters the program of the site's last calls, unless it has forgotten an argument since the last one. */
static inline bool enter_recent(const gts_py_site *site)
{
    gts_py_program *const recent = (gts_py_program *)site->target;
    return GTS_LIKELY(recent != NULL) &&
           GTS_LIKELY(__atomic_load_n(&recent->program->known_version, __ATOMIC_RELAXED) == site->version) &&
           GTS_LIKELY(gts_py_try_enter(recent));
}

/* Whether the program of the site, which is entered, knows all arguments. Bound ones cannot change: the version is enough. */
static inline bool is_known(const gts_py_site *site, PyObject *const *args)
{
    const gts_py_program *const recent = (const gts_py_program *)site->target;
    const gts_program *const program = recent->program;
    uintptr_t difference = (program->known_version ^ site->version) | recent->reads_metrics_level;
    for (uint32_t i = 0; i < site->passed; ++i)
        difference |= (uintptr_t)program->known[site->leaf[i]] ^ (uintptr_t)args[i];
    return difference == 0;
}

/* Fills *site for a call, after a check of what it passes. */
static int match(const gts_py_dispatcher *self, gts_py_site *site, Py_ssize_t given, PyObject *keywords)
{
    int32_t source[GTS_PY_MAX_PARAMETERS + 1];
    const uint32_t count = (uint32_t)PyTuple_GET_SIZE(self->takes.parameters);
    if (gts_py_match(&self->takes, given, keywords, source) != 0)
        return -1;
    *site = (gts_py_site){.keywords = keywords, .given = (int32_t)given, .selects = source[count] >= 0};
    for (uint32_t i = 0; i <= count; ++i) {
        if (source[i] < 0)
            continue;
        site->place[source[i]] = (uint8_t)i;
        ++site->passed;
    }
    for (uint32_t i = 0; i < self->static_count; ++i)
        site->selects = site->selects || source[self->statics[i].parameter] >= 0;
    return 0;
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
    gts_py_site found;
    if (GTS_UNLIKELY(site == NULL)) {
        if (match(self, &found, given, keywords) != 0)
            return NULL;
        site = gts_py_remember_site(self, &found);
        if (site == NULL)
            site = &found;
    }
    PyObject *argv[GTS_PY_MAX_PARAMETERS + 1];
    const size_t parameters = (size_t)PyTuple_GET_SIZE(self->takes.parameters);
    memcpy(argv, self->takes.bound, (parameters + 1) * sizeof *argv);
    for (uint32_t i = 0; i < site->passed; ++i)
        argv[site->place[i]] = args[i];

    PyObject *const callable = find_callable(self, site, argv);
    if (GTS_UNLIKELY(callable == NULL))
        return NULL;
    if (GTS_LIKELY(Py_IS_TYPE(callable, gts_py.program_type))) {
        gts_py_program *const program = (gts_py_program *)callable;
        if (GTS_UNLIKELY(gts_py_enter(program) != 0))
            return NULL;
        const uint64_t version = program->program->known_version;
        const int status = gts_py_convert(program, argv);
        /* Another thread may have made the entry another site's while this one waited. */
        if (status == 0 && program->program->known_version == version &&
            gts_py_find_site(self, given, keywords) == site)
            recognise(site, program);
        return gts_py_complete(program, status);
    }
    /* It is an executable of gt4py, which takes the offset provider by keyword. */
    PyObject *const held = Py_NewRef(callable);
    PyObject *const result = PyObject_Vectorcall(held, argv, parameters, self->keyword_of_provider);
    Py_DECREF(held);
    return result;
}

static PyObject *dispatcher_call(PyObject *object, PyObject *const *args, size_t flagged_given, PyObject *keywords)
{
    gts_py_dispatcher *const self = (gts_py_dispatcher *)object;
    const Py_ssize_t given = PyVectorcall_NARGS(flagged_given);
    gts_py_site *const site = gts_py_find_site(self, given, keywords);
    if (GTS_LIKELY(site != NULL) && enter_recent(site)) {
        if (GTS_LIKELY(is_known(site, args)))
            return gts_py_complete((gts_py_program *)site->target, 0);
        gts_py_leave((gts_py_program *)site->target);
    }
    return call_unknown(self, site, args, given, keywords);
}

/* ---- Making ---------------------------------------------------------------------------------------------------- */

static int set_parameters(gts_py_dispatcher *self, PyObject *parameters)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(parameters);
    if (count > GTS_PY_MAX_PARAMETERS)
        return gts_py_fail(PyExc_ValueError, "Program '%U' has %zd parameters, which is more than %d.", self->name,
                           count, GTS_PY_MAX_PARAMETERS);
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject *const name = PyTuple_GET_ITEM(parameters, i);
        if (!PyUnicode_CheckExact(name))
            return gts_py_fail(PyExc_TypeError, "A parameter of program '%U' must be a 'str', not '%s'.", self->name,
                               Py_TYPE(name)->tp_name);
    }
    self->takes.bound = gts_new((size_t)count + 1, sizeof *self->takes.bound);
    self->takes.parameters = Py_NewRef(parameters);
    return 0;
}

static int set_bound(gts_py_dispatcher *self, PyObject *bound)
{
    Py_ssize_t position = 0;
    PyObject *name, *value;
    while (bound != NULL && PyDict_Next(bound, &position, &name, &value)) {
        const Py_ssize_t place = PyUnicode_Check(name) ? gts_py_find_name(self->takes.parameters, name) : -1;
        if (place < 0)
            return gts_py_fail(PyExc_TypeError, "Program '%U' has no parameter %R.", self->name, name);
        Py_XSETREF(self->takes.bound[place], Py_NewRef(value));
    }
    return 0;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name",        "choose",  "parameters",       "bound",
                            "overridable", "statics", "offset_providers", NULL};
    PyObject *name, *choose, *parameters = NULL, *bound = NULL, *statics = NULL, *providers = NULL;
    int overridable = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "UO|O!O!pO!O!:Dispatcher", names, &name, &choose, &PyTuple_Type,
                                     &parameters, &PyDict_Type, &bound, &overridable, &PyTuple_Type, &statics,
                                     &PyTuple_Type, &providers))
        return NULL;
    gts_py_dispatcher *const self = (gts_py_dispatcher *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = parameters == NULL ? gts_py_call_overloads : dispatcher_call;
    self->overload_type = gts_py.overload_type;
    self->name = Py_NewRef(name);
    self->choose = Py_NewRef(choose);
    gts_py_forget_sites(self);
    self->takes = (gts_py_signature){.function = PyUnicode_AsUTF8(name), .overridable = overridable};
    self->keyword_of_provider = PyTuple_Pack(1, gts_py.name.offset_provider);
    if (self->takes.function == NULL || self->keyword_of_provider == NULL ||
        (parameters != NULL &&
         (set_parameters(self, parameters) != 0 || set_bound(self, bound) != 0 ||
          gts_py_set_providers(self, providers) != 0 || gts_py_set_statics(self, statics) != 0))) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

/* ---- Ending ---------------------------------------------------------------------------------------------------- */

/* Parameters and the offset provider; 0 if there are no bound arguments. */
static Py_ssize_t bound_count(const gts_py_dispatcher *self)
{
    return self->takes.bound == NULL ? 0 : PyTuple_GET_SIZE(self->takes.parameters) + 1;
}

static int dispatcher_traverse(PyObject *object, visitproc visit, void *arg)
{
    const gts_py_dispatcher *const self = (gts_py_dispatcher *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->choose);
    Py_VISIT(self->providers);
    for (int i = 0; i < GTS_PY_SITES; ++i)
        Py_VISIT(self->site[i].target);
    for (Py_ssize_t i = 0; i < bound_count(self); ++i)
        Py_VISIT(self->takes.bound[i]);
    for (uint32_t i = 0; i < self->variant_count; ++i)
        Py_VISIT(self->variants[i].callable);
    return 0;
}

/* Breaks cycles, which all contain `choose`. The other members stay, because a finalizer may still call. */
static int dispatcher_clear(PyObject *object)
{
    gts_py_dispatcher *const self = (gts_py_dispatcher *)object;
    Py_CLEAR(self->choose);
    return 0;
}

static void dispatcher_dealloc(PyObject *object)
{
    gts_py_dispatcher *const self = (gts_py_dispatcher *)object;
    PyObject_GC_UnTrack(object);
    PyObject_ClearWeakRefs(object);
    dispatcher_clear(object);
    gts_py_forget_sites(self);
    for (uint32_t i = 0; i < self->variant_count; ++i) {
        Py_DECREF(self->variants[i].key);
        Py_DECREF(self->variants[i].callable);
    }
    for (Py_ssize_t i = 0; i < bound_count(self); ++i)
        Py_XDECREF(self->takes.bound[i]);
    Py_XDECREF(self->takes.parameters);
    Py_XDECREF(self->providers);
    Py_XDECREF(self->static_tuple);
    Py_XDECREF(self->keyword_of_provider);
    Py_XDECREF(self->name);
    free(self->variants);
    free(self->statics);
    free(self->bound_key);
    free(self->takes.bound);
    gts_py_free(object);
}

/* ---- Attributes ------------------------------------------------------------------------------------------------ */

static PyObject *dispatcher_forget(PyObject *object, PyObject *Py_UNUSED(unused))
{
    gts_py_forget_sites((gts_py_dispatcher *)object);
    Py_RETURN_NONE;
}

static PyMemberDef MEMBERS[] = {
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(gts_py_dispatcher, vectorcall), Py_READONLY, NULL},
    {"__name__", Py_T_OBJECT_EX, offsetof(gts_py_dispatcher, name), Py_READONLY, "Name of the program."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef METHODS[] = {
    {"forget", dispatcher_forget, METH_NOARGS, "forget($self)\n--\n\nForgets all call sites."},
    {"key", gts_py_key, METH_VARARGS,
     "key($self, provider, statics, /)\n--\n\n"
     "What selects a variant, as bytes: the number of an offset provider, and the argument with each static scalar."},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(DOC,
             "Dispatcher(name, choose[, parameters, bound, overridable, statics, offset_providers])\n--\n\n"
             "A program that calls reach from several places in the source.\n\n"
             "choose(*args, **kwargs) returns what takes the calls from a new place, or arguments that another one "
             "has refused:\nan Overload, or any callable. With `parameters`, calls bind their arguments "
             "to these, `bound` has the others, and the\nstatic ones select a variant: choose(key, provider, "
             "statics) returns the callable of a new one.");

static PyType_Slot SLOTS[] = {
    {Py_tp_doc, (void *)DOC},
    {Py_tp_new, make},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_dealloc, dispatcher_dealloc},
    {Py_tp_traverse, dispatcher_traverse},
    {Py_tp_clear, dispatcher_clear},
    {Py_tp_members, MEMBERS},
    {Py_tp_methods, METHODS},
    {0, NULL},
};

PyType_Spec gts_py_dispatcher_spec = GTS_PY_SPEC("Dispatcher", gts_py_dispatcher, GTS_PY_CALLED | Py_TPFLAGS_BASETYPE);
