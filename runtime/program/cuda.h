/*
 * Inside the runtime: the functions of CUDA or ROCm that it calls. It is linked with neither. It finds them in the
 * library that the first loaded SDFG library is linked with. A function that returns int returns 0 or the number of an
 * error. Streams and events are pointers.
 */
#pragma once

#include "gtstub/gtstub.h"

/* The kinds of memory of cudaPointerGetAttributes(). */
typedef enum gts_memory { GTS_MEMORY_HOST, GTS_MEMORY_PINNED, GTS_MEMORY_DEVICE, GTS_MEMORY_MANAGED } gts_memory;

/* cudaPointerAttributes since CUDA 11, with room for the members that later versions have appended. */
typedef struct gts_pointer {
    int memory; /* gts_memory */
    int device; /* the number of the GPU */
    void *address_on_device, *address_on_host;
    long appended[32];
} gts_pointer;

typedef struct gts_cuda {
    int (*get_device_count)(int *count);
    int (*get_device)(int *device);
    int (*get_last_error)(void);
    const char *(*get_error_name)(int error);
    const char *(*get_error_string)(int error);
    int (*pointer_get_attributes)(gts_pointer *attributes, const void *pointer); /* NULL for ROCm: another struct */
    int (*memcpy_async)(void *to, const void *from, size_t bytes, int kind, void *stream);
    int (*stream_synchronize)(void *stream);
    int (*stream_get_flags)(void *stream, unsigned int *flags);
    int (*stream_get_device)(void *stream, int *device); /* NULL before CUDA 12.8 */
    int (*stream_wait_event)(void *stream, void *event, unsigned int flags);
    int (*stream_is_capturing)(void *stream, int *status);
    int (*event_create)(void **event, unsigned int flags);
    int (*event_record)(void *event, void *stream);
    int (*event_destroy)(void *event);
} gts_cuda;

enum {
    GTS_CUDA_WITHOUT_TIMING = 2, /* a cheaper event */
    GTS_CUDA_ANY_DIRECTION = 4   /* of a copy: the addresses tell */
};

/*
 * The functions that an SDFG library is linked with. The result is the same for all libraries of a process. `library` is
 * from dlopen(), and is never closed. If a function is not there, the result is NULL and *missing its name.
 */
const gts_cuda *gts_cuda_find(void *library, gts_device device, const char **missing);

/* The functions, if gts_cuda_find() has found them; else NULL. */
const gts_cuda *gts_cuda_loaded(void);

typedef struct gts_cuda_text {
    char text[256];
} gts_cuda_text;

/* The text "error 2 (cudaErrorMemoryAllocation: out of memory)". `cuda` may be NULL. */
gts_cuda_text gts_cuda_describe(const gts_cuda *cuda, int error);

/* The status of the capture of a stream; 0 if it is not captured. */
int gts_cuda_capture(const gts_cuda *cuda, void *stream);

/* Makes the work that is put on stream `to` from now on wait for what is on stream `from`. Returns an error of CUDA. */
int gts_cuda_order(const gts_cuda *cuda, void *from, void *to);

/* Copies bytes in any direction and, if `waits`, waits for the stream. Returns an error of CUDA, which is cleared. */
int gts_cuda_copy(const gts_cuda *cuda, void *stream, void *to, const void *from, size_t size, bool waits);
