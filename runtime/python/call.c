/* Calls a program: enters it, binds and converts the arguments, runs the SDFG, and leaves. */
#include "gtstub/stub.h"
#include "program/bound.h"
#include "python/host.h"

const gts_host gts_py_host = {
    .field = gts_py_field,
    .zero_dim_field = gts_py_zero_dim_field,
    .scalar = gts_py_scalar,
    .static_scalar = gts_py_static_scalar,
    .callback = gts_py_callback,
    .tuple = gts_py_tuple,
    .collection = gts_py_collection,
    .connectivity = gts_py_connectivity,
    .remember_provider = gts_py_remember_provider,
};

static GTS_NOINLINE int run_without_gil(const gts_py_program *self)
{
    return GTS_PY_WITHOUT_GIL(gts_call_run(self->program, self->run)); /* callbacks in this thread take it meanwhile */
}

static inline int run(const gts_py_program *self)
{
    return GTS_LIKELY(gts_py_is_alone(self, self->caller)) ? gts_call_run(self->program, self->run)
                                                           : run_without_gil(self);
}

/* Whether a call has the form of gt4py's calls: then its arguments have the order that the stub expects. */
static bool is_in_order(const gts_py_program *self, Py_ssize_t given, PyObject *keywords)
{
    return given == self->parameter_count && keywords != NULL && PyTuple_GET_SIZE(keywords) == 1 &&
           PyTuple_GET_ITEM(keywords, 0) == self->provider_keyword;
}

int gts_py_convert(gts_py_program *self, PyObject *const *argv)
{
    if (GTS_UNLIKELY(self->reads_metrics_level) && gts_py_read_metrics_level(self) != 0)
        return -1;
    return self->convert(self->program, &gts_py_host, (void *const *)argv);
}

/* After a call that had extra work: what binding and debugging want. */
static GTS_COLD int after_extra_work(gts_py_program *self, int status)
{
    gts_binding *const binding = gts_binding_here;
    if (status == 0 && binding != NULL && binding->after != NULL)
        status = binding->after(binding, self->program);
    if (self->program->debug)
        gts_forget_objects(self->program); /* so that the next call reads every field again */
    return status;
}

/* Runs the SDFG unless `status`, that of the conversion, is an error; leaves. `for_owners`: self->owned was set. */
static inline GTS_ALWAYS_INLINE PyObject *complete(gts_py_program *self, int status, bool for_owners)
{
    gts_program *const program = self->program;
    const bool is_converted = status == 0;
    if (GTS_LIKELY(is_converted))
        status = run(self);
    if (GTS_UNLIKELY(status != 0)) {
        self->refused = !is_converted;
        if (self->callback_error != NULL) {
            PyErr_SetRaisedException(self->callback_error);
            self->callback_error = NULL;
        }
        gts_py_raise(&program->error);
    }
    if (GTS_UNLIKELY(program->has_extra_work))
        status = after_extra_work(self, status);
    const bool wants_sample = self->wants_sample;
    const double compute_time = wants_sample ? program->compute_time : 0;
    if (for_owners)
        self->owned = (gts_py_owned){NULL, NULL};
    gts_py_leave(self);
    if (GTS_UNLIKELY(status != 0))
        return NULL;
    if (GTS_UNLIKELY(wants_sample))
        return gts_py_sample(self, compute_time);
    Py_RETURN_NONE;
}

PyObject *gts_py_complete(gts_py_program *self, int status)
{
    return complete(self, status, false);
}

PyObject *gts_py_call_in_order(gts_py_program *self, PyObject *const *argv)
{
    return GTS_UNLIKELY(gts_py_enter(self) != 0) ? NULL : complete(self, gts_py_convert(self, argv), false);
}

PyObject *gts_py_call_for_owners(gts_py_program *self, PyObject *const *argv, PyObject *const *owners)
{
    if (GTS_UNLIKELY(gts_py_enter(self) != 0))
        return NULL;
    self->owned = (gts_py_owned){argv, owners};
    return complete(self, gts_py_convert(self, argv), true);
}

/* Fills self->argv with the arguments in the order of the parameters, then the offset provider, or raises. */
static GTS_NOINLINE int bind_arguments(gts_py_program *self, PyObject *const *args, Py_ssize_t given,
                                       PyObject *keywords)
{
    const gts_py_signature signature = {.function = self->program->stub->name,
                                        .parameters = self->parameters,
                                        .needs_provider = self->needs_offset_provider};
    if (gts_py_match(&signature, given, keywords, self->source) != 0)
        return -1;
    for (uint32_t i = 0; i <= self->parameter_count; ++i)
        self->argv[i] = self->source[i] < 0 ? NULL : args[self->source[i]];
    return 0;
}

PyObject *gts_py_call(PyObject *callable, PyObject *const *args, size_t flagged_given, PyObject *keywords)
{
    gts_py_program *const self = (gts_py_program *)callable;
    const Py_ssize_t given = PyVectorcall_NARGS(flagged_given);
    if (GTS_LIKELY(is_in_order(self, given, keywords)))
        return gts_py_call_in_order(self, args);
    if (GTS_UNLIKELY(gts_py_enter(self) != 0))
        return NULL;
    const int status = bind_arguments(self, args, given, keywords);
    return complete(self, status == 0 ? gts_py_convert(self, self->argv) : status, false);
}
