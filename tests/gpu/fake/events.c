/* Events. Their times are those of their stream's clock, on which each kernel, copy and memset takes a millisecond. */
#include "fake.h"

static cudaEvent_t events; /* those that were destroyed too */
static int created;

/* The event of a call, whose error becomes 400 if there is none. */
static cudaEvent_t look_up(cudaError_t *error, cudaEvent_t handle)
{
    cudaEvent_t self = events;
    while (self != NULL && self != handle)
        self = self->next;
    if (*error == cudaSuccess && (self == NULL || self->is_destroyed))
        *error = cudaErrorInvalidResourceHandle;
    return self;
}

static int number_of(const struct CUevent_st *event)
{
    return event == NULL ? -1 : event->number;
}

static cudaError_t create(const char *function, cudaEvent_t *event, unsigned int flags)
{
    const cudaError_t error = fake_enter(function);
    if (error != cudaSuccess)
        return fake_leave(error, "%s", function);
    const cudaEvent_t self = fake_allocate(sizeof *self);
    self->number = ++created;
    self->flags = flags;
    self->next = events;
    *event = events = self;
    return fake_leave(cudaSuccess, "%s event=%d", function, self->number);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return create("cudaEventCreate", event, 0);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    return create("cudaEventCreateWithFlags", event, flags);
}

static cudaError_t record(const char *function, cudaEvent_t handle, cudaStream_t stream_handle)
{
    cudaError_t error = fake_enter(function);
    const cudaEvent_t event = look_up(&error, handle);
    const cudaStream_t stream = fake_stream(stream_handle);
    uint64_t ticket = 0;
    if (error == cudaSuccess)
        error = fake_enqueue(stream_handle, &(fake_work){.kind = FAKE_RECORD, .event = event}, &ticket);
    if (error == cudaSuccess) {
        event->stream = stream;
        event->ticket = ticket;
        event->capture = stream->capture;
        event->was_recorded = true;
        event->was_asked = false;
    }
    return fake_leave(error, "%s event=%d stream=%s%s", function, number_of(event), fake_stream_text(stream_handle),
                      fake_captured_text(stream_handle));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return record("cudaEventRecord", event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    (void)flags;
    return record("cudaEventRecordWithFlags", event, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned int flags)
{
    (void)flags;
    cudaError_t error = fake_enter("cudaStreamWaitEvent");
    const cudaEvent_t event = look_up(&error, event_handle);
    const cudaStream_t stream = fake_stream(handle);
    if (error == cudaSuccess && stream == NULL)
        error = cudaErrorInvalidResourceHandle;
    if (error == cudaSuccess && (stream->capture != NULL || event->capture != NULL)) {
        error = fake_capture_wait(stream, event);
    } else if (error == cudaSuccess && event->was_recorded) {
        const fake_work wait = {.kind = FAKE_WAIT, .awaited = event->stream, .awaited_ticket = event->ticket};
        error = fake_enqueue(handle, &wait, NULL);
    }
    return fake_leave(error, "cudaStreamWaitEvent event=%d stream=%s%s", number_of(event), fake_stream_text(handle),
                      fake_captured_text(handle));
}

static bool is_pending(const struct CUevent_st *event)
{
    return event->was_recorded && !fake_is_done(event->stream, event->ticket);
}

/* The event of a call that looks at it or waits for it. */
static cudaEvent_t look_up_to_wait(const char *function, cudaError_t *error, cudaEvent_t handle)
{
    *error = fake_enter(function);
    const cudaEvent_t event = look_up(error, handle);
    if (*error == cudaSuccess && event->capture != NULL)
        *error = fake_invalidate(event->capture, cudaErrorCapturedEvent);
    if (*error == cudaSuccess)
        *error = fake_check_unsafe();
    return event;
}

cudaError_t cudaEventQuery(cudaEvent_t handle)
{
    cudaError_t error = cudaSuccess;
    const cudaEvent_t event = look_up_to_wait("cudaEventQuery", &error, handle);
    if (error == cudaSuccess && is_pending(event) && !event->was_asked) {
        event->was_asked = true;
        error = cudaErrorNotReady;
    } else if (error == cudaSuccess && event->was_recorded) {
        fake_run(event->stream, event->ticket);
        error = fake_sticky();
    }
    return fake_leave(error, "cudaEventQuery event=%d", number_of(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle)
{
    cudaError_t error = cudaSuccess;
    const cudaEvent_t event = look_up_to_wait("cudaEventSynchronize", &error, handle);
    if (error == cudaSuccess && event->was_recorded) {
        fake_run(event->stream, event->ticket);
        error = fake_sticky();
    }
    return fake_leave(error, "cudaEventSynchronize event=%d", number_of(event));
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start_handle, cudaEvent_t end_handle)
{
    cudaError_t error = fake_enter("cudaEventElapsedTime");
    const cudaEvent_t start = look_up(&error, start_handle);
    const cudaEvent_t end = look_up(&error, end_handle);
    if (error == cudaSuccess) {
        const bool has_times = start->was_recorded && end->was_recorded && start->capture == NULL &&
                               end->capture == NULL && ((start->flags | end->flags) & cudaEventDisableTiming) == 0;
        if (!has_times)
            error = cudaErrorInvalidResourceHandle;
        else if (is_pending(start) || is_pending(end))
            error = cudaErrorNotReady;
        else
            *milliseconds = (float)(end->time - start->time);
    }
    return fake_leave(error, "cudaEventElapsedTime start=%d end=%d", number_of(start), number_of(end));
}

cudaError_t cudaEventDestroy(cudaEvent_t handle)
{
    cudaError_t error = fake_enter("cudaEventDestroy");
    const cudaEvent_t event = look_up(&error, handle);
    if (error == cudaSuccess)
        event->is_destroyed = true;
    return fake_leave(error, "cudaEventDestroy event=%d", number_of(event));
}
