/* The stream of a GPU that a program puts its work on. */
#include <inttypes.h>
#include <stdatomic.h>

#include "base/error.h"
#include "base/refuse.h"
#include "program/private.h"

/* Of all programs that have none of their own. Any thread may set it while another one loads a program. */
static void *_Atomic process_stream;

/* Checks a stream that is not the default one. */
static int check_stream(gts_program *self, void *stream)
{
    const gts_gpu *const gpu = &self->runtime->gpu;
    unsigned int flags;
    const int error = gpu->cuda->stream_get_flags(stream, &flags);
    if (error != 0) {
        (void)gpu->cuda->get_last_error();
        return GTS_REFUSE_PROGRAM(self, GTS_VALUE_ERROR, "cannot use the stream 0x%" PRIxPTR ": %s.", (uintptr_t)stream,
                                  gts_cuda_describe(gpu->cuda, error).text);
    }
    int device = GTS_OWN_GPU;
    if (gpu->cuda->stream_get_device != NULL && gpu->cuda->stream_get_device(stream, &device) == 0 &&
        device != GTS_OWN_GPU)
        return GTS_REFUSE_PROGRAM(self, GTS_VALUE_ERROR,
                                  "cannot use the stream 0x%" PRIxPTR
                                  ": it is of GPU %d, but the program runs on GPU 0.",
                                  (uintptr_t)stream, device);
    return 0;
}

/* Orders two streams of a program. The one before may have been destroyed; then nothing is left to wait for. */
static int order(gts_program *self, void *before, void *stream)
{
    const gts_cuda *const cuda = self->runtime->gpu.cuda;
    unsigned int flags;
    const int error = gts_cuda_order(cuda, before, stream);
    if (error == 0)
        return 0;
    if (before != NULL && cuda->stream_get_flags(before, &flags) != 0) {
        (void)cuda->get_last_error();
        return 0;
    }
    return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR,
                              "cannot wait on the stream 0x%" PRIxPTR " for its calls on the one before: %s.",
                              (uintptr_t)stream, gts_cuda_describe(cuda, error).text);
}

bool gts_stream_is_captured(const gts_program *self)
{
    const gts_cuda *const cuda = gts_gpu_functions(self);
    return cuda != NULL && gts_cuda_capture(cuda, self->runtime->gpu.stream) != 0;
}

int gts_stream_wait(gts_program *self, void *stream)
{
    const gts_gpu *const gpu = &self->runtime->gpu;
    const bool is_default = (uintptr_t)stream <= 1; /* 0 and 1 are both the default stream */
    if (gpu->cuda == NULL || stream == gpu->stream || (is_default && (uintptr_t)gpu->stream <= 1) ||
        gts_stream_is_captured(self) || gts_cuda_capture(gpu->cuda, stream) != 0)
        return 0;
    if (gts_gpu_check_current(self) != 0)
        return -1;
    const int error = gts_cuda_order(gpu->cuda, is_default ? NULL : stream, gpu->stream);
    if (error == 0)
        return 0;
    return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR, "cannot wait for the stream 0x%" PRIxPTR " of an array: %s.",
                              (uintptr_t)stream, gts_cuda_describe(gpu->cuda, error).text);
}

/* The program is entered. Calls on the new stream wait for those on the old one, which use the same temporary memory. */
static int set_stream(gts_program *self, void *stream)
{
    gts_gpu *const gpu = &self->runtime->gpu;
    if (stream == gpu->stream)
        return 0;
    if (gts_gpu_check_current(self) != 0)
        return -1;
    if (gpu->cuda != NULL && stream != NULL && check_stream(self, stream) != 0)
        return -1;
    if (gpu->cuda != NULL && self->sdfg != NULL) {
        /* Calls that a host captures need no order, because they run when it launches its graph. */
        if (gts_cuda_capture(gpu->cuda, stream) == 0 && gts_cuda_capture(gpu->cuda, gpu->stream) == 0 &&
            order(self, gpu->stream, stream) != 0)
            return -1;
        gpu->set_all_streams(self->sdfg, stream);
    }
    gpu->stream = stream;
    return 0;
}

static void follow(gts_program *self, void *status)
{
    if (self->stub->device == GTS_CPU || self->runtime->gpu.has_own_stream || gts_enter_open(self) != 0)
        return;
    if (set_stream(self, gts_stream(NULL)) != 0) {
        gts_own_error = self->error;
        *(int *)status = -1;
    }
    gts_leave(self);
}

/* Sets the stream of all programs that have none of their own. */
static int set_current(void *stream)
{
    void *const before = atomic_exchange(&process_stream, stream);
    int status = 0;
    gts_loaded_visit(follow, &status);
    if (status != 0) {
        int ignored;
        process_stream = before;
        gts_loaded_visit(follow, &ignored);
    }
    return status;
}

/* Sets the stream of a program to its own one or, once the program has been entered, to that of all programs. */
static int set_stream_of(gts_program *program, void *stream, bool is_own)
{
    if (gts_enter_open(program) != 0)
        return -1;
    const int status = program->stub->device == GTS_CPU
                           ? GTS_REFUSE_PROGRAM(program, GTS_VALUE_ERROR, "runs on the CPU and has no stream.")
                           : set_stream(program, is_own ? stream : gts_stream(NULL));
    if (status == 0)
        program->runtime->gpu.has_own_stream = is_own;
    gts_leave(program);
    return status;
}

int gts_set_stream(gts_program *program, void *stream)
{
    if (program != NULL)
        return set_stream_of(program, stream, true);
    return set_current(stream);
}

int gts_reset_stream(gts_program *program)
{
    return set_stream_of(program, NULL, false);
}

void *gts_stream(const gts_program *program)
{
    return program == NULL ? process_stream : program->runtime->gpu.stream;
}
