/* The Overload type: it completes the arguments of a call, and calls a Program. */
#include <stddef.h>

#include "python/dispatch/overloads.h"

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
    if (!PyTuple_CheckExact(step))
        return PyObject_GetAttr(object, step);
    if (PyTuple_GET_SIZE(step) > 0)
        return PyObject_GetItem(object, PyTuple_GET_ITEM(step, 0));
    const Py_ssize_t size = PyObject_Size(object);
    return size < 0 ? NULL : PyLong_FromSsize_t(size);
}

/*
 * A new reference to what `reading` reads, and, unless `owner` is NULL, to the object whose attribute or item that is, or
 * NULL in *owner. NULL after an exception.
 */
static PyObject *read_object(const gts_py_overload *self, const gts_py_reading *reading, PyObject *const *args,
                             PyObject **owner)
{
    PyObject *object = Py_NewRef(reading->argument >= 0 ? args[reading->argument] : reading->root);
    Py_ssize_t next = 0;
    if (reading->argument < 0 && PyDict_CheckExact(object) && PyTuple_GET_SIZE(reading->names) > 0) {
        Py_SETREF(object, Py_XNewRef(PyDict_GetItemWithError(reading->root, PyTuple_GET_ITEM(reading->names, 0))));
        next = 1;
    } else if (reading->argument < 0 && PyCell_Check(object)) {
        Py_SETREF(object, PyCell_Get(reading->root));
    }
    const Py_ssize_t count = PyTuple_GET_SIZE(reading->names);
    for (; object != NULL && next < count; ++next) {
        if (owner != NULL && next + 1 == count)
            *owner = Py_NewRef(object);
        Py_SETREF(object, take_step(object, PyTuple_GET_ITEM(reading->names, next)));
    }
    return GTS_LIKELY(object != NULL) ? object : refuse_missing(self, reading);
}

static GTS_COLD int refuse_change(const gts_py_overload *self, const gts_py_reading *constant, PyObject *found)
{
    PyErr_Format(
        PyExc_ValueError,
        "Program '%s' was compiled for '%U' = %R, but it is %R now; call its method clear() to compile it anew.",
        self->program->program->stub->name, constant->text, constant->value, found);
    return -1;
}

/* Whether two objects are the same, or equal and of the same type; false if they cannot be compared. */
static bool is_same(PyObject *a, PyObject *b)
{
    if (a == b)
        return true;
    if (Py_TYPE(a) != Py_TYPE(b))
        return false;
    if (PyFloat_Check(a)) /* NaN is the same as NaN, but -0.0 is not 0.0 */
        return memcmp(&((PyFloatObject *)a)->ob_fval, &((PyFloatObject *)b)->ob_fval, sizeof(double)) == 0;
    const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
    if (equal < 0)
        PyErr_Clear();
    return equal > 0;
}

static GTS_COLD int refuse_another(const gts_py_overload *self, const gts_py_reading *constant)
{
    PyErr_Format(PyExc_ValueError,
                 "Program '%s' was compiled for one array as '%U' and '%U', but these are two now; call its method "
                 "clear() to compile it anew.",
                 self->program->program->stub->name, self->readings[constant->same].text, constant->text);
    return -1;
}

/* Checks that a path still leads to the array that another reading reads, too. */
static int check_shared(const gts_py_overload *self, const gts_py_reading *constant, PyObject *const *args)
{
    PyObject *const found = read_object(self, constant, args, NULL);
    PyObject *const expected = found == NULL ? NULL : read_object(self, &self->readings[constant->same], args, NULL);
    const int status = expected == NULL ? -1 : expected == found ? 0 : refuse_another(self, constant);
    Py_XDECREF(found);
    Py_XDECREF(expected);
    return status;
}

/* Checks a constant. If a call passes another one, then *refused, because another overload may have been compiled. */
static int check_constant(const gts_py_overload *self, const gts_py_reading *constant, PyObject *const *args,
                          bool *refused)
{
    if (constant->same >= 0)
        return check_shared(self, constant, args);
    PyObject *const found = read_object(self, constant, args, NULL);
    const bool is_right = found != NULL && is_same(found, constant->value);
    *refused = !is_right && constant->argument >= 0;
    if (found == NULL)
        return -1;
    if (!is_right)
        (void)refuse_change(self, constant, found);
    Py_DECREF(found);
    return is_right ? 0 : -1;
}

