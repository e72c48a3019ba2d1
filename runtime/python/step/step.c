/* The Step type: bound calls and callables that are done in order. */
#include "python/step/step.h"

#include <stdlib.h>

/* ---- Errors ---------------------------------------------------------------------------------------------------- */

/*
 * Says in the exception that is set where the step has stopped. A refusal of a program gets a new message; another
 * exception, such as that of a callable, gets a note.
 */
static GTS_COLD void fail(const gts_py_step *self, size_t position)
{
    PyObject *const exception = PyErr_GetRaisedException();
    const bool gets_message = self->step->positions[position].call != NULL && gts_py_is_refusal(exception);
    PyObject *text = NULL;
    const char *const reason = gets_message ? gts_py_message(exception, &text) : NULL;
    gts_step_fail(self->step, position, GTS_RUNTIME_ERROR, reason != NULL ? reason : "");
    Py_XDECREF(text);
    gts_py_raise_again(exception, gets_message, gts_last_error(NULL)->message);
}

/* ---- Running --------------------------------------------------------------------------------------------------- */

bool gts_py_are_levels_known(const gts_py_step *self)
{
    return self->sampled == NULL || (!self->has_levels && gts_py_is_level_known(self->sampled) &&
                                     self->level == self->sampled->program->metrics_level);
}

int gts_py_act(const gts_position *at)
{
    PyObject *const action = at->role->data;
    if (at->call != NULL)
        return gts_py_start_slowly((gts_py_bound *)action);
    if (Py_EnterRecursiveCall(" in a step") != 0) /* the action may be a step */
        return -1;
    if (gts_binding_here != NULL && at->role->step == NULL) {
        const int status = gts_py_capture_action(at);
        Py_LeaveRecursiveCall();
        return status;
    }
    PyObject *const result = PyObject_CallNoArgs(action);
    Py_LeaveRecursiveCall();
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* gts_step_start_known() without the GIL, unless nobody else can need it. */
static const gts_position *start_known(const void *step, const gts_position *at, const gts_position *end, int *status)
{
    const gts_py_program *const alone = ((const gts_py_step *)step)->alone;
    const bool keeps_gil = at->call == NULL || (alone != NULL && gts_py_is_alone(alone, PyThreadState_Get()));
    PyThreadState *const thread = keeps_gil ? NULL : PyEval_SaveThread();
    at = gts_step_start_known(at, end, status);
    if (thread != NULL)
        PyEval_RestoreThread(thread);
    if (GTS_UNLIKELY(*status < 0))
        gts_py_raise(&((gts_py_bound *)at->role->data)->program->program->error);
    return at;
}

int gts_py_do_slowly(gts_py_step *self, size_t *position, gts_step_act act)
{
    const int status = gts_step_do_timed(self->step, position, act);
    if (status == 0 && self->sampled != NULL)
        self->level = self->sampled->program->metrics_level;
    return status;
}

static PyObject *step_call(PyObject *callable, PyObject *const *Py_UNUSED(args), size_t flagged_given,
                           PyObject *keywords)
{
    gts_py_step *const self = (gts_py_step *)callable;
    if (GTS_UNLIKELY(gts_py_has_arguments(flagged_given, keywords)))
        return PyErr_Format(PyExc_TypeError, "Step '%s' takes no arguments; change scalars with set().",
                            self->step->name);
    if (GTS_UNLIKELY(gts_step_enter(self->step) != 0))
        return gts_py_answer(-1);
    Py_INCREF(callable);
    size_t position;
    const bool is_slow = gts_step_is_timed() || !gts_py_are_levels_known(self);
    const int status = GTS_UNLIKELY(is_slow) ? gts_py_do_slowly(self, &position, gts_py_act)
                                             : gts_step_do(self->step, &position, gts_py_act, start_known, self);
    if (GTS_UNLIKELY(status != 0))
        fail(self, position);
    gts_step_leave(self->step);
    Py_DECREF(callable);
    if (GTS_UNLIKELY(status != 0))
        return NULL;
    Py_RETURN_NONE;
}

/* ---- Making ---------------------------------------------------------------------------------------------------- */

/* Only gts_py_act() runs callables. */
static int run_of_python(void *Py_UNUSED(data))
{
    return -1;
}

static int run_of_action(void *Py_UNUSED(data), void *const *Py_UNUSED(arrays))
{
    return -1;
}

static bool is_step(PyObject *item)
{
    return PyObject_TypeCheck(item, gts_py.step_type);
}

/* Writes the action of a callable; *name keeps the text of its name. */
static int describe_callable(PyObject *callable, gts_action *action, PyObject **name)
{
    if (is_step(callable))
        action->step = ((gts_py_step *)callable)->step;
    else if (Py_IS_TYPE(callable, gts_py.action_type))
        action->array_function = run_of_action;
    else
        action->function = run_of_python;
    if (action->array_function != NULL)
        callable = ((gts_py_action *)callable)->function;
    *name = PyObject_GetAttrString(callable, is_step(callable) ? "__name__" : "__qualname__");
    if (*name == NULL || !PyUnicode_Check(*name)) {
        PyErr_Clear();
        Py_XSETREF(*name, PyUnicode_FromString(Py_TYPE(callable)->tp_name));
    }
    action->name = *name == NULL ? NULL : PyUnicode_AsUTF8(*name);
    return action->name == NULL ? -1 : 0;
}

/* Makes a step of a tuple of actions. */
static int make_step(const char *name, PyObject *items, gts_step **step)
{
    *step = NULL;
    const Py_ssize_t count = PyTuple_GET_SIZE(items);
    gts_action *const actions = gts_new((size_t)count, sizeof *actions);
    PyObject *const names = PyList_New(0);
    int status = names == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; i < count && status == 0; ++i) {
        PyObject *const item = PyTuple_GET_ITEM(items, i);
        actions[i].data = item;
        if (Py_IS_TYPE(item, gts_py.bound_type)) {
            actions[i].call = ((gts_py_bound *)item)->call;
        } else if (PyCallable_Check(item)) {
            PyObject *text;
            status = describe_callable(item, &actions[i], &text);
            if (text != NULL && PyList_Append(names, text) != 0)
                status = -1;
            Py_XDECREF(text);
        } else {
            status = gts_py_fail(PyExc_TypeError,
                                 "Position %zd of step '%s' must be a bound call or callable, not '%s'.", i + 1, name,
                                 Py_TYPE(item)->tp_name);
        }
    }
    if (status == 0 && gts_step_new(name, actions, (size_t)count, step) != 0)
        status = gts_py_raise(gts_last_error(NULL));
    for (Py_ssize_t i = 0; i < count && status == 0; ++i) {
        if (actions[i].array_function != NULL)
            (*step)->positions[i].role->held = ((gts_py_action *)actions[i].data)->held;
    }
    free(actions);
    Py_XDECREF(names);
    return status;
}

