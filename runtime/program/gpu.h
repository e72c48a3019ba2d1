/* Inside the runtime: what a program for a GPU has besides others. */
#pragma once

#include "gtstub/program.h"
#include "program/cuda.h"

typedef struct gts_gpu {
    const gts_cuda *cuda;                              /* NULL if the program has no kernels */
    int (*last_error)(void *sdfg);                     /* `__dace_gpu_last_error`; NULL if it is not exported */
    void (*set_all_streams)(void *sdfg, void *stream); /* `__dace_gpu_set_all_streams` */
    void *stream;                                      /* that the next call uses; NULL is the default stream */
    bool has_own_stream;                               /* gts_set_stream() has set it for this program alone */
    bool synchronizes; /* GTSTUB_GPU_SYNC was set when the program was loaded, or the call is checked */
} gts_gpu;

/* The GPU that DaCe selects when it initialises the handle of a program, and no other. */
enum { GTS_OWN_GPU = 0 };

/*
 * Checks that no other GPU is current in this thread. Not every call does it: the first one does, one with a new array,
 * one that has failed, and the setting of another stream.
 */
int gts_gpu_check_current(gts_program *self);

/* The functions that copy the arrays of a program from a GPU; NULL if no library is loaded that has them. */
const gts_cuda *gts_gpu_functions(const gts_program *self);

/* Checks that there is a GPU, before the SDFG's handle is initialised. */
int gts_gpu_before_init(gts_program *self);

/* Checks that the handle could be initialised, and makes it use the stream of the program. */
int gts_gpu_after_init(gts_program *self);

/* Checks that the memory of an array is on the GPU that the program uses. */
int gts_gpu_check_memory(gts_program *self, const gts_contract *contract, const void *data);

/* The same for a workspace in the memory of a GPU. */
int gts_gpu_check_workspace(gts_program *self, const char *storage, const void *memory);
