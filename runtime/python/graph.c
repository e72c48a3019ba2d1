/* Graphs of captured calls: what Step.as_graph() returns holds one in a capsule. */
#include "python/host.h"

#define CAPSULE "gtstub.graph"

static gts_graph *graph_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, CAPSULE);
}

/* Tells the runtime which programs this thread is calling, or takes that back. */
static void note_calls(const PyThreadState *thread, bool are_called)
{
    for (const gts_py_program *program = gts_py_programs; program != NULL; program = program->next) {
        if (program->caller == thread)
            gts_stream_called_here(program->program, are_called);
    }
}

/*
 * Without the GIL, because the end of a capture waits for calls, which may be waiting for the GIL. It does not wait for
 * the calls of this thread, one of whose arguments may be what frees the graph.
 */
static void free_capsule(PyObject *capsule)
{
    gts_graph *graph = graph_of(capsule);
    note_calls(PyThreadState_Get(), true);
    PyThreadState *const thread = PyEval_SaveThread();
    gts_graph_free(&graph);
    PyEval_RestoreThread(thread);
    note_calls(thread, false);
}

PyObject *gts_py_begin_graph(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    gts_graph *graph;
    const gts_py_program *const called = gts_py_called_here();
    if (called != NULL)
        return PyErr_Format(PyExc_RuntimeError, "A graph cannot be captured within a call of program '%s'.",
                            called->program->stub->name);
    PyThreadState *const thread = PyEval_SaveThread();
    const int status = gts_graph_begin(&graph);
    PyEval_RestoreThread(thread);
    if (status != 0) {
        (void)gts_py_raise(gts_last_error(NULL));
        return NULL;
    }
    PyObject *const capsule = PyCapsule_New(graph, CAPSULE, free_capsule);
    if (capsule == NULL)
        gts_graph_free(&graph);
    return capsule;
}

PyObject *gts_py_end_graph(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    gts_graph *const graph = graph_of(capsule);
    if (graph == NULL)
        return NULL;
    const gts_py_program *const called = gts_py_called_here();
    if (called != NULL)
        return PyErr_Format(PyExc_RuntimeError, "The capture of a graph cannot end within a call of program '%s'.",
                            called->program->stub->name);
    PyThreadState *const thread = PyEval_SaveThread();
    const int status = gts_graph_end(graph);
    PyEval_RestoreThread(thread);
    if (status == 0)
        Py_RETURN_NONE;
    (void)gts_py_raise(gts_last_error(NULL));
    return NULL;
}

PyObject *gts_py_launch_graph(PyObject *module, PyObject *args)
{
    PyObject *capsule, *stream;
    void *address;
    if (!PyArg_ParseTuple(args, "OO:launch_graph", &capsule, &stream))
        return NULL;
    const gts_graph *const graph = graph_of(capsule);
    if (graph == NULL || gts_py_read_stream(PyModule_GetState(module), stream, &address) != 0)
        return NULL;
    PyThreadState *const thread = PyEval_SaveThread(); /* the launch waits while the queue of the stream is full */
    const int status = gts_graph_launch(graph, address);
    PyEval_RestoreThread(thread);
    if (status == 0)
        Py_RETURN_NONE;
    (void)gts_py_raise(gts_last_error(NULL));
    return NULL;
}
