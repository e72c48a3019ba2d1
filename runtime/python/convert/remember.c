/*
 * Remembers objects, so that the next calls recognise them by their addresses alone. A weak reference forgets the address
 * when its object dies; an object that cannot change is kept instead.
 */
#include <stdlib.h>

#include "python/host.h"

/*
 * The callback of all weak references of one program, which the context of its capsule is: NULL after the program has
 * ended, because others may keep a reference. Users can call it, too: it ignores a reference that is not its program's, or
 * not any more, because another object has replaced the one that it was for.
 */
static PyObject *forget_dead(PyObject *capsule, PyObject *const *args, Py_ssize_t given)
{
    const gts_py_program *const self = PyCapsule_GetContext(capsule);
    for (uint32_t i = 0; self != NULL && given > 0 && i < 2 * self->program->stub->leaf_count; ++i) {
        if (self->references[i] != args[0])
            continue;
        gts_leaf *const leaf = &self->program->leaf[i / 2];
        gts_remembered *const remembered = &leaf->remembered[i % 2];
        remembered->object = NULL;
        if (leaf->current == remembered)
            gts_know_object(self->program, i / 2, NULL);
        break;
    }
    Py_RETURN_NONE;
}

static PyMethodDef CALLBACK = {"forget", (PyCFunction)(void (*)(void))forget_dead, METH_FASTCALL, NULL};

/* ---------------------------------------------------------------------------------------------------------------- */

int gts_py_prepare_references(gts_py_program *self)
{
    PyObject *const capsule = PyCapsule_New(self, NULL, NULL);
    if (capsule == NULL || PyCapsule_SetContext(capsule, self) != 0)
        return -1;
    self->forget = PyCFunction_New(&CALLBACK, capsule);
    Py_DECREF(capsule);
    return self->forget == NULL ? -1 : 0;
}

void gts_py_free_references(gts_py_program *self)
{
    if (self->forget != NULL)
        PyCapsule_SetContext(PyCFunction_GET_SELF(self->forget), NULL);
    for (uint32_t i = 0; i < 2 * self->program->stub->leaf_count; ++i)
        Py_XDECREF(self->references[i]);
    free(self->references);
    Py_XDECREF(self->forget);
}

void gts_py_remember(gts_py_program *self, uint32_t index, const gts_array *array, PyObject *object,
                     PyObject *reference)
{
    gts_leaf *const leaf = &self->program->leaf[index];
    gts_remembered *const other = &leaf->remembered[leaf->current == &leaf->remembered[0]];
    gts_remembered *const place = leaf->current->object == NULL ? leaf->current
                                                                : other; /* keep an object if possible */
    const uint32_t number = place == &leaf->remembered[1];
    PyObject **const own = &self->references[2 * index + number];
    PyObject *const old = *own;
    *own = reference;
    place->object = reference == NULL ? NULL : object;
    place->array = *array;
    gts_forget_table(leaf, number);
    leaf->current = place;
    gts_know_object(self->program, index, place->object);
    Py_XDECREF(old);
}

/* Whether an object can neither change nor be part of a cycle. */
static bool is_immutable(PyObject *object)
{
    if (PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object))
        return true;
    for (int dtype = GTS_BOOL; dtype <= GTS_LAST_DTYPE; ++dtype) {
        if (Py_TYPE(object) == gts_py.numpy.scalar[dtype]) /* NULL until numpy is imported */
            return true;
    }
    return PyComplex_CheckExact(object);
}

void gts_py_keep(gts_py_program *self, uint32_t index, PyObject *object)
{
    PyObject **const own = &self->references[2 * index];
    PyObject *const old = *own;
    if (GTS_UNLIKELY(!is_immutable(object))) {
        gts_know_object(self->program, index, NULL); /* its slot has another value now */
        return;
    }
    *own = Py_NewRef(object);
    gts_know_object(self->program, index, object);
    Py_XDECREF(old);
}
