/* The Overload type: it completes the arguments of a call, and calls a Program. */
#include <stdlib.h>

#include "python/dispatch/overloads.h"
#include "python/step/step.h"

/* ---- Checking types -------------------------------------------------------------------------------------------- */

static int check_type(const gts_py_overload *self, const gts_py_exact *exact, PyObject *const *args)
{
    PyObject *const found = args[exact->argument];
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(exact->types); ++i) {
        if (GTS_LIKELY((PyObject *)Py_TYPE(found) == PyTuple_GET_ITEM(exact->types, i)))
            return 0;
    }
    return gts_py_fail(PyExc_TypeError, "Program '%s' was compiled for another type of '%U' than '%s'.",
                       self->program->program->stub->name, exact->text, Py_TYPE(found)->tp_name);
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
    PyErr_Format(PyExc_TypeError, "Argument 'out' of program '%s' must be a tuple of %u array%s.",
                 self->program->program->stub->name, self->result_count, self->result_count == 1 ? "" : "s");
    Py_DECREF(results);
    return NULL;
}

/*
 * After no results could be made for the arguments before them, probably because these are not as the program takes
 * them: the program says so in better words, and *refused says so. Otherwise, the exception stays.
 */
static GTS_COLD void refuse_arguments(const gts_py_overload *self, PyObject **argv, gts_py_refusal *refused)
{
    if (self->out >= 0 || PyErr_ExceptionMatches(PyExc_MemoryError))
        return;
    PyObject *const error = PyErr_GetRaisedException();
    for (uint32_t i = self->count - self->result_count; i < self->count; ++i)
        argv[i] = Py_None;
    argv[self->count] = NULL;
    PyObject *const returned = gts_py_call_in_order(self->program, argv);
    *refused = returned == NULL && self->program->refused ? GTS_PY_REFUSED : GTS_PY_NOT_REFUSED;
    Py_XDECREF(returned);
    if (returned == NULL)
        Py_DECREF(error);
    else
        PyErr_SetRaisedException(error);
}

/* ---- Calling --------------------------------------------------------------------------------------------------- */

static int check_constants(const gts_py_overload *self, PyObject *const *args, gts_py_refusal *refused)
{
    for (uint32_t i = 0; i < self->constant_count; ++i) {
        if (GTS_UNLIKELY(gts_py_check_constant(self, &self->constants[i], args, refused) != 0))
            return -1;
    }
    return 0;
}

/* After a ValueError about a constant that is another one now: says that the call has gone on with the old one. */
static GTS_COLD int refuse_callback(const gts_py_overload *self)
{
    PyObject *const change = PyErr_GetRaisedException();
    if (!PyErr_GivenExceptionMatches(change, PyExc_ValueError)) { /* of the user's code, which was read */
        PyErr_SetRaisedException(change);
        return -1;
    }
    PyErr_Format(
        PyExc_RuntimeError,
        "A callback of program '%s' has changed what was compiled in; the call has gone on with the old value. %S",
        self->program->program->stub->name, change);
    PyObject *const error = PyErr_GetRaisedException();
    PyException_SetCause(error, change);
    PyErr_SetRaisedException(error);
    return -1;
}

/* Checks the constants once more after a call, whose callbacks may have changed them. */
static int check_changed(const gts_py_overload *self, PyObject *const *args)
{
    gts_py_refusal refused;
    return GTS_LIKELY(check_constants(self, args, &refused) == 0) ? 0 : refuse_callback(self);
}

/* Checks, for a bound call, the constants of the call that it was made of: a tuple of the overload and the arguments. */
static int check_bound(PyObject *checked, bool has_run)
{
    PyObject *const *const items = ((PyTupleObject *)checked)->ob_item;
    const gts_py_overload *const self = (const gts_py_overload *)items[0];
    gts_py_refusal refused;
    return has_run ? check_changed(self, items + 1) : check_constants(self, items + 1, &refused);
}

/* After a call that may have been bound: each start of the bound call is to check the constants, too. */
static GTS_COLD int add_check(gts_py_overload *self, PyObject *const *args)
{
    PyObject *const checked = PyTuple_New(1 + self->least_arguments);
    if (checked == NULL)
        return -1;
    PyTuple_SET_ITEM(checked, 0, Py_NewRef((PyObject *)self));
    for (int32_t i = 0; i < self->least_arguments; ++i)
        PyTuple_SET_ITEM(checked, 1 + i, Py_NewRef(args[i]));
    gts_py_check_bound(self->program, check_bound, checked);
    return 0;
}

