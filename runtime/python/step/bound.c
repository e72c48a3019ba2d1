/* The BoundCall type: a program with all its arguments. */
#include <stdlib.h>

#include "base/strided.h"
#include "python/step/step.h"

/* ---- Arguments ------------------------------------------------------------------------------------------------- */

/* The object that a leaf has in the running call, borrowed; NULL for scalars. */
static PyObject *object_of(const gts_py_program *self, uint32_t index)
{
    const gts_leaf_kind kind = self->program->stub->leaves[index].kind;
    if (kind == GTS_CALLBACK)
        return self->leaf[index].callable;
    if (kind == GTS_ZERO_DIM_FIELD)
        return self->leaf[index].object;
    if (!gts_is_array(kind))
        return NULL;
    PyObject *const known = (PyObject *)gts_known_object(self->program, index);
    return known != NULL ? known : self->leaf[index].object;
}

static gts_py_kept *take_kept(const gts_py_program *self)
{
    const uint32_t count = self->program->stub->leaf_count;
    gts_py_kept *const kept = gts_new(count, sizeof *kept);
    for (uint32_t i = 0; i < count; ++i) {
        kept[i].object = Py_XNewRef(object_of(self, i));
        if (gts_is_array(self->program->stub->leaves[i].kind) && gts_known_object(self->program, i) == NULL)
            kept[i].owner = Py_XNewRef(self->leaf[i].owner);
    }
    return kept;
}

void gts_py_clear_kept(gts_py_kept **kept, Py_ssize_t count)
{
    gts_py_kept *const old = *kept;
    *kept = NULL; /* what is freed may run finalizers */
    for (Py_ssize_t i = 0; old != NULL && i < count; ++i) {
        Py_XDECREF(old[i].object);
        Py_XDECREF(old[i].owner);
    }
    free(old);
}

/* Reads the zero-dimensional fields, because a swap needs to know where their elements are. */
static int take_fields(const gts_py_bound *self)
{
    gts_bound_call *const call = self->call;
    for (uint32_t i = 0; i < call->stub->leaf_count; ++i) {
        if (call->stub->leaves[i].kind != GTS_ZERO_DIM_FIELD)
            continue;
        gts_py_leaf leaf;
        gts_array array;
        gts_py_kept *const kept = &self->kept[i];
        const int status = gts_py_read_any(&leaf, kept->object, &array, &kept->owner);
        gts_py_forget_domain(&leaf);
        if (status < 0)
            return -1;
        if (status > 0) /* a number is no array */
            call->fields[i] = array;
    }
    return 0;
}

/* When debugging: refuses an object whose array is another one than when the call was bound. */
static GTS_COLD int check_unchanged(const gts_py_bound *self, uint32_t index, PyObject *object)
{
    const gts_contract *const contract = &self->call->stub->leaves[index];
    gts_array array;
    PyObject *owner;
    int status = gts_py_read_field(&self->program->leaf[index], object, &array, &owner);
    const gts_array *const bound = gts_array_in(self->call->args, contract);
    if (status == 0 && owner == NULL && (array.data != bound->data || !gts_have_one_layout(&array, bound)))
        status = GTS_REFUSE(self->program->program, contract, GTS_VALUE_ERROR,
                            "was changed in place (shape, strides or memory) since an earlier call.");
    Py_XDECREF(owner);
    return status;
}

/* Gives the program, which is entered, arrays and scalars as `<name>_call()` does. */
static int load_args(gts_program *program, const void *args)
{
    gts_forget_host(program);
    GTS_TRY(gts_check_args(program, args)); /* which may exchange the slots */
    for (uint32_t i = 0; i < program->stub->leaf_count; ++i) {
        const gts_contract *const contract = &program->stub->leaves[i];
        if (contract->kind == GTS_SCALAR)
            memcpy((char *)program->slots + contract->slot, (const char *)args + contract->member,
                   gts_dtype_size(contract->dtype));
    }
    return 0;
}

/* Gives the program, which is entered, the arguments of a bound call. */
static int load(const gts_py_bound *self)
{
    gts_program *const program = self->program->program;
    if (GTS_UNLIKELY(self->kept == NULL))
        return gts_error_set(&program->error, GTS_RUNTIME_ERROR,
                             "A bound call of program '%s' was started while it is being freed.", program->stub->name);
    int status = load_args(program, self->call->args);
    for (uint32_t i = 0; i < program->stub->leaf_count && status == 0; ++i) {
        const gts_contract *const contract = &program->stub->leaves[i];
        gts_py_leaf *const leaf = &self->program->leaf[i];
        PyObject *const object = leaf->object = self->kept[i].object;
        leaf->owner = self->kept[i].owner;
        if (program->call_back != NULL) { /* callbacks get them, even if a swap drops them before the SDFG runs */
            gts_py_hold(self->program, Py_XNewRef(object));
            gts_py_hold(self->program, Py_XNewRef(leaf->owner));
        }
        if (contract->kind == GTS_ZERO_DIM_FIELD)
            status = gts_py_zero_dim_field(program, i, object, (char *)program->slots + contract->slot);
        else if (contract->kind == GTS_CALLBACK)
            status = gts_py_callback(program, i, object);
        else if (GTS_UNLIKELY(program->debug) && gts_is_array(contract->kind))
            status = check_unchanged(self, i, object);
    }
    return status;
}