/* Whether a step, or a step inside it, has another one as an action. */
static bool contains(const gts_step *self, const gts_step *other)
{
    for (size_t i = 0; i < self->count; ++i) {
        const gts_step *const inner = self->positions[i].role->step;
        if (inner != NULL && (inner == other || contains(inner, other)))
            return true;
    }
    return false;
}

/* What the step must know of its programs before each run. */
static void note_programs(gts_py_step *self)
{
    bool may_keep_gil = true;
    self->alone = self->sampled = NULL;
    self->has_levels = false;
    for (size_t i = 0; i < self->step->count; ++i) {
        if (self->step->positions[i].call == NULL)
            continue;
        gts_py_program *const program = ((gts_py_bound *)PyTuple_GET_ITEM(self->actions, (Py_ssize_t)i))->program;
        may_keep_gil = may_keep_gil && program->may_keep_gil;
        self->alone = program;
        if (program->metrics.namespace == NULL)
            continue;
        if (self->sampled == NULL)
            self->sampled = program;
        const gts_py_metrics *const first = &self->sampled->metrics, *const each = &program->metrics;
        self->has_levels |= first->namespace != each->namespace || first->threshold != each->threshold ||
                            first->key != each->key;
    }
    if (!may_keep_gil)
        self->alone = NULL;
    self->level = -1;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"actions", "name", NULL};
    PyObject *actions;
    const char *name = "step";
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|s:Step", names, &actions, &name))
        return NULL;
    gts_py_step *const self = (gts_py_step *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = step_call;
    self->actions = PySequence_Tuple(actions);
    if (self->actions == NULL || make_step(name, self->actions, &self->step) != 0) {
        Py_DECREF(self);
        return NULL;
    }
    self->step->owner = self;
    note_programs(self);
    return (PyObject *)self;
}

/* There is no Py_tp_clear, because a finalizer may still run the step: its actions break the cycles they are part of. */
static int step_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((gts_py_step *)object)->actions);
    return 0;
}