static PyObject *call_with_callbacks(const gts_py_overload *self, PyObject *const *args, PyObject **argv,
                                     PyObject **owners)
{
    PyObject *returned = self->has_owners ? gts_py_call_for_owners(self->program, argv, owners)
                                          : gts_py_call_in_order(self->program, argv);
    if (returned != NULL && check_changed(self, args) != 0) {
        self->program->refused = false; /* that of an earlier call: this one has run */
        Py_CLEAR(returned);
    }
    return returned;
}

PyObject *gts_py_call_overload(gts_py_overload *self, PyObject *const *args, gts_py_refusal *refused)
{
    PyObject *argv[GTS_PY_MAX_PARAMETERS + 1], *held[GTS_PY_MAX_PARAMETERS], *owners[GTS_PY_MAX_PARAMETERS];
    PyObject *results = NULL, *returned = NULL;
    uint32_t held_count = 0;
    *refused = GTS_PY_NOT_REFUSED;
    for (uint32_t i = 0; i < self->count && self->has_owners; ++i)
        owners[i] = NULL;
    if (GTS_UNLIKELY(check_constants(self, args, refused) != 0))
        return NULL;
    for (uint32_t i = 0; i < self->exact_count; ++i) {
        if (GTS_UNLIKELY(check_type(self, &self->exact[i], args) != 0)) {
            *refused = GTS_PY_REFUSED;
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
        argv[i] = held[held_count] = gts_py_read(self, reading, args,
                                                 self->has_owners && reading->argument >= 0 ? &owners[i] : NULL);
        if (GTS_UNLIKELY(argv[i] == NULL)) {
            *refused = gts_py_refusal_of(reading); /* an argument of another type, or nothing is there any more */
            goto done;
        }
        ++held_count;
    }
    if (held_count > 1 && GTS_UNLIKELY(gts_py_check_distinct(self, argv) != 0)) {
        *refused = GTS_PY_CHANGED;
        goto done;
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
    returned = self->has_callbacks ? call_with_callbacks(self, args, argv, owners)
                                   : gts_py_call_in_order(self->program, argv);
    *refused = returned == NULL && self->program->refused ? GTS_PY_REFUSED : GTS_PY_NOT_REFUSED;
    if (GTS_UNLIKELY(gts_binding_here != NULL) && returned != NULL && self->constant_count > 0 &&
        add_check(self, args) != 0)
        Py_CLEAR(returned);
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

GTS_COLD PyObject *gts_py_call_converted(gts_py_overload *self, PyObject *const *args, Py_ssize_t count)
{
    if (self->convert == Py_None)
        return NULL;
    PyObject *const error = PyErr_GetRaisedException();
    PyObject *const refused = PyTuple_New(count);
    PyObject *converted = NULL, *returned = NULL;
    for (Py_ssize_t i = 0; refused != NULL && i < count; ++i)
        PyTuple_SET_ITEM(refused, i, Py_NewRef(args[i]));
    if (refused != NULL)
        converted = PyObject_CallFunctionObjArgs(self->convert, refused, gts_binding_here == NULL ? Py_False : Py_True,
                                                 NULL);
    if (converted != NULL && PyTuple_CheckExact(converted) && PyTuple_GET_SIZE(converted) == count) {
        gts_py_refusal is_refused;
        returned = gts_py_call_overload(self, ((PyTupleObject *)converted)->ob_item, &is_refused);
    } else if (converted != NULL) { /* None */
        PyErr_SetRaisedException(Py_NewRef(error));
    }
    Py_XDECREF(converted);
    Py_XDECREF(refused);
    Py_DECREF(error);
    return returned;
}

/* ---- Making ---------------------------------------------------------------------------------------------------- */

/* Reads a tuple of (argument, types, text). */
static int set_exact(gts_py_overload *self, PyObject *items)
{
    const Py_ssize_t length = PyTuple_GET_SIZE(items);
    self->exact = gts_new((size_t)length, sizeof *self->exact);
    for (; self->exact_count < (uint32_t)length; ++self->exact_count) {
        gts_py_exact *const exact = &self->exact[self->exact_count];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(items, self->exact_count), "iO!U:exact", &exact->argument, &PyTuple_Type,
                              &exact->types, &exact->text) ||
            gts_py_need_argument(self, exact->argument) != 0)
            return -1;
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
        if (place >= 0 && gts_py_need_argument(self, place) != 0)
            return -1;
    }
    return 0;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"program", "places", "readings", "constants", "results",    "allocate", "out",
                            "single",  "exact",  "convert",  "advice",    "recompiles", NULL};
    PyObject *places, *readings, *constants, *program;
    PyObject *allocate = Py_None, *exact = NULL, *convert = Py_None, *advice = NULL;
    unsigned int results = 0;
    int out = -1, is_single = 0, recompiles = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!O!O!|$IOipO!OUp:Overload", names, gts_py.program_type,
                                     &program, &PyTuple_Type, &places, &PyTuple_Type, &readings, &PyTuple_Type,
                                     &constants, &results, &allocate, &out, &is_single, &PyTuple_Type, &exact, &convert,
                                     &advice, &recompiles))
        return NULL;
    gts_py_overload *const self = (gts_py_overload *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->program = (gts_py_program *)program;
    self->count = (uint32_t)PyTuple_GET_SIZE(self->program->parameters);
    self->result_count = results;
    self->allocate = allocate;
    self->convert = convert;
    self->out = out;
    self->least_arguments = out + 1;
    self->is_single = is_single;
    self->advice = advice;
    self->recompiles = recompiles;
    self->spec = PyTuple_Pack(8, program, places, readings, constants, allocate, convert,
                              exact == NULL ? Py_None : exact, advice == NULL ? Py_None : advice);
    int status = self->spec == NULL ? -1 : 0;
    if (status == 0 && (self->count > GTS_PY_MAX_PARAMETERS || results > self->count || (is_single && results != 1)))
        status = gts_py_fail(PyExc_ValueError, "Program '%s' cannot have %u parameters of which %u are results.",
                             self->program->program->stub->name, self->count, results);
    if (status != 0 || gts_py_set_readings(self, readings, false, &self->readings, &self->reading_count) != 0 ||
        gts_py_set_readings(self, constants, true, &self->constants, &self->constant_count) != 0 ||
        set_places(self, places) != 0 || (exact != NULL && set_exact(self, exact) != 0)) {
        Py_DECREF(self);
        return NULL;
    }
    self->has_callbacks = self->program->program->call_back != NULL;
    for (uint32_t i = 0; i < self->reading_count && self->has_callbacks; ++i) /* of an attribute of an argument */
        self->has_owners |= self->readings[i].argument >= 0 && PyTuple_GET_SIZE(self->readings[i].names) > 0;
    return (PyObject *)self;
}