static GTS_COLD int refuse_type(const gts_py_overload *self, const gts_py_exact *exact, PyObject *found)
{
    PyErr_Format(PyExc_TypeError, "Program '%s' was compiled for another type of '%U' than '%s'.",
                 self->program->program->stub->name, exact->text, Py_TYPE(found)->tp_name);
    return -1;
}

static int check_type(const gts_py_overload *self, const gts_py_exact *exact, PyObject *const *args)
{
    PyObject *const found = args[exact->argument];
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(exact->types); ++i) {
        if (GTS_LIKELY((PyObject *)Py_TYPE(found) == PyTuple_GET_ITEM(exact->types, i)))
            return 0;
    }
    return refuse_type(self, exact, found);
}

/* ---- Results --------------------------------------------------------------------------------------------------- */

/* The tuple of the arrays that a call returns: new ones, or those that it passes as `out`. NULL after an exception. */
static PyObject *find_results(const gts_py_overload *self, PyObject *const *args, PyObject *const *argv)
{
    PyObject *results;
    if (self->out < 0)
        results = PyObject_Vectorcall(self->allocate, argv, self->count - self->result_count, NULL);
    else if (self->is_single)
        results = PyTuple_Pack(1, args[self->out]);
    else
        results = Py_NewRef(args[self->out]);
    if (results == NULL)
        return NULL;
    if (PyTuple_CheckExact(results) && PyTuple_GET_SIZE(results) == (Py_ssize_t)self->result_count)
        return results;
    PyErr_Format(PyExc_TypeError, "Argument 'out' of program '%s' must be a tuple of %u arrays.",
                 self->program->program->stub->name, self->result_count);
    Py_DECREF(results);
    return NULL;
}

/*
 * After no results could be made for the arguments before them, probably because these are not as the program takes
 * them: the program says so in better words, and *refused is true. Otherwise, the exception stays.
 */
static GTS_COLD void refuse_arguments(const gts_py_overload *self, PyObject **argv, bool *refused)
{
    if (self->out >= 0 || PyErr_ExceptionMatches(PyExc_MemoryError))
        return;
    PyObject *const error = PyErr_GetRaisedException();
    for (uint32_t i = self->count - self->result_count; i < self->count; ++i)
        argv[i] = Py_None;
    argv[self->count] = NULL;
    PyObject *const returned = gts_py_call_in_order(self->program, argv);
    *refused = returned == NULL && self->program->refused;
    Py_XDECREF(returned);
    if (returned == NULL)
        Py_DECREF(error);
    else
        PyErr_SetRaisedException(error);
}

/* ---- Calling --------------------------------------------------------------------------------------------------- */

PyObject *gts_py_call_overload(const gts_py_overload *self, PyObject *const *args, bool *refused)
{
    PyObject *argv[GTS_PY_MAX_PARAMETERS + 1], *held[GTS_PY_MAX_PARAMETERS], *owners[GTS_PY_MAX_PARAMETERS];
    PyObject *results = NULL, *returned = NULL;
    uint32_t held_count = 0;
    *refused = false;
    for (uint32_t i = 0; i < self->count && self->has_owners; ++i)
        owners[i] = NULL;
    for (uint32_t i = 0; i < self->constant_count; ++i) {
        if (GTS_UNLIKELY(check_constant(self, &self->constants[i], args, refused) != 0))
            return NULL;
    }
    for (uint32_t i = 0; i < self->exact_count; ++i) {
        if (GTS_UNLIKELY(check_type(self, &self->exact[i], args) != 0)) {
            *refused = true;
            return NULL;
        }
    }
    const uint32_t passed = self->count - self->result_count;
    for (uint32_t i = 0; i < passed; ++i) {
        const int16_t place = self->place[i];
        if (place >= 0) {
            argv[i] = args[place];
            continue;
        }
        const gts_py_reading *const reading = &self->readings[-1 - place];
        argv[i] = held[held_count] = read_object(self, reading, args,
                                                 self->has_owners && reading->argument >= 0 ? &owners[i] : NULL);
        if (GTS_UNLIKELY(argv[i] == NULL)) {
            *refused = reading->argument >= 0; /* an argument of another type */
            goto done;
        }
        ++held_count;
    }
    if (self->result_count > 0) {
        results = find_results(self, args, argv);
        if (results == NULL) {
            refuse_arguments(self, argv, refused);
            goto done;
        }
        for (uint32_t i = 0; i < self->result_count; ++i)
            argv[passed + i] = PyTuple_GET_ITEM(results, i);
    }
    argv[self->count] = NULL; /* there is no offset provider */
    returned = self->has_owners ? gts_py_call_for_owners(self->program, argv, owners)
                                : gts_py_call_in_order(self->program, argv);
    *refused = returned == NULL && self->program->refused;
    if (returned != NULL && results != NULL)
        Py_SETREF(returned, Py_NewRef(self->is_single ? PyTuple_GET_ITEM(results, 0) : results));
done:
    Py_XDECREF(results);
    while (held_count > 0)
        Py_DECREF(held[--held_count]);
    for (uint32_t i = 0; i < self->count && self->has_owners; ++i)
        Py_XDECREF(owners[i]);
    return returned;
}

