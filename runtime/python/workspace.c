/* Lends a program the memory of a Python array. */
#include "base/refuse.h"
#include "python/host.h"

/* The bytes of an array that can be lent: contiguous, writable and on the right device; -1 after an exception. */
static Py_ssize_t lendable_bytes(const gts_stub *stub, const gts_workspace *workspace, const gts_array *array)
{
    const char *const storage = workspace->storage;
    if (array->rank > GTS_MAX_RANK)
        return gts_py_fail(PyExc_ValueError, GTS_WORKSPACE "must have at most %d dimensions.", stub->name, storage,
                           GTS_MAX_RANK);
    if (array->device != workspace->device)
        return gts_py_fail(PyExc_ValueError, GTS_WORKSPACE "must be on device '%s', not on '%s'.", stub->name, storage,
                           gts_device_name(workspace->device), gts_device_name(array->device));
    if (array->readonly)
        return gts_py_fail(PyExc_ValueError, GTS_WORKSPACE "must not be read-only.", stub->name, storage);
    int64_t elements = 1;
    Py_ssize_t bytes;
    bool is_contiguous = true;
    for (int32_t axis = array->rank - 1; axis >= 0 && is_contiguous; --axis)
        is_contiguous = (array->shape[axis] == 1 || array->strides[axis] == elements) &&
                        !__builtin_mul_overflow(elements, array->shape[axis], &elements);
    if (!is_contiguous || __builtin_mul_overflow(elements, gts_dtype_size(array->dtype), &bytes) || bytes < 0)
        return gts_py_fail(PyExc_ValueError, GTS_WORKSPACE "must be contiguous.", stub->name, storage);
    return bytes;
}

/* Reads the array while the program is entered, because reading may run Python code and set the program's error. */
static int read_workspace(gts_py_program *self, uint32_t index, PyObject *object, gts_array *array, PyObject **owner)
{
    gts_program *const program = self->program;
    const gts_py_argument argument = gts_py_argument_of(self, "array", GTS_UINT8,
                                                        program->stub->workspaces[index].device);
    *owner = NULL;
    if (gts_py_enter(self) != 0)
        return -1;
    const int status = gts_py_read_array(&argument, object, array, owner);
    if (status != 0)
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
    uint32_t index = 0;
    while (index < stub->workspace_count && strcmp(stub->workspaces[index].storage, storage) != 0)
        ++index;
    if (index == stub->workspace_count)
        return PyErr_Format(PyExc_ValueError, "Program '%s' has no workspace in '%s'.", stub->name, storage);
    gts_array array;
    PyObject *owner;
    Py_ssize_t bytes = -1;
    if (read_workspace(self, index, memory, &array, &owner) == 0)
        bytes = lendable_bytes(stub, &stub->workspaces[index], &array);
    if (bytes < 0 || GTS_PY_WITHOUT_GIL(gts_set_workspace(self->program, storage, array.data, (size_t)bytes)) != 0) {
        gts_py_raise(&self->program->error); /* before the owner, whose release may run other code */
        Py_XDECREF(owner);
        return NULL;
    }
    if (owner == NULL)
        owner = Py_NewRef(memory);
    if (self->program->workspace[index] == array.data) /* else another thread has lent other memory meanwhile */
        Py_XSETREF(self->workspace[index], owner);
    else
        Py_DECREF(owner);
    Py_RETURN_NONE;
}
