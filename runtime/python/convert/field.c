/*
 * Reads arrays: numpy's by their C structure, all others by the protocols in exchange.c. Reads fields by their array and
 * domain, and recognises the object of the call before the last.
 */
#include <inttypes.h>

#include "python/host.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#include <numpy/ndarraytypes.h>

/* ---- Arrays ---------------------------------------------------------------------------------------------------- */

static const unsigned char DTYPE_OF_TYPE_NUMBER[] = {
    [NPY_BOOL] = GTS_BOOL,          [NPY_BYTE] = GTS_INT8,        [NPY_UBYTE] = GTS_UINT8,
    [NPY_SHORT] = GTS_INT16,        [NPY_USHORT] = GTS_UINT16,    [NPY_INT] = GTS_INT32,
    [NPY_UINT] = GTS_UINT32,        [NPY_LONG] = GTS_INT64,       [NPY_ULONG] = GTS_UINT64,
    [NPY_LONGLONG] = GTS_INT64,     [NPY_ULONGLONG] = GTS_UINT64, [NPY_FLOAT] = GTS_FLOAT32,
    [NPY_DOUBLE] = GTS_FLOAT64,     [NPY_HALF] = GTS_FLOAT16,     [NPY_CFLOAT] = GTS_COMPLEX64,
    [NPY_CDOUBLE] = GTS_COMPLEX128,
};

_Static_assert(sizeof(long) == 8 && sizeof(npy_intp) == sizeof(int64_t), "gtstub runs on LP64 machines");

static GTS_COLD int refuse_descr(const gts_py_argument *argument, PyObject *descr)
{
    PyObject *const text = PyObject_Str(descr);
    const char *const found = text == NULL ? NULL : PyUnicode_AsUTF8(text);
    const int status = found == NULL ? -1 : gts_py_refuse_dtype(argument, found);
    Py_XDECREF(text);
    return status;
}

static int read_numpy(const gts_py_argument *argument, const PyArrayObject *object, gts_array *array)
{
    const PyArrayObject_fields *const fields = (const PyArrayObject_fields *)object;
    const PyArray_Descr *const descr = fields->descr;
    const int type = descr->type_num;
    if (GTS_UNLIKELY(type < 0 || (size_t)type >= sizeof DTYPE_OF_TYPE_NUMBER || DTYPE_OF_TYPE_NUMBER[type] == 0 ||
                     !PyArray_ISNBO(descr->byteorder)))
        return refuse_descr(argument, (PyObject *)fields->descr);
    array->data = fields->data;
    array->dtype = (gts_dtype)DTYPE_OF_TYPE_NUMBER[type];
    array->device = GTS_CPU;
    array->rank = (int16_t)fields->nd; /* numpy has at most 64 */
    array->readonly = (fields->flags & NPY_ARRAY_WRITEABLE) == 0;
    if (GTS_UNLIKELY(array->rank > GTS_MAX_RANK))
        return 0; /* the contract's check refuses this rank */
    for (int32_t axis = 0; axis < array->rank; ++axis) {
        array->origin[axis] = 0;
        array->shape[axis] = fields->dimensions[axis];
        array->dims[axis] = NULL;
    }
    return gts_py_set_strides(argument, array, (const int64_t *)fields->strides);
}

/* Reads an array of a class that is derived from numpy's. */
static GTS_NOINLINE int read_derived(const gts_py_argument *argument, PyObject *object, gts_array *array)
{
    PyObject *mask;
    const int found = PyObject_GetOptionalAttr(object, gts_py.name.mask, &mask);
    if (found == 0)
        return read_numpy(argument, (const PyArrayObject *)object, array);
    if (found < 0)
        return -1;
    Py_DECREF(mask);
    return gts_py_refuse_mask(argument);
}

