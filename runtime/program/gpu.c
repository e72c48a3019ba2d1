/* The GPU of a program: the errors that it reports, and the memory that is on it. */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/refuse.h"
#include "program/private.h"

/* ---- The current GPU of a thread ------------------------------------------------------------------------------- */

int gts_gpu_check_current(gts_program *self)
{
    const gts_cuda *const cuda = self->runtime->gpu.cuda;
    int device = GTS_OWN_GPU;
    if (cuda != NULL && cuda->get_device(&device) != 0)
        (void)cuda->get_last_error(); /* there is no driver: the first call says so */
    if (GTS_LIKELY(device == GTS_OWN_GPU))
        return 0;
    return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR,
                              "runs on GPU 0, but GPU %d is current in this thread. Set CUDA_VISIBLE_DEVICES so that "
                              "each process sees only its own GPU.",
                              device);
}

const gts_cuda *gts_gpu_functions(const gts_program *self)
{
    const gts_cuda *const own = self->runtime->gpu.cuda;
    return own != NULL ? own : gts_cuda_loaded();
}

/* ---- Errors ---------------------------------------------------------------------------------------------------- */

/* The program that saw the error after which no kernel can run in this process; empty if there was none. */
static char first_to_fail[128];
GTS_LOCK(failing)

/*
 * Whether the GPU can run nothing any more in this process, because a kernel has failed. Other errors, such as one of
 * a launch, are cleared by reading them.
 */
static bool is_lost(const gts_gpu *gpu)
{
    if (gpu->cuda == NULL || gts_cuda_capture(gpu->cuda, gpu->stream) != 0)
        return false;
    (void)gpu->cuda->get_last_error();
    if (gpu->cuda->stream_synchronize(gpu->stream) == 0)
        return false;
    (void)gpu->cuda->get_last_error(); /* it may be that of a stream that was destroyed, too */
    void *event;
    if (gpu->cuda->event_create(&event, GTS_CUDA_WITHOUT_TIMING) != 0)
        return gpu->cuda->get_last_error() != 0;
    (void)gpu->cuda->event_destroy(event);
    return false;
}

static GTS_COLD int refuse_error(gts_program *self, int error)
{
    const gts_gpu *const gpu = &self->runtime->gpu;
    const gts_cuda_text found = gts_cuda_describe(gpu->cuda, error);
    const bool cannot_recover = is_lost(gpu);
    if (!cannot_recover && gts_gpu_check_current(self) != 0) /* such a call fails: this says why */
        return -1;
    pthread_mutex_lock(&failing);
    const bool is_first = *first_to_fail == '\0';
    if (cannot_recover && is_first)
        snprintf(first_to_fail, sizeof first_to_fail, "%s", self->stub->name);
    if (cannot_recover && !is_first)
        GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR,
                           "cannot run: the GPU reports %s since a call of program '%s'. Start a new process.",
                           found.text, first_to_fail);
    else if (cannot_recover && !gpu->synchronizes)
        gts_error_set(&self->error, GTS_RUNTIME_ERROR,
                      "The GPU reported %s while program '%s' ran. The kernel that failed may be an earlier program's: "
                      "GTSTUB_GPU_SYNC=1 names that program.",
                      found.text, self->stub->name);
    else
        gts_error_set(&self->error, GTS_RUNTIME_ERROR, "The GPU reported %s while program '%s' ran.", found.text,
                      self->stub->name);
    pthread_mutex_unlock(&failing);
    return -1;
}

int gts_gpu_after_run(gts_program *self)
{
    const gts_gpu *const gpu = &self->runtime->gpu;
    int error = GTS_LIKELY(gpu->last_error != NULL) ? gpu->last_error(self->sdfg) : 0;
    /* Some copies of DaCe's, and what gt4py waits by, are not checked. DaCe clears older errors when a call begins. */
    if (GTS_LIKELY(error == 0 && gpu->last_error != NULL && gpu->cuda != NULL))
        error = gpu->cuda->get_last_error();
    if (GTS_UNLIKELY(gpu->synchronizes) && error == 0 && gpu->cuda != NULL &&
        gts_cuda_capture(gpu->cuda, gpu->stream) == 0)
        error = gpu->cuda->stream_synchronize(gpu->stream);
    return GTS_LIKELY(error == 0) ? 0 : refuse_error(self, error);
}

