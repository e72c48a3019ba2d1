/* Reads the arrays of other libraries: __cuda_array_interface__, DLPack and the buffer protocol. */
#include <ctype.h>

#include "python/convert/convert.h"

/* The dtype of a kind ('b' bool, 'i' int, 'u' unsigned int, 'f' float, 'c' complex) and a size in bytes; 0 if there is none. */
static gts_dtype find_dtype(char kind, size_t size)
{
    for (gts_dtype dtype = GTS_BOOL; dtype <= GTS_LAST_DTYPE; ++dtype) {
        if (gts_dtype_name(dtype)[0] == kind && gts_dtype_size(dtype) == size)
            return dtype;
    }
    return (gts_dtype)0;
}

/* Sets the strides of an array that is contiguous in C order. */
static void set_contiguous(gts_array *array)
{
    uint64_t stride = 1; /* wraps around, because nothing has checked the shape */
    for (int32_t axis = array->rank - 1; axis >= 0; --axis) {
        array->strides[axis] = (int64_t)stride;
        stride *= (uint64_t)array->shape[axis];
    }
}

/* Sets the members that all protocols provide; false if the rank is too high, which the contract's check refuses. */
static bool set_array(gts_array *array, void *data, gts_dtype dtype, gts_device device, int64_t rank, bool readonly)
{
    memset(array, 0, sizeof *array);
    array->data = data;
    array->dtype = dtype;
    array->device = device;
    array->rank = rank > INT16_MAX ? INT16_MAX : (int16_t)rank;
    array->readonly = readonly;
    return rank <= GTS_MAX_RANK;
}

/* ---- __cuda_array_interface__ ---------------------------------------------------------------------------------- */

static GTS_COLD int refuse_interface(const gts_py_argument *argument)
{
    return GTS_PY_REFUSE(argument, GTS_TYPE_ERROR, "has a '__cuda_array_interface__' that gtstub cannot read.");
}

