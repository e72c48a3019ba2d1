/* Finds the functions of CUDA or ROCm. */
#include "base/lock.h"
#include "program/private.h"

#include <stdio.h>
#include <string.h>

/* Names without 'cuda' or 'hip'. */
#define FUNCTION(member, name) {offsetof(gts_cuda, member), name, false}
#define OPTIONAL(member, name) {offsetof(gts_cuda, member), name, true}
static const struct {
    size_t member;
    const char *name;
    bool is_optional;
} FUNCTIONS[] = {
    FUNCTION(get_device_count, "GetDeviceCount"),   FUNCTION(get_device, "GetDevice"),
    FUNCTION(get_last_error, "GetLastError"),       FUNCTION(get_error_name, "GetErrorName"),
    FUNCTION(get_error_string, "GetErrorString"),   OPTIONAL(pointer_get_attributes, "PointerGetAttributes"),
    FUNCTION(memcpy_async, "MemcpyAsync"),          FUNCTION(stream_synchronize, "StreamSynchronize"),
    FUNCTION(stream_get_flags, "StreamGetFlags"),   OPTIONAL(stream_get_device, "StreamGetDevice"),
    FUNCTION(stream_wait_event, "StreamWaitEvent"), FUNCTION(stream_is_capturing, "StreamIsCapturing"),
    FUNCTION(event_create, "EventCreateWithFlags"), FUNCTION(event_record, "EventRecord"),
    FUNCTION(event_destroy, "EventDestroy"),
};

GTS_LOCK(lock) /* of `functions` until it is complete */
static gts_cuda functions;
static _Atomic bool is_complete;

/* Returns the name of a function that is missing; NULL if none is. */
static const char *find_all(void *library, gts_device device)
{
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; ++i) {
        gts_function function;
        gts_library_find(library, device == GTS_CUDA ? "cuda" : "hip", FUNCTIONS[i].name, &function);
        if (function == NULL && !FUNCTIONS[i].is_optional)
            return FUNCTIONS[i].name;
        memcpy((char *)&functions + FUNCTIONS[i].member, &function, sizeof function);
    }
    if (device != GTS_CUDA)
        functions.pointer_get_attributes = NULL;
    return NULL;
}

const gts_cuda *gts_cuda_find(void *library, gts_device device, const char **missing)
{
    *missing = NULL;
    pthread_mutex_lock(&lock);
    if (!is_complete && (*missing = find_all(library, device)) == NULL)
        is_complete = true;
    pthread_mutex_unlock(&lock);
    return gts_cuda_loaded();
}

const gts_cuda *gts_cuda_loaded(void)
{
    return is_complete ? &functions : NULL;
}

gts_cuda_text gts_cuda_describe(const gts_cuda *cuda, int error)
{
    gts_cuda_text found;
    if (cuda == NULL)
        snprintf(found.text, sizeof found.text, "error %d", error);
    else
        snprintf(found.text, sizeof found.text, "error %d (%s: %s)", error, cuda->get_error_name(error),
                 cuda->get_error_string(error));
    return found;
}

int gts_cuda_capture(const gts_cuda *cuda, void *stream)
{
    int status = 0;
    /* The default stream, which cudaStreamLegacy is too. Asking for it ends the capture of another stream. */
    if ((uintptr_t)stream <= 1)
        return 0;
    return cuda->stream_is_capturing(stream, &status) == 0 ? status : 0;
}

int gts_cuda_order(const gts_cuda *cuda, void *from, void *to)
{
    void *event;
    int error = cuda->event_create(&event, GTS_CUDA_WITHOUT_TIMING);
    if (error == 0) {
        error = cuda->event_record(event, from);
        if (error == 0)
            error = cuda->stream_wait_event(to, event, 0);
        (void)cuda->event_destroy(event); /* when the work before it has ended */
    }
    if (error != 0)
        (void)cuda->get_last_error(); /* the caller reports it */
    return error;
}

int gts_cuda_copy(const gts_cuda *cuda, void *stream, void *to, const void *from, size_t size, bool waits)
{
    int error = size == 0 ? 0 : cuda->memcpy_async(to, from, size, GTS_CUDA_ANY_DIRECTION, stream);
    if (error == 0 && waits)
        error = cuda->stream_synchronize(stream);
    if (error != 0)
        (void)cuda->get_last_error(); /* the SDFG must not find it */
    return error;
}
