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
    (void)GTS_PY_WITHOUT_GIL((gts_graph_free(&graph), 0));
    note_calls(PyThreadState_Get(), false);
}

PyObject *gts_py_begin_graph(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    gts_graph *graph;
    if (gts_py_refuse_in_call("A graph cannot be captured") != 0)
        return NULL;
    if (GTS_PY_WITHOUT_GIL(gts_graph_begin(&graph)) != 0)
        return gts_py_answer(-1);
    PyObject *const capsule = PyCapsule_New(graph, CAPSULE, free_capsule);
    if (capsule == NULL)
        gts_graph_free(&graph);
    return capsule;
}

PyObject *gts_py_end_graph(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    gts_graph *const graph = graph_of(capsule);
    if (graph == NULL || gts_py_refuse_in_call("The capture of a graph cannot end") != 0)
        return NULL;
    return gts_py_answer(GTS_PY_WITHOUT_GIL(gts_graph_end(graph)));
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
    /* The launch waits while the queue of the stream is full. */
    return gts_py_answer(GTS_PY_WITHOUT_GIL(gts_graph_launch(graph, address)));
}
