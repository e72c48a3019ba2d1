/* Finds the leaves in tuples and collections. */
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
    /* Reading an attribute may change the offset provider, whose connectivities are then held as well. */
    PyObject **const items = &self->held[self->held_count];
    memset(items, 0, collection->length * sizeof *items);
    self->held_count += collection->length;
    for (uint32_t i = 0; i < collection->length; ++i) {
        const int found = PyObject_GetOptionalAttr(object, PyTuple_GET_ITEM(self->keys[index], i), &items[i]);
        if (GTS_UNLIKELY(found <= 0))
            return found < 0 || gts_py_raise_property(object, PyTuple_GET_ITEM(self->keys[index], i))
                       ? NULL
                       : refuse_collection(program, collection, object, collection->keys[i]);
    }
    return (void *const *)items;
}