static void step_dealloc(PyObject *object)
{
    gts_py_step *const self = (gts_py_step *)object;
    PyObject_GC_UnTrack(object);
    PyObject_ClearWeakRefs(object);
    gts_step_free(&self->step);
    Py_XDECREF(self->actions);
    gts_py_free(object);
}

/* ---- Attributes ------------------------------------------------------------------------------------------------ */

static PyObject *get_name(PyObject *object, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(((gts_py_step *)object)->step->name);
}

static PyObject *repr(PyObject *object)
{
    const gts_py_step *const self = (gts_py_step *)object;
    return PyUnicode_FromFormat("<gtstub step '%s' (%zu position%s)>", self->step->name, self->step->count,
                                self->step->count == 1 ? "" : "s");
}

static Py_ssize_t length(PyObject *object)
{
    return PyTuple_GET_SIZE(((gts_py_step *)object)->actions);
}

static PyObject *item(PyObject *object, Py_ssize_t index)
{
    return PySequence_GetItem(((gts_py_step *)object)->actions, index);
}

static PyObject *get_actions(PyObject *object, void *Py_UNUSED(closure))
{
    return Py_NewRef(((gts_py_step *)object)->actions);
}

static int set_actions(PyObject *object, PyObject *value, void *Py_UNUSED(closure))
{
    gts_py_step *const self = (gts_py_step *)object;
    if (value == NULL)
        return gts_py_fail(PyExc_AttributeError, "Attribute 'actions' cannot be deleted.");
    PyObject *const actions = PySequence_Tuple(value);
    if (actions == NULL)
        return -1;
    gts_step *step;
    if (gts_step_enter(self->step) != 0) { /* the names of the actions are attributes, which run code of users */
        Py_DECREF(actions);
        return gts_py_raise(gts_last_error(NULL));
    }
    int status = make_step(self->step->name, actions, &step);
    if (status == 0 && contains(step, self->step))
        status = gts_py_fail(PyExc_ValueError, "Step '%s' cannot have these actions: it would contain itself.",
                             self->step->name);
    PyObject *old_actions = actions;
    if (status == 0) {
        gts_step_exchange(self->step, step);
        old_actions = self->actions;
        self->actions = actions;
        note_programs(self);
    }
    gts_step_leave(self->step);
    gts_step_free(&step);
    Py_DECREF(old_actions); /* the last, because a finalizer may run the step */
    return status;
}

static PyGetSetDef ATTRIBUTES[] = {
    {"actions", get_actions, set_actions, "The bound calls and callables; others can be set.", NULL},
    {"__name__", get_name, NULL, "Name of the step in messages and profiles.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef MEMBERS[] = {
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(gts_py_step, vectorcall), Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef METHODS[] = {
    {"set", (PyCFunction)(void (*)(void))gts_py_set_in_step, METH_VARARGS | METH_KEYWORDS,
     "set($self, /, **scalars)\n--\n\nChanges scalars in all bound calls that have them, also in those of steps inside "
     "the step: all, or none after an error."},
    {"swap", (PyCFunction)(void (*)(void))gts_py_swap_in_step, METH_FASTCALL,
     "swap($self, /, *arrays)\n--\n\nExchanges the arrays of each pair in all bound calls and actions, also in those "
     "of steps inside the\nstep, as models do with time levels: swap(a, b) or swap(a, b, c, d). An array is known by "
     "its memory. All\nare exchanged, or none after an error."},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(DOC, "Step(actions, name='step')\n--\n\n"
                  "Bound calls and callables that are done in order by one call. Programs run without the GIL; it is "
                  "released once for\n"
                  "each stretch of them. A callable takes no arguments, and its result is ignored.");

static PyType_Slot SLOTS[] = {
    {Py_tp_doc, (void *)DOC},
    {Py_tp_new, make},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_dealloc, step_dealloc},
    {Py_tp_traverse, step_traverse},
    {Py_tp_repr, repr},
    {Py_tp_getset, ATTRIBUTES},
    {Py_tp_members, MEMBERS},
    {Py_tp_methods, METHODS},
    {Py_sq_length, length},
    {Py_sq_item, item},
    {0, NULL},
};

PyType_Spec gts_py_step_spec = GTS_PY_SPEC("Step", gts_py_step, GTS_PY_CALLED | Py_TPFLAGS_BASETYPE);
