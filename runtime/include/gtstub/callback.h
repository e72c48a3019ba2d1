/*
 * gtstub: functions of a host that an SDFG calls. DaCe passes no data with them, so that a stub has a function of its
 * own for each, and knows which program is running.
 */
#ifndef GTSTUB_CALLBACK_H
#define GTSTUB_CALLBACK_H

#include "gtstub/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An argument or a result of a callback: a scalar, or an array. */
typedef struct gts_callback_value {
    void *data;             /**< address of the scalar, or of the array's first element */
    gts_dtype dtype;        /**< of the scalar, or of the elements */
    int32_t rank;           /**< number of axes; 0 for a scalar */
    const int64_t *shape;   /**< [rank], in elements */
    const int64_t *strides; /**< [rank], in elements */
} gts_callback_value;

/** A callback that this thread is running. They form a list, because a callback may call another program. */
typedef struct gts_callback_frame {
    const gts_program *program;                /**< whose SDFG has called it */
    const struct gts_callback_frame *outer;    /**< the callback in which that program was called, in any thread */
    const struct gts_callback_frame *previous; /**< the innermost callback of this thread before */
} gts_callback_frame;

/** The innermost callback of this thread; NULL outside callbacks. */
GTS_EXPORT extern __thread const gts_callback_frame *gts_innermost_callback;

/* gcc 14 warns in stubs that the frame does not outlive their function: gts_callback_end() has taken it back by then. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdangling-pointer"
#endif

/** Begins a callback. Returns -1 if an earlier one has failed: then no other is called, and results are 0. */
static inline int gts_callback_begin(const gts_program *self, gts_callback_frame *frame)
{
    if (GTS_UNLIKELY(__atomic_load_n(&self->callback_failed, __ATOMIC_RELAXED)))
        return -1;
    frame->program = self;
    frame->outer = self->outer_callback;
    frame->previous = gts_innermost_callback;
    gts_innermost_callback = frame;
    return 0;
}

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#pragma GCC diagnostic pop
#endif

static inline void gts_callback_end(const gts_callback_frame *frame)
{
    gts_innermost_callback = frame->previous;
}

/** Whether this thread runs for a callback of `self`, so that a call of `self` would wait for itself. */
GTS_EXPORT bool gts_calls_back(const gts_program *self);

/**
 * Calls the function of a host that has its own objects, by self->call_back.
 *
 * @param leaf    the leaf of the callback
 * @param values  the `arguments` arguments, then the `results` results, which are written
 */
GTS_EXPORT void gts_callback_host(gts_program *self, uint32_t leaf, const gts_callback_value *values,
                                  uint32_t arguments, uint32_t results);

/** Before the SDFG runs: waits until no other program of the same stub is running, and makes `self` *running. */
GTS_EXPORT int gts_callbacks_begin(gts_program **running, gts_program *self);

/** After the SDFG has run. Returns -1 if a callback has failed. */
GTS_EXPORT int gts_callbacks_end(gts_program **running, gts_program *self);

/** For C and Fortran hosts: refuses a callback without a function. */
GTS_EXPORT int gts_check_callbacks(gts_program *self);

#ifdef __cplusplus
}
#endif

#endif
