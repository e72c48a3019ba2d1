/* The Program type: how its objects are created and freed, and their attributes. */
#include <stdlib.h>

#include "python/step/step.h"

#ifndef Py_GIL_DISABLED /* whose objects have longer heads */
/* Objects of this size begin at a multiple of 16. */
_Static_assert(offsetof(gts_py_program, needs_offset_provider) <= 64 + 16,
               "the members for calls with known arguments must fit into two cache lines");
#endif

/* ---- Making ---------------------------------------------------------------------------------------------------- */

/* A tuple of interned names; NULL after an exception. */
static PyObject *intern_names(const char *const *texts, uint32_t count)
{
    PyObject *const names = PyTuple_New((Py_ssize_t)count);
    for (uint32_t i = 0; names != NULL && i < count; ++i) {
        PyObject *const name = PyUnicode_InternFromString(texts[i]);
        if (name == NULL) {
            Py_DECREF(names);
            return NULL;
        }
        PyTuple_SET_ITEM(names, (Py_ssize_t)i, name);
    }
    return names;
}

static int prepare_leaves(gts_py_program *self)
{
    const gts_stub *const stub = self->program->stub;
    self->on_cpu = self->may_keep_gil = true;
    self->first_connectivity = stub->leaf_count;
    for (uint32_t i = 0; i < stub->leaf_count; ++i) {
        const gts_contract *const contract = &stub->leaves[i];
        gts_py_leaf *const leaf = &self->leaf[i];
        leaf->contract = contract;
        const gts_device device = contract->kind == GTS_ZERO_DIM_FIELD ? stub->device : contract->device;
        leaf->argument = gts_py_argument_of(self, contract->path, contract->dtype, device);
        leaf->argument.is_plain = contract->rank > 0 && strcmp(contract->axes[0].dim, "axis_0") == 0;
        if (gts_is_array(contract->kind) && contract->device != GTS_CPU)
            self->on_cpu = self->may_keep_gil = false;
        if (contract->kind == GTS_CALLBACK) {
            self->program->call_back = gts_py_call_back;
            self->may_keep_gil = self->may_keep_gil && !contract->is_parallel;
        }
        if (contract->kind != GTS_CONNECTIVITY)
            continue;
        self->needs_offset_provider = true;
        if (self->first_connectivity == stub->leaf_count)
            self->first_connectivity = i; /* all others follow */
        leaf->name = PyUnicode_InternFromString(contract->path);
        if (leaf->name == NULL)
            return -1;
    }
    return 0;
}

static int prepare_collections(gts_py_program *self)
{
    const gts_stub *const stub = self->program->stub;
    size_t elements = 0;
    for (uint32_t i = 0; i < stub->collection_count; ++i) {
        elements += stub->collections[i].length;
        self->keys[i] = intern_names(stub->collections[i].keys, stub->collections[i].length);
        if (self->keys[i] == NULL)
            return -1;
    }
    self->held = gts_new(3 * (size_t)stub->leaf_count + elements, sizeof(PyObject *));
    return 0;
}

