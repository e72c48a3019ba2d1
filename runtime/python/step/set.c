/* Changes scalars of a bound call, or of all bound calls in a step. */
#include <stdlib.h>

#include "python/step/step.h"

enum { LARGEST = 16 }; /* scalar in bytes */

/* The scalars of a dict, as one program takes them. */
typedef struct scalars {
    PyObject *dict;
    gts_scalar *scalars; /* [count], with their values behind them */
    size_t count;
} scalars;

/* Begins with the keywords of a call of set(). free() frees `scalars`, unless this returns -1. */
static int begin(scalars *self, PyObject *args, PyObject *keywords)
{
    if (PyTuple_GET_SIZE(args) != 0)
        return gts_py_fail(PyExc_TypeError, "set() takes scalars by keyword only.");
    const size_t count = keywords == NULL ? 0 : (size_t)PyDict_GET_SIZE(keywords);
    *self = (scalars){.dict = keywords, .count = count};
    self->scalars = gts_new(count, sizeof *self->scalars + LARGEST);
    Py_ssize_t position = 0;
    PyObject *name;
    for (size_t i = 0; i < count && PyDict_Next(keywords, &position, &name, NULL); ++i) {
        self->scalars[i].argument = PyUnicode_AsUTF8(name);
        self->scalars[i].value = (char *)(self->scalars + count) + i * LARGEST;
        if (self->scalars[i].argument == NULL) {
            free(self->scalars);
            return -1;
        }
    }
    return 0;
}

/* Reads the values of those that a program has. */
static int read_for(const gts_py_program *program, const scalars *self)
{
    const gts_stub *const stub = program->program->stub;
    Py_ssize_t position = 0;
    PyObject *object;
    for (size_t i = 0; i < self->count && PyDict_Next(self->dict, &position, NULL, &object); ++i) {
        gts_scalar *const scalar = &self->scalars[i];
        const int64_t leaf = gts_bound_find(stub, scalar->argument);
        if (leaf < 0 || stub->leaves[leaf].kind != GTS_SCALAR) /* which is refused */
            continue;
        gts_error error;
        gts_py_argument argument = program->leaf[leaf].argument;
        argument.error = &error;
        scalar->dtype = argument.dtype;
        if (gts_py_read_scalar(&argument, object, (void *)(uintptr_t)scalar->value) != 0)
            return gts_py_raise(&error);
    }
    return 0;
}

/* ---- A bound call ---------------------------------------------------------------------------------------------- */

PyObject *gts_py_set_in_call(PyObject *object, PyObject *args, PyObject *keywords)
{
    const gts_py_bound *const self = (gts_py_bound *)object;
    scalars all;
    if (begin(&all, args, keywords) != 0)
        return NULL;
    const gts_program *const program = gts_bound_program(self->call);
    int status = read_for(self->program, &all);
    if (status == 0 && ((program != NULL && gts_py_await(self->program) != 0) ||
                        GTS_PY_WITHOUT_GIL(gts_set_scalars(self->call, all.scalars, all.count)) != 0))
        status = gts_py_raise(gts_last_error(gts_bound_program(self->call)));
    free(all.scalars);
    return status == 0 ? Py_NewRef(Py_None) : NULL;
}

/* ---- A step ---------------------------------------------------------------------------------------------------- */

int gts_py_wait(gts_program *program, int (*act)(void *), void *context)
{
    if (program != NULL)
        GTS_TRY(gts_py_await(gts_py_of(program)));
    return GTS_PY_WITHOUT_GIL(act(context));
}

/* Says where the exception that is set was raised. Returns -1. */
static GTS_COLD int fail_at(const gts_place *place)
{
    PyObject *const exception = PyErr_GetRaisedException();
    const bool gets_message = gts_py_is_refusal(exception);
    PyObject *text = NULL;
    const char *const reason = gets_message ? gts_py_message(exception, &text) : NULL;
    gts_place_refuse(place, GTS_VALUE_ERROR, reason == NULL ? "a scalar could not be read." : reason);
    Py_XDECREF(text);
    gts_py_raise_again(exception, gets_message, gts_last_error(NULL)->message);
    return -1;
}

static int read_at(const gts_place *place, void *all)
{
    const gts_py_bound *const call = gts_position_of(place)->role->data;
    return read_for(call->program, all) == 0 ? 0 : fail_at(place);
}

PyObject *gts_py_set_in_step(PyObject *object, PyObject *args, PyObject *keywords)
{
    gts_step *const step = ((gts_py_step *)object)->step;
    scalars all;
    if (begin(&all, args, keywords) != 0)
        return NULL;
    const int status = gts_step_set(step, all.scalars, all.count, gts_py_wait, read_at, &all);
    free(all.scalars);
    return gts_py_answer(status);
}
