/* Lends a program the memory of a Python array. */
#include "python/host.h"

/* The index of the workspace in `storage`; workspace_count after an exception. */
static uint32_t find_workspace(const gts_stub *stub, const char *storage)
{
    uint32_t i = 0;
    while (i < stub->workspace_count && strcmp(stub->workspaces[i].storage, storage) != 0)
        ++i;
    if (i == stub->workspace_count)
        PyErr_Format(PyExc_ValueError, "Program '%s' has no workspace in '%s'.", stub->name, storage);
    return i;
}

/* The size in bytes of an array, which must be contiguous in C order; -1 after an exception. */
static Py_ssize_t contiguous_bytes(const gts_stub *stub, const char *storage, const gts_array *array)
{
    int64_t elements = 1;
    for (int32_t axis = array->rank - 1; axis >= 0; --axis) {
        if (array->shape[axis] != 1 && array->strides[axis] != elements) {
            PyErr_Format(PyExc_ValueError, "The workspace of program '%s' in '%s' must be contiguous.", stub->name,
                         storage);
            return -1;
        }
        elements *= array->shape[axis];
    }
    return (Py_ssize_t)elements * (Py_ssize_t)gts_dtype_size(array->dtype);
}

/* Whether the memory of `array` can be lent: its device, rank and writability; false after an exception. */
static bool is_lendable(const gts_stub *stub, uint32_t index, const gts_array *array)
{
    const gts_workspace *const workspace = &stub->workspaces[index];
    if (array->rank > GTS_MAX_RANK)
        PyErr_Format(PyExc_ValueError, "The workspace of program '%s' in '%s' must have at most %d dimensions.",
                     stub->name, workspace->storage, GTS_MAX_RANK);
    else if (array->device != workspace->device)
        PyErr_Format(PyExc_ValueError, "The workspace of program '%s' in '%s' must be on device '%s', not on '%s'.",
                     stub->name, workspace->storage, gts_device_name(workspace->device),
                     gts_device_name(array->device));
    else if (array->readonly)
        PyErr_Format(PyExc_ValueError, "The workspace of program '%s' in '%s' must not be read-only.", stub->name,
                     workspace->storage);
    return PyErr_Occurred() == NULL;
}

/* Reads the array while the program is entered, because reading may run Python code and set the program's error. */
static int read_workspace(gts_py_program *self, uint32_t index, PyObject *object, gts_array *array, PyObject **owner)
{
    gts_program *const program = self->program;
    const gts_py_argument argument = {.state = self->state,
                                      .program = program->stub->name,
                                      .path = "array",
                                      .dtype = GTS_UINT8,
                                      .device = program->stub->workspaces[index].device,
                                      .error = &program->error};
    if (gts_py_enter(self) != 0)
        return -1;
    const int status = gts_py_read_array(&argument, object, array, owner);
    if (status != 0 && !PyErr_Occurred())
        gts_py_raise(&program->error);
    gts_py_leave(self);
    return status;
}

PyObject *gts_py_set_workspace(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"storage", "array", NULL};
    gts_py_program *const self = (gts_py_program *)object;
    const gts_stub *const stub = self->program->stub;
    const char *storage;
    PyObject *memory;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "sO:set_workspace", names, &storage, &memory))
        return NULL;
    const uint32_t index = find_workspace(stub, storage);
    if (index == stub->workspace_count)
        return NULL;
    gts_array array;
    PyObject *owner;
    if (read_workspace(self, index, memory, &array, &owner) != 0)
        return NULL;
    if (owner == NULL)
        owner = Py_NewRef(memory);
    const Py_ssize_t bytes = is_lendable(stub, index, &array) ? contiguous_bytes(stub, storage, &array) : -1;
    int status = -1;
    if (bytes >= 0) {
        PyThreadState *const thread = PyEval_SaveThread();
        status = gts_set_workspace(self->program, storage, array.data, (size_t)bytes);
        PyEval_RestoreThread(thread);
        if (status != 0)
            gts_py_raise(&self->program->error);
    }
    if (status != 0) {
        Py_DECREF(owner);
        return NULL;
    }
    Py_XSETREF(self->workspace[index], owner);
    Py_RETURN_NONE;
}