int gts_gpu_wait(gts_program *self)
{
    const gts_gpu *const gpu = &self->runtime->gpu;
    const int error = gpu->cuda != NULL ? gpu->cuda->stream_synchronize(gpu->stream) : 0;
    return GTS_LIKELY(error == 0) ? 0 : refuse_error(self, error);
}

/* ---- The handle ------------------------------------------------------------------------------------------------ */

int gts_gpu_before_init(gts_program *self)
{
    const gts_gpu *const gpu = &self->runtime->gpu;
    if (gpu->cuda == NULL)
        return 0;
    int count = 0;
    const int error = gpu->cuda->get_device_count(&count);
    if (error != 0)
        return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR, "finds no GPU: %s.",
                                  gts_cuda_describe(gpu->cuda, error).text);
    if (count == 0)
        return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR, "finds no GPU.");
    if (gts_gpu_check_current(self) != 0)
        return -1;
    if (gts_cuda_capture(gpu->cuda, gpu->stream) != 0)
        return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR,
                                  "allocates memory in this call, so its stream must not be captured: call it once "
                                  "before, with the same sizes.");
    return 0;
}

int gts_gpu_after_init(gts_program *self)
{
    const gts_gpu *const gpu = &self->runtime->gpu;
    int error = gpu->last_error == NULL ? 0 : gpu->last_error(self->sdfg);
    if (error == 0 && gpu->cuda != NULL) {
        /* The memory of the handle was set up on the default stream. */
        if (gpu->stream != NULL)
            error = gts_cuda_order(gpu->cuda, NULL, gpu->stream);
        gpu->set_all_streams(self->sdfg, gpu->stream);
    }
    if (GTS_LIKELY(error == 0))
        return 0;
    return gts_error_set(&self->error, GTS_RUNTIME_ERROR,
                         "The SDFG of program '%s' could not be initialised: the GPU reported %s.", self->stub->name,
                         gts_cuda_describe(gpu->cuda, error).text);
}

/* ---- Memory ---------------------------------------------------------------------------------------------------- */

/* In the memory of the host, and only there. */
enum { ON_HOST = -1 };

/* The GPU whose memory has an address, or ON_HOST. Without a driver it is nowhere wrong: the first call says so. */
static int find_device(const gts_gpu *gpu, const void *data)
{
    gts_pointer found = {0};
    if (gpu->cuda == NULL || gpu->cuda->pointer_get_attributes == NULL)
        return GTS_OWN_GPU;
    if (data == NULL)
        return ON_HOST;
    if (GTS_UNLIKELY(gpu->cuda->pointer_get_attributes(&found, data) != 0)) {
        (void)gpu->cuda->get_last_error();
        return GTS_OWN_GPU;
    }
    if (found.memory == GTS_MEMORY_HOST)
        return ON_HOST;
    return found.memory == GTS_MEMORY_DEVICE ? found.device : GTS_OWN_GPU;
}

int gts_gpu_check_memory(gts_program *self, const gts_contract *contract, const void *data)
{
    if (GTS_UNLIKELY(gts_gpu_check_current(self) != 0))
        return -1;
    const int device = find_device(&self->runtime->gpu, data);
    if (GTS_UNLIKELY(device == ON_HOST))
        return GTS_REFUSE(self, contract, GTS_VALUE_ERROR,
                          "must be in the memory of a GPU, but 0x%" PRIxPTR " is in the memory of the host.",
                          (uintptr_t)data);
    if (GTS_UNLIKELY(device != GTS_OWN_GPU))
        return GTS_REFUSE(self, contract, GTS_VALUE_ERROR, "is on GPU %d, but the program runs on GPU 0.", device);
    return 0;
}

int gts_gpu_check_workspace(gts_program *self, const char *storage, const void *memory)
{
    const int device = memory == NULL ? GTS_OWN_GPU : find_device(&self->runtime->gpu, memory);
    if (device == ON_HOST)
        return gts_error_set(&self->error, GTS_VALUE_ERROR,
                             GTS_WORKSPACE "must be in the memory of a GPU, but 0x%" PRIxPTR
                                           " is in the memory of the host.",
                             self->stub->name, storage, (uintptr_t)memory);
    if (device != GTS_OWN_GPU)
        return gts_error_set(&self->error, GTS_VALUE_ERROR,
                             GTS_WORKSPACE "is on GPU %d, but the program runs on GPU 0.", self->stub->name, storage,
                             device);
    return 0;
}
