/* Captures the calls of programs as a graph of CUDA. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/refuse.h"
#include "program/private.h"

struct gts_graph {
    const gts_cuda *cuda;
    void *stream;                 /* on which calls are captured */
    void *before;                 /* the stream of all programs, until gts_graph_end() restores it */
    void *executable;             /* NULL until gts_graph_end() */
    gts_graph *next;              /* in the list of graphs */
    const gts_program **programs; /* that were captured, in the order of their calls; they are only compared */
    size_t program_count;
    char lost[128]; /* a captured program whose memory has been freed; empty if there is none */
};

/* The graphs that have captured calls, and what they know of programs. */
static gts_graph *graphs;
GTS_LOCK(lock)

/* A graph has begun, and has not restored the stream of all programs: no other one may begin. */
static bool is_begun;

/* The last graph that began to capture in this thread. It is compared alone, because it may have been freed. */
static _Thread_local const gts_graph *begun_here;

static GTS_COLD int refuse(const gts_cuda *cuda, const char *what, int error)
{
    (void)cuda->get_last_error();
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "A graph cannot be %s: %s.", what,
                         gts_cuda_describe(cuda, error).text);
}

/* ---- Calls that are captured ----------------------------------------------------------------------------------- */

static bool captures_here(void)
{
    const gts_graph *const graph = __atomic_load_n(&gts_stream_capturing, __ATOMIC_RELAXED);
    return graph != NULL && graph == begun_here;
}

bool gts_graph_is_captured(const gts_program *self)
{
    const gts_gpu *const gpu = &self->runtime->gpu;
    return gts_graph_captures() && (captures_here() || (gpu->cuda != NULL && !gpu->has_own_stream));
}

int gts_graph_before_run(gts_program *self)
{
    const gts_gpu *const gpu = &self->runtime->gpu;
    if (!captures_here())
        return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR, "cannot be called while another thread captures a graph.");
    if (gpu->cuda == NULL)
        return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR, "runs on the CPU and cannot be part of a graph.");
    if (gts_has_callbacks(self->stub))
        return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR,
                                  "has callbacks, which a graph does not call, and cannot be part of one.");
    if (gpu->stream != gts_stream_capturing->stream)
        return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR, "has a stream of its own and cannot be part of a graph.");
    if (gts_cuda_capture(gpu->cuda, gpu->stream) != GTS_CUDA_IS_CAPTURING)
        return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR,
                                  "cannot be part of a graph: something that was called before it has waited for the "
                                  "GPU, which ends the capture.");
    return 0;
}

/* Notes that the graph uses the memory of a program. */
static int add_program(gts_graph *graph, gts_program *self)
{
    (void)pthread_mutex_lock(&lock);
    const size_t size = (graph->program_count + 1) * sizeof *graph->programs;
    const gts_program **const programs = realloc(graph->programs, size);
    if (programs != NULL) {
        programs[graph->program_count++] = self;
        graph->programs = programs;
    }
    (void)pthread_mutex_unlock(&lock);
    return programs != NULL ? 0
                            : GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR, "cannot be part of a graph: out of memory.");
}

void gts_graph_lose(const gts_program *self)
{
    (void)pthread_mutex_lock(&lock);
    for (gts_graph *graph = graphs; graph != NULL; graph = graph->next) {
        for (size_t i = 0; i < graph->program_count; ++i) {
            if (graph->programs[i] == self)
                (void)snprintf(graph->lost, sizeof graph->lost, "%s", self->stub->name);
        }
    }
    (void)pthread_mutex_unlock(&lock);
}

int gts_graph_after_run(gts_program *self)
{
    const gts_gpu *const gpu = &self->runtime->gpu;
    if (gts_cuda_capture(gpu->cuda, gpu->stream) == GTS_CUDA_IS_CAPTURING)
        return add_program(gts_stream_capturing, self);
    (void)gpu->cuda->get_last_error();
    return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR,
                              "cannot be part of a graph, because it waits for the GPU: it measures times, is a "
                              "program of DaCe, or was built with async_sdfg_call=False.");
}

static void look_closely(gts_program *self, void *unused)
{
    (void)unused;
    if (gts_enter_open(self) != 0)
        return;
    self->has_extra_work = true;
    gts_leave(self);
}

/* ---- Capturing ------------------------------------------------------------------------------------------------- */

