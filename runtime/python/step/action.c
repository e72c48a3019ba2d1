/* The Action type: a function with the arrays that it uses, which a step swaps. */
#include <stdlib.h>

#include "python/step/step.h"

/* Makes an action without objects; NULL after an exception. */
static gts_py_action *new_action(PyTypeObject *type, PyObject *function)
{
    gts_py_action *const self = (gts_py_action *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->function = Py_NewRef(function);
    self->held = gts_new(1, sizeof *self->held);
    return self;
}

/* Adds an object, which the action keeps. */
static void keep(gts_py_action *self, PyObject *object, PyObject *owner)
{
    self->kept = gts_renew(self->kept, (size_t)(self->kept_count + 1) * sizeof *self->kept);
    self->kept[self->kept_count++] = (gts_py_kept){Py_NewRef(object), Py_XNewRef(owner)};
}

/* Adds an array, which is or is inside the object with an index. */
static void hold(gts_py_action *self, uint32_t index, const gts_array *array, bool is_inside)
{
    self->held = gts_renew(self->held, sizeof *self->held + (self->held->count + 1) * sizeof *self->held->array);
    gts_array *const copy = gts_new(1, sizeof *copy);
    *copy = *array;
    memset(copy->dims, 0, sizeof copy->dims); /* whose texts may not live as long */
    gts_held_array *const new = &self->held->array[self->held->count++];
    *new = (gts_held_array){.array = copy, .index = index, .is_inside = is_inside, .slot = GTS_NO_SLOT};
    gts_find_memory(copy, &new->low, &new->high);
}

/* Adds the arrays that are elements or attributes of an object: no swap reaches them. */
static int look_inside(gts_py_action *self, PyObject *object, uint32_t index, int depth)
{
    const bool has_elements = PyList_Check(object) || PyTuple_Check(object) || PyDict_Check(object);
    PyObject *const has = has_elements ? Py_NewRef(object) : PyObject_GenericGetDict(object, NULL);
    PyObject *const all = has == NULL ? NULL : PyDict_Check(has) ? PyDict_Values(has) : PySequence_List(has);
    PyErr_Clear(); /* It has no attributes. */
    int status = 0;
    for (Py_ssize_t i = 0; all != NULL && status == 0 && i < PyList_GET_SIZE(all); ++i) {
        PyObject *const element = PyList_GET_ITEM(all, i);
        gts_py_leaf leaf;
        gts_array array;
        PyObject *owner;
        status = gts_py_read_any(&leaf, element, &array, &owner);
        gts_py_forget_domain(&leaf);
        if (status > 0) {
            keep(self, element, owner);
            hold(self, index, &array, true);
            status = 0;
        } else if (status == 0 && has_elements && depth > 1) {
            status = look_inside(self, element, index, depth - 1);
        }
        Py_XDECREF(owner);
    }
    Py_XDECREF(has);
    Py_XDECREF(all);
    return status;
}

/* Adds the objects that the function is called with, and then finds their arrays. */
static int add(gts_py_action *self, PyObject *objects)
{
    int status = 0;
    self->count = PyTuple_GET_SIZE(objects);
    for (Py_ssize_t i = 0; i < self->count; ++i)
        keep(self, PyTuple_GET_ITEM(objects, i), NULL);
    for (uint32_t i = 0; i < (uint32_t)self->count && status >= 0; ++i) {
        gts_py_leaf leaf;
        gts_array array;
        status = gts_py_read_any(&leaf, PyTuple_GET_ITEM(objects, i), &array, &self->kept[i].owner);
        gts_py_forget_domain(&leaf);
        if (status == 0)
            status = look_inside(self, PyTuple_GET_ITEM(objects, i), i, 4);
        else if (status > 0)
            hold(self, i, &array, false);
    }
    return status < 0 ? -1 : 0;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    if (keywords != NULL && PyDict_GET_SIZE(keywords) != 0)
        return PyErr_Format(PyExc_TypeError, "An action takes no keyword arguments.");
    if (PyTuple_GET_SIZE(args) == 0 || !PyCallable_Check(PyTuple_GET_ITEM(args, 0)))
        return PyErr_Format(PyExc_TypeError, "An action needs a function and the arrays that it is called with.");
    PyObject *const objects = PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args));
    gts_py_action *self = objects == NULL ? NULL : new_action(type, PyTuple_GET_ITEM(args, 0));
    if (self != NULL && add(self, objects) != 0)
        Py_CLEAR(self);
    Py_XDECREF(objects);
    return (PyObject *)self;
}