int gts_py_read_array(const gts_py_argument *argument, PyObject *object, gts_array *array, PyObject **owner)
{
    *owner = NULL;
    if (GTS_LIKELY(Py_TYPE(object) == gts_py.numpy.ndarray))
        return read_numpy(argument, (const PyArrayObject *)object, array);
    if (gts_py_find_numpy() && PyObject_TypeCheck(object, gts_py.numpy.ndarray))
        return read_derived(argument, object, array); /* or numpy's own, in the first call */
    return PyErr_Occurred() ? -1 : gts_py_read_exchange(argument, object, array, owner);
}

/* ---- Domains --------------------------------------------------------------------------------------------------- */

/* Reads a bound of a range: an int, or another object if the range is infinite. */
static int read_bound(const gts_py_argument *argument, int32_t axis, const char *dim, PyObject *range, PyObject *name,
                      int64_t *value)
{
    PyObject *const bound = PyObject_GetAttr(range, name);
    if (bound == NULL)
        return -1;
    int status = 0;
    if (GTS_LIKELY(PyLong_Check(bound))) {
        *value = PyLong_AsLongLong(bound);
        status = *value == -1 && PyErr_Occurred() ? -1 : 0;
    } else {
        status = GTS_PY_REFUSE(argument, GTS_VALUE_ERROR,
                               "must have a finite domain, but it is unbounded on axis %" PRId32 " ('%s').", axis, dim);
    }
    Py_DECREF(bound);
    return status;
}

/* The name of a dimension: the contract's own text if it is the contract's dimension. NULL after an exception. */
static const char *read_dim(gts_py_leaf *leaf, int32_t axis, PyObject *dimension)
{
    const char *const expected = axis < leaf->contract->rank ? leaf->contract->axes[axis].dim : NULL;
    if (dimension == leaf->dimension[axis])
        return expected;
    PyObject *const value = PyObject_GetAttr(dimension, gts_py.name.value);
    if (value == NULL)
        return NULL;
    const char *const name = PyUnicode_AsUTF8(value);
    if (name == NULL || expected == NULL || strcmp(name, expected) != 0) {
        Py_XSETREF(leaf->other_name[axis], value); /* if `value` is a property, nothing else keeps the text */
        return name;
    }
    Py_DECREF(value);
    Py_XSETREF(leaf->dimension[axis], Py_NewRef(dimension));
    return expected;
}

static int decode_domain(gts_py_leaf *leaf, PyObject *dims, PyObject *ranges, gts_py_domain *domain)
{
    const gts_py_argument *const argument = &leaf->argument;
    if (!PyTuple_Check(dims) || !PyTuple_Check(ranges) || PyTuple_GET_SIZE(dims) != PyTuple_GET_SIZE(ranges) ||
        PyTuple_GET_SIZE(dims) > GTS_MAX_RANK)
        return GTS_PY_REFUSE(argument, GTS_TYPE_ERROR,
                             "has a domain that is not a tuple of at most %d dimensions and their ranges.",
                             GTS_MAX_RANK);
    domain->rank = (int32_t)PyTuple_GET_SIZE(dims);
    for (int32_t axis = 0; axis < domain->rank; ++axis) {
        PyObject *const range = PyTuple_GET_ITEM(ranges, axis);
        const char *const dim = read_dim(leaf, axis, PyTuple_GET_ITEM(dims, axis));
        int64_t stop;
        if (dim == NULL || read_bound(argument, axis, dim, range, gts_py.name.start, &domain->origin[axis]) != 0 ||
            read_bound(argument, axis, dim, range, gts_py.name.stop, &stop) != 0)
            return -1;
        domain->dims[axis] = dim;
        domain->shape[axis] = (int64_t)((uint64_t)stop - (uint64_t)domain->origin[axis]);
    }
    return 0;
}

static int read_domain(gts_py_leaf *leaf, PyObject *object)
{
    PyObject *const dims = PyObject_GetAttr(object, gts_py.name.dims);
    PyObject *const ranges = dims == NULL ? NULL : PyObject_GetAttr(object, gts_py.name.ranges);
    Py_CLEAR(leaf->domain.object);
    const int status = ranges == NULL ? -1 : decode_domain(leaf, dims, ranges, &leaf->domain);
    if (status == 0)
        leaf->domain.object = Py_NewRef(object);
    Py_XDECREF(dims);
    Py_XDECREF(ranges);
    return status;
}

