/* Watches dicts that calls read: offset providers, and the namespaces of gt4py's metrics. */
#include "python/host.h"

/* Forgets a dict that is about to change. A running call keeps the connectivities of the dict to its end. */
static void forget_provider(gts_py_program *self)
{
    gts_program *const program = self->program;
    const uint32_t count = program->stub->leaf_count;
    gts_know_object(program, count, NULL);
    for (uint32_t i = self->first_connectivity; self->caller != NULL && i < count; ++i) {
        if (program->known[i] != NULL)
            gts_py_hold(self, Py_NewRef((PyObject *)program->known[i]));
    }
}

/* Called before a watched dict changes or dies. */
static int forget_dict(PyDict_WatchEvent Py_UNUSED(event), PyObject *dict, PyObject *Py_UNUSED(key),
                       PyObject *Py_UNUSED(value))
{
    for (gts_py_program *each = gts_py_programs; each != NULL; each = each->next) {
        if (each->program->known[each->program->stub->leaf_count] == dict)
            forget_provider(each);
        if (each->metrics.namespace == dict)
            each->reads_metrics_level = true;
    }
    return 0;
}

void gts_py_add_watcher(void)
{
    gts_py.watcher = PyDict_AddWatcher(forget_dict);
    if (gts_py.watcher < 0)
        PyErr_Clear(); /* the interpreter has eight: then each call reads the dicts */
}

bool gts_py_watch(PyObject *dict)
{
    if (gts_py.watcher < 0)
        return false;
    if (PyDict_Watch(gts_py.watcher, dict) == 0)
        return true;
    PyErr_Clear();
    return false;
}
