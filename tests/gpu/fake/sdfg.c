/*
 * What the library of an SDFG does on a GPU, as DaCe generates it for one stream: for the recording library of
 * tests/support/sdfg_libraries.py, which includes this file. The program launches two kernels, with a temporary between
 * them, on the stream of __dace_gpu_set_all_streams(). It waits for nothing.
 */
#include <stdio.h>

#include "cudart.h"

struct sdfg {
    cudaStream_t stream, own_stream;
    cudaEvent_t event;
    cudaError_t error;
};

static const char first_kernel = 1, second_kernel = 2; /* the addresses of host functions */
static void **binary;

__attribute__((constructor)) static void register_kernels(void)
{
    binary = __cudaRegisterFatBinary(NULL);
    __cudaRegisterFunction(binary, &first_kernel, NULL, "_Z12first_kernelPd", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(binary, &second_kernel, NULL, "_Z13second_kernelPd", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(binary);
}

__attribute__((destructor)) static void unregister_kernels(void)
{
    __cudaUnregisterFatBinary(binary);
}

static void note(struct sdfg *self, cudaError_t error)
{
    if (self->error == cudaSuccess)
        self->error = error;
}

EXPORT void __dace_gpu_drain_error(void *handle)
{
    (void)handle;
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess)
        printf("WARNING: a GPU error was already pending: %s (%d).\n", cudaGetErrorString(error), (int)error);
}

EXPORT int __dace_gpu_last_error(void *handle)
{
    struct sdfg *const self = handle;
    const cudaError_t error = self->error;
    self->error = cudaSuccess;
    return (int)error;
}

EXPORT bool __dace_gpu_set_stream(void *handle, int index, cudaStream_t stream)
{
    if (index != 0)
        return false;
    ((struct sdfg *)handle)->stream = stream;
    return true;
}

EXPORT void __dace_gpu_set_all_streams(void *handle, cudaStream_t stream)
{
    ((struct sdfg *)handle)->stream = stream;
}

static void *start_sdfg(void)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || cudaSetDevice(0) != cudaSuccess)
        return NULL;
    __dace_gpu_drain_error(NULL);
    struct sdfg *const self = calloc(1, sizeof *self);
    void *byte = NULL;
    note(self, cudaMalloc(&byte, 1));
    note(self, cudaFree(byte));
    note(self, cudaStreamCreateWithFlags(&self->own_stream, cudaStreamNonBlocking));
    note(self, cudaEventCreateWithFlags(&self->event, cudaEventDisableTiming));
    __dace_gpu_set_all_streams(self, NULL);
    return self;
}

static void run_sdfg(void *handle)
{
    struct sdfg *const self = handle;
    const dim3 grid = {1, 2, 1}, block = {32, 8, 1};
    void *temporary = NULL;
    __dace_gpu_drain_error(self);
    note(self, cudaMallocAsync(&temporary, 1000, self->stream));
    note(self, cudaLaunchKernel(&first_kernel, grid, block, NULL, 0, self->stream));
    note(self, cudaLaunchKernel(&second_kernel, grid, block, NULL, 0, self->stream));
    if (record_behaviour.copies_to != NULL)
        note(self, cudaMemcpyAsync(record_behaviour.copies_to, record_behaviour.copies_from,
                                   record_behaviour.copies_bytes, cudaMemcpyDeviceToDevice, self->stream));
    note(self, cudaFreeAsync(temporary, self->stream));
    if (record_behaviour.waits)
        (void)cudaStreamSynchronize(self->stream); /* gt4py's code does not look at its result */
}

static int end_sdfg(void *handle)
{
    struct sdfg *const self = handle;
    note(self, cudaDeviceSynchronize());
    note(self, cudaStreamDestroy(self->own_stream));
    note(self, cudaEventDestroy(self->event));
    const cudaError_t error = self->error;
    free(self);
    return (int)error;
}