/* ---- Starting -------------------------------------------------------------------------------------------------- */

bool gts_py_is_level_known(const gts_py_program *self)
{
    return !self->reads_metrics_level && !self->wants_sample;
}

int gts_py_start_slowly(gts_py_bound *self)
{
    gts_py_program *const program = self->program;
    if ((self->check != NULL && self->check(self->checked, false) != 0) || gts_py_enter(program) != 0)
        return -1;
    int status = program->reads_metrics_level ? gts_py_read_metrics_level(program) : 0;
    if (status == 0)
        status = load(self);
    PyObject *const result = gts_py_complete(program, status);
    Py_XDECREF(result);
    if (result == NULL)
        return -1;
    return self->check != NULL && program->program->call_back != NULL ? self->check(self->checked, true) : 0;
}

static int start(gts_py_bound *self)
{
    gts_py_program *const program = self->program;
    if (GTS_UNLIKELY(!gts_py_is_level_known(program)))
        return gts_py_start_slowly(self);
    const int status = GTS_LIKELY(gts_py_is_alone(program, PyThreadState_Get()))
                           ? gts_start_known(self->call)
                           : GTS_PY_WITHOUT_GIL(gts_start_known(self->call));
    if (GTS_LIKELY(status == 0))
        return 0;
    return status > 0 ? gts_py_start_slowly(self) : gts_py_raise(&program->program->error);
}

static PyObject *bound_call(PyObject *callable, PyObject *const *Py_UNUSED(args), size_t flagged_given,
                            PyObject *keywords)
{
    if (GTS_UNLIKELY(gts_py_has_arguments(flagged_given, keywords)))
        return PyErr_Format(PyExc_TypeError,
                            "A bound call of program '%s' takes no arguments; change scalars with set().",
                            ((gts_py_bound *)callable)->call->stub->name);
    Py_INCREF(callable); /* a finalizer may drop the last reference while the GIL is released */
    const int status = start((gts_py_bound *)callable);
    Py_DECREF(callable);
    if (GTS_UNLIKELY(status != 0))
        return NULL;
    Py_RETURN_NONE;
}

/* ---- Making ---------------------------------------------------------------------------------------------------- */