/* Reads a tuple of `count` integers; false if it is not one. */
static bool read_integers(PyObject *tuple, int32_t count, int64_t *values)
{
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != count)
        return false;
    for (int32_t i = 0; i < count; ++i) {
        values[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
        if (values[i] == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

/* Waits on the GPU for the stream that the interface names, as its version 3 asks of whoever uses the array. */
static int wait_for_stream(const gts_py_argument *argument, PyObject *interface)
{
    PyObject *const stream = argument->waiting == NULL ? NULL : PyDict_GetItemWithError(interface, gts_py.name.stream);
    if (stream == NULL || stream == Py_None)
        return PyErr_Occurred() ? -1 : 0;
    const uintptr_t address = PyLong_Check(stream) ? PyLong_AsUnsignedLong(stream) : 0;
    if (!PyLong_Check(stream) || PyErr_Occurred()) {
        PyErr_Clear();
        return refuse_interface(argument);
    }
    return gts_stream_wait(argument->waiting, (void *)address);
}

/* Reads the interface, which is a dict; its dtype is a text such as "<f8". */
static int read_cuda(const gts_py_argument *argument, PyObject *interface, gts_array *array)
{
    if (!PyDict_Check(interface))
        return refuse_interface(argument);
    PyObject *const typestr = PyDict_GetItemWithError(interface, gts_py.name.typestr);
    PyObject *const data = PyDict_GetItemWithError(interface, gts_py.name.data);
    PyObject *const shape = PyDict_GetItemWithError(interface, gts_py.name.shape);
    PyObject *const strides = PyDict_GetItemWithError(interface, gts_py.name.strides);
    if (typestr == NULL || !PyUnicode_Check(typestr) || data == NULL || !PyTuple_Check(data) ||
        PyTuple_GET_SIZE(data) != 2 || !PyLong_Check(PyTuple_GET_ITEM(data, 0)) || shape == NULL ||
        !PyTuple_Check(shape))
        return PyErr_Occurred() ? -1 : refuse_interface(argument);

    const char *const type = PyUnicode_AsUTF8(typestr);
    if (type == NULL)
        return -1;
    const gts_dtype dtype = strlen(type) >= 3 && isdigit((unsigned char)type[2])
                                ? find_dtype(type[1], strtoul(type + 2, NULL, 10))
                                : 0;
    if (dtype == 0 || (type[0] == '>' && gts_dtype_size(dtype) > 1))
        return gts_py_refuse_dtype(argument, type);
    const int readonly = PyObject_IsTrue(PyTuple_GET_ITEM(data, 1));
    if (readonly < 0)
        return -1;
    void *const memory = PyLong_AsVoidPtr(PyTuple_GET_ITEM(data, 0));
    if (memory == NULL && PyErr_Occurred()) { /* It is no address. */
        PyErr_Clear();
        return refuse_interface(argument);
    }
    /* ROCm arrays have the same interface, which does not name the device; a process has GPUs of one kind. */
    const gts_device device = argument->device == GTS_ROCM ? GTS_ROCM : GTS_CUDA;
    PyObject *const mask = PyDict_GetItemWithError(interface, gts_py.name.mask);
    if (mask != NULL && mask != Py_None)
        return gts_py_refuse_mask(argument);
    if (PyErr_Occurred() || wait_for_stream(argument, interface) != 0)
        return -1;
    if (!set_array(array, memory, dtype, device, PyTuple_GET_SIZE(shape), readonly != 0))
        return 0;
    if (!read_integers(shape, array->rank, array->shape))
        return refuse_interface(argument);
    if (strides == NULL || strides == Py_None) {
        set_contiguous(array);
        return gts_py_check_alignment(argument, array);
    }
    int64_t byte_strides[GTS_MAX_RANK];
    if (!read_integers(strides, array->rank, byte_strides))
        return refuse_interface(argument);
    return gts_py_set_strides(argument, array, byte_strides);
}

/* ---- DLPack ---------------------------------------------------------------------------------------------------- */

/* The structures of DLPack, versions 0 and 1. */
typedef struct dl_tensor {
    void *data;
    struct {
        int32_t type;
        int32_t id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code;
        uint8_t bits;
        uint16_t lanes;
    } dtype;
    const int64_t *shape;
    const int64_t *strides; /* in elements; NULL if contiguous */
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_versioned {
    struct {
        uint32_t major;
        uint32_t minor;
    } version;
    void *manager;
    void (*deleter)(struct dl_versioned *);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

enum { DL_FLAG_READ_ONLY = 1 };

/* The device of a DLPack device: pinned host memory is memory of the CPU, managed memory is memory of the GPU. */
static gts_device device_of(int32_t type)
{
    enum { CUDA_HOST = 3, ROCM_HOST = 11, CUDA_MANAGED = 13 };
    switch (type) {
    case CUDA_HOST:
    case ROCM_HOST:
        return GTS_CPU;
    case CUDA_MANAGED:
        return GTS_CUDA;
    default:
        return (gts_device)type;
    }
}

static int read_tensor(const gts_py_argument *argument, const dl_tensor *tensor, bool readonly, gts_array *array)
{
    static const char KINDS[] = {[0] = 'i', [1] = 'u', [2] = 'f', [5] = 'c', [6] = 'b'};
    const uint8_t code = tensor->dtype.code;
    const gts_dtype dtype = code < sizeof KINDS && tensor->dtype.lanes == 1 && tensor->dtype.bits % 8 == 0
                                ? find_dtype(KINDS[code], tensor->dtype.bits / 8)
                                : (gts_dtype)0;
    if (dtype == 0) {
        char found[64];
        PyOS_snprintf(found, sizeof found, "DLPack type %d of %d bits", code, tensor->dtype.bits);
        return gts_py_refuse_dtype(argument, found);
    }
    void *const data = (char *)tensor->data + tensor->byte_offset;
    if (!set_array(array, data, dtype, device_of(tensor->device.type), tensor->ndim, readonly))
        return 0;
    const size_t bytes = (size_t)array->rank * sizeof(int64_t);
    memcpy(array->shape, tensor->shape, bytes);
    if (tensor->strides == NULL)
        set_contiguous(array);
    else
        memcpy(array->strides, tensor->strides, bytes);
    return gts_py_check_alignment(argument, array);
}

/* Whether __dlpack_device__() names a GPU: 1, 0, or -1 after an exception. */
static int is_on_gpu(PyObject *object)
{
    PyObject *method;
    const int found = PyObject_GetOptionalAttr(object, gts_py.name.__dlpack_device__, &method);
    if (found <= 0)
        return found;
    PyObject *const pair = PyObject_CallNoArgs(method);
    Py_DECREF(method);
    if (pair == NULL)
        return -1;
    const bool is_pair = PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2;
    const long type = is_pair ? PyLong_AsLong(PyTuple_GET_ITEM(pair, 0)) : 0;
    Py_DECREF(pair);
    if (type == -1 && PyErr_Occurred())
        return -1;
    const gts_device device = device_of((int32_t)type);
    return device == GTS_CUDA || device == GTS_ROCM;
}

/*
 * The stream that an exporter on a GPU makes wait for its work: 1 is CUDA's default stream, 0 that of ROCm, and -1 asks
 * it not to. https://data-apis.org/array-api/latest/API_specification/generated/array_api.array.__dlpack__.html
 */
static PyObject *number_of_stream(const gts_program *program)
{
    void *const stream = gts_stream(program);
    if (gts_stream_is_captured(program))
        return PyLong_FromLong(-1);
    if (stream == NULL)
        return PyLong_FromLong(program->stub->device == GTS_CUDA);
    return PyLong_FromVoidPtr(stream);
}

/* Calls __dlpack__ for a tensor of DLPack 1; exporters of version 0 do not know the argument. */
static PyObject *export_tensor(const gts_py_argument *argument, PyObject *object, PyObject *export)
{
    const int has_stream = argument->waiting == NULL ? 0 : is_on_gpu(object);
    PyObject *const keywords = has_stream < 0 ? NULL
                               : has_stream == 0
                                   ? Py_BuildValue("{O(ii)}", gts_py.name.max_version, 1, 0)
                                   : Py_BuildValue("{O(ii)ON}", gts_py.name.max_version, 1, 0, gts_py.name.stream,
                                                   number_of_stream(argument->waiting));
    if (keywords == NULL)
        return NULL;
    PyObject *capsule = PyObject_VectorcallDict(export, NULL, 0, keywords);
    if (capsule == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        if (PyDict_DelItem(keywords, gts_py.name.max_version) == 0)
            capsule = PyObject_VectorcallDict(export, NULL, 0, keywords);
    }
    Py_DECREF(keywords);
    return capsule;
}

/* Reads a capsule without consuming it, so that the capsule frees the tensor at its end. */
static int read_dlpack(const gts_py_argument *argument, PyObject *capsule, gts_array *array)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        const dl_versioned *const managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (managed->version.major == 1)
            return read_tensor(argument, &managed->tensor, (managed->flags & DL_FLAG_READ_ONLY) != 0, array);
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        return read_tensor(argument, PyCapsule_GetPointer(capsule, "dltensor"), false, array);
    }
    return GTS_PY_REFUSE(argument, GTS_TYPE_ERROR, "has a '__dlpack__' that gtstub cannot read.");
}

/* ---- The buffer protocol --------------------------------------------------------------------------------------- */

/* The kind of a format of the struct module (see find_dtype()); 0 if it is not a single native element. */
static char kind_of_format(const char *format)
{
    if (*format == '@' || *format == '=' || *format == '<')
        ++format;
    const bool is_complex = *format == 'Z'; /* "Zf" and "Zd", which Python 3.14 calls "F" and "D" */
    if (is_complex)
        ++format;
    const char *const known = is_complex ? "fd" : "?bhilqnBHILQNefdFD";
    const char *const kinds = is_complex ? "cc" : "biiiiiiuuuuuufffcc";
    const char *const found = *format == '\0' || format[1] != '\0' ? NULL : strchr(known, *format);
    return found == NULL ? 0 : kinds[found - known];
}

static int read_buffer(const gts_py_argument *argument, const Py_buffer *buffer, gts_array *array)
{
    const gts_dtype dtype = find_dtype(kind_of_format(buffer->format), (size_t)buffer->itemsize);
    if (dtype == 0)
        return gts_py_refuse_dtype(argument, buffer->format);
    if (buffer->suboffsets != NULL)
        return GTS_PY_REFUSE(argument, GTS_TYPE_ERROR, "must not be an array of pointers to arrays.");
    if (!set_array(array, buffer->buf, dtype, GTS_CPU, buffer->ndim, buffer->readonly != 0))
        return 0;
    for (int32_t axis = 0; axis < array->rank; ++axis)
        array->shape[axis] = buffer->shape[axis];
    return gts_py_set_strides(argument, array, (const int64_t *)buffer->strides);
}

/* ---------------------------------------------------------------------------------------------------------------- */

int gts_py_read_exchange(const gts_py_argument *argument, PyObject *object, gts_array *array, PyObject **owner)
{
    PyObject *found;
    int status = PyObject_GetOptionalAttr(object, gts_py.name.__cuda_array_interface__, &found);
    if (status > 0) {
        status = read_cuda(argument, found, array);
        Py_DECREF(found);
        return status;
    }
    if (status == 0)
        status = PyObject_GetOptionalAttr(object, gts_py.name.__dlpack__, &found);
    if (status < 0)
        return -1;
    if (status > 0) {
        *owner = export_tensor(argument, object, found);
        Py_DECREF(found);
        return *owner == NULL ? -1 : read_dlpack(argument, *owner, array);
    }
    if (!PyObject_CheckBuffer(object))
        return gts_py_refuse_object(argument, object);
    *owner = PyMemoryView_FromObject(object);
    return *owner == NULL ? -1 : read_buffer(argument, PyMemoryView_GET_BUFFER(*owner), array);
}
