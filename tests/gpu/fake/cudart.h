/*
 * What the stand-in exports of the CUDA runtime, with the binary interface of CUDA 13. Nothing of NVIDIA's is included:
 * tests/gpu/test_fake.py compares these declarations with NVIDIA's headers where nvcc is.
 */
#ifndef FAKE_CUDART_H
#define FAKE_CUDART_H

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

#define CUDART_VERSION 13000

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInitializationError = 3,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorECCUncorrectable = 214,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorIllegalState = 401,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchOutOfResources = 701,
    cudaErrorLaunchTimeout = 702,
    cudaErrorAssert = 710,
    cudaErrorMisalignedAddress = 716,
    cudaErrorLaunchFailure = 719,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorStreamCaptureMerge = 902,
    cudaErrorStreamCaptureUnmatched = 903,
    cudaErrorStreamCaptureUnjoined = 904,
    cudaErrorStreamCaptureIsolation = 905,
    cudaErrorStreamCaptureImplicit = 906,
    cudaErrorCapturedEvent = 907,
    cudaErrorStreamCaptureWrongThread = 908,
    cudaErrorUnknown = 999
} cudaError_t;

enum cudaMemoryType {
    cudaMemoryTypeUnregistered = 0,
    cudaMemoryTypeHost = 1,
    cudaMemoryTypeDevice = 2,
    cudaMemoryTypeManaged = 3
};

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};

enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone = 0,
    cudaStreamCaptureStatusActive = 1,
    cudaStreamCaptureStatusInvalidated = 2
};

enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal = 0,
    cudaStreamCaptureModeThreadLocal = 1,
    cudaStreamCaptureModeRelaxed = 2
};

enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4 };

enum cudaDeviceAttr {
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrUnifiedAddressing = 41,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
    cudaDevAttrMemoryPoolsSupported = 115
};

enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

struct cudaPointerAttributes {
    enum cudaMemoryType type;
    int device;
    void *devicePointer;
    void *hostPointer;
    long reserved[8];
};

typedef struct dim3 {
    unsigned int x, y, z;
} dim3;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;
typedef struct CUkern_st *cudaKernel_t;
typedef void (*cudaHostFn_t)(void *);

#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)

/* ---- errors.c -------------------------------------------------------------------------------------------------- */

EXPORT cudaError_t cudaGetLastError(void);
EXPORT cudaError_t cudaPeekAtLastError(void);
EXPORT const char *cudaGetErrorName(cudaError_t error);
EXPORT const char *cudaGetErrorString(cudaError_t error);

/* ---- device.c -------------------------------------------------------------------------------------------------- */

EXPORT cudaError_t cudaGetDeviceCount(int *count);
EXPORT cudaError_t cudaSetDevice(int device);
EXPORT cudaError_t cudaGetDevice(int *device);
EXPORT cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
EXPORT cudaError_t cudaDeviceSynchronize(void);
EXPORT cudaError_t cudaDriverGetVersion(int *version);
EXPORT cudaError_t cudaRuntimeGetVersion(int *version);
EXPORT cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
EXPORT cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device);
EXPORT cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value);
EXPORT cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value);
EXPORT cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t kept);

/* ---- memory.c and copies.c ------------------------------------------------------------------------------------- */

EXPORT cudaError_t cudaMalloc(void **pointer, size_t size);
EXPORT cudaError_t cudaMallocHost(void **pointer, size_t size);
EXPORT cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned int flags);
EXPORT cudaError_t cudaMallocManaged(void **pointer, size_t size, unsigned int flags);
EXPORT cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream);
EXPORT cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream);
EXPORT cudaError_t cudaFree(void *pointer);
EXPORT cudaError_t cudaFreeHost(void *pointer);
EXPORT cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream);
EXPORT cudaError_t cudaMemGetInfo(size_t *available, size_t *total);
EXPORT cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer);

EXPORT cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind);
EXPORT cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                                   cudaStream_t stream);
EXPORT cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                     size_t height, enum cudaMemcpyKind kind, cudaStream_t stream);
EXPORT cudaError_t cudaMemset(void *to, int value, size_t size);
EXPORT cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t stream);

/* ---- streams.c and events.c ------------------------------------------------------------------------------------ */

EXPORT cudaError_t cudaStreamCreate(cudaStream_t *stream);
EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority);
EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream);
EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream);
EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream);
EXPORT cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags);
EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
EXPORT cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device);
EXPORT cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id);
EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data);

EXPORT cudaError_t cudaEventCreate(cudaEvent_t *event);
EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags);
EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags);
EXPORT cudaError_t cudaEventQuery(cudaEvent_t event);
EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event);
EXPORT cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);
EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event);

/* ---- graphs.c -------------------------------------------------------------------------------------------------- */

EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);
EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags);
EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags);
EXPORT cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph);

/* ---- launches.c ------------------------------------------------------------------------------------------------ */

EXPORT cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                    cudaStream_t stream);
EXPORT cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value);
EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                                      cudaStream_t stream);
EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
EXPORT unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
EXPORT void **__cudaRegisterFatBinary(void *binary);
EXPORT void __cudaRegisterFatBinaryEnd(void **handle);
EXPORT void __cudaUnregisterFatBinary(void **handle);
EXPORT char __cudaInitModule(void **handle);
EXPORT void __cudaRegisterFunction(void **handle, const char *function, char *device_function, const char *name,
                                   int thread_limit, void *thread, void *block, dim3 *block_size, dim3 *grid_size,
                                   int *warp_size);
EXPORT void __cudaRegisterVar(void **handle, char *variable, char *address, const char *name, int is_extern,
                              size_t size, int is_constant, int is_global);
EXPORT void __cudaRegisterManagedVar(void **handle, void **variable, char *address, const char *name, int is_extern,
                                     size_t size, int is_constant, int is_global);

#endif
