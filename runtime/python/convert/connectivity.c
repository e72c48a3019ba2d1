/*
 * Finds connectivities in the offset provider. A dict that a program is called with again is watched: as long as it does
 * not change, a call with it neither looks for its connectivities nor reads them.
 */
#include "python/host.h"

/* As for Python's dict.update(), an object is a mapping if it has the attribute `keys`. */
int gts_py_check_mapping(const char *program, PyObject *provider)
{
    PyObject *keys;
    const int found = PyObject_GetOptionalAttr(provider, gts_py.name.keys, &keys);
    if (found == 0)
        return gts_py_fail(PyExc_TypeError, "The offset provider of program '%s' must be a mapping, not '%s'.", program,
                           Py_TYPE(provider)->tp_name);
    Py_XDECREF(keys);
    return found < 0 ? -1 : 0;
}

/* ---- Finding --------------------------------------------------------------------------------------------------- */

static GTS_COLD void *refuse_missing(gts_program *program, const gts_contract *contract)
{
    gts_error_set(&program->error, GTS_TYPE_ERROR,
                  "Program '%s' needs connectivity '%s', which the offset provider does not have.", program->stub->name,
                  contract->path);
    return NULL;
}

/* A new reference to the object that a mapping other than a dict has under `name`; NULL if none, or after an exception. */
static GTS_NOINLINE PyObject *get_item(const gts_py_program *self, PyObject *mapping, PyObject *name)
{
    if (gts_py_check_mapping(self->program->stub->name, mapping) != 0)
        return NULL;
    PyObject *const object = PyObject_GetItem(mapping, name);
    if (object == NULL && PyErr_ExceptionMatches(PyExc_KeyError))
        PyErr_Clear();
    return object;
}

void *gts_py_connectivity(gts_program *program, uint32_t index, void *offset_provider)
{
    gts_py_program *const self = gts_py_of(program);
    PyObject *const name = self->leaf[index].name;
    PyObject *const object = GTS_LIKELY(PyDict_CheckExact((PyObject *)offset_provider))
                                 ? Py_XNewRef(PyDict_GetItemWithError(offset_provider, name))
                                 : get_item(self, offset_provider, name);
    if (GTS_UNLIKELY(object == NULL))
        return PyErr_Occurred() ? NULL : refuse_missing(program, &program->stub->leaves[index]);
    gts_py_hold(self, object); /* because the offset provider may be changed while the program runs */
    return object;
}

/* ---- Recognising ----------------------------------------------------------------------------------------------- */

/* Whether a dict has the known objects of all connectivities; not if one of them is read in each call. */
static bool has_known_objects(const gts_py_program *self, PyObject *dict)
{
    const gts_program *const program = self->program;
    for (uint32_t i = self->first_connectivity; i < program->stub->leaf_count; ++i) {
        if (program->known[i] == NULL || PyDict_GetItemWithError(dict, self->leaf[i].name) != program->known[i])
            return false;
    }
    return true;
}

int gts_py_remember_provider(gts_program *program, void *offset_provider)
{
    gts_py_program *const self = gts_py_of(program);
    const uint32_t count = program->stub->leaf_count;
    const bool was_passed = self->provider == offset_provider;
    self->provider = offset_provider;
    if (!was_passed || !PyDict_CheckExact((PyObject *)offset_provider) || !gts_py_watch(offset_provider))
        return 0;
    gts_know_object(program, count, offset_provider); /* from here on it cannot change unnoticed */
    if (!has_known_objects(self, offset_provider))
        gts_know_object(program, count, NULL);
    return PyErr_Occurred() ? -1 : 0;
}
