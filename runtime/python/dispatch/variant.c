/* The variants of a program: adds them, and selects one by the static arguments and the offset provider of a call. */
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
    target->argument = (gts_py_argument){.state = self->state,
                                         .program = self->takes.function,
                                         .path = path,
                                         .dtype = (gts_dtype)dtype,
                                         .device = GTS_CPU,
                                         .error = &self->error};
    return 0;
}

int gts_py_set_statics(gts_py_dispatcher *self, PyObject *statics)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(statics);
    if (count > GTS_PY_MAX_PARAMETERS)
        return gts_py_fail(PyExc_ValueError, "Program '%s' has %zd static arguments, which is more than %d.",
                           self->takes.function, count, GTS_PY_MAX_PARAMETERS);
    self->static_tuple = Py_NewRef(statics);
    self->statics = gts_py_calloc((size_t)count, sizeof *self->statics);
    self->bound_key = gts_py_calloc((size_t)count + 1, sizeof *self->bound_key);
    if (self->statics == NULL || self->bound_key == NULL)
        return -1;
    self->static_count = (uint32_t)count;
    for (uint32_t i = 0; i < self->static_count; ++i) {
        if (set_static(self, i, PyTuple_GET_ITEM(statics, i)) != 0)
            return -1;
    }
    return 0;
}

static inline GTS_ALWAYS_INLINE int read_scalar(gts_py_dispatcher *self, uint32_t index, PyObject *object,
                                                uint64_t *bits)
{
    const gts_py_argument *const argument = &self->statics[index].argument;
    *bits = 0;
    if (GTS_UNLIKELY(gts_py_read_scalar(argument, object, bits) != 0))
        return gts_py_raise(&self->error);
    if (argument->dtype >= GTS_FLOAT32 && GTS_UNLIKELY(isnan(gts_element_float(argument->dtype, bits))))
        *bits = UINT64_MAX; /* for every NaN, because stubs treat all of them as equal */
    return 0;
}

/* Refuses an object that is not the tuple of step `depth`. For x[0][1], step 0 is the tuple x, and step 1 is x[0]. */
static GTS_COLD int refuse_tuple(gts_py_dispatcher *self, uint32_t index, uint32_t depth, PyObject *object)
{
    char path[256];
    (void)PyOS_snprintf(path, sizeof path, "%s", self->statics[index].argument.path);
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
    return read_scalar(self, index, object, bits);
}

int gts_py_set_bound_key(gts_py_dispatcher *self)
{
    for (uint32_t i = 0; i < self->static_count; ++i) {
        PyObject *const bound = self->takes.bound[self->statics[i].parameter];
        if (bound != NULL && read_static(self, i, bound, &self->bound_key[1 + i]) != 0)
            return -1;
    }
    return 0;
}

/* ---- Table ----------------------------------------------------------------------------------------------------- */

