/* Captures of streams, and the graphs that they become. A graph's work runs in the order in which it was captured. */
#include "fake.h"

#include <pthread.h>

struct CUgraphExec_st {
    int number; /* of its graph */
    bool is_destroyed;
    size_t count;
    fake_work *work;
    fake_memory *memory;
};

static fake_capture *captures; /* those that run */
static int created;
static _Thread_local enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

static uint64_t this_thread(void)
{
    return (uint64_t)pthread_self();
}

/* ---- What a capture refuses ------------------------------------------------------------------------------------ */

cudaError_t fake_invalidate(fake_capture *capture, cudaError_t error)
{
    const bool was_invalidated = capture->is_invalidated;
    capture->is_invalidated = true;
    return was_invalidated ? cudaErrorStreamCaptureInvalidated : error;
}

cudaError_t fake_check_unsafe(void)
{
    cudaError_t error = cudaSuccess;
    for (fake_capture *each = captures; each != NULL && thread_mode != cudaStreamCaptureModeRelaxed;
         each = each->next) {
        const bool is_own = each->mode == cudaStreamCaptureModeThreadLocal && each->thread == this_thread();
        const bool is_global = each->mode == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal;
        if (is_own || is_global)
            error = fake_invalidate(each, cudaErrorStreamCaptureUnsupported);
    }
    return error;
}

cudaError_t fake_check_implicit(void)
{
    for (fake_capture *each = captures; each != NULL; each = each->next)
        if ((each->origin->flags & cudaStreamNonBlocking) == 0)
            return fake_invalidate(each, cudaErrorStreamCaptureImplicit);
    return cudaSuccess;
}

cudaError_t fake_capture_wait(cudaStream_t stream, cudaEvent_t event)
{
    fake_capture *const capture = stream->capture != NULL ? stream->capture : event->capture;
    if (capture->is_invalidated)
        return cudaErrorStreamCaptureInvalidated;
    if (event->capture == NULL)
        return fake_invalidate(capture, cudaErrorStreamCaptureIsolation);
    if (event->capture != capture) {
        (void)fake_invalidate(event->capture, cudaErrorStreamCaptureMerge);
        return fake_invalidate(capture, cudaErrorStreamCaptureMerge);
    }
    if (stream->capture == NULL && fake_stream(NULL) == stream)
        return fake_invalidate(capture, cudaErrorStreamCaptureImplicit);
    stream->capture = capture;
    stream->is_unjoined = stream != capture->origin;
    if (event->stream != stream && event->ticket == event->stream->captured)
        event->stream->is_unjoined = false;
    return cudaSuccess;
}

/* ---- Capturing ------------------------------------------------------------------------------------------------- */

cudaError_t fake_capture_work(cudaStream_t stream, const fake_work *work)
{
    fake_capture *const capture = stream->capture;
    if (capture->is_invalidated)
        return cudaErrorStreamCaptureInvalidated;
    const cudaGraph_t graph = capture->graph;
    if (work->kind != FAKE_RECORD && work->kind != FAKE_FREE) { /* a graph keeps its memory until it is destroyed */
        graph->work = realloc(graph->work, (graph->count + 1) * sizeof *graph->work);
        if (graph->work == NULL)
            fake_abort("out of memory");
        graph->work[graph->count++] = *work;
    }
    if (work->kind == FAKE_RECORD)
        return cudaSuccess;
    ++stream->captured;
    stream->is_unjoined = stream != capture->origin;
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode)
{
    cudaError_t error = fake_enter("cudaStreamBeginCapture");
    const cudaStream_t stream = fake_stream(handle);
    if (error == cudaSuccess && stream == NULL)
        error = cudaErrorInvalidResourceHandle;
    if (error == cudaSuccess && stream->number == 0)
        error = cudaErrorStreamCaptureUnsupported;
    if (error == cudaSuccess && stream->capture != NULL)
        error = cudaErrorIllegalState;
    if (error == cudaSuccess) {
        fake_capture *const capture = fake_allocate(sizeof *capture); /* events may refer to it ever after */
        capture->origin = stream;
        capture->mode = mode;
        capture->thread = this_thread();
        capture->graph = fake_allocate(sizeof *capture->graph);
        capture->graph->number = ++created;
        capture->graph->memory = fake_allocate(sizeof *capture->graph->memory);
        capture->graph->memory->users = 1;
        capture->next = captures;
        captures = capture;
        stream->capture = capture;
        stream->is_unjoined = false;
    }
    return fake_leave(error, "cudaStreamBeginCapture mode=%d stream=%s", (int)mode, fake_stream_text(handle));
}

static void drop_memory(fake_memory *memory)
{
    if (--memory->users > 0)
        return;
    for (size_t i = 0; i < memory->count; ++i)
        fake_release(fake_find(memory->allocations[i]));
    free(memory->allocations);
    free(memory);
}

static void free_graph(cudaGraph_t graph)
{
    drop_memory(graph->memory);
    free(graph->work);
    free(graph);
}

void fake_capture_memory(cudaStream_t stream, void *pointer)
{
    fake_memory *const memory = stream->capture->graph->memory;
    memory->allocations = realloc(memory->allocations, (memory->count + 1) * sizeof *memory->allocations);
    if (memory->allocations == NULL)
        fake_abort("out of memory");
    memory->allocations[memory->count++] = pointer;
}