/* ---- Making ---------------------------------------------------------------------------------------------------- */

/* Reads a tuple of (root, names, text), or of (root, names, text, value) and (root, names, text, None, same). */
static int set_readings(gts_py_overload *self, PyObject *items, bool have_values, gts_py_reading **readings,
                        uint32_t *count)
{
    const Py_ssize_t length = PyTuple_GET_SIZE(items);
    *readings = PyMem_Calloc((size_t)length + 1, sizeof **readings);
    if (*readings == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < length; ++i) {
        gts_py_reading *const reading = &(*readings)[i];
        reading->same = -1;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(items, i), have_values ? "OO!UO|i:constant" : "OO!U:reading",
                              &reading->root, &PyTuple_Type, &reading->names, &reading->text, &reading->value,
                              &reading->same))
            return -1;
        reading->argument = -1;
        if (PyLong_CheckExact(reading->root))
            reading->argument = (int32_t)PyLong_AsLong(reading->root);
        if (reading->argument == -1 && PyErr_Occurred())
            return -1;
        if (reading->argument >= self->least_arguments)
            self->least_arguments = reading->argument + 1;
        if (reading->same < -1 || reading->same >= (int32_t)self->reading_count)
            return gts_py_fail(PyExc_ValueError, "There is no reading %d.", (int)reading->same);
        ++*count;
    }
    return 0;
}

/* Whether the program has callbacks, and an argument that is an attribute of one of the call. */
static bool finds_owners(const gts_py_overload *self)
{
    bool has_attributes = false;
    for (uint32_t i = 0; i < self->reading_count; ++i)
        has_attributes |= self->readings[i].argument >= 0 && PyTuple_GET_SIZE(self->readings[i].names) > 0;
    return has_attributes && self->program->program->call_back != NULL;
}

/* Reads a tuple of (argument, types, text). */
static int set_exact(gts_py_overload *self, PyObject *items)
{
    const Py_ssize_t length = PyTuple_GET_SIZE(items);
    self->exact = PyMem_Calloc((size_t)length + 1, sizeof *self->exact);
    if (self->exact == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (; self->exact_count < (uint32_t)length; ++self->exact_count) {
        gts_py_exact *const exact = &self->exact[self->exact_count];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(items, self->exact_count), "iO!U:exact", &exact->argument, &PyTuple_Type,
                              &exact->types, &exact->text))
            return -1;
        if (exact->argument < 0)
            return gts_py_fail(PyExc_ValueError, "There is no argument %d.", (int)exact->argument);
        if (exact->argument >= self->least_arguments)
            self->least_arguments = exact->argument + 1;
    }
    return 0;
}

