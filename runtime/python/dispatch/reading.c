/* What a call reads from around its program, and how it is compared with what was compiled in. */
#include <stddef.h>

#include "python/dispatch/overloads.h"

enum { IDENTICAL = -2 }; /* in place of the number of a reading: the value must be the very object */

#define LONGEST_VALUE 200 /* characters of a value in a message; an array has thousands */
#define ADVICE "call its method clear() to compile it anew" /* unless the overload has another one */

/* ---- Reading --------------------------------------------------------------------------------------------------- */

static GTS_COLD PyObject *refuse_missing(const gts_py_overload *self, const gts_py_reading *reading)
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_AttributeError) && !PyErr_ExceptionMatches(PyExc_LookupError))
        return NULL;
    PyErr_Clear();
    return PyErr_Format(PyExc_ValueError, "Program '%s' reads '%U', which does not exist any more.",
                        self->program->program->stub->name, reading->text);
}

/* The object that a step leads to: an attribute, an item, or the number of items. */
static PyObject *take_step(PyObject *object, PyObject *step)
{
    /* What getattr() returns, too; it raises an audit event before, which takes as long as the rest of a call. */
    if (PyFunction_Check(object) && step == gts_py.name.__code__)
        return Py_NewRef(PyFunction_GET_CODE(object));
    if (!PyTuple_CheckExact(step))
        return PyObject_GetAttr(object, step);
    if (PyTuple_GET_SIZE(step) > 0)
        return PyObject_GetItem(object, PyTuple_GET_ITEM(step, 0));
    const Py_ssize_t size = PyObject_Size(object);
    return size < 0 ? NULL : PyLong_FromSsize_t(size);
}

/* Evaluates an expression with the arguments of the call that it needs. */
static PyObject *evaluate(const gts_py_reading *reading, PyObject *const *args)
{
    PyObject *values[GTS_PY_MAX_PARAMETERS];
    const Py_ssize_t count = PyTuple_GET_SIZE(reading->arguments);
    for (Py_ssize_t i = 0; i < count; ++i)
        values[i] = args[PyLong_AsLong(PyTuple_GET_ITEM(reading->arguments, i))];
    return PyObject_Vectorcall(reading->root, values, (size_t)count, NULL);
}

/* A new reference to the object with which a reading begins; *next is the first of its steps from there. */
static PyObject *find_root(const gts_py_reading *reading, PyObject *const *args, Py_ssize_t *next)
{
    PyObject *const root = reading->root;
    *next = 0;
    if (reading->argument >= 0)
        return Py_NewRef(args[reading->argument]);
    if (reading->arguments != NULL)
        return evaluate(reading, args);
    if (PyDict_CheckExact(root) && PyTuple_GET_SIZE(reading->names) > 0) {
        *next = 1;
        return Py_XNewRef(PyDict_GetItemWithError(root, PyTuple_GET_ITEM(reading->names, 0)));
    }
    return PyCell_Check(root) ? PyCell_Get(root) : Py_NewRef(root);
}

PyObject *gts_py_read(const gts_py_overload *self, const gts_py_reading *reading, PyObject *const *args,
                      PyObject **owner)
{
    Py_ssize_t next;
    PyObject *object = find_root(reading, args, &next);
    const Py_ssize_t count = PyTuple_GET_SIZE(reading->names);
    for (; object != NULL && next < count; ++next) {
        if (owner != NULL && next + 1 == count)
            *owner = Py_NewRef(object);
        Py_SETREF(object, take_step(object, PyTuple_GET_ITEM(reading->names, next)));
    }
    return GTS_LIKELY(object != NULL) ? object : refuse_missing(self, reading);
}

gts_py_refusal gts_py_refusal_of(const gts_py_reading *reading)
{
    if (reading->argument >= 0 || (reading->arguments != NULL && PyTuple_GET_SIZE(reading->arguments) > 0))
        return GTS_PY_REFUSED; /* it depends on the arguments of the call */
    return PyErr_ExceptionMatches(PyExc_ValueError) ? GTS_PY_CHANGED : GTS_PY_NOT_REFUSED;
}

/* The representation of a value if it is short, else "another ndarray". */
static PyObject *value_text(PyObject *value)
{
    PyObject *const text = PyObject_Repr(value);
    if (text == NULL || PyUnicode_GET_LENGTH(text) <= LONGEST_VALUE)
        return text;
    Py_DECREF(text);
    return PyUnicode_FromFormat("another %s", Py_TYPE(value)->tp_name);
}

static GTS_COLD int refuse_change(const gts_py_overload *self, const gts_py_reading *constant, PyObject *found)
{
    PyObject *const old = value_text(constant->value), *const new = old == NULL ? NULL : value_text(found);
    if (new != NULL)
        gts_py_fail(PyExc_ValueError, "Program '%s' was compiled for '%U' = %U, but it is %U now; %V.",
                    self->program->program->stub->name, constant->text, old, new, self->advice, ADVICE);
    Py_XDECREF(old);
    Py_XDECREF(new);
    return -1;
}

/* Refuses two readings that have become one array, or one that has become two. */
static GTS_COLD int refuse_arrays(const gts_py_overload *self, const gts_py_reading *a, const gts_py_reading *b,
                                  bool are_one)
{
    return gts_py_fail(PyExc_ValueError, "Program '%s' was compiled for %s as '%U' and '%U', but these are %s now; %V.",
                       self->program->program->stub->name, are_one ? "two arrays" : "one array", a->text, b->text,
                       are_one ? "one" : "two", self->advice, ADVICE);
}

