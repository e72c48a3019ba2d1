/* Devices, their attributes and their memory pools. */
#include "fake.h"

#define MOST_DEVICES 16

struct CUmemPoolHandle_st {
    uint64_t release_threshold;
};

int fake_device_count = 1;
_Thread_local int fake_current_device;
static struct CUmemPoolHandle_st pools[MOST_DEVICES];

__attribute__((constructor)) static void read_environment(void)
{
    const char *const count = getenv("FAKE_CUDA_DEVICES");
    if (count != NULL)
        fake_cuda_devices((int)strtol(count, NULL, 10));
}

void fake_cuda_devices(int count)
{
    if (count < 0 || count > MOST_DEVICES)
        fake_abort("too many devices");
    fake_device_count = count;
}

static cudaError_t check(cudaError_t error, int device)
{
    const bool is_there = device >= 0 && device < fake_device_count;
    return error == cudaSuccess && !is_there ? cudaErrorInvalidDevice : error;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    const cudaError_t error = fake_enter("cudaGetDeviceCount");
    *count = error == cudaSuccess ? fake_device_count : 0;
    return fake_leave(error, "cudaGetDeviceCount");
}

cudaError_t cudaSetDevice(int device)
{
    const cudaError_t error = check(fake_enter("cudaSetDevice"), device);
    if (error == cudaSuccess)
        fake_current_device = device;
    return fake_leave(error, "cudaSetDevice device=%d", device);
}

cudaError_t cudaGetDevice(int *device)
{
    const cudaError_t error = fake_enter("cudaGetDevice");
    if (error == cudaSuccess)
        *device = fake_current_device;
    return fake_leave(error, "cudaGetDevice");
}

static int attribute_of(enum cudaDeviceAttr attribute)
{
    switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
        return 132;
    case cudaDevAttrComputeCapabilityMajor:
        return 9;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        return 232448;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrMemoryPoolsSupported:
        return 1;
    case cudaDevAttrComputeCapabilityMinor:
        break;
    }
    return 0;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    const cudaError_t error = check(fake_enter("cudaDeviceGetAttribute"), device);
    if (error == cudaSuccess)
        *value = attribute_of(attribute);
    return fake_leave(error, "cudaDeviceGetAttribute attribute=%d device=%d", (int)attribute, device);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    const cudaError_t error = fake_enter("cudaDeviceGetStreamPriorityRange");
    if (error == cudaSuccess) {
        *least = 0;
        *greatest = -5;
    }
    return fake_leave(error, "cudaDeviceGetStreamPriorityRange");
}

cudaError_t cudaDeviceSynchronize(void)
{
    cudaError_t error = fake_enter_unsafe("cudaDeviceSynchronize");
    if (error == cudaSuccess) {
        fake_run_all();
        error = fake_sticky();
    }
    return fake_leave(error, "cudaDeviceSynchronize");
}

cudaError_t cudaDriverGetVersion(int *version)
{
    (void)fake_enter("cudaDriverGetVersion");
    *version = CUDART_VERSION;
    return fake_leave(cudaSuccess, "cudaDriverGetVersion");
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    (void)fake_enter("cudaRuntimeGetVersion");
    *version = CUDART_VERSION;
    return fake_leave(cudaSuccess, "cudaRuntimeGetVersion");
}

/* ---- Memory pools ---------------------------------------------------------------------------------------------- */

static cudaError_t get_pool(const char *function, cudaMemPool_t *pool, int device)
{
    const cudaError_t error = check(fake_enter(function), device);
    if (error == cudaSuccess)
        *pool = &pools[device];
    return fake_leave(error, "%s device=%d", function, device);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    return get_pool("cudaDeviceGetDefaultMemPool", pool, device);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    return get_pool("cudaDeviceGetMemPool", pool, device);
}

static cudaError_t check_attribute(cudaError_t error, enum cudaMemPoolAttr attribute)
{
    return error == cudaSuccess && attribute != cudaMemPoolAttrReleaseThreshold ? cudaErrorInvalidValue : error;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    const cudaError_t error = check_attribute(fake_enter("cudaMemPoolSetAttribute"), attribute);
    if (error == cudaSuccess)
        memcpy(&pool->release_threshold, value, sizeof pool->release_threshold);
    return fake_leave(error, "cudaMemPoolSetAttribute attribute=%d", (int)attribute);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    const cudaError_t error = check_attribute(fake_enter("cudaMemPoolGetAttribute"), attribute);
    if (error == cudaSuccess)
        memcpy(value, &pool->release_threshold, sizeof pool->release_threshold);
    return fake_leave(error, "cudaMemPoolGetAttribute attribute=%d", (int)attribute);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t kept)
{
    (void)pool;
    return fake_leave(fake_enter("cudaMemPoolTrimTo"), "cudaMemPoolTrimTo kept=%zu", kept);
}