PyObject *gts_py_bound_new(gts_py_program *program)
{
    PyTypeObject *const type = gts_py.bound_type;
    gts_py_bound *self = (gts_py_bound *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = bound_call;
    self->program = (gts_py_program *)Py_NewRef((PyObject *)program);
    self->kept = take_kept(program);
    self->call = gts_bound_take(program->program);
    if (take_fields(self) != 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static Py_ssize_t leaf_count(const gts_py_bound *self)
{
    return (Py_ssize_t)self->program->program->stub->leaf_count;
}

static int bound_traverse(PyObject *object, visitproc visit, void *arg)
{
    const gts_py_bound *const self = (gts_py_bound *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->program);
    Py_VISIT(self->checked);
    return gts_py_visit_kept(self->kept, leaf_count(self), visit, arg);
}

/* Breaks cycles. The program stays, because a finalizer may still start the call, which is then refused. */
static int bound_clear(PyObject *object)
{
    gts_py_bound *const self = (gts_py_bound *)object;
    if (self->call != NULL)
        self->call->needs_host = true;
    gts_py_clear_kept(&self->kept, leaf_count(self));
    return 0;
}

static void bound_dealloc(PyObject *object)
{
    gts_py_bound *const self = (gts_py_bound *)object;
    PyObject_GC_UnTrack(object);
    PyObject_ClearWeakRefs(object);
    bound_clear(object);
    gts_unbind(&self->call);
    Py_XDECREF(self->checked);
    Py_XDECREF((PyObject *)self->program);
    gts_py_free(object);
}

/* ---- Attributes ------------------------------------------------------------------------------------------------ */

static PyObject *repr(PyObject *object)
{
    return PyUnicode_FromFormat("<gtstub bound call of '%s'>", ((gts_py_bound *)object)->call->stub->name);
}

static PyObject *get_name(PyObject *object, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(((gts_py_bound *)object)->call->stub->name);
}

static PyObject *argument_of(const gts_py_bound *self, uint32_t leaf)
{
    const gts_contract *const contract = &self->call->stub->leaves[leaf];
    if (contract->kind == GTS_SCALAR)
        return gts_py_scalar_object(contract->dtype, (const char *)self->call->args + contract->member);
    if (contract->kind == GTS_STATIC)
        return gts_py_scalar_object(contract->dtype, contract->value);
    return Py_NewRef(self->kept == NULL ? Py_None : self->kept[leaf].object);
}

static PyObject *array_of(const gts_py_bound *self, uint32_t leaf)
{
    if (!gts_is_array(self->call->stub->leaves[leaf].kind))
        return NULL;
    const gts_array *const array = gts_array_in(self->call->args, &self->call->stub->leaves[leaf]);
    return Py_BuildValue("(KsNNN)", (unsigned long long)(uintptr_t)array->data, gts_dtype_name(array->dtype),
                         gts_py_numbers(array->shape, array->rank, 1), gts_py_numbers(array->strides, array->rank, 1),
                         gts_py_numbers(array->origin, array->rank, 1));
}

/* A dict of what `get` returns for each leaf: NULL without an exception leaves it out. */
static PyObject *by_path(const gts_py_bound *self, PyObject *(*get)(const gts_py_bound *, uint32_t leaf))
{
    PyObject *dict = PyDict_New();
    for (uint32_t i = 0; dict != NULL && i < self->call->stub->leaf_count; ++i) {
        PyObject *const value = get(self, i);
        if (value != NULL)
            PyDict_SetItemString(dict, self->call->stub->leaves[i].path, value);
        Py_XDECREF(value);
        if (PyErr_Occurred())
            Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *get_arguments(PyObject *object, void *Py_UNUSED(closure))
{
    return by_path((gts_py_bound *)object, argument_of);
}

static PyObject *get_arrays(PyObject *object, void *Py_UNUSED(closure))
{
    return by_path((gts_py_bound *)object, array_of);
}

/* The names of the arguments that the SDFG writes. */
static PyObject *get_written(PyObject *object, void *Py_UNUSED(closure))
{
    const gts_stub *const stub = ((gts_py_bound *)object)->call->stub;
    PyObject *names = PyList_New(0);
    for (uint32_t i = 0; names != NULL && i < stub->leaf_count; ++i) {
        if (!stub->leaves[i].written)
            continue;
        PyObject *const name = PyUnicode_FromString(stub->leaves[i].path);
        if (name == NULL || PyList_Append(names, name) != 0)
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static PyObject *get_device(PyObject *object, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(gts_device_name(((gts_py_bound *)object)->call->stub->device));
}

static PyGetSetDef ATTRIBUTES[] = {
    {"__name__", get_name, NULL, "Name of the program.", NULL},
    {"arguments", get_arguments, NULL, "The arguments by their names in messages: 'vn', 'x[0]', 'dtime'.", NULL},
    {"arrays", get_arrays, NULL,
     "The arrays by their names in messages, each as its address, dtype, shape, strides (in elements) and origin.",
     NULL},
    {"written", get_written, NULL, "The names of the arguments that the program writes.", NULL},
    {"device", get_device, NULL, "What the program runs on: 'cpu', 'cuda' or 'rocm'.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef MEMBERS[] = {
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(gts_py_bound, vectorcall), Py_READONLY, NULL},
    {"program", Py_T_OBJECT_EX, offsetof(gts_py_bound, program), Py_READONLY, "The program."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef METHODS[] = {
    {"set", (PyCFunction)(void (*)(void))gts_py_set_in_call, METH_VARARGS | METH_KEYWORDS,
     "set($self, /, **scalars)\n--\n\nChanges scalars, which are checked with the other arguments: all, or none after "
     "an error."},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(DOC,
             "A program with all its arguments, which were checked. A call of it takes no arguments, and runs the\n"
             "program. It keeps its arrays.");

static PyType_Slot SLOTS[] = {
    {Py_tp_doc, (void *)DOC},       {Py_tp_call, PyVectorcall_Call},
    {Py_tp_dealloc, bound_dealloc}, {Py_tp_traverse, bound_traverse},
    {Py_tp_clear, bound_clear},     {Py_tp_repr, repr},
    {Py_tp_getset, ATTRIBUTES},     {Py_tp_members, MEMBERS},
    {Py_tp_methods, METHODS},       {0, NULL},
};

PyType_Spec gts_py_bound_spec = GTS_PY_SPEC("BoundCall", gts_py_bound,
                                            GTS_PY_CALLED | Py_TPFLAGS_DISALLOW_INSTANTIATION);
