/* Copies and memsets. */
#include "fake.h"

/* Whether the bytes from `pointer` on may be accessed as memory of the device, or of the host. */
static bool is_good(const void *pointer, size_t size, bool must_be_device, bool must_be_host)
{
    const fake_range *const range = fake_find(pointer);
    if (range == NULL)
        return !must_be_device;
    if (must_be_host && range->type == cudaMemoryTypeDevice)
        return false;
    return size <= range->size - (size_t)((const char *)pointer - range->begin);
}

static cudaError_t check(const fake_work *copy, enum cudaMemcpyKind kind)
{
    if (copy->width == 0 || copy->height == 0)
        return cudaSuccess;
    if (copy->width > copy->to_pitch || copy->width > copy->from_pitch)
        return cudaErrorInvalidValue;
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    const bool is_known = kind != cudaMemcpyDefault;
    const size_t to_size = copy->to_pitch * (copy->height - 1) + copy->width;
    const size_t from_size = copy->from_pitch * (copy->height - 1) + copy->width;
    return is_good(copy->to, to_size, to_device, is_known && !to_device) &&
                   is_good(copy->from, from_size, from_device, is_known && !from_device)
               ? cudaSuccess
               : cudaErrorInvalidValue;
}

/*
 * As CUDA treats memory of the host that is not pinned: it is read before the call returns, and a call that writes it
 * returns after that.
 */
static cudaError_t enqueue(fake_work *copy, cudaStream_t handle)
{
    const cudaStream_t stream = fake_stream(handle);
    const bool is_captured = stream != NULL && stream->capture != NULL;
    if (!is_captured && copy->width > 0 && fake_find(copy->from) == NULL) {
        const size_t size = copy->from_pitch * (copy->height - 1) + copy->width;
        copy->staged = fake_allocate(size);
        memcpy(copy->staged, copy->from, size);
    }
    uint64_t ticket = 0;
    const cudaError_t error = fake_enqueue(handle, copy, &ticket);
    if (error != cudaSuccess) {
        free(copy->staged);
        return error;
    }
    if (is_captured || fake_find(copy->to) != NULL)
        return cudaSuccess;
    fake_run(stream, ticket);
    return fake_sticky();
}

static cudaError_t copy_on(cudaError_t error, fake_work copy, enum cudaMemcpyKind kind, cudaStream_t handle)
{
    copy.kind = FAKE_COPY;
    if (error == cudaSuccess)
        error = check(&copy, kind);
    if (error == cudaSuccess && copy.width > 0 && copy.height > 0)
        error = enqueue(&copy, handle);
    return error;
}

static fake_work row(void *to, const void *from, size_t size)
{
    return (fake_work){.to = to, .from = from, .to_pitch = size, .from_pitch = size, .width = size, .height = 1};
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
    cudaError_t error = copy_on(fake_enter_unsafe("cudaMemcpy"), row(to, from, size), kind, NULL);
    if (error == cudaSuccess) {
        fake_run(fake_stream(NULL), UINT64_MAX);
        error = fake_sticky();
    }
    return fake_leave(error, "cudaMemcpy bytes=%zu kind=%d stream=0", size, (int)kind);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    const cudaError_t error = copy_on(fake_enter("cudaMemcpyAsync"), row(to, from, size), kind, stream);
    return fake_leave(error, "cudaMemcpyAsync bytes=%zu kind=%d stream=%s%s", size, (int)kind, fake_stream_text(stream),
                      fake_captured_text(stream));
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    const fake_work copy = {
        .to = to, .from = from, .to_pitch = to_pitch, .from_pitch = from_pitch, .width = width, .height = height};
    const cudaError_t error = copy_on(fake_enter("cudaMemcpy2DAsync"), copy, kind, stream);
    return fake_leave(error, "cudaMemcpy2DAsync bytes=%zu kind=%d stream=%s%s", width * height, (int)kind,
                      fake_stream_text(stream), fake_captured_text(stream));
}

static cudaError_t set_on(cudaError_t error, void *to, int value, size_t size, cudaStream_t handle)
{
    if (error == cudaSuccess && size > 0 && !is_good(to, size, true, false))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess && size > 0)
        error = fake_enqueue(handle, &(fake_work){.kind = FAKE_SET, .to = to, .value = value, .width = size}, NULL);
    return error;
}

cudaError_t cudaMemset(void *to, int value, size_t size)
{
    const cudaError_t error = set_on(fake_enter_unsafe("cudaMemset"), to, value, size, NULL);
    return fake_leave(error, "cudaMemset bytes=%zu stream=0", size);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t stream)
{
    const cudaError_t error = set_on(fake_enter("cudaMemsetAsync"), to, value, size, stream);
    return fake_leave(error, "cudaMemsetAsync bytes=%zu stream=%s%s", size, fake_stream_text(stream),
                      fake_captured_text(stream));
}