/* Sets the origin of an array. gt4py allows an array of one element with a longer range; a program does not. */
static int apply_domain(const gts_py_argument *argument, const gts_py_domain *domain, gts_array *array)
{
    if (GTS_UNLIKELY(domain->rank != array->rank))
        return GTS_PY_REFUSE(argument, GTS_TYPE_ERROR,
                             "has a domain of %" PRId32 " dimensions, but an array of %" PRId32 ".", domain->rank,
                             array->rank);
    for (int32_t axis = 0; axis < domain->rank; ++axis) {
        if (GTS_UNLIKELY(domain->shape[axis] != array->shape[axis]))
            return GTS_PY_REFUSE(argument, GTS_VALUE_ERROR,
                                 "has a domain of size %" PRId64 " on axis %" PRId32
                                 " ('%s'), but an array of size %" PRId64 ".",
                                 domain->shape[axis], axis, domain->dims[axis], array->shape[axis]);
        array->origin[axis] = domain->origin[axis];
        array->dims[axis] = domain->dims[axis];
    }
    return 0;
}

/* ---- Reading --------------------------------------------------------------------------------------------------- */

/* Reads a field, and releases the references to its domain and array. */
static int read_parts(gts_py_leaf *leaf, PyObject *domain, PyObject *ndarray, gts_array *array, PyObject **owner)
{
    int status = gts_py_read_array(&leaf->argument, ndarray, array, owner);
    if (status == 0 && domain != leaf->domain.object)
        status = read_domain(leaf, domain);
    if (GTS_LIKELY(status == 0))
        status = apply_domain(&leaf->argument, &leaf->domain, array);
    Py_DECREF(domain);
    Py_DECREF(ndarray);
    return status;
}

/* Gets new references to two attributes of an object: 1, 0 if it does not have both, or -1 after an exception. */
static inline int get_both(PyObject *object, PyObject *name, PyObject *other_name, PyObject **first, PyObject **second)
{
    int found = PyObject_GetOptionalAttr(object, name, first);
    if (GTS_UNLIKELY(found <= 0))
        return found;
    found = PyObject_GetOptionalAttr(object, other_name, second);
    if (GTS_UNLIKELY(found <= 0))
        Py_DECREF(*first);
    return found;
}

int gts_py_read_field(gts_py_leaf *leaf, PyObject *object, gts_array *array, PyObject **owner)
{
    PyObject *domain, *ndarray;
    *owner = NULL;
    if (Py_TYPE(object) == gts_py.numpy.ndarray)
        return gts_py_read_array(&leaf->argument, object, array, owner);
    int found = get_both(object, gts_py.name._domain, gts_py.name._ndarray, &domain, &ndarray);
    if (GTS_LIKELY(found > 0)) /* gt4py's own fields own these two objects */
        return read_parts(leaf, domain, ndarray, array, owner);
    if (found == 0)
        found = get_both(object, gts_py.name.domain, gts_py.name.ndarray, &domain, &ndarray);
    if (found <= 0)
        return found < 0 ? -1 : gts_py_read_array(&leaf->argument, object, array, owner);
    PyObject *const held = Py_NewRef(ndarray); /* any other field may create its array when the attribute is read */
    const int status = read_parts(leaf, domain, ndarray, array, owner);
    if (status == 0 && *owner == NULL)
        *owner = held;
    else
        Py_DECREF(held);
    return status;
}

