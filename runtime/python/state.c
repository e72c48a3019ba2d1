/* Finds the state of the module gtstub._host. */
#include "python/state.h"

PyModuleDef *gts_py_definition;

gts_py_state *gts_py_find_state(PyTypeObject *type)
{
    PyObject *const module = PyType_GetModuleByDef(type, gts_py_definition);
    return module == NULL ? NULL : PyModule_GetState(module);
}