static uint32_t hash_key(const uint64_t *key, uint32_t length)
{
    /* 2^64 / golden ratio: it separates keys that differ in few bits. */
    const uint64_t spread = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t hash = 0;
    for (uint32_t i = 0; i < length; ++i) {
        hash = (hash ^ key[i]) * spread;
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

static gts_py_variant *find(const gts_py_dispatcher *self, const uint64_t *key)
{
    const uint32_t length = 1 + self->static_count;
    if (self->table_size == 0)
        return NULL;
    for (uint32_t i = hash_key(key, length);; ++i) {
        const uint32_t entry = self->table[i & (self->table_size - 1)];
        if (entry == 0)
            return NULL;
        gts_py_variant *const variant = &self->variants[entry - 1];
        if (GTS_LIKELY(memcmp(variant->key, key, length * sizeof *key) == 0))
            return variant;
    }
}

/* Builds the hash table, with at least twice as many entries as variants, so that a search ends at a free one. */
static int fill_table(gts_py_dispatcher *self)
{
    uint32_t size = 4;
    while (size < 2 * self->variant_count)
        size *= 2;
    uint32_t *const table = gts_py_calloc(size, sizeof *table);
    if (table == NULL)
        return -1;
    for (uint32_t v = 0; v < self->variant_count; ++v) {
        uint32_t i = hash_key(self->variants[v].key, 1 + self->static_count);
        while (table[i & (size - 1)] != 0)
            ++i;
        table[i & (size - 1)] = v + 1;
    }
    PyMem_Free(self->table);
    self->table = table;
    self->table_size = size;
    return 0;
}

/* ---- Adding ---------------------------------------------------------------------------------------------------- */

/* Reads the key of a variant from an offset provider and static scalars, which may run code of the scalars. */
static int read_key(gts_py_dispatcher *self, unsigned int provider, PyObject *values, uint64_t *key)
{
    if (PyTuple_GET_SIZE(values) != self->static_count || provider >= PyTuple_GET_SIZE(self->providers))
        return gts_py_fail(PyExc_ValueError, "A variant of program '%U' needs %u static scalars, not %zd.", self->name,
                           self->static_count, PyTuple_GET_SIZE(values));
    key[0] = provider;
    for (uint32_t i = 0; i < self->static_count; ++i) {
        if (read_scalar(self, i, PyTuple_GET_ITEM(values, i), &key[1 + i]) != 0)
            return -1;
    }
    return 0;
}

static int append(gts_py_dispatcher *self, const uint64_t *key, PyObject *label)
{
    const size_t size = (1 + self->static_count) * sizeof *key;
    gts_py_variant *const grown = PyMem_Realloc(self->variants, (self->variant_count + 1) * sizeof *self->variants);
    if (grown != NULL)
        self->variants = grown;
    uint64_t *const copy = PyMem_Malloc(size);
    if (grown == NULL || copy == NULL) {
        PyMem_Free(copy);
        PyErr_NoMemory();
        return -1;
    }
    memcpy(copy, key, size);
    self->variants[self->variant_count++] = (gts_py_variant){.key = copy, .label = Py_NewRef(label)};
    if (fill_table(self) == 0)
        return 0;
    --self->variant_count;
    PyMem_Free(copy);
    Py_DECREF(label);
    return -1;
}

PyObject *gts_py_add_variant(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"provider", "values", "label", NULL};
    gts_py_dispatcher *const self = (gts_py_dispatcher *)object;
    uint64_t key[1 + GTS_PY_MAX_PARAMETERS];
    unsigned int provider;
    PyObject *values, *label;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "IO!U:add_variant", names, &provider, &PyTuple_Type, &values,
                                     &label) ||
        read_key(self, provider, values, key) != 0)
        return NULL;
    if (find(self, key) != NULL)
        return PyErr_Format(PyExc_ValueError, "Program '%U' has already been compiled for (%U).", self->name, label);
    if (append(self, key, label) != 0)
        return NULL;
    return PyLong_FromUnsignedLong(self->variant_count - 1);
}

PyObject *gts_py_find_variant(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"provider", "values", NULL};
    gts_py_dispatcher *const self = (gts_py_dispatcher *)object;
    uint64_t key[1 + GTS_PY_MAX_PARAMETERS];
    unsigned int provider;
    PyObject *values;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "IO!:find_variant", names, &provider, &PyTuple_Type, &values) ||
        read_key(self, provider, values, key) != 0)
        return NULL;
    const gts_py_variant *const variant = find(self, key);
    if (variant == NULL)
        Py_RETURN_NONE;
    return PyLong_FromSsize_t(variant - self->variants);
}

/* Builds a variant. Another thread may build it at the same time: the first result is kept. */
static PyObject *prepare(gts_py_dispatcher *self, uint32_t index)
{
    if (GTS_UNLIKELY(self->build == NULL)) /* the garbage collector has cleared it */
        return PyErr_Format(PyExc_RuntimeError, "Program '%U' was called by a finalizer after its end.", self->name);
    PyObject *const number = PyLong_FromUnsignedLong(index);
    PyObject *const callable = number == NULL ? NULL : PyObject_CallOneArg(self->build, number);
    Py_XDECREF(number);
    if (callable == NULL)
        return NULL;
    if (Py_IS_TYPE(callable, self->state->program_type)) {
        const Py_ssize_t taken = PyTuple_GET_SIZE(((gts_py_program *)callable)->parameters);
        if (taken != PyTuple_GET_SIZE(self->takes.parameters)) {
            Py_DECREF(callable);
            return PyErr_Format(PyExc_ValueError,
                                "Program '%U' has %zd parameters, but the program that was built has %zd.", self->name,
                                PyTuple_GET_SIZE(self->takes.parameters), taken);
        }
    }
    gts_py_variant *const variant = &self->variants[index]; /* not earlier, because building may have added variants */
    if (variant->callable == NULL)
        variant->callable = callable;
    else
        Py_DECREF(callable);
    return variant->callable;
}

