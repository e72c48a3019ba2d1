/*
 * Work that was enqueued and has not run. A stream's work runs when something waits for it. The default stream runs
 * after all earlier work of the streams that do not say cudaStreamNonBlocking, and they after its work.
 */
#include "fake.h"

#define PER_THREAD 2 /* cudaStreamPerThread, which is one stream here */

static struct CUstream_st legacy;
static struct CUstream_st per_thread = {.next = &legacy, .number = -PER_THREAD};
static cudaStream_t streams = &per_thread; /* those that were destroyed too */
static int created;
static uint64_t tickets;

/* ---- Streams by their handles ---------------------------------------------------------------------------------- */

static cudaStream_t find(cudaStream_t handle)
{
    if (handle == NULL || handle == cudaStreamLegacy)
        return &legacy;
    if (handle == cudaStreamPerThread)
        return &per_thread;
    for (cudaStream_t each = streams; each != NULL; each = each->next)
        if (each == handle && each->number > 0)
            return each;
    return NULL;
}

cudaStream_t fake_stream(cudaStream_t handle)
{
    const cudaStream_t self = find(handle);
    return self == NULL || self->is_destroyed ? NULL : self;
}

const char *fake_stream_text(cudaStream_t handle)
{
    static _Thread_local char texts[4][16];
    static _Thread_local unsigned int next;
    char *const text = texts[next++ % 4];
    const cudaStream_t self = find(handle);
    if (self == NULL)
        return "?";
    if (self == &per_thread)
        return "per-thread";
    (void)snprintf(text, sizeof texts[0], "%d", self->number);
    return text;
}

const char *fake_captured_text(cudaStream_t handle)
{
    const cudaStream_t self = fake_stream(handle);
    return self != NULL && self->capture != NULL ? " captured" : "";
}

int fake_cuda_stream_number(const void *stream)
{
    const cudaStream_t self = find((cudaStream_t)(uintptr_t)stream);
    return self == NULL ? -1 : self->number;
}

/* ---- Running --------------------------------------------------------------------------------------------------- */

static bool is_blocking(const struct CUstream_st *stream)
{
    return stream != &legacy && (stream->flags & cudaStreamNonBlocking) == 0;
}

static void copy(const fake_work *work)
{
    const char *const from = work->staged != NULL ? work->staged : work->from;
    fake_open(work->to, true);
    fake_open(from, true);
    for (size_t row = 0; row < work->height; ++row)
        memmove(work->to + row * work->to_pitch, from + row * work->from_pitch, work->width);
    fake_open(from, false);
    fake_open(work->to, false);
}

static void run_one(cudaStream_t stream, const fake_work *work)
{
    const char *const number = fake_stream_text(stream == &legacy ? NULL : stream);
    stream->clock += work->kind <= FAKE_SET ? 1 : 0;
    switch (work->kind) {
    case FAKE_KERNEL:
        fake_log_ran("%s stream=%s", work->name, number);
        fake_run_kernel(work->name);
        break;
    case FAKE_COPY:
        fake_log_ran("copy bytes=%zu stream=%s", work->width * work->height, number);
        copy(work);
        break;
    case FAKE_SET:
        fake_log_ran("set bytes=%zu stream=%s", work->width, number);
        fake_open(work->to, true);
        memset(work->to, work->value, work->width);
        fake_open(work->to, false);
        break;
    case FAKE_FREE:
        fake_log_ran("free stream=%s", number);
        fake_release(fake_find(work->to));
        break;
    case FAKE_HOST:
        fake_log_ran("host function stream=%s", number);
        work->function(work->data);
        break;
    case FAKE_RECORD:
        if (work->event->stream == stream && work->event->ticket == work->ticket)
            work->event->time = stream->clock;
        break;
    case FAKE_WAIT:
        if (work->awaited->clock > stream->clock)
            stream->clock = work->awaited->clock;
        break;
    }
}

