/* Allocations. Memory of the device has pages of its own, which the host cannot access. */
#define _GNU_SOURCE
#include "fake.h"

#include <sys/mman.h>

#define PAGE ((size_t)4096)

/* An allocation starts at its page; device memory that was freed is never reused, so that an old address stays bad. */
static fake_range *ranges;

static size_t pages(const fake_range *range)
{
    return (range->size + PAGE - 1) / PAGE * PAGE;
}

fake_range *fake_find(const void *pointer)
{
    const char *const address = pointer;
    for (fake_range *each = ranges; each != NULL; each = each->next)
        if (address >= each->begin && address < each->begin + each->size)
            return each;
    return NULL;
}

void fake_open(const void *pointer, bool is_open)
{
    const fake_range *const range = fake_find(pointer);
    if (range != NULL && range->type == cudaMemoryTypeDevice &&
        mprotect(range->begin, pages(range), is_open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
        fake_abort("memory cannot be protected");
}

void fake_release(fake_range *range)
{
    fake_range **place = &ranges;
    while (*place != NULL && *place != range)
        place = &(*place)->next;
    if (*place == NULL)
        return;
    *place = range->next;
    if (range->type == cudaMemoryTypeDevice) /* gives the memory back and keeps the addresses */
        (void)mmap(range->begin, pages(range), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
                   0);
    else
        (void)munmap(range->begin, pages(range));
    free(range);
}

int fake_cuda_allocations(int type)
{
    int count = 0;
    for (const fake_range *each = ranges; each != NULL; each = each->next)
        count += (int)each->type == type;
    return count;
}

static cudaError_t allocate(void **pointer, size_t size, enum cudaMemoryType type)
{
    if (pointer == NULL)
        return cudaErrorInvalidValue;
    *pointer = NULL;
    if (size == 0)
        return cudaSuccess;
    const fake_range made = {.next = ranges, .size = size, .type = type, .device = fake_current_device};
    const int access = type == cudaMemoryTypeDevice ? PROT_NONE : PROT_READ | PROT_WRITE;
    char *const begin = size > SIZE_MAX - PAGE
                            ? MAP_FAILED
                            : mmap(NULL, pages(&made), access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED)
        return cudaErrorMemoryAllocation;
    ranges = fake_allocate(sizeof *ranges);
    *ranges = made;
    *pointer = ranges->begin = begin;
    return cudaSuccess;
}

static cudaError_t allocate_now(const char *function, void **pointer, size_t size, enum cudaMemoryType type)
{
    cudaError_t error = fake_enter_unsafe(function);
    if (error == cudaSuccess)
        error = allocate(pointer, size, type);
    return fake_leave(error, "%s bytes=%zu", function, size);
}

cudaError_t cudaMalloc(void **pointer, size_t size)
{
    return allocate_now("cudaMalloc", pointer, size, cudaMemoryTypeDevice);
}

cudaError_t cudaMallocHost(void **pointer, size_t size)
{
    return allocate_now("cudaMallocHost", pointer, size, cudaMemoryTypeHost);
}

cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned int flags)
{
    (void)flags;
    return allocate_now("cudaHostAlloc", pointer, size, cudaMemoryTypeHost);
}

cudaError_t cudaMallocManaged(void **pointer, size_t size, unsigned int flags)
{
    (void)flags;
    return allocate_now("cudaMallocManaged", pointer, size, cudaMemoryTypeManaged);
}

static cudaError_t allocate_on(const char *function, void **pointer, size_t size, cudaStream_t handle)
{
    cudaError_t error = fake_enter(function);
    const cudaStream_t stream = fake_stream(handle);
    if (error == cudaSuccess && stream == NULL)
        error = cudaErrorInvalidResourceHandle;
    if (error == cudaSuccess && stream->capture != NULL && stream->capture->is_invalidated)
        error = cudaErrorStreamCaptureInvalidated;
    if (error == cudaSuccess)
        error = allocate(pointer, size, cudaMemoryTypeDevice);
    if (error == cudaSuccess && size > 0 && stream->capture != NULL)
        fake_capture_memory(stream, *pointer);
    return fake_leave(error, "%s bytes=%zu stream=%s%s", function, size, fake_stream_text(handle),
                      fake_captured_text(handle));
}

cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream)
{
    return allocate_on("cudaMallocAsync", pointer, size, stream);
}

cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream)
{
    (void)pool;
    return allocate_on("cudaMallocFromPoolAsync", pointer, size, stream);
}

/* Whether `pointer` is what an allocation on the device (or of the host) returned; NULL may be freed, too. */
static cudaError_t check_begin(cudaError_t error, const void *pointer, bool is_host)
{
    const fake_range *const range = fake_find(pointer);
    const bool is_good = range != NULL && range->begin == pointer && (range->type == cudaMemoryTypeHost) == is_host;
    return error == cudaSuccess && pointer != NULL && !is_good ? cudaErrorInvalidValue : error;
}

static cudaError_t free_now(const char *function, void *pointer, bool is_host)
{
    const cudaError_t error = check_begin(fake_enter_unsafe(function), pointer, is_host);
    if (error == cudaSuccess && pointer != NULL) {
        fake_run_all();
        fake_release(fake_find(pointer));
    }
    return fake_leave(error, "%s", function);
}

cudaError_t cudaFree(void *pointer)
{
    return free_now("cudaFree", pointer, false);
}

cudaError_t cudaFreeHost(void *pointer)
{
    return free_now("cudaFreeHost", pointer, true);
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t handle)
{
    cudaError_t error = check_begin(fake_enter("cudaFreeAsync"), pointer, false);
    if (error == cudaSuccess)
        error = fake_enqueue(handle, &(fake_work){.kind = FAKE_FREE, .to = pointer}, NULL);
    return fake_leave(error, "cudaFreeAsync stream=%s%s", fake_stream_text(handle), fake_captured_text(handle));
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    const cudaError_t error = fake_enter("cudaMemGetInfo");
    if (error == cudaSuccess) {
        *total = (size_t)1 << 36;
        *available = *total;
        for (const fake_range *each = ranges; each != NULL; each = each->next)
            *available -= each->type == cudaMemoryTypeDevice ? each->size : 0;
    }
    return fake_leave(error, "cudaMemGetInfo");
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
    const cudaError_t error = fake_enter("cudaPointerGetAttributes");
    if (error == cudaSuccess) {
        void *const address = (void *)(uintptr_t)pointer;
        const fake_range *const range = fake_find(pointer);
        *attributes = (struct cudaPointerAttributes){.device = -2, .hostPointer = address};
        if (range != NULL) {
            attributes->type = range->type;
            attributes->device = range->device;
            attributes->devicePointer = address;
            attributes->hostPointer = range->type == cudaMemoryTypeDevice ? NULL : address;
        }
    }
    return fake_leave(error, "cudaPointerGetAttributes");
}
