/* Calls a program: enters it, binds and converts the arguments, runs the SDFG, and leaves. */
#include "python/host.h"

static const gts_host HOST = {
    .none_object = Py_None,
    .field = gts_py_field,
    .zero_dim_field = gts_py_zero_dim_field,
    .scalar = gts_py_scalar,
    .static_scalar = gts_py_static_scalar,
    .callback = gts_py_callback,
    .tuple = gts_py_tuple,
    .collection = gts_py_collection,
    .connectivity = gts_py_connectivity,
};

static GTS_COLD void forget_all(gts_program *program)
{
    for (uint32_t i = 0; i < program->stub->leaf_count; ++i) {
        gts_forget(&program->leaf[i].remembered[0]);
        gts_forget(&program->leaf[i].remembered[1]);
    }
}

/*
 * Whether no other thread can need the GIL while the SDFG runs: there is no other Python thread, and no thread of a
 * device or of OpenMP that could become one by calling Python. Releasing and taking the GIL costs as much as the rest of
 * a call.
 */
static bool is_alone(const gts_py_program *self)
{
    return self->may_keep_gil && PyInterpreterState_ThreadHead(self->interpreter) == self->caller &&
           PyThreadState_Next(self->caller) == NULL;
}

static int run(const gts_py_program *self)
{
    if (is_alone(self))
        return gts_run(self->program);
    PyThreadState *const thread = PyEval_SaveThread();
    const int status = gts_run(self->program); /* callbacks in this thread take the GIL meanwhile */
    PyEval_RestoreThread(thread);
    return status;
}

/* Whether a call has the form of gt4py's calls: then its arguments have the order that the stub expects. */
static bool is_in_order(const gts_py_program *self, Py_ssize_t given, PyObject *keywords)
{
    return given == PyTuple_GET_SIZE(self->parameters) && keywords != NULL && PyTuple_GET_SIZE(keywords) == 1 &&
           PyTuple_GET_ITEM(keywords, 0) == self->state->name.offset_provider;
}

static int convert(gts_py_program *self, PyObject *const *argv)
{
    if (self->metrics.namespace != NULL && gts_py_read_metrics_level(self) != 0)
        return -1;
    return self->program->stub->convert(self->program, &HOST, (void *const *)argv);
}

/* Converts the arguments, runs the SDFG and leaves. `bound` is the status of binding the arguments. */
static PyObject *finish(gts_py_program *self, int bound, PyObject *const *argv)
{
    gts_program *const program = self->program;
    int status = bound == 0 ? convert(self, argv) : bound;
    const bool is_converted = status == 0;
    if (GTS_LIKELY(is_converted))
        status = run(self);
    if (GTS_UNLIKELY(status != 0)) {
        self->refused = !is_converted;
        if (self->callback_error != NULL) {
            PyErr_SetRaisedException(self->callback_error);
            self->callback_error = NULL;
        }
        (void)gts_py_raise(&program->error);
    }
    if (GTS_UNLIKELY(program->debug))
        forget_all(program); /* so that the next call reads every field again */
    const double compute_time = program->compute_time;
    const bool wants_sample = self->metrics.sample != NULL && program->metrics_level >= self->metrics.threshold;
    gts_py_leave(self);
    if (GTS_UNLIKELY(status != 0))
        return NULL;
    if (GTS_UNLIKELY(wants_sample))
        return gts_py_sample(self, compute_time);
    Py_RETURN_NONE;
}

PyObject *gts_py_call_in_order(gts_py_program *self, PyObject *const *argv)
{
    return GTS_UNLIKELY(gts_py_enter(self) != 0) ? NULL : finish(self, 0, argv);
}

PyObject *gts_py_call(PyObject *callable, PyObject *const *args, size_t flagged_given, PyObject *keywords)
{
    gts_py_program *const self = (gts_py_program *)callable;
    const Py_ssize_t given = PyVectorcall_NARGS(flagged_given);
    if (GTS_LIKELY(is_in_order(self, given, keywords)))
        return gts_py_call_in_order(self, args);
    if (GTS_UNLIKELY(gts_py_enter(self) != 0))
        return NULL;
    const int bound = gts_py_bind_any(self, args, given, keywords);
    return finish(self, bound, (PyObject *const *)self->argv);
}