/* The objects that the function is called with now. */
static PyObject *get_arrays(PyObject *object, void *Py_UNUSED(closure))
{
    const gts_py_action *const self = (gts_py_action *)object;
    PyObject *const arrays = PyTuple_New(self->count);
    for (Py_ssize_t i = 0; arrays != NULL && i < self->count; ++i)
        PyTuple_SET_ITEM(arrays, i, Py_NewRef(self->kept[i].object));
    return arrays;
}

/* Calls the function. It may drop the action, or have its arrays swapped by another step. */
static PyObject *action_call(PyObject *object, PyObject *args, PyObject *keywords)
{
    if (PyTuple_GET_SIZE(args) != 0 || (keywords != NULL && PyDict_GET_SIZE(keywords) != 0))
        return PyErr_Format(PyExc_TypeError, "An action takes no arguments.");
    PyObject *const function = Py_NewRef(((gts_py_action *)object)->function), *const arrays = get_arrays(object, NULL);
    PyObject *const result = arrays == NULL ? NULL : PyObject_CallObject(function, arrays);
    Py_DECREF(function);
    Py_XDECREF(arrays);
    return result;
}

PyObject *gts_py_action_copy(PyObject *object)
{
    const gts_py_action *const self = (gts_py_action *)object;
    gts_py_action *const copy = new_action(Py_TYPE(object), self->function);
    if (copy == NULL)
        return NULL;
    copy->count = self->count;
    for (Py_ssize_t i = 0; i < self->kept_count; ++i)
        keep(copy, self->kept[i].object, self->kept[i].owner);
    for (size_t i = 0; i < self->held->count; ++i) {
        const gts_held_array *const each = &self->held->array[i];
        hold(copy, each->index, each->array, each->is_inside);
    }
    return (PyObject *)copy;
}

/* There is no Py_tp_clear, because a finalizer may still call the action: other objects break the cycles. */
static int action_traverse(PyObject *object, visitproc visit, void *arg)
{
    const gts_py_action *const self = (gts_py_action *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->function);
    return gts_py_visit_kept(self->kept, self->kept_count, visit, arg);
}

static void action_dealloc(PyObject *object)
{
    gts_py_action *const self = (gts_py_action *)object;
    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->function);
    gts_py_clear_kept(&self->kept, self->kept_count);
    for (size_t i = 0; i < self->held->count; ++i)
        free(self->held->array[i].array);
    free(self->held);
    gts_py_free(object);
}

static PyObject *repr(PyObject *object)
{
    const gts_py_action *const self = (gts_py_action *)object;
    return PyUnicode_FromFormat("<gtstub action %R (%zd array%s)>", self->function, self->count,
                                self->count == 1 ? "" : "s");
}

static PyMemberDef MEMBERS[] = {
    {"function", Py_T_OBJECT_EX, offsetof(gts_py_action, function), Py_READONLY, "The function."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef ATTRIBUTES[] = {
    {"arrays", get_arrays, NULL, "What it is called with now.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(DOC, "Action(function, /, *arrays)\n--\n\n"
                  "A function of a step, and the arrays that it is called with: after a swap of the step, with the "
                  "other ones.");

static PyType_Slot SLOTS[] = {
    {Py_tp_doc, (void *)DOC},
    {Py_tp_new, make},
    {Py_tp_call, action_call},
    {Py_tp_dealloc, action_dealloc},
    {Py_tp_traverse, action_traverse},
    {Py_tp_repr, repr},
    {Py_tp_members, MEMBERS},
    {Py_tp_getset, ATTRIBUTES},
    {0, NULL},
};

PyType_Spec gts_py_action_spec = GTS_PY_SPEC("Action", gts_py_action, 0);
