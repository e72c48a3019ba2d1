/* Binding and capturing: what this thread calls becomes bound calls. */
#include <stdlib.h>

#include "gtstub/stub.h"
#include "python/step/step.h"

/* What a thread binds. */
typedef struct capture {
    gts_binding binding; /* the first member */
    PyObject *calls;     /* list of bound calls, and of other actions of steps; NULL after another thread freed it */
    PyObject *look;      /* is called before each of them; or NULL */
    bool has_ended;
} capture;

#define CAPSULE "gtstub.capture"

PyObject *gts_py_binding(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    const gts_binding *const binding = gts_innermost_callback != NULL ? NULL : gts_binding_here;
    if (binding == NULL)
        Py_RETURN_NONE;
    return PyUnicode_FromString(binding->bind != NULL ? "bind" : "capture");
}

PyObject *gts_py_calls_elsewhere(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyLong_FromSsize_t(gts_py_elsewhere);
}

/* Passes the number of the actions that have ended to what looks at arrays. */
static int look_before(gts_binding *binding)
{
    const capture *const here = (capture *)binding;
    if (here->calls == NULL || gts_innermost_callback != NULL)
        return 0;
    PyObject *const look = Py_NewRef(here->look);
    PyObject *const result = PyObject_CallFunction(look, "n", PyList_GET_SIZE(here->calls));
    Py_DECREF(look);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* Adds the call that has ended to the calls that this thread binds. */
static int add_bound(gts_binding *binding, gts_program *program)
{
    capture *const here = (capture *)binding;
    if (here->calls == NULL || gts_innermost_callback != NULL) /* a callback calls again by itself */
        return 0;
    PyObject *const call = gts_py_bound_new(gts_py_of(program));
    const int status = call == NULL ? -1 : PyList_Append(here->calls, call);
    Py_XDECREF(call);
    return status;
}

void gts_py_check_bound(const gts_py_program *self, int (*check)(PyObject *, bool), PyObject *checked)
{
    const capture *const here = (capture *)gts_binding_here;
    const Py_ssize_t count = here == NULL || here->calls == NULL ? 0 : PyList_GET_SIZE(here->calls);
    gts_py_bound *const last = count == 0 ? NULL : (gts_py_bound *)PyList_GET_ITEM(here->calls, count - 1);
    if (last == NULL || !Py_IS_TYPE(last, gts_py.bound_type) || last->program != self || last->check != NULL ||
        gts_innermost_callback != NULL) {
        Py_DECREF(checked);
        return;
    }
    last->check = check;
    last->checked = checked;
    last->call->needs_host = true;
}

int gts_py_capture_action(const gts_position *at)
{
    gts_binding *const binding = gts_binding_here;
    capture *const here = (capture *)binding;
    PyObject *const action = at->role->data;
    const bool is_captured = binding->bind == NULL && here->calls != NULL && gts_innermost_callback == NULL;
    if (is_captured && binding->before != NULL && binding->before(binding) != 0)
        return -1;
    /* As it is now: its arrays may be swapped before the capture ends. */
    PyObject *const captured = at->role->array_function != NULL ? gts_py_action_copy(action) : Py_NewRef(action);
    if (captured == NULL)
        return -1;
    const bool is_inner = gts_py_is_in_action;
    if (is_captured) {
        gts_binding_here = NULL; /* the programs that the action calls are its own */
        gts_py_is_in_action = true;
    }
    PyObject *const result = PyObject_CallNoArgs(captured);
    if (is_captured) {
        gts_binding_here = binding;
        gts_py_is_in_action = is_inner;
    }
    int status = result == NULL ? -1 : 0;
    if (status == 0 && is_captured && here->calls != NULL)
        status = PyList_Append(here->calls, captured);
    Py_XDECREF(result);
    Py_DECREF(captured);
    return status;
}

/* ---- Binding --------------------------------------------------------------------------------------------------- */

static int run_nothing(gts_binding *Py_UNUSED(binding), gts_program *Py_UNUSED(program))
{
    return 0;
}

PyObject *gts_py_bind_program(PyObject *callable, PyObject *args, PyObject *keywords)
{
    capture here = {.binding = {.bind = run_nothing, .after = add_bound}, .calls = PyList_New(0)};
    if (here.calls == NULL)
        return NULL;
    gts_binding_begin(&here.binding);
    PyObject *const result = PyObject_Call(callable, args, keywords);
    gts_binding_end(&here.binding);
    PyObject *call = NULL;
    const Py_ssize_t count = PyList_GET_SIZE(here.calls);
    if (result != NULL && count == 1)
        call = Py_NewRef(PyList_GET_ITEM(here.calls, 0));
    else if (result != NULL)
        PyErr_Format(PyExc_TypeError, "%R cannot be bound: it has called %zd programs of gtstub, not one.", callable,
                     count);
    Py_XDECREF(result);
    Py_DECREF(here.calls);
    return call;
}

PyObject *gts_py_bind(PyObject *Py_UNUSED(module), PyObject *args, PyObject *keywords)
{
    if (PyTuple_GET_SIZE(args) == 0)
        return PyErr_Format(PyExc_TypeError, "bind() needs a callable.");
    PyObject *const rest = PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args));
    PyObject *const call = rest == NULL ? NULL : gts_py_bind_program(PyTuple_GET_ITEM(args, 0), rest, keywords);
    Py_XDECREF(rest);
    return call;
}

/* ---- Capturing ------------------------------------------------------------------------------------------------- */

static void end(capture *self)
{
    gts_binding_end(&self->binding);
    --gts_py_captures;
    self->has_ended = true;
}

/* The memory of a capture that another thread frees stays, because its own thread still has it. */
static void free_capsule(PyObject *capsule)
{
    capture *const self = PyCapsule_GetPointer(capsule, CAPSULE);
    if (gts_binding_here == &self->binding)
        end(self);
    Py_CLEAR(self->calls);
    Py_CLEAR(self->look);
    if (self->has_ended)
        free(self);
}

/* Ends a capture of this thread that another one has freed. */
static void end_freed(void)
{
    capture *const self = (capture *)gts_binding_here;
    if (self == NULL || self->binding.bind != NULL || self->calls != NULL)
        return;
    end(self);
    free(self);
}

PyObject *gts_py_begin_capture(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *look = Py_None;
    if (!PyArg_ParseTuple(args, "|O:begin_capture", &look))
        return NULL;
    end_freed();
    if (gts_binding_here != NULL)
        return PyErr_Format(PyExc_RuntimeError, "A capture cannot begin inside another one.");
    capture *const self = gts_new(1, sizeof *self);
    self->binding.after = add_bound;
    self->calls = PyList_New(0);
    if (look != Py_None) {
        self->binding.before = look_before;
        self->look = Py_NewRef(look);
    }
    PyObject *const capsule = self->calls == NULL ? NULL : PyCapsule_New(self, CAPSULE, free_capsule);
    if (capsule == NULL) {
        Py_XDECREF(self->calls);
        Py_XDECREF(self->look);
        free(self);
        return NULL;
    }
    gts_binding_begin(&self->binding);
    ++gts_py_captures;
    return capsule;
}

PyObject *gts_py_end_capture(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    capture *const self = PyCapsule_GetPointer(capsule, CAPSULE);
    if (self == NULL)
        return NULL;
    if (gts_binding_here != &self->binding)
        return PyErr_Format(PyExc_RuntimeError, "A capture must end in the thread in which it began.");
    end(self);
    if (self->binding.generation != gts_forks)
        return PyErr_Format(PyExc_RuntimeError, "A capture must end in the process in which it began.");
    return Py_NewRef(self->calls);
}