/* Ends to capture, restores the stream of all programs, and lets another graph begin, which finds that stream. */
static void leave(const gts_graph *self)
{
    __atomic_store_n(&gts_stream_capturing, NULL, __ATOMIC_RELAXED); /* first, because calls may be waiting to run */
    (void)gts_stream_set_current(self->before);
    __atomic_store_n(&is_begun, false, __ATOMIC_RELEASE);
}

/* Ends the capture, whether it succeeded or not. */
static int stop(gts_graph *self, void **graph)
{
    const int error = self->cuda->stream_end_capture(self->stream, graph);
    leave(self);
    return error;
}

int gts_graph_begin(gts_graph **graph)
{
    *graph = NULL;
    const gts_cuda *const cuda = gts_cuda_loaded();
    if (cuda == NULL)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                             "A graph cannot be captured: no program for a GPU has been loaded. Call the programs once "
                             "before.");
    gts_graph *const self = calloc(1, sizeof *self);
    if (self == NULL)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "A graph cannot be captured: out of memory.");
    self->cuda = cuda;
    bool no = false;
    if (!__atomic_compare_exchange_n(&is_begun, &no, true, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        free(self);
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                             "A graph cannot be captured while another one is being captured.");
    }
    __atomic_store_n(&gts_stream_capturing, self, __ATOMIC_RELAXED);
    begun_here = self;
    self->before = gts_stream(NULL);
    (void)pthread_mutex_lock(&lock);
    self->next = graphs;
    graphs = self;
    (void)pthread_mutex_unlock(&lock);
    int status = 0, error = cuda->stream_create(&self->stream, GTS_CUDA_NON_BLOCKING);
    if (error == 0 && (status = gts_stream_set_current(self->stream)) == 0)
        error = cuda->stream_begin_capture(self->stream, GTS_CUDA_OF_THIS_THREAD);
    if (error == 0 && status == 0) {
        gts_loaded_visit(look_closely, NULL);
        *graph = self;
        return 0;
    }
    if (error != 0)
        (void)refuse(cuda, "captured", error);
    const gts_error reason = gts_own_error;
    leave(self);
    gts_graph *failed = self;
    gts_graph_free(&failed);
    gts_own_error = reason;
    return -1;
}

int gts_graph_end(gts_graph *graph)
{
    void *captured = NULL;
    if (__atomic_load_n(&gts_stream_capturing, __ATOMIC_RELAXED) != graph)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "The capture of a graph has already ended.");
    int error = stop(graph, &captured);
    if (error != 0)
        return refuse(graph->cuda, "captured", error);
    error = graph->cuda->graph_instantiate(&graph->executable, captured, 0);
    (void)graph->cuda->graph_destroy(captured);
    return error == 0 ? 0 : refuse(graph->cuda, "instantiated", error);
}

int gts_graph_launch(const gts_graph *graph, void *stream)
{
    if (captures_here())
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                             "A graph cannot be launched while another one is being captured.");
    (void)pthread_mutex_lock(&lock);
    const bool is_lost = *graph->lost != '\0';
    if (is_lost)
        gts_error_set(
            &gts_own_error, GTS_RUNTIME_ERROR,
            "A graph cannot be launched any more: its program '%s' was closed, or has got other memory since, "
            "for other sizes or another workspace. Capture it again.",
            graph->lost);
    (void)pthread_mutex_unlock(&lock);
    if (is_lost)
        return -1;
    const int error = graph->cuda->graph_launch(graph->executable, stream);
    return GTS_LIKELY(error == 0) ? 0 : refuse(graph->cuda, "launched", error);
}

void gts_graph_free(gts_graph **graph)
{
    gts_graph *const self = *graph;
    *graph = NULL;
    if (self == NULL)
        return;
    if (__atomic_load_n(&gts_stream_capturing, __ATOMIC_RELAXED) == self) {
        void *captured = NULL;
        if (stop(self, &captured) == 0)
            (void)self->cuda->graph_destroy(captured);
        else
            (void)self->cuda->get_last_error();
    }
    (void)pthread_mutex_lock(&lock);
    gts_graph **link = &graphs;
    while (*link != NULL && *link != self)
        link = &(*link)->next;
    if (*link != NULL)
        *link = self->next;
    (void)pthread_mutex_unlock(&lock);
    free(self->programs);
    if (self->executable != NULL)
        (void)self->cuda->graph_exec_destroy(self->executable);
    if (self->stream != NULL)
        (void)self->cuda->stream_destroy(self->stream);
    free(self);
}

void gts_graph_forget(void)
{
    graphs = NULL;
    __atomic_store_n(&gts_stream_capturing, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&is_begun, false, __ATOMIC_RELAXED);
}
