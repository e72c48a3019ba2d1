/* The Action type: a function with the arrays that it uses, which a step swaps. */
#include <stddef.h>

#include "python/step/step.h"

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    if (keywords != NULL && PyDict_GET_SIZE(keywords) != 0)
        return PyErr_Format(PyExc_TypeError, "An action takes no keyword arguments.");
    if (PyTuple_GET_SIZE(args) == 0 || !PyCallable_Check(PyTuple_GET_ITEM(args, 0)))
        return PyErr_Format(PyExc_TypeError, "An action needs a function and the arrays that it is called with.");
    PyObject *const arrays = PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args));
    gts_py_action *const self = arrays == NULL ? NULL : (gts_py_action *)type->tp_alloc(type, 0);
    if (self == NULL) {
        Py_XDECREF(arrays);
        return NULL;
    }
    self->function = Py_NewRef(PyTuple_GET_ITEM(args, 0));
    self->arrays = arrays;
    return (PyObject *)self;
}

/* Calls the function. It may drop the action, or have its arrays swapped by another step. */
static PyObject *call(PyObject *object, PyObject *args, PyObject *keywords)
{
    const gts_py_action *const self = (gts_py_action *)object;
    if (PyTuple_GET_SIZE(args) != 0 || (keywords != NULL && PyDict_GET_SIZE(keywords) != 0))
        return PyErr_Format(PyExc_TypeError, "An action takes no arguments.");
    PyObject *const function = Py_NewRef(self->function), *const arrays = Py_NewRef(self->arrays);
    PyObject *const result = PyObject_CallObject(function, arrays);
    Py_DECREF(function);
    Py_DECREF(arrays);
    return result;
}

PyObject *gts_py_action_copy(PyObject *object)
{
    const gts_py_action *const self = (gts_py_action *)object;
    gts_py_action *const copy = (gts_py_action *)Py_TYPE(object)->tp_alloc(Py_TYPE(object), 0);
    if (copy == NULL)
        return NULL;
    copy->function = Py_NewRef(self->function);
    copy->arrays = Py_NewRef(self->arrays);
    return (PyObject *)copy;
}

/* There is no Py_tp_clear, because a finalizer may still call the action: other objects break the cycles. */
static int traverse(PyObject *object, visitproc visit, void *arg)
{
    const gts_py_action *const self = (gts_py_action *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->function);
    Py_VISIT(self->arrays);
    return 0;
}

static void dealloc(PyObject *object)
{
    gts_py_action *const self = (gts_py_action *)object;
    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->function);
    Py_XDECREF(self->arrays);
    gts_py_free(object);
}

static PyObject *repr(PyObject *object)
{
    const gts_py_action *const self = (gts_py_action *)object;
    const Py_ssize_t count = PyTuple_GET_SIZE(self->arrays);
    return PyUnicode_FromFormat("<gtstub action %R (%zd array%s)>", self->function, count, count == 1 ? "" : "s");
}

static PyMemberDef MEMBERS[] = {
    {"function", Py_T_OBJECT_EX, offsetof(gts_py_action, function), Py_READONLY, "The function."},
    {"arrays", Py_T_OBJECT_EX, offsetof(gts_py_action, arrays), Py_READONLY, "What it is called with now."},
    {NULL, 0, 0, 0, NULL},
};

PyDoc_STRVAR(DOC, "Action(function, /, *arrays)\n--\n\n"
                  "A function of a step, and the arrays that it is called with: after a swap of the step, with the "
                  "other ones.");

static PyType_Slot SLOTS[] = {
    {Py_tp_doc, (void *)DOC},   {Py_tp_new, make},  {Py_tp_call, call},       {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse}, {Py_tp_repr, repr}, {Py_tp_members, MEMBERS}, {0, NULL},
};

PyType_Spec gts_py_action_spec = {
    .name = "gtstub._host.Action",
    .basicsize = sizeof(gts_py_action),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = SLOTS,
};
