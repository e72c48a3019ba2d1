/* Kernels. Libraries that nvcc has compiled register them when they are loaded, and launch them by host functions. */
#define _GNU_SOURCE
#include "fake.h"

struct CUkern_st {
    cudaKernel_t next;
    const void *function;
    char *name; /* without parameters; "map_0" for _Z5map_0Pd */
    void **binary;
};

static cudaKernel_t kernels;

static _Thread_local struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} configuration;

/* ---- Registration ---------------------------------------------------------------------------------------------- */

/* The name of a function of C++ that is in no namespace; any other as the compiler writes it. */
static char *plain_name(const char *mangled)
{
    char *end = NULL;
    const long length = strncmp(mangled, "_Z", 2) == 0 ? strtol(mangled + 2, &end, 10) : 0;
    const bool is_plain = length > 0 && strlen(end) >= (size_t)length;
    char *const name = is_plain ? strndup(end, (size_t)length) : strdup(mangled);
    if (name == NULL)
        fake_abort("out of memory");
    return name;
}

void **__cudaRegisterFatBinary(void *binary)
{
    (void)fake_enter("__cudaRegisterFatBinary");
    void **const handle = fake_allocate(sizeof *handle);
    *handle = binary;
    (void)fake_leave(cudaSuccess, "__cudaRegisterFatBinary");
    return handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    (void)fake_enter("__cudaUnregisterFatBinary");
    cudaKernel_t *place = &kernels;
    while (*place != NULL) {
        const cudaKernel_t kernel = *place;
        if (kernel->binary == handle) /* the name and the handle stay: they may be in use */
            *place = kernel->next;
        else
            place = &kernel->next;
    }
    (void)fake_leave(cudaSuccess, "__cudaUnregisterFatBinary");
}

char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

void __cudaRegisterFunction(void **handle, const char *function, char *device_function, const char *name,
                            int thread_limit, void *thread, void *block, dim3 *block_size, dim3 *grid_size,
                            int *warp_size)
{
    (void)device_function, (void)thread_limit, (void)thread, (void)block;
    (void)block_size, (void)grid_size, (void)warp_size;
    (void)fake_enter("__cudaRegisterFunction");
    const cudaKernel_t self = fake_allocate(sizeof *self);
    self->function = function;
    self->name = plain_name(name);
    self->binary = handle;
    self->next = kernels;
    kernels = self;
    (void)fake_leave(cudaSuccess, "__cudaRegisterFunction %s", self->name);
}

void __cudaRegisterVar(void **handle, char *variable, char *address, const char *name, int is_extern, size_t size,
                       int is_constant, int is_global)
{
    (void)handle, (void)variable, (void)address, (void)name;
    (void)is_extern, (void)size, (void)is_constant, (void)is_global;
}

void __cudaRegisterManagedVar(void **handle, void **variable, char *address, const char *name, int is_extern,
                              size_t size, int is_constant, int is_global)
{
    (void)handle, (void)variable, (void)address, (void)name;
    (void)is_extern, (void)size, (void)is_constant, (void)is_global;
}

/* ---- Launches -------------------------------------------------------------------------------------------------- */

/* The kernel of a host function, or of a handle that __cudaGetKernel() has returned. */
static cudaKernel_t find(const void *function)
{
    cudaKernel_t kernel = kernels;
    while (kernel != NULL && kernel->function != function && kernel != function)
        kernel = kernel->next;
    return kernel;
}

static bool is_empty(dim3 size)
{
    return size.x == 0 || size.y == 0 || size.z == 0;
}

static cudaError_t launch(const void *function, dim3 grid, dim3 block, size_t shared, cudaStream_t handle)
{
    cudaError_t error = fake_enter("cudaLaunchKernel");
    const struct CUkern_st *const kernel = find(function);
    const cudaStream_t stream = fake_stream(handle);
    (void)shared;
    if (error == cudaSuccess && kernel == NULL)
        error = cudaErrorInvalidDeviceFunction;
    if (error == cudaSuccess && (is_empty(grid) || is_empty(block) || block.x * block.y * block.z > 1024))
        error = cudaErrorInvalidConfiguration;
    if (error == cudaSuccess && stream != NULL && stream->number > 0 && stream->device != fake_current_device)
        error = cudaErrorInvalidResourceHandle;
    if (error == cudaSuccess)
        error = fake_enqueue(handle, &(fake_work){.kind = FAKE_KERNEL, .name = kernel->name}, NULL);
    return fake_leave(error, "cudaLaunchKernel %s stream=%s%s", kernel == NULL ? "?" : kernel->name,
                      fake_stream_text(handle), fake_captured_text(handle));
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream)
{
    (void)arguments;
    return launch(function, grid, block, shared, stream);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream)
{
    (void)arguments;
    return launch(kernel, grid, block, shared, stream);
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
    cudaError_t error = fake_enter("__cudaGetKernel");
    *kernel = find(function);
    if (error == cudaSuccess && *kernel == NULL)
        error = cudaErrorInvalidDeviceFunction;
    return fake_leave(error, "__cudaGetKernel");
}

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    configuration.grid = grid;
    configuration.block = block;
    configuration.shared = shared;
    configuration.stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = configuration.grid;
    *block = configuration.block;
    *shared = configuration.shared;
    memcpy(stream, &configuration.stream, sizeof configuration.stream);
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
    cudaError_t error = fake_enter("cudaFuncSetAttribute");
    const struct CUkern_st *const kernel = find(function);
    if (error == cudaSuccess && kernel == NULL)
        error = cudaErrorInvalidDeviceFunction;
    return fake_leave(error, "cudaFuncSetAttribute %s attribute=%d value=%d", kernel == NULL ? "?" : kernel->name,
                      (int)attribute, value);
}
