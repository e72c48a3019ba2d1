/*
 * Inside the runtime: how long the work of calls takes on a GPU, measured by events on the stream of the program, so that
 * no call waits. The times are read later, when the events have happened.
 */
#pragma once

#include "profile/histogram.h"

/* Puts an event before the work of a call on the stream; false if this call is not measured. */
bool gts_gpu_times_begin(gts_program *self);

/* Puts an event behind the work of a call. Its time will be added to `calls`; NULL: the call has failed. */
void gts_gpu_times_end(gts_program *self, gts_call_times *calls);

/*
 * Adds all times to their calls, after it has waited for the GPU, but at most `patience` ns unless that is GTS_FOREVER.
 * The calls whose work has not ended then are not measured.
 */
void gts_gpu_times_collect(gts_program *self, uint64_t patience);

/* Frees the events of a program that is being closed. */
void gts_gpu_times_free(gts_program *self);