/* Runs what a piece of work waits for, all of which was enqueued before it. */
static void run_before(const struct CUstream_st *stream, const fake_work *work)
{
    if (work->kind == FAKE_WAIT)
        fake_run(work->awaited, work->awaited_ticket);
    if (is_blocking(stream))
        fake_run(&legacy, work->ticket);
    for (cudaStream_t each = streams; each != NULL && stream == &legacy; each = each->next)
        if (is_blocking(each))
            fake_run(each, work->ticket);
}

void fake_run(cudaStream_t stream, uint64_t ticket)
{
    while (!fake_is_done(stream, ticket)) {
        fake_work *const work = stream->work;
        run_before(stream, work);
        stream->work = work->next;
        if (fake_sticky() == cudaSuccess) /* a device that is lost runs nothing */
            run_one(stream, work);
        free(work->staged);
        free(work);
    }
}

void fake_run_all(void)
{
    for (cudaStream_t each = streams; each != NULL; each = each->next)
        fake_run(each, UINT64_MAX);
}

bool fake_is_done(cudaStream_t stream, uint64_t ticket)
{
    return stream->work == NULL || stream->work->ticket > ticket;
}

bool fake_leave_capture(const fake_capture *capture)
{
    bool has_unjoined = false;
    for (cudaStream_t each = streams; each != NULL; each = each->next)
        if (each->capture == capture) {
            has_unjoined |= each->is_unjoined;
            each->capture = NULL;
        }
    return has_unjoined;
}

/* ---- Enqueuing ------------------------------------------------------------------------------------------------- */

cudaError_t fake_enqueue(cudaStream_t handle, const fake_work *work, uint64_t *ticket)
{
    const cudaStream_t stream = fake_stream(handle);
    if (stream == NULL)
        return cudaErrorInvalidResourceHandle;
    if (stream->capture != NULL) {
        const cudaError_t refused = fake_capture_work(stream, work);
        if (ticket != NULL)
            *ticket = stream->captured;
        return refused;
    }
    const cudaError_t error = stream == &legacy ? fake_check_implicit() : cudaSuccess;
    if (error != cudaSuccess)
        return error;
    fake_work *const copied = fake_allocate(sizeof *copied);
    *copied = *work;
    copied->next = NULL;
    copied->ticket = ++tickets;
    if (ticket != NULL)
        *ticket = copied->ticket;
    fake_work **end = &stream->work;
    while (*end != NULL)
        end = &(*end)->next;
    *end = copied;
    stream->was_asked = false;
    return cudaSuccess;
}

/* ---- Streams --------------------------------------------------------------------------------------------------- */

