/* Calls and their errors: those that a test asks for, sticky ones, and the last one of each thread. */
#include "fake.h"

#include <pthread.h>

#define MOST_FAILURES 32

static struct {
    char function[128];
    int after;
    cudaError_t error; /* cudaSuccess: a free place */
} failures[MOST_FAILURES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cudaError_t sticky;
static _Thread_local cudaError_t last;

static const struct {
    cudaError_t error;
    bool is_sticky;
    const char *name, *text;
} errors[] = {
    {cudaSuccess, false, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, false, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, false, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, false, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, false, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidDeviceFunction, false, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorInsufficientDriver, false, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, false, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, false, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNoKernelImageForDevice, false, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorECCUncorrectable, true, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorInvalidResourceHandle, false, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorIllegalState, false, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {cudaErrorNotReady, false, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, true, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorLaunchOutOfResources, false, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {cudaErrorLaunchTimeout, true, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {cudaErrorAssert, true, "cudaErrorAssert", "device-side assert triggered"},
    {cudaErrorMisalignedAddress, true, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorLaunchFailure, true, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorStreamCaptureUnsupported, false, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, false, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, false, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, false, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, false, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, false, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureImplicit, false, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, false, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread, false, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {cudaErrorUnknown, false, "cudaErrorUnknown", "unknown error"},
};

#define ERROR_COUNT (sizeof errors / sizeof *errors)

void fake_abort(const char *reason)
{
    (void)fprintf(stderr, "fake CUDA: %s\n", reason);
    abort();
}

void *fake_allocate(size_t size)
{
    void *const memory = calloc(1, size);
    if (memory == NULL)
        fake_abort("out of memory");
    return memory;
}

static bool is_sticky(cudaError_t error)
{
    for (size_t i = 0; i < ERROR_COUNT; ++i)
        if (errors[i].error == error)
            return errors[i].is_sticky;
    return false;
}

/* The error that a test asks for, of a function or a kernel. */
static cudaError_t asked_for(const char *function)
{
    for (size_t i = 0; i < MOST_FAILURES; ++i) {
        if (failures[i].error == cudaSuccess)
            continue;
        if (strcmp(failures[i].function, function) != 0 && strcmp(failures[i].function, "*") != 0)
            continue;
        if (failures[i].after == 0)
            return failures[i].error;
        --failures[i].after;
    }
    return cudaSuccess;
}

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

cudaError_t fake_enter(const char *function)
{
    (void)pthread_mutex_lock(&lock);
    if (sticky != cudaSuccess)
        return sticky;
    const cudaError_t error = asked_for(function);
    if (is_sticky(error))
        sticky = error;
    return error == cudaSuccess && fake_device_count == 0 ? cudaErrorNoDevice : error;
}

cudaError_t fake_enter_unsafe(const char *function)
{
    const cudaError_t error = fake_enter(function);
    return error == cudaSuccess ? fake_check_unsafe() : error;
}

cudaError_t fake_leave(cudaError_t error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fake_log_call(format, arguments, error);
    va_end(arguments);
    if (error != cudaSuccess)
        last = error;
    (void)pthread_mutex_unlock(&lock);
    return error;
}

void fake_run_kernel(const char *name)
{
    const cudaError_t error = asked_for(name);
    if (sticky == cudaSuccess)
        sticky = error;
}

cudaError_t fake_sticky(void)
{
    return sticky;
}

static cudaError_t last_error(const char *function, bool is_taken)
{
    cudaError_t error = fake_enter(function);
    if (error == cudaSuccess)
        error = last;
    (void)fake_leave(error, "%s", function);
    last = is_taken && error != sticky ? cudaSuccess : error;
    return error;
}

cudaError_t cudaGetLastError(void)
{
    return last_error("cudaGetLastError", true);
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error("cudaPeekAtLastError", false);
}

const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < ERROR_COUNT; ++i)
        if (errors[i].error == error)
            return errors[i].name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    for (size_t i = 0; i < ERROR_COUNT; ++i)
        if (errors[i].error == error)
            return errors[i].text;
    return "unrecognized error code";
}

/* ---- Control --------------------------------------------------------------------------------------------------- */

static void fail(const char *function, size_t length, int after, int error)
{
    size_t place = MOST_FAILURES;
    for (size_t i = MOST_FAILURES; i-- > 0;) {
        const bool is_same = strncmp(failures[i].function, function, length) == 0 &&
                             failures[i].function[length] == '\0';
        if (failures[i].error == cudaSuccess || is_same)
            place = i;
        if (is_same)
            break;
    }
    if (place == MOST_FAILURES || length >= sizeof failures[0].function)
        fake_abort("too many failures, or too long a name");
    memcpy(failures[place].function, function, length);
    failures[place].function[length] = '\0';
    failures[place].after = after;
    failures[place].error = (cudaError_t)error;
}

void fake_cuda_fail(const char *function, int after, int error)
{
    (void)pthread_mutex_lock(&lock);
    fail(function, strlen(function), after, error);
    (void)pthread_mutex_unlock(&lock);
}

void fake_cuda_recover(void)
{
    (void)pthread_mutex_lock(&lock);
    memset(failures, 0, sizeof failures);
    sticky = last = cudaSuccess;
    (void)pthread_mutex_unlock(&lock);
}

/* FAKE_CUDA_FAIL: "cudaMalloc:2=2,cudaSetDevice=101". */
__attribute__((constructor)) static void read_environment(void)
{
    const char *text = getenv("FAKE_CUDA_FAIL");
    while (text != NULL && *text != '\0') {
        const size_t length = strcspn(text, ":=,");
        char *end = (char *)text + length;
        const long after = *end == ':' ? strtol(end + 1, &end, 10) : 0;
        const long error = *end == '=' ? strtol(end + 1, &end, 10) : 0;
        if (error == 0 || (*end != ',' && *end != '\0'))
            fake_abort("FAKE_CUDA_FAIL is not understood");
        fail(text, length, (int)after, (int)error);
        text = *end == ',' ? end + 1 : end;
    }
}