static int set_places(gts_py_overload *self, PyObject *places)
{
    if (PyTuple_GET_SIZE(places) != (Py_ssize_t)(self->count - self->result_count))
        return gts_py_fail(PyExc_ValueError, "Program '%s' has %u parameters, but %zd places and %u results are given.",
                           self->program->program->stub->name, self->count, PyTuple_GET_SIZE(places),
                           self->result_count);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(places); ++i) {
        const long place = PyLong_AsLong(PyTuple_GET_ITEM(places, i));
        if (place == -1 && PyErr_Occurred())
            return -1;
        if (place < -(long)self->reading_count || place > INT16_MAX)
            return gts_py_fail(PyExc_ValueError, "The place %ld is that of no argument and of no reading.", place);
        self->place[i] = (int16_t)place;
        if (place >= self->least_arguments)
            self->least_arguments = (int32_t)place + 1;
    }
    return 0;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"program",  "places", "readings", "constants", "results",
                            "allocate", "out",    "single",   "exact",     NULL};
    gts_py_state *const state = gts_py_find_state(type);
    PyObject *places, *readings, *constants, *allocate = Py_None, *program, *exact = NULL;
    unsigned int results = 0;
    int out = -1, is_single = 0;
    if (state == NULL ||
        !PyArg_ParseTupleAndKeywords(args, keywords, "O!O!O!O!|IOipO!:Overload", names, state->program_type, &program,
                                     &PyTuple_Type, &places, &PyTuple_Type, &readings, &PyTuple_Type, &constants,
                                     &results, &allocate, &out, &is_single, &PyTuple_Type, &exact))
        return NULL;
    gts_py_overload *const self = (gts_py_overload *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->program = (gts_py_program *)program;
    self->count = (uint32_t)PyTuple_GET_SIZE(self->program->parameters);
    self->result_count = results;
    self->allocate = allocate;
    self->out = out;
    self->least_arguments = out + 1;
    self->is_single = is_single;
    self->spec = PyTuple_Pack(6, program, places, readings, constants, allocate, exact == NULL ? Py_None : exact);
    int status = self->spec == NULL ? -1 : 0;
    if (status == 0 && (self->count > GTS_PY_MAX_PARAMETERS || results > self->count || (is_single && results != 1)))
        status = gts_py_fail(PyExc_ValueError, "Program '%s' cannot have %u parameters of which %u are results.",
                             self->program->program->stub->name, self->count, results);
    if (status != 0 || set_readings(self, readings, false, &self->readings, &self->reading_count) != 0 ||
        set_readings(self, constants, true, &self->constants, &self->constant_count) != 0 ||
        set_places(self, places) != 0 || (exact != NULL && set_exact(self, exact) != 0)) {
        Py_DECREF(self);
        return NULL;
    }
    self->has_owners = finds_owners(self);
    return (PyObject *)self;
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    const gts_py_overload *const self = (gts_py_overload *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->spec);
    return 0;
}

static void dealloc(PyObject *object)
{
    gts_py_overload *const self = (gts_py_overload *)object;
    PyTypeObject *const type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    PyMem_Free(self->readings);
    PyMem_Free(self->constants);
    PyMem_Free(self->exact);
    Py_XDECREF(self->spec);
    type->tp_free(object);
    Py_DECREF(type);
}

PyDoc_STRVAR(
    DOC, "Overload(program, places, readings, constants, results=0, allocate=None, out=-1, single=False, exact=())\n"
         "--\n\n"
         "A way to call `program`, a Program. `places` has for each of its parameters but the last `results` "
         "the number of an\n"
         "argument of the call, or -1 - n for reading n. A reading is (root, names, text): the item of a dict, "
         "the content of a\n"
         "cell, or `root` itself, then a step for each name: an attribute, or in a tuple an item, or () the number of "
         "items. A constant has the value that it must equal as well, or None "
         "and the number of\n"
         "the reading whose very object it must be. `exact` has (argument, types, name): the argument must be of "
         "one of these types.\n"
         "Results come from allocate(*others), or from argument `out` of the call; they are returned, as a tuple "
         "or `single`.");

static PyType_Slot SLOTS[] = {
    {Py_tp_doc, (void *)DOC}, {Py_tp_new, make}, {Py_tp_dealloc, dealloc}, {Py_tp_traverse, traverse}, {0, NULL},
};

PyType_Spec gts_py_overload_spec = {
    .name = "gtstub._host.Overload",
    .basicsize = sizeof(gts_py_overload),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = SLOTS,
};