static cudaError_t create(const char *function, cudaStream_t *stream, unsigned int flags, int priority)
{
    cudaError_t error = fake_enter(function);
    if (error == cudaSuccess && flags > cudaStreamNonBlocking)
        error = cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return fake_leave(error, "%s", function);
    const cudaStream_t self = fake_allocate(sizeof *self);
    self->number = ++created;
    self->device = fake_current_device;
    self->flags = flags;
    self->priority = priority;
    self->next = streams;
    *stream = streams = self;
    return fake_leave(cudaSuccess, "%s%s stream=%d", function, flags != 0 ? " non-blocking" : "", self->number);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return create("cudaStreamCreate", stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    return create("cudaStreamCreateWithFlags", stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
    return create("cudaStreamCreateWithPriority", stream, flags, priority);
}

/* The stream of a call, whose error becomes 400 if there is none. */
static cudaStream_t look_up(cudaError_t *error, cudaStream_t handle)
{
    const cudaStream_t stream = fake_stream(handle);
    if (*error == cudaSuccess && stream == NULL)
        *error = cudaErrorInvalidResourceHandle;
    return stream;
}

/* The stream of a call that waits or looks whether it must, which is refused for a stream that is captured. */
static cudaStream_t look_up_to_wait(const char *function, cudaError_t *error, cudaStream_t handle)
{
    *error = fake_enter(function);
    const cudaStream_t stream = look_up(error, handle);
    if (*error == cudaSuccess && stream->capture != NULL)
        *error = fake_invalidate(stream->capture, cudaErrorStreamCaptureUnsupported);
    if (*error == cudaSuccess)
        *error = fake_check_unsafe();
    if (*error == cudaSuccess && stream == &legacy)
        *error = fake_check_implicit();
    return stream;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    cudaError_t error = fake_enter("cudaStreamDestroy");
    const cudaStream_t stream = look_up(&error, handle);
    if (error == cudaSuccess && stream->number <= 0)
        error = cudaErrorInvalidResourceHandle;
    if (error == cudaSuccess) {
        if (stream->capture != NULL && stream->capture->origin == stream)
            (void)fake_end_capture(stream->capture);
        else if (stream->capture != NULL)
            (void)fake_invalidate(stream->capture, cudaErrorStreamCaptureUnjoined);
        stream->is_destroyed = true; /* its work runs nevertheless */
    }
    return fake_leave(error, "cudaStreamDestroy stream=%s", fake_stream_text(handle));
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    cudaError_t error = cudaSuccess;
    const cudaStream_t stream = look_up_to_wait("cudaStreamSynchronize", &error, handle);
    if (error == cudaSuccess && stream == &legacy)
        for (cudaStream_t each = streams; each != NULL; each = each->next)
            if (is_blocking(each))
                fake_run(each, UINT64_MAX);
    if (error == cudaSuccess) {
        fake_run(stream, UINT64_MAX);
        error = fake_sticky();
    }
    return fake_leave(error, "cudaStreamSynchronize stream=%s", fake_stream_text(handle));
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    cudaError_t error = cudaSuccess;
    const cudaStream_t stream = look_up_to_wait("cudaStreamQuery", &error, handle);
    if (error == cudaSuccess && !fake_is_done(stream, UINT64_MAX) && !stream->was_asked) {
        stream->was_asked = true;
        error = cudaErrorNotReady;
    } else if (error == cudaSuccess) {
        fake_run(stream, UINT64_MAX);
        error = fake_sticky();
    }
    return fake_leave(error, "cudaStreamQuery stream=%s", fake_stream_text(handle));
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned int *flags)
{
    cudaError_t error = fake_enter("cudaStreamGetFlags");
    const cudaStream_t stream = look_up(&error, handle);
    if (error == cudaSuccess)
        *flags = stream->flags;
    return fake_leave(error, "cudaStreamGetFlags stream=%s", fake_stream_text(handle));
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority)
{
    cudaError_t error = fake_enter("cudaStreamGetPriority");
    const cudaStream_t stream = look_up(&error, handle);
    if (error == cudaSuccess)
        *priority = stream->priority;
    return fake_leave(error, "cudaStreamGetPriority stream=%s", fake_stream_text(handle));
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int *device)
{
    cudaError_t error = fake_enter("cudaStreamGetDevice");
    const cudaStream_t stream = look_up(&error, handle);
    if (error == cudaSuccess)
        *device = stream->number > 0 ? stream->device : fake_current_device;
    return fake_leave(error, "cudaStreamGetDevice stream=%s", fake_stream_text(handle));
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long *id)
{
    cudaError_t error = fake_enter("cudaStreamGetId");
    const cudaStream_t stream = look_up(&error, handle);
    if (error == cudaSuccess)
        *id = (unsigned long long)(stream->number + PER_THREAD); /* the default stream's is not 0 either */
    return fake_leave(error, "cudaStreamGetId stream=%s", fake_stream_text(handle));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *data)
{
    cudaError_t error = fake_enter("cudaLaunchHostFunc");
    if (error == cudaSuccess)
        error = fake_enqueue(handle, &(fake_work){.kind = FAKE_HOST, .function = function, .data = data}, NULL);
    return fake_leave(error, "cudaLaunchHostFunc stream=%s%s", fake_stream_text(handle), fake_captured_text(handle));
}
