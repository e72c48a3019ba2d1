/* Selects the variant of a program by the static arguments and the offset provider of a call. */
#include "python/dispatch/dispatcher.h"

#include <math.h>

#include "base/element.h"

/* ---- Static arguments ------------------------------------------------------------------------------------------ */

static GTS_COLD int refuse_static(const gts_py_dispatcher *self, const char *path)
{
    return gts_py_fail(PyExc_ValueError, "Static argument '%s' of program '%s' cannot be reached.", path,
                       self->takes.function);
}

static int set_static(gts_py_dispatcher *self, uint32_t index, PyObject *item)
{
    gts_py_static *const target = &self->statics[index];
    unsigned int parameter;
    PyObject *steps;
    const char *path;
    int dtype;
    if (!PyArg_ParseTuple(item, "IO!si:static", &parameter, &PyTuple_Type, &steps, &path, &dtype))
        return -1;
    if (parameter >= PyTuple_GET_SIZE(self->takes.parameters) || dtype < GTS_BOOL || dtype > GTS_FLOAT64 ||
        PyTuple_GET_SIZE(steps) > GTS_PY_MAX_DEPTH)
        return refuse_static(self, path);
    target->parameter = parameter;
    target->depth = (uint32_t)PyTuple_GET_SIZE(steps);
    for (uint32_t i = 0; i < target->depth; ++i) {
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(steps, i), "II:step", &target->step[i].index, &target->step[i].length))
            return -1;
        if (target->step[i].index >= target->step[i].length)
            return refuse_static(self, path);
    }
    target->argument = (gts_py_argument){.program = self->takes.function,
                                         .path = path,
                                         .dtype = (gts_dtype)dtype,
                                         .device = GTS_CPU,
                                         .error = &self->error};
    return 0;
}

/* Refuses an object that is not the tuple of step `depth`. For x[0][1], step 0 is the tuple x, and step 1 is x[0]. */
static GTS_COLD int refuse_tuple(gts_py_dispatcher *self, uint32_t index, uint32_t depth, PyObject *object)
{
    char path[256];
    PyOS_snprintf(path, sizeof path, "%s", self->statics[index].argument.path);
    char *end = path;
    for (uint32_t i = 0; i <= depth && end != NULL; ++i)
        end = strchr(i == 0 ? end : end + 1, '[');
    if (end != NULL)
        *end = '\0';
    gts_py_refuse_tuple(&self->error, self->takes.function, path, object, self->statics[index].step[depth].length);
    return gts_py_raise(&self->error);
}

/* Reads static scalar `index` from the argument for its parameter. */
static inline GTS_ALWAYS_INLINE int read_static(gts_py_dispatcher *self, uint32_t index, PyObject *argument,
                                                uint64_t *bits)
{
    const gts_py_static *const target = &self->statics[index];
    PyObject *object = argument;
    for (uint32_t i = 0; i < target->depth; ++i) {
        if (GTS_UNLIKELY(!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != (Py_ssize_t)target->step[i].length))
            return refuse_tuple(self, index, i, object);
        object = PyTuple_GET_ITEM(object, target->step[i].index);
    }
    *bits = 0;
    if (GTS_UNLIKELY(gts_py_read_scalar(&target->argument, object, bits) != 0))
        return gts_py_raise(&self->error);
    if (target->argument.dtype >= GTS_FLOAT32 && GTS_UNLIKELY(isnan(gts_element_float(target->argument.dtype, bits))))
        *bits = UINT64_MAX; /* for every NaN, because stubs treat all of them as equal */
    return 0;
}

int gts_py_set_statics(gts_py_dispatcher *self, PyObject *statics)
{
    const Py_ssize_t count = statics == NULL ? 0 : PyTuple_GET_SIZE(statics);
    if (count > GTS_PY_MAX_PARAMETERS)
        return gts_py_fail(PyExc_ValueError, "Program '%s' has %zd static arguments, which is more than %d.",
                           self->takes.function, count, GTS_PY_MAX_PARAMETERS);
    self->static_tuple = Py_XNewRef(statics);
    self->statics = gts_new((size_t)count, sizeof *self->statics);
    self->bound_key = gts_new((size_t)count + 1, sizeof *self->bound_key);
    self->static_count = (uint32_t)count;
    for (uint32_t i = 0; i < self->static_count; ++i) {
        if (set_static(self, i, PyTuple_GET_ITEM(statics, i)) != 0)
            return -1;
        PyObject *const bound = self->takes.bound[self->statics[i].parameter];
        if (bound != NULL && read_static(self, i, bound, &self->bound_key[1 + i]) != 0)
            return -1;
    }
    return 0;
}