bool fake_end_capture(fake_capture *capture)
{
    fake_capture **place = &captures;
    while (*place != capture)
        place = &(*place)->next;
    *place = capture->next;
    return fake_leave_capture(capture);
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph)
{
    cudaError_t error = fake_enter("cudaStreamEndCapture");
    const cudaStream_t stream = fake_stream(handle);
    fake_capture *const capture = stream == NULL ? NULL : stream->capture;
    *graph = NULL;
    if (error == cudaSuccess && stream == NULL)
        error = cudaErrorInvalidResourceHandle;
    if (error == cudaSuccess && capture == NULL)
        error = cudaErrorIllegalState;
    if (error == cudaSuccess && capture->origin != stream)
        error = fake_invalidate(capture, cudaErrorStreamCaptureUnmatched);
    else if (error == cudaSuccess && capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != this_thread())
        error = fake_invalidate(capture, cudaErrorStreamCaptureWrongThread);
    else if (error == cudaSuccess) {
        const bool has_unjoined = fake_end_capture(capture);
        if (capture->is_invalidated)
            error = cudaErrorStreamCaptureInvalidated;
        else if (has_unjoined)
            error = cudaErrorStreamCaptureUnjoined;
        if (error == cudaSuccess)
            *graph = capture->graph;
        else
            free_graph(capture->graph);
        capture->graph = NULL;
    }
    return fake_leave(error, "cudaStreamEndCapture graph=%d stream=%s", *graph == NULL ? -1 : (*graph)->number,
                      fake_stream_text(handle));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *status)
{
    cudaError_t error = fake_enter("cudaStreamIsCapturing");
    const cudaStream_t stream = fake_stream(handle);
    if (error == cudaSuccess && stream == NULL)
        error = cudaErrorInvalidResourceHandle;
    if (error == cudaSuccess && stream->number == 0)
        error = fake_check_implicit();
    if (error == cudaSuccess)
        *status = stream->capture == NULL           ? cudaStreamCaptureStatusNone
                  : stream->capture->is_invalidated ? cudaStreamCaptureStatusInvalidated
                                                    : cudaStreamCaptureStatusActive;
    return fake_leave(error, "cudaStreamIsCapturing stream=%s", fake_stream_text(handle));
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    const cudaError_t error = fake_enter("cudaThreadExchangeStreamCaptureMode");
    const enum cudaStreamCaptureMode old = thread_mode;
    if (error == cudaSuccess) {
        thread_mode = *mode;
        *mode = old;
    }
    return fake_leave(error, "cudaThreadExchangeStreamCaptureMode mode=%d", (int)thread_mode);
}

/* ---- Graphs ---------------------------------------------------------------------------------------------------- */

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    (void)flags;
    cudaError_t error = fake_enter("cudaGraphInstantiate");
    if (error == cudaSuccess && graph == NULL)
        error = cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return fake_leave(error, "cudaGraphInstantiate");
    const cudaGraphExec_t self = fake_allocate(sizeof *self);
    self->number = graph->number;
    self->count = graph->count;
    self->memory = graph->memory;
    ++self->memory->users;
    self->work = fake_allocate((graph->count + 1) * sizeof *self->work);
    if (graph->count > 0)
        memcpy(self->work, graph->work, graph->count * sizeof *self->work);
    *exec = self;
    return fake_leave(cudaSuccess, "cudaGraphInstantiate graph=%d", self->number);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    return cudaGraphInstantiate(exec, graph, flags);
}

static cudaError_t check(cudaError_t error, const struct CUgraphExec_st *exec)
{
    return error == cudaSuccess && (exec == NULL || exec->is_destroyed) ? cudaErrorInvalidResourceHandle : error;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t handle)
{
    cudaError_t error = check(fake_enter("cudaGraphUpload"), exec);
    if (error == cudaSuccess && fake_stream(handle) == NULL)
        error = cudaErrorInvalidResourceHandle;
    return fake_leave(error, "cudaGraphUpload stream=%s", fake_stream_text(handle));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle)
{
    cudaError_t error = check(fake_enter("cudaGraphLaunch"), exec);
    if (error == cudaSuccess && fake_stream(handle) == NULL)
        error = cudaErrorInvalidResourceHandle;
    for (size_t i = 0; error == cudaSuccess && i < exec->count; ++i)
        error = fake_enqueue(handle, &exec->work[i], NULL);
    return fake_leave(error, "cudaGraphLaunch graph=%d stream=%s%s", exec == NULL ? -1 : exec->number,
                      fake_stream_text(handle), fake_captured_text(handle));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    const cudaError_t error = check(fake_enter("cudaGraphExecDestroy"), exec);
    if (error == cudaSuccess) {
        exec->is_destroyed = true; /* the handle stays known */
        drop_memory(exec->memory);
        free(exec->work);
        exec->work = NULL;
    }
    return fake_leave(error, "cudaGraphExecDestroy graph=%d", exec == NULL ? -1 : exec->number);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    cudaError_t error = fake_enter("cudaGraphDestroy");
    if (error == cudaSuccess && graph == NULL)
        error = cudaErrorInvalidValue;
    const int number = graph == NULL ? -1 : graph->number;
    if (error == cudaSuccess)
        free_graph(graph);
    return fake_leave(error, "cudaGraphDestroy graph=%d", number);
}
