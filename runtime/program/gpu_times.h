/*
 * Inside the runtime: how long the work of calls takes on a GPU, measured by events on the stream of the program, so that
 * no call waits. The times are read later, when the events have happened.
 */
#pragma once

#include "program/private.h"

/* The calls of a program that are being measured for one observer. */
typedef struct gts_gpu_times gts_gpu_times;

/* Gets the events before and behind the work of a call when both have happened, and what was passed at its end. */
typedef void (*gts_gpu_add)(const gts_cuda *, void *begin, void *end, void *context);

/* The ns between two events that have happened; false if the GPU does not say. */
bool gts_gpu_elapsed(const gts_cuda *, void *begin, void *end, double *ns);

/*
 * Puts an event before the work of a call on the stream; false if this call is not measured. *times is NULL for the
 * first call.
 */
bool gts_gpu_times_begin(gts_program *self, gts_gpu_times **times, gts_gpu_add add);

/* Puts an event behind the work of a call, for which `add` will get `context`; NULL: the call has failed. */
void gts_gpu_times_end(gts_program *self, gts_gpu_times *times, void *context);

/*
 * Adds all calls, after it has waited for the GPU, but at most `patience` ns unless that is GTS_FOREVER. The calls whose
 * work has not ended then are not measured. `times` may be NULL.
 */
void gts_gpu_times_collect(gts_program *self, gts_gpu_times *times, uint64_t patience);

/* Frees the events of a program that is being closed. */
void gts_gpu_times_free(gts_program *self, gts_gpu_times **times);