static int overload_traverse(PyObject *object, visitproc visit, void *arg)
{
    const gts_py_overload *const self = (gts_py_overload *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->spec);
    return 0;
}

static void overload_dealloc(PyObject *object)
{
    gts_py_overload *const self = (gts_py_overload *)object;
    PyObject_GC_UnTrack(object);
    free(self->readings);
    free(self->constants);
    free(self->exact);
    Py_XDECREF(self->spec);
    gts_py_free(object);
}

PyDoc_STRVAR(
    DOC,
    "Overload(program, places, readings, constants, *, results=0, allocate=None, out=-1, single=False, exact=(), "
    "convert=None, advice=None, recompiles=False)\n--\n\n"
    "How calls of one form call `program`, a Program.\n\n"
    "places      For each of its parameters but the last `results`: the number of an argument of the call, or\n"
    "            -1 - n for reading n.\n"
    "readings    (root, names, text[, is_distinct]): what a call reads, and how its user writes it. The item of a\n"
    "            dict, the content of a cell, argument `root` if it is an int, what a function returns if it is\n"
    "            (function, arguments), or `root` itself; from there a step for each name: an attribute, (index,)\n"
    "            for an item, () for the number of items. Arrays that are distinct must be different ones.\n"
    "constants   (root, names, text, value[, same]): what was compiled in, and must equal `value`. If `same` is the\n"
    "            number of a reading, it must be the very object of that; if it is -2, the very `value`.\n"
    "allocate    allocate(*others) returns a tuple of the results.\n"
    "out         The argument of the call that has the results instead, or -1.\n"
    "single      Whether a call returns the only result instead of a tuple.\n"
    "exact       (argument, types, name): the argument must be of one of these types.\n"
    "convert     convert(arguments, is_bound) returns those with which the program is called once more after it\n"
    "            has refused the arguments, or None.\n"
    "advice      What an error says to do if a constant has changed.\n"
    "recompiles  Whether the call chooses again then.");

static PyType_Slot SLOTS[] = {
    {Py_tp_doc, (void *)DOC},
    {Py_tp_new, make},
    {Py_tp_dealloc, overload_dealloc},
    {Py_tp_traverse, overload_traverse},
    {0, NULL},
};

PyType_Spec gts_py_overload_spec = GTS_PY_SPEC("Overload", gts_py_overload, 0);