PyObject *gts_py_prepare_variant(PyObject *object, PyObject *number)
{
    gts_py_dispatcher *const self = (gts_py_dispatcher *)object;
    const size_t index = PyLong_AsSize_t(number);
    if (index == (size_t)-1 && PyErr_Occurred())
        return NULL;
    if (index >= self->variant_count)
        return PyErr_Format(PyExc_IndexError, "Program '%U' has %u variants.", self->name, self->variant_count);
    PyObject *const callable = self->variants[index].callable;
    return Py_XNewRef(callable != NULL ? callable : prepare(self, (uint32_t)index));
}

/* ---- Selecting ------------------------------------------------------------------------------------------------- */

#define LISTED 8 /* at most so many variants are listed in a refusal */

/* The static arguments of a call, as they were passed: "limited_area=True, n=3". */
static PyObject *describe_statics(const gts_py_dispatcher *self, PyObject *const *argv)
{
    PyObject *text = PyUnicode_FromString("");
    for (uint32_t i = 0; i < self->static_count && text != NULL; ++i) {
        const uint32_t parameter = self->statics[i].parameter;
        if (i > 0 && parameter == self->statics[i - 1].parameter)
            continue;
        Py_SETREF(text, PyUnicode_FromFormat("%U%s%U=%S", text, i == 0 ? "" : ", ",
                                             PyTuple_GET_ITEM(self->takes.parameters, parameter), argv[parameter]));
    }
    return text;
}

/* Refuses static arguments, and lists the variants of the offset provider that was passed. */
static GTS_COLD void refuse_statics(const gts_py_dispatcher *self, uint64_t provider, PyObject *const *argv)
{
    PyObject *const passed = describe_statics(self, argv);
    PyObject *compiled = PyUnicode_FromString("");
    uint32_t count = 0;
    for (uint32_t i = 0; i < self->variant_count && compiled != NULL; ++i) {
        if (self->variants[i].key[0] == provider && count++ < LISTED)
            Py_SETREF(compiled,
                      PyUnicode_FromFormat("%U%s(%U)", compiled, count == 1 ? "" : ", ", self->variants[i].label));
    }
    if (compiled != NULL && count > LISTED)
        Py_SETREF(compiled, PyUnicode_FromFormat("%U and %u more", compiled, count - LISTED));
    if (passed != NULL && compiled != NULL)
        PyErr_Format(PyExc_ValueError, "Program '%U' was not compiled for (%U), but for %U.", self->name, passed,
                     compiled);
    Py_XDECREF(passed);
    Py_XDECREF(compiled);
}

PyObject *gts_py_select(gts_py_dispatcher *self, PyObject **argv)
{
    uint64_t key[1 + GTS_PY_MAX_PARAMETERS];
    PyObject **const provider = &argv[PyTuple_GET_SIZE(self->takes.parameters)];
    key[0] = 0;
    if (*provider != self->takes.bound[PyTuple_GET_SIZE(self->takes.parameters)] &&
        gts_py_find_provider(self, provider, &key[0]) != 0)
        return NULL;
    for (uint32_t i = 0; i < self->static_count; ++i) {
        const uint32_t parameter = self->statics[i].parameter;
        if (argv[parameter] == self->takes.bound[parameter])
            key[1 + i] = self->bound_key[1 + i];
        else if (GTS_UNLIKELY(read_static(self, i, argv[parameter], &key[1 + i]) != 0))
            return NULL;
    }
    const gts_py_variant *const variant = find(self, key);
    if (GTS_UNLIKELY(variant == NULL)) {
        refuse_statics(self, key[0], argv);
        return NULL;
    }
    if (GTS_LIKELY(variant->callable != NULL))
        return variant->callable;
    return prepare(self, (uint32_t)(variant - self->variants));
}

void gts_py_free_variants(gts_py_dispatcher *self)
{
    for (uint32_t i = 0; i < self->variant_count; ++i) {
        Py_XDECREF(self->variants[i].callable);
        Py_DECREF(self->variants[i].label);
        PyMem_Free(self->variants[i].key);
    }
    Py_XDECREF(self->static_tuple);
    PyMem_Free(self->variants);
    PyMem_Free(self->table);
    PyMem_Free(self->statics);
    PyMem_Free(self->bound_key);
}