/* ---- Variants -------------------------------------------------------------------------------------------------- */

static size_t key_size(const gts_py_dispatcher *self)
{
    return (1 + self->static_count) * sizeof(uint64_t);
}

PyObject *gts_py_key(PyObject *object, PyObject *args)
{
    gts_py_dispatcher *const self = (gts_py_dispatcher *)object;
    uint64_t key[1 + GTS_PY_MAX_PARAMETERS];
    unsigned int provider;
    PyObject *statics;
    if (!PyArg_ParseTuple(args, "IO!:key", &provider, &PyTuple_Type, &statics))
        return NULL;
    if (PyTuple_GET_SIZE(statics) != self->static_count)
        return PyErr_Format(PyExc_ValueError, "A variant of program '%U' needs %u static scalars, not %zd.", self->name,
                            self->static_count, PyTuple_GET_SIZE(statics));
    key[0] = provider;
    for (uint32_t i = 0; i < self->static_count; ++i) {
        if (read_static(self, i, PyTuple_GET_ITEM(statics, i), &key[1 + i]) != 0)
            return NULL;
    }
    return PyBytes_FromStringAndSize((const char *)key, (Py_ssize_t)key_size(self));
}

/* Programs have few variants: to compare with each is as fast as a hash table. */
static PyObject *find_variant(const gts_py_dispatcher *self, const void *key)
{
    for (uint32_t i = 0; i < self->variant_count; ++i) {
        if (memcmp(PyBytes_AS_STRING(self->variants[i].key), key, key_size(self)) == 0)
            return self->variants[i].callable;
    }
    return NULL;
}

/* Remembers the callable of a variant, which it steals, unless another thread has done so meanwhile. Borrowed. */
static PyObject *remember(gts_py_dispatcher *self, PyObject *key, PyObject *callable)
{
    PyObject *const known = find_variant(self, PyBytes_AS_STRING(key));
    if (known != NULL) {
        Py_DECREF(callable);
        return known;
    }
    self->variants = gts_renew(self->variants, (self->variant_count + 1) * sizeof *self->variants);
    self->variants[self->variant_count++] = (gts_py_variant){Py_NewRef(key), callable};
    return callable;
}

/* The callable that `choose` returns for a variant, borrowed; NULL after an exception. */
static GTS_COLD PyObject *choose(gts_py_dispatcher *self, const uint64_t *key, PyObject *const *argv)
{
    const Py_ssize_t taken = PyTuple_GET_SIZE(self->takes.parameters);
    PyObject *const args[] = {PyBytes_FromStringAndSize((const char *)key, (Py_ssize_t)key_size(self)),
                              PyLong_FromUnsignedLongLong(key[0]), PyTuple_New(self->static_count)};
    PyObject *callable = NULL;
    for (uint32_t i = 0; args[2] != NULL && i < self->static_count; ++i)
        PyTuple_SET_ITEM(args[2], i, Py_NewRef(argv[self->statics[i].parameter]));
    if (args[0] != NULL && args[1] != NULL && args[2] != NULL)
        callable = gts_py_choose(self, args, 3, NULL);
    if (callable != NULL && Py_IS_TYPE(callable, gts_py.program_type) &&
        ((gts_py_program *)callable)->parameter_count != taken) {
        PyErr_Format(PyExc_ValueError, "Program '%U' has %zd parameters, but the program that was built has %u.",
                     self->name, taken, ((gts_py_program *)callable)->parameter_count);
        Py_CLEAR(callable);
    }
    if (callable != NULL)
        callable = remember(self, args[0], callable);
    for (int i = 0; i < 3; ++i)
        Py_XDECREF(args[i]);
    return callable;
}

PyObject *gts_py_select(gts_py_dispatcher *self, PyObject **argv)
{
    uint64_t key[1 + GTS_PY_MAX_PARAMETERS];
    const Py_ssize_t last = PyTuple_GET_SIZE(self->takes.parameters);
    key[0] = 0;
    if (argv[last] != self->takes.bound[last] && gts_py_find_provider(self, &argv[last], &key[0]) != 0)
        return NULL;
    for (uint32_t i = 0; i < self->static_count; ++i) {
        const uint32_t parameter = self->statics[i].parameter;
        if (argv[parameter] == self->takes.bound[parameter])
            key[1 + i] = self->bound_key[1 + i];
        else if (GTS_UNLIKELY(read_static(self, i, argv[parameter], &key[1 + i]) != 0))
            return NULL;
    }
    PyObject *const callable = find_variant(self, key);
    return GTS_LIKELY(callable != NULL) ? callable : choose(self, key, argv);
}