/* Checks that a path still leads to the array that another reading reads, too. */
static int check_shared(const gts_py_overload *self, const gts_py_reading *constant, PyObject *const *args,
                        gts_py_refusal *refused)
{
    PyObject *const found = gts_py_read(self, constant, args, NULL);
    PyObject *const expected = found == NULL ? NULL : gts_py_read(self, &self->readings[constant->same], args, NULL);
    int status = expected == NULL ? -1 : 0;
    if (status == 0 && expected != found)
        status = refuse_arrays(self, &self->readings[constant->same], constant, false);
    if (GTS_UNLIKELY(status != 0))
        *refused = gts_py_refusal_of(constant);
    Py_XDECREF(found);
    Py_XDECREF(expected);
    return status;
}

int gts_py_check_constant(const gts_py_overload *self, const gts_py_reading *constant, PyObject *const *args,
                          gts_py_refusal *refused)
{
    if (constant->same >= 0)
        return check_shared(self, constant, args, refused);
    PyObject *const found = gts_py_read(self, constant, args, NULL);
    const bool is_right = found != NULL && (found == constant->value ||
                                            (!constant->is_identical && gts_py_is_same(found, constant->value)));
    if (GTS_UNLIKELY(!is_right)) {
        if (found != NULL)
            refuse_change(self, constant, found);
        *refused = gts_py_refusal_of(constant);
    }
    Py_XDECREF(found);
    return is_right ? 0 : -1;
}

/* The reading of a parameter whose array must be none of another such parameter; NULL for other parameters. */
static const gts_py_reading *find_distinct(const gts_py_overload *self, uint32_t parameter)
{
    const int16_t place = self->place[parameter];
    const gts_py_reading *const reading = place >= 0 ? NULL : &self->readings[-1 - place];
    return reading != NULL && reading->is_distinct != 0 ? reading : NULL;
}

int gts_py_check_distinct(gts_py_overload *self, PyObject *const *argv)
{
    bool is_known = true;
    for (uint32_t i = 0; i < self->count - self->result_count; ++i)
        is_known &= find_distinct(self, i) == NULL || self->distinct[i] == argv[i];
    if (GTS_LIKELY(is_known))
        return 0;
    for (uint32_t i = 0; i < self->count - self->result_count; ++i) {
        const gts_py_reading *const reading = find_distinct(self, i);
        for (uint32_t j = 0; reading != NULL && j < i; ++j) {
            const gts_py_reading *const other = find_distinct(self, j);
            if (other != NULL && argv[i] == argv[j])
                return refuse_arrays(self, other, reading, true);
        }
    }
    for (uint32_t i = 0; i < self->count - self->result_count; ++i)
        self->distinct[i] = argv[i];
    return 0;
}

/* ---- Making ---------------------------------------------------------------------------------------------------- */

int gts_py_need_argument(gts_py_overload *self, long number)
{
    if (number < 0 || number > INT16_MAX)
        return gts_py_fail(PyExc_ValueError, "There is no argument %ld.", number);
    if (number >= self->least_arguments)
        self->least_arguments = (int32_t)number + 1;
    return 0;
}

/* Reads the root of a reading: an argument's number, (function, numbers of arguments), or any other object. */
static int set_root(gts_py_overload *self, gts_py_reading *reading)
{
    reading->argument = -1;
    if (PyLong_CheckExact(reading->root)) {
        reading->argument = (int32_t)PyLong_AsLong(reading->root);
        return PyErr_Occurred() ? -1 : gts_py_need_argument(self, reading->argument);
    }
    if (!PyTuple_CheckExact(reading->root))
        return 0;
    if (!PyArg_ParseTuple(reading->root, "OO!:expression", &reading->root, &PyTuple_Type, &reading->arguments))
        return -1;
    if (PyTuple_GET_SIZE(reading->arguments) > GTS_PY_MAX_PARAMETERS)
        return gts_py_fail(PyExc_ValueError, "An expression has %zd arguments.", PyTuple_GET_SIZE(reading->arguments));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(reading->arguments); ++i) {
        const long number = PyLong_AsLong(PyTuple_GET_ITEM(reading->arguments, i));
        if (PyErr_Occurred() || gts_py_need_argument(self, number) != 0)
            return -1;
    }
    return 0;
}

int gts_py_set_readings(gts_py_overload *self, PyObject *items, bool have_values, gts_py_reading **readings,
                        uint32_t *count)
{
    const Py_ssize_t length = PyTuple_GET_SIZE(items);
    *readings = gts_new((size_t)length, sizeof **readings);
    for (Py_ssize_t i = 0; i < length; ++i) {
        gts_py_reading *const reading = &(*readings)[i];
        reading->same = -1;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(items, i), have_values ? "OO!UO|i:constant" : "OO!U|p:reading",
                              &reading->root, &PyTuple_Type, &reading->names, &reading->text,
                              have_values ? (void *)&reading->value : &reading->is_distinct, &reading->same))
            return -1;
        if (set_root(self, reading) != 0)
            return -1;
        reading->is_identical = reading->same == IDENTICAL;
        reading->same = reading->is_identical ? -1 : reading->same;
        if (reading->same < -1 || reading->same >= (int32_t)self->reading_count)
            return gts_py_fail(PyExc_ValueError, "There is no reading %d.", (int)reading->same);
        ++*count;
    }
    return 0;
}
