/* Finds the leaves among the arguments: elements of tuples and collections, connectivities of the offset provider. */
#include "python/host.h"

void gts_py_refuse_tuple(gts_error *error, const char *program, const char *path, PyObject *object, uint32_t length)
{
    if (PyTuple_Check(object))
        gts_error_set(error, GTS_TYPE_ERROR, GTS_ARGUMENT "must be a tuple of length %u, not of length %zd.", path,
                      program, length, PyTuple_GET_SIZE(object));
    else
        gts_error_set(error, GTS_TYPE_ERROR, GTS_ARGUMENT "must be a tuple of length %u, not '%s'.", path, program,
                      length, Py_TYPE(object)->tp_name);
}

void *const *gts_py_tuple(gts_program *program, const char *path, void *object, uint32_t length)
{
    if (GTS_UNLIKELY(!PyTuple_Check((PyObject *)object) || PyTuple_GET_SIZE(object) != (Py_ssize_t)length)) {
        gts_py_refuse_tuple(&program->error, program->stub->name, path, object, length);
        return NULL;
    }
    return (void *const *)((PyTupleObject *)object)->ob_item;
}

static GTS_COLD void *const *refuse_collection(gts_program *program, const gts_collection *collection, PyObject *object,
                                               const char *missing)
{
    char keys[512] = "";
    for (uint32_t i = 0; i < collection->length; ++i)
        gts_append_name(keys, sizeof keys, collection->keys[i]);
    GTS_REFUSE(program, collection, GTS_TYPE_ERROR,
               "must be a tuple of length %u or have the attributes %s, but '%s' has no '%s'.", collection->length,
               keys, Py_TYPE(object)->tp_name, missing);
    return NULL;
}

/* Elements are read by position from a plain tuple only: a NamedTuple may have them in another order. */
void *const *gts_py_collection(gts_program *program, uint32_t index, void *object)
{
    gts_py_program *const self = gts_py_of(program);
    const gts_collection *const collection = &program->stub->collections[index];
    if (GTS_LIKELY(PyTuple_CheckExact((PyObject *)object)))
        return gts_py_tuple(program, collection->path, object, collection->length);
    PyObject *const *const items = &self->held[self->held_count];
    for (uint32_t i = 0; i < collection->length; ++i) {
        PyObject *item;
        const int found = PyObject_GetOptionalAttr(object, PyTuple_GET_ITEM(self->keys[index], i), &item);
        if (GTS_UNLIKELY(found <= 0))
            return found < 0 || gts_py_raise_property(object, PyTuple_GET_ITEM(self->keys[index], i))
                       ? NULL
                       : refuse_collection(program, collection, object, collection->keys[i]);
        gts_py_hold(self, item);
    }
    return (void *const *)items;
}

/* As for Python's dict.update(), an object is a mapping if it has the attribute `keys`. */
int gts_py_check_mapping(const gts_py_state *state, const char *program, PyObject *provider)
{
    PyObject *keys;
    const int found = PyObject_GetOptionalAttr(provider, state->name.keys, &keys);
    if (found == 0)
        return gts_py_fail(PyExc_TypeError, "The offset provider of program '%s' must be a mapping, not '%s'.", program,
                           Py_TYPE(provider)->tp_name);
    Py_XDECREF(keys);
    return found < 0 ? -1 : 0;
}

static GTS_COLD void *refuse_missing(gts_program *program, const gts_contract *contract)
{
    gts_error_set(&program->error, GTS_TYPE_ERROR,
                  "Program '%s' needs connectivity '%s', which the offset provider does not have.", program->stub->name,
                  contract->path);
    return NULL;
}

/* A new reference to the object that a mapping other than a dict has under `name`; NULL after an error. */
static GTS_NOINLINE PyObject *get_item(gts_py_program *self, const gts_contract *contract, PyObject *mapping,
                                       PyObject *name)
{
    if (gts_py_check_mapping(self->state, self->program->stub->name, mapping) != 0)
        return NULL;
    PyObject *const object = PyObject_GetItem(mapping, name);
    if (object == NULL && PyErr_ExceptionMatches(PyExc_KeyError)) {
        PyErr_Clear();
        return refuse_missing(self->program, contract);
    }
    return object;
}

void *gts_py_connectivity(gts_program *program, uint32_t index, void *offset_provider)
{
    gts_py_program *const self = gts_py_of(program);
    const gts_contract *const contract = &program->stub->leaves[index];
    PyObject *const name = self->leaf[index].name;
    PyObject *object;
    if (GTS_LIKELY(PyDict_CheckExact((PyObject *)offset_provider))) {
        object = Py_XNewRef(PyDict_GetItemWithError(offset_provider, name));
        if (GTS_UNLIKELY(object == NULL))
            return PyErr_Occurred() ? NULL : refuse_missing(program, contract);
    } else {
        object = get_item(self, contract, offset_provider, name);
        if (object == NULL)
            return NULL;
    }
    gts_py_hold(self, object); /* because the offset provider may be changed while the program runs */
    return object;
}
