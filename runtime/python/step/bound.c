/* The BoundCall type: a program with all its arguments. */
#include <stddef.h>

#include "base/element.h"
#include "python/step/step.h"

/* ---- Arguments ------------------------------------------------------------------------------------------------- */

/* The object that a leaf has in the running call, borrowed; None for scalars. */
static PyObject *object_of(const gts_py_program *self, uint32_t index)
{
    const gts_leaf_kind kind = self->program->stub->leaves[index].kind;
    if (kind == GTS_CALLBACK)
        return self->leaf[index].callable;
    if (kind == GTS_ZERO_DIM_FIELD)
        return self->leaf[index].object;
    if (!gts_is_array(kind))
        return Py_None;
    PyObject *const known = (PyObject *)gts_known_object(self->program, index);
    return known != NULL ? known : self->leaf[index].object;
}

static PyObject *take_objects(const gts_py_program *self)
{
    const uint32_t count = self->program->stub->leaf_count;
    PyObject *const objects = PyTuple_New(count);
    for (uint32_t i = 0; objects != NULL && i < count; ++i)
        PyTuple_SET_ITEM(objects, i, Py_NewRef(object_of(self, i)));
    return objects;
}

static PyObject *take_held(const gts_py_program *self)
{
    PyObject *const held = PyTuple_New(self->held_count);
    for (uint32_t i = 0; held != NULL && i < self->held_count; ++i)
        PyTuple_SET_ITEM(held, i, Py_NewRef(self->held[i]));
    return held;
}

/* The arrays of the running call; NULL after an exception. */
static gts_array *take_arrays(const gts_program *self)
{
    gts_array *const arrays = gts_py_calloc(self->stub->leaf_count, sizeof *arrays);
    for (uint32_t i = 0; arrays != NULL && i < self->stub->leaf_count; ++i) {
        if (gts_is_array(self->stub->leaves[i].kind))
            arrays[i] = *gts_array_of(self, i);
    }
    return arrays;
}

/* Whether each start converts objects anew: zero-dimensional fields, whose value may change, and callbacks. */
static bool needs_host(const gts_stub *stub)
{
    for (uint32_t i = 0; i < stub->leaf_count; ++i) {
        if (stub->leaves[i].kind == GTS_ZERO_DIM_FIELD || stub->leaves[i].kind == GTS_CALLBACK)
            return true;
    }
    return false;
}