PyObject *gts_py_program_new(gts_program *program)
{
    gts_py_program *const self = (gts_py_program *)gts_py.program_type->tp_alloc(gts_py.program_type, 0);
    if (self == NULL) {
        gts_close(&program);
        return NULL;
    }
    const gts_stub *const stub = program->stub;
    program->host = self;
    program->linked = NULL; /* calls of C enter slowly, and then forget the objects of Python */
    self->vectorcall = gts_py_call;
    self->program = program;
    self->next = gts_py_programs;
    gts_py_programs = self;
    self->convert = stub->convert;
    self->run = stub->run;
    self->provider_keyword = gts_py.name.offset_provider;
    self->parameter_count = stub->parameter_count;
    self->argv = gts_new(stub->parameter_count + 1, sizeof *self->argv);
    self->source = gts_new(stub->parameter_count + 1, sizeof *self->source);
    self->leaf = gts_new(stub->leaf_count, sizeof *self->leaf);
    self->references = gts_new(stub->leaf_count, 2 * sizeof(PyObject *));
    self->workspace = gts_new(stub->workspace_count, sizeof(PyObject *));
    self->keys = gts_new(stub->collection_count, sizeof(PyObject *));
    self->parameters = intern_names(stub->parameters, stub->parameter_count);
    if (self->parameters == NULL || gts_py_prepare_references(self) != 0 || prepare_leaves(self) != 0 ||
        prepare_collections(self) != 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

/* ---- Ending ---------------------------------------------------------------------------------------------------- */

static int program_traverse(PyObject *object, visitproc visit, void *arg)
{
    const gts_py_program *const self = (gts_py_program *)object;
    Py_VISIT(Py_TYPE(object));
    const gts_stub *const stub = self->program->stub;
    for (uint32_t i = 0; i < stub->leaf_count; ++i) {
        Py_VISIT(self->leaf[i].domain.object);
        for (int axis = 0; axis < GTS_MAX_RANK; ++axis) {
            Py_VISIT(self->leaf[i].dimension[axis]);
            Py_VISIT(self->leaf[i].other_name[axis]);
        }
    }
    for (uint32_t i = 0; i < stub->workspace_count; ++i)
        Py_VISIT(self->workspace[i]);
    Py_VISIT(self->stream);
    Py_VISIT(self->metrics.namespace);
    Py_VISIT(self->metrics.sample);
    return 0;
}

/* Breaks cycles. The workspaces stay until the handle that uses them has been ended. */
static int program_clear(PyObject *object)
{
    gts_py_program *const self = (gts_py_program *)object;
    self->reads_metrics_level = self->wants_sample = false;
    Py_CLEAR(self->metrics.namespace);
    Py_CLEAR(self->metrics.sample);
    for (uint32_t i = 0; i < self->program->stub->leaf_count; ++i)
        gts_py_forget_domain(&self->leaf[i]);
    return 0;
}

static void program_dealloc(PyObject *object)
{
    gts_py_program *const self = (gts_py_program *)object;
    PyObject_GC_UnTrack(object);
    PyObject_ClearWeakRefs(object);
    const gts_stub *const stub = self->program->stub;
    gts_py_program **link = &gts_py_programs;
    while (*link != self)
        link = &(*link)->next;
    *link = self->next;
    program_clear(object);
    gts_py_free_references(self);
    for (uint32_t i = 0; i < stub->leaf_count; ++i)
        Py_XDECREF(self->leaf[i].name);
    /* Without the GIL for a GPU: it waits for what is on it, which may be a Python function of another library. */
    PyThreadState *const thread = self->on_cpu ? NULL : PyEval_SaveThread();
    gts_close(&self->program);
    if (thread != NULL)
        PyEval_RestoreThread(thread);
    for (uint32_t i = 0; i < stub->workspace_count; ++i)
        Py_XDECREF(self->workspace[i]);
    for (uint32_t i = 0; i < stub->collection_count; ++i)
        Py_XDECREF(self->keys[i]);
    Py_XDECREF(self->stream); /* after the program, whose memory is freed on it */
    Py_XDECREF(self->metrics.key);
    Py_XDECREF(self->parameters);
    Py_XDECREF(self->path);
    free(self->argv);
    free(self->source);
    free(self->leaf);
    free(self->keys);
    free(self->held);
    free(self->workspace);
    gts_py_free(object);
}

/* ---- Attributes ------------------------------------------------------------------------------------------------ */

static PyObject *repr(PyObject *object)
{
    const gts_py_program *const self = (gts_py_program *)object;
    const Py_ssize_t count = PyTuple_GET_SIZE(self->parameters);
    return PyUnicode_FromFormat("<gtstub program '%s' (%zd parameter%s)>", self->program->stub->name, count,
                                count == 1 ? "" : "s");
}

/* `offset` is that of a text in gts_stub. */
static PyObject *get_text(PyObject *object, void *offset)
{
    const char *const stub = (const char *)((gts_py_program *)object)->program->stub;
    const char *text;
    memcpy(&text, stub + (uintptr_t)offset, sizeof text);
    return PyUnicode_FromString(text);
}

static PyObject *get_compute_time(PyObject *object, void *Py_UNUSED(closure))
{
    return PyFloat_FromDouble(((gts_py_program *)object)->program->compute_time);
}

static PyObject *get_metrics_level(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(((gts_py_program *)object)->program->metrics_level);
}

static int set_metrics_level(PyObject *object, PyObject *value, void *Py_UNUSED(closure))
{
    if (value == NULL)
        return gts_py_fail(PyExc_AttributeError, "Attribute 'metrics_level' cannot be deleted.");
    const long level = PyLong_AsLong(value);
    if (level == -1 && PyErr_Occurred())
        return -1;
    if (level < 0 || level > INT32_MAX)
        return gts_py_fail(PyExc_ValueError, "Attribute 'metrics_level' must be from 0 to %d, not %ld.", INT32_MAX,
                           level);
    gts_py_program *const self = (gts_py_program *)object;
    self->program->metrics_level = (int32_t)level;
    self->reads_metrics_level = self->metrics.namespace != NULL;
    return 0;
}

#define TEXT(name, member, doc) {name, get_text, NULL, doc, (void *)offsetof(gts_stub, member)}

static PyGetSetDef ATTRIBUTES[] = {
    TEXT("name", name, "Name of the program, which is also the SDFG's."),
    TEXT("__name__", name, "Name of the program."),
    TEXT("stub_version", version, "Version of the gtstub that generated the stub."),
    TEXT("program_digest", program_digest, "SHA-256 of the program signature, in hexadecimal."),
    TEXT("sdfg_digest", sdfg_digest, "SHA-256 of the SDFG signature, in hexadecimal."),
    {"compute_time", get_compute_time, NULL, "Seconds that the SDFG measured in the last call with metrics.", NULL},
    {"metrics_level", get_metrics_level, set_metrics_level,
     "Level of gt4py's metrics in the next call; after set_metrics(), each call reads it from the namespace.", NULL},
    {"stream", gts_py_get_stream, gts_py_set_stream,
     "The stream of a GPU that calls put their work on: None for the default stream, an address, or an object with\n"
     "'__cuda_stream__'. Until it is set, and after 'current', it is the one of gtstub.stream().",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef MEMBERS[] = {
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(gts_py_program, vectorcall), Py_READONLY, NULL},
    {"parameters", Py_T_OBJECT_EX, offsetof(gts_py_program, parameters), Py_READONLY, "Names of the parameters."},
    {"stub_path", Py_T_OBJECT_EX, offsetof(gts_py_program, path), Py_READONLY,
     "The file of the stub, in the folder of the cache entry. It may have been removed."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef METHODS[] = {
    {"bind", (PyCFunction)(void (*)(void))gts_py_bind_program, METH_VARARGS | METH_KEYWORDS,
     "bind($self, /, *args, **kwargs)\n--\n\nChecks the arguments of a call, and returns a BoundCall, which keeps "
     "them. Nothing runs."},
    {"set_workspace", (PyCFunction)(void (*)(void))gts_py_set_workspace, METH_VARARGS | METH_KEYWORDS,
     "set_workspace($self, storage, array)\n--\n\n"
     "Lends the program the memory of a contiguous array for its transients in `storage` ('CPU_Heap', for example).\n"
     "The program keeps the array until another one is set."},
    {"set_metrics", (PyCFunction)(void (*)(void))gts_py_set_metrics, METH_VARARGS | METH_KEYWORDS,
     "set_metrics($self, namespace, key, threshold, sample)\n--\n\n"
     "Each call reads its metrics level from `namespace[key]`. After a call with at least the level `threshold`, it\n"
     "calls `sample(seconds)`. This has no effect on a program that was compiled without metrics."},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(DOC, "A compiled gt4py program. It is called with its arguments, and with `offset_provider` if it has "
                  "connectivities. It\n"
                  "writes its results into the arguments and returns None. One call runs at a time, without the GIL.");

static PyType_Slot SLOTS[] = {
    {Py_tp_doc, (void *)DOC},         {Py_tp_call, PyVectorcall_Call},
    {Py_tp_dealloc, program_dealloc}, {Py_tp_traverse, program_traverse},
    {Py_tp_clear, program_clear},     {Py_tp_repr, repr},
    {Py_tp_getset, ATTRIBUTES},       {Py_tp_members, MEMBERS},
    {Py_tp_methods, METHODS},         {0, NULL},
};

PyType_Spec gts_py_program_spec = GTS_PY_SPEC("Program", gts_py_program,
                                              GTS_PY_CALLED | Py_TPFLAGS_DISALLOW_INSTANTIATION);