int gts_py_read_any(gts_py_leaf *leaf, PyObject *object, gts_array *array, PyObject **owner)
{
    static const gts_contract ANY = {.rank = 0};
    gts_error refusal;
    *leaf = (gts_py_leaf){
        .argument = {.program = "", .path = "array", .error = &refusal},
        .contract = &ANY,
    };
    const int status = gts_py_read_field(leaf, object, array, owner);
    const bool is_array = status == 0 && array->rank <= GTS_MAX_RANK;
    if (!is_array)
        Py_CLEAR(*owner);
    if (status != 0 && PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Clear();
    return is_array;
}

/* ---- Recognising ----------------------------------------------------------------------------------------------- */

/* When debugging, every call reads every field, so that an array which was changed in place is refused. */
static GTS_COLD int check_unchanged(gts_program *program, uint32_t index, const PyObject *object,
                                    const gts_array *array)
{
    const gts_leaf *const leaf = &program->leaf[index];
    for (int i = 0; i < 2; ++i) {
        if (leaf->remembered[i].object == object && !gts_same_array(&leaf->remembered[i].array, array))
            return GTS_REFUSE(program, &program->stub->leaves[index], GTS_VALUE_ERROR,
                              "was changed in place (shape, strides or memory) since an earlier call.");
    }
    return 0;
}

/*
 * Whether an object was passed before, judged by its address. A field that is created for one call is not worth a weak
 * reference, whose cost is a third of the cost of reading the field.
 */
static bool was_passed(gts_py_leaf *leaf, const PyObject *object)
{
    if (leaf->passed[0] == object || leaf->passed[1] == object)
        return true;
    leaf->passed[1] = leaf->passed[0];
    leaf->passed[0] = object;
    return false;
}

/*
 * Whether the garbage collector is about to free an object, which a finalizer passes. The collector clears a weak
 * reference that was made since it has begun, and does not call its callback (CPython 3.13.13, 3.14.4 and later).
 * CPython's own names of the bits are _PyGC_BITS_UNREACHABLE and _PyGC_PREV_MASK_COLLECTING.
 */
static bool is_garbage(PyObject *object)
{
    if (!PyObject_IS_GC(object))
        return false; /* its weak references are cleared when its last reference is gone */
#ifdef Py_GIL_DISABLED
    return (object->ob_gc_bits & 4) != 0;
#else
    const uintptr_t *const head = (const uintptr_t *)object - 2; /* PyGC_Head: _gc_next, _gc_prev */
    return (head[1] & 2) != 0;
#endif
}

int gts_py_field(gts_program *program, uint32_t index, void *object)
{
    gts_py_program *const self = gts_py_of(program);
    gts_py_leaf *const own = &self->leaf[index];
    gts_leaf *const leaf = &program->leaf[index];
    gts_remembered *const other = &leaf->remembered[leaf->current == &leaf->remembered[0]];
    gts_forget_arrays(program);
    if (own->contract->kind == GTS_CONNECTIVITY)
        gts_know_object(program, program->stub->leaf_count, NULL); /* the offset provider had another object */
    if (other->object == object && GTS_LIKELY(!program->debug)) {
        leaf->current = other;
        gts_know_object(program, index, object);
        return 0;
    }
    gts_array array;
    PyObject *owner;
    int status = gts_py_read_field(own, object, &array, &owner);
    if (GTS_LIKELY(status == 0))
        status = gts_check_array(program, index, &array);
    if (GTS_UNLIKELY(program->debug) && status == 0)
        status = check_unchanged(program, index, object, &array);
    if (GTS_UNLIKELY(status != 0)) {
        Py_XDECREF(owner);
        return -1;
    }
    own->object = object;
    own->owner = owner;
    PyObject *reference = NULL;
    if (owner == NULL && (was_passed(own, object) || program->debug) &&
        PyType_SUPPORTS_WEAKREFS(Py_TYPE((PyObject *)object)) && GTS_LIKELY(!is_garbage(object))) {
        reference = PyWeakref_NewRef(object, self->forget);
        if (reference == NULL)
            return -1;
    }
    gts_py_remember(self, index, &array, object, reference);
    if (GTS_UNLIKELY(owner != NULL))
        gts_py_hold(self, owner);
    return 0;
}