/* Gives the program, which is entered, the arguments of a bound call, but the objects of a tuple. */
static int load(const gts_py_bound *self, PyObject *objects)
{
    gts_program *const program = self->program->program;
    if (GTS_UNLIKELY(objects == NULL))
        return gts_error_set(&program->error, GTS_RUNTIME_ERROR,
                             "A bound call of program '%s' was started while it is being freed.", program->stub->name);
    char *const slots = program->slots;
    for (uint32_t i = 0; i < program->stub->leaf_count; ++i) {
        const gts_contract *const contract = &program->stub->leaves[i];
        PyObject *const object = PyTuple_GET_ITEM(objects, i);
        int status = 0;
        if (gts_is_array(contract->kind))
            status = gts_convert_field(program, &gts_py_host, i, object);
        else if (contract->kind == GTS_ZERO_DIM_FIELD)
            status = gts_py_zero_dim_field(program, i, object, slots + contract->slot);
        else if (contract->kind == GTS_CALLBACK)
            status = gts_py_callback(program, i, object);
        else if (contract->kind == GTS_SCALAR) {
            gts_know_object(program, i, NULL); /* its slot gets another value */
            memcpy(slots + contract->slot, (const char *)self->call->slots + contract->slot,
                   gts_dtype_size(contract->dtype));
        }
        if (status != 0)
            return -1;
    }
    return 0;
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
        status = load(self, self->arguments.objects);
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

static PyObject *call(PyObject *callable, PyObject *const *Py_UNUSED(args), size_t flagged_given, PyObject *keywords)
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

/* ---- Changing -------------------------------------------------------------------------------------------------- */

/* Converts the new scalars to the slots of the program, which is entered. */
static int set_scalars(gts_program *program, PyObject *scalars)
{
    Py_ssize_t position = 0;
    PyObject *name, *value;
    while (PyDict_Next(scalars, &position, &name, &value)) {
        const char *const text = PyUnicode_AsUTF8(name);
        const int64_t leaf = text == NULL ? -1 : gts_bound_find(program, text);
        if (text == NULL)
            return -1;
        if (leaf < 0)
            return gts_error_set(&program->error, GTS_TYPE_ERROR, "Program '%s' has no argument '%s'.",
                                 program->stub->name, text);
        const gts_contract *const contract = &program->stub->leaves[leaf];
        if (gts_bound_check_scalar(program, contract) != 0 ||
            gts_py_scalar(program, (uint32_t)leaf, value, (char *)program->slots + contract->slot) != 0)
            return -1;
    }
    return 0;
}

/* Exchanges the arguments of a bound call with others. The program is entered, so that no start uses them meanwhile. */
static void exchange(gts_py_bound *self, gts_py_arguments *changed)
{
    const gts_py_arguments own = self->arguments;
    memcpy(own.slots, changed->slots, self->call->stub->slots_size); /* the old scalars are not needed again */
    self->arguments = *changed;
    self->arguments.slots = own.slots;
    void *const slots = changed->slots;
    *changed = own;
    changed->slots = slots;
}

int gts_py_check_arguments(gts_py_bound *self, PyObject *objects, PyObject *scalars, bool exchanges,
                           gts_py_arguments *changed)
{
    gts_py_program *const own = self->program;
    gts_program *const program = own->program;
    *changed = (gts_py_arguments){.slots = gts_py_calloc(1, program->stub->slots_size), .objects = Py_XNewRef(objects)};
    if (changed->slots == NULL || gts_py_enter(own) != 0)
        return -1;
    int status = load(self, objects);
    if (status == 0 && scalars != NULL)
        status = set_scalars(program, scalars);
    if (status == 0)
        status = program->stub->prepare(program);
    if (status == 0) {
        changed->held = take_held(own);
        changed->arrays = take_arrays(program);
        status = changed->held == NULL || changed->arrays == NULL ? -1 : 0;
        memcpy(changed->slots, program->slots, program->stub->slots_size);
    }
    if (status != 0)
        (void)gts_py_raise(&program->error);
    else if (exchanges)
        exchange(self, changed);
    if (program->debug)
        gts_forget_objects(program); /* so that the next call reads every field again */
    gts_py_leave(own);
    return status;
}

void gts_py_exchange_arguments(gts_py_bound *self, gts_py_arguments *changed)
{
    gts_program *const program = self->program->program;
    /* Not in the child of a fork, where no call is running. */
    const bool is_entered = gts_try_enter(program) || GTS_PY_WITHOUT_GIL(gts_enter_open(program)) == 0;
    exchange(self, changed);
    if (is_entered)
        gts_leave(program);
}

void gts_py_clear_arguments(gts_py_arguments *arguments)
{
    PyMem_Free(arguments->slots);
    arguments->slots = NULL;
    PyMem_Free(arguments->arrays);
    arguments->arrays = NULL;
    Py_CLEAR(arguments->objects);
    Py_CLEAR(arguments->held);
}

static PyObject *set(PyObject *object, PyObject *args, PyObject *keywords)
{
    gts_py_bound *const self = (gts_py_bound *)object;
    if (PyTuple_GET_SIZE(args) != 0)
        return PyErr_Format(PyExc_TypeError, "set() takes scalars by keyword only.");
    gts_py_arguments changed;
    const int status = gts_py_check_arguments(self, self->arguments.objects, keywords, true, &changed);
    gts_py_clear_arguments(&changed);
    return status == 0 ? Py_NewRef(Py_None) : NULL;
}

/* ---- Making ---------------------------------------------------------------------------------------------------- */

PyObject *gts_py_bound_new(gts_py_program *program)
{
    PyTypeObject *const type = program->state->bound_type;
    gts_py_bound *const self = (gts_py_bound *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = call;
    self->program = (gts_py_program *)Py_NewRef((PyObject *)program);
    self->arguments.objects = take_objects(program);
    self->arguments.held = take_held(program);
    self->arguments.arrays = take_arrays(program->program);
    self->call = gts_bound_new(program->program);
    if (self->arguments.objects == NULL || self->arguments.held == NULL || self->arguments.arrays == NULL ||
        self->call == NULL) {
        if (!PyErr_Occurred())
            (void)gts_py_raise(&program->program->error);
        Py_DECREF(self);
        return NULL;
    }
    self->call->needs_host = needs_host(program->program->stub);
    gts_bound_take(self->call);
    self->arguments.slots = self->call->slots;
    return (PyObject *)self;
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    const gts_py_bound *const self = (gts_py_bound *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->program);
    Py_VISIT(self->arguments.objects);
    Py_VISIT(self->arguments.held);
    Py_VISIT(self->checked);
    return 0;
}

/* Breaks cycles. The program stays, because a finalizer may still start the call, which is then refused. */
static int clear(PyObject *object)
{
    gts_py_bound *const self = (gts_py_bound *)object;
    if (self->call != NULL)
        self->call->needs_host = true;
    Py_CLEAR(self->arguments.objects);
    Py_CLEAR(self->arguments.held);
    return 0;
}

static void dealloc(PyObject *object)
{
    gts_py_bound *const self = (gts_py_bound *)object;
    PyObject_GC_UnTrack(object);
    PyObject_ClearWeakRefs(object);
    (void)clear(object);
    PyMem_Free(self->arguments.arrays);
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
        return gts_py_scalar_object(contract->dtype, (const char *)self->call->slots + contract->slot);
    if (contract->kind == GTS_STATIC)
        return gts_py_scalar_object(contract->dtype, contract->value);
    return self->arguments.objects == NULL ? Py_NewRef(Py_None)
                                           : Py_NewRef(PyTuple_GET_ITEM(self->arguments.objects, leaf));
}

static PyObject *get_arguments(PyObject *object, void *Py_UNUSED(closure))
{
    const gts_py_bound *const self = (gts_py_bound *)object;
    PyObject *const arguments = PyDict_New();
    for (uint32_t i = 0; arguments != NULL && i < self->call->stub->leaf_count; ++i) {
        PyObject *const value = argument_of(self, i);
        if (value == NULL || PyDict_SetItemString(arguments, self->call->stub->leaves[i].path, value) != 0) {
            Py_XDECREF(value);
            Py_DECREF(arguments);
            return NULL;
        }
        Py_DECREF(value);
    }
    return arguments;
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

/* A tuple of the first numbers of an array's sizes, strides or origin. */
static PyObject *numbers(const int64_t *from, int32_t count)
{
    PyObject *const tuple = PyTuple_New(count);
    for (int32_t i = 0; tuple != NULL && i < count; ++i) {
        PyObject *const number = PyLong_FromLongLong(from[i]);
        if (number == NULL) {
            Py_DECREF(tuple);
            return NULL;
        }
        PyTuple_SET_ITEM(tuple, i, number);
    }
    return tuple;
}

static PyObject *array_of(const gts_array *array)
{
    return Py_BuildValue("(KsNNN)", (unsigned long long)(uintptr_t)array->data, gts_dtype_name(array->dtype),
                         numbers(array->shape, array->rank), numbers(array->strides, array->rank),
                         numbers(array->origin, array->rank));
}

static PyObject *get_arrays(PyObject *object, void *Py_UNUSED(closure))
{
    const gts_py_bound *const self = (gts_py_bound *)object;
    const gts_stub *const stub = self->call->stub;
    PyObject *arrays = PyDict_New();
    for (uint32_t i = 0; arrays != NULL && self->arguments.arrays != NULL && i < stub->leaf_count; ++i) {
        if (!gts_is_array(stub->leaves[i].kind))
            continue;
        PyObject *const array = array_of(&self->arguments.arrays[i]);
        if (array == NULL || PyDict_SetItemString(arrays, stub->leaves[i].path, array) != 0)
            Py_CLEAR(arrays);
        Py_XDECREF(array);
    }
    return arrays;
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
    {"set", (PyCFunction)(void (*)(void))set, METH_VARARGS | METH_KEYWORDS,
     "set($self, /, **scalars)\n--\n\nChanges scalars, which are checked with the other arguments: all, or none after "
     "an error."},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(DOC,
             "A program with all its arguments, which were checked. A call of it takes no arguments, and runs the\n"
             "program. It keeps its arrays.");

static PyType_Slot SLOTS[] = {
    {Py_tp_doc, (void *)DOC},   {Py_tp_call, PyVectorcall_Call},
    {Py_tp_dealloc, dealloc},   {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},       {Py_tp_repr, repr},
    {Py_tp_getset, ATTRIBUTES}, {Py_tp_members, MEMBERS},
    {Py_tp_methods, METHODS},   {0, NULL},
};

PyType_Spec gts_py_bound_spec = {
    .name = "gtstub._host.BoundCall",
    .basicsize = sizeof(gts_py_bound),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE |
             Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_MANAGED_WEAKREF,
    .slots = SLOTS,
};
