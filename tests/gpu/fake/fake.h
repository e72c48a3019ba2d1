/* Inside the stand-in: calls, work on streams, captures. One lock is held from fake_enter() to fake_leave(). */
#ifndef FAKE_H
#define FAKE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "cudart.h"

/* ---- errors.c -------------------------------------------------------------------------------------------------- */

/* Begins a call. Returns the error that it must return instead of doing anything, or cudaSuccess. */
cudaError_t fake_enter(const char *function);

/* Begins a call that CUDA refuses while a stream is captured, because it waits or may wait. */
cudaError_t fake_enter_unsafe(const char *function);

/* Ends a call: writes a line of the log, with the error, and returns the error. */
__attribute__((format(printf, 2, 3))) cudaError_t fake_leave(cudaError_t error, const char *format, ...);

/* The error of a kernel that runs, if a test asks for one; it becomes sticky. */
void fake_run_kernel(const char *name);

/* The error of an earlier kernel. */
cudaError_t fake_sticky(void);

/* Ends the process: the stand-in itself cannot go on. */
_Noreturn void fake_abort(const char *reason);
void *fake_allocate(size_t size);

/* ---- log.c ----------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 0))) void fake_log_call(const char *format, va_list arguments, cudaError_t error);
__attribute__((format(printf, 1, 2))) void fake_log_ran(const char *format, ...);

/* ---- device.c -------------------------------------------------------------------------------------------------- */

extern int fake_device_count;
extern _Thread_local int fake_current_device;

/* ---- work.c ---------------------------------------------------------------------------------------------------- */

typedef struct fake_capture fake_capture;
typedef struct fake_work fake_work;

struct CUstream_st {
    cudaStream_t next;
    int number;
    int device;
    unsigned int flags;
    int priority;
    bool is_destroyed;
    bool was_asked; /* a query has found it busy */
    double clock;   /* ms: each kernel, copy and memset takes one */
    fake_work *work;
    fake_capture *capture; /* NULL unless it is captured */
    uint64_t captured;     /* pieces of its work that were captured */
    bool is_unjoined;      /* no other captured stream waits for all of them */
};

struct fake_work {
    fake_work *next;
    enum { FAKE_KERNEL, FAKE_COPY, FAKE_SET, FAKE_FREE, FAKE_HOST, FAKE_RECORD, FAKE_WAIT } kind;
    uint64_t ticket;  /* the order of all work */
    const char *name; /* of a kernel or a host function */
    char *to;
    const char *from; /* or, for FAKE_WAIT, unused */
    char *staged;     /* a copy of `from`, that the work owns; or NULL */
    size_t to_pitch, from_pitch, width, height;
    int value;
    cudaHostFn_t function;
    void *data;
    cudaEvent_t event;
    cudaStream_t awaited;    /* FAKE_WAIT: until this stream has run ... */
    uint64_t awaited_ticket; /* ... all work up to this ticket */
};

/* The stream of a handle; NULL if there is none or it was destroyed. */
cudaStream_t fake_stream(cudaStream_t handle);

/* Its number in the log, as text that is valid in this thread for the next few calls. */
const char *fake_stream_text(cudaStream_t handle);

/* " captured" if the work of a stream becomes part of a graph. */
const char *fake_captured_text(cudaStream_t handle);

/*
 * Enqueues a copy of `work` on a stream, or adds it to the graph that captures the stream. `ticket` receives its
 * ticket, unless it is NULL; in a capture, the number of pieces of work that were captured from the stream.
 */
cudaError_t fake_enqueue(cudaStream_t handle, const fake_work *work, uint64_t *ticket);

/* Runs all work of a stream up to a ticket, and what it waits for. */
void fake_run(cudaStream_t stream, uint64_t ticket);
void fake_run_all(void);
bool fake_is_done(cudaStream_t stream, uint64_t ticket);

/* Takes all streams out of a capture. Returns whether one of them was not joined. */
bool fake_leave_capture(const fake_capture *capture);

/* ---- memory.c -------------------------------------------------------------------------------------------------- */

typedef struct fake_range fake_range;

struct fake_range {
    fake_range *next;
    char *begin;
    size_t size; /* as asked for */
    enum cudaMemoryType type;
    int device;
};

/* The allocation that an address is in, or NULL. */
fake_range *fake_find(const void *pointer);
void fake_release(fake_range *range);

/* Lets the stand-in itself access memory of the device, and takes that back. */
void fake_open(const void *pointer, bool is_open);

/* ---- events.c -------------------------------------------------------------------------------------------------- */

struct CUevent_st {
    cudaEvent_t next;
    int number;
    unsigned int flags;
    bool is_destroyed;
    bool was_asked;
    bool was_recorded;
    cudaStream_t stream; /* of the last record */
    uint64_t ticket;
    double time;           /* ms, when the record ran */
    fake_capture *capture; /* NULL unless the last record was captured */
};

/* ---- graphs.c -------------------------------------------------------------------------------------------------- */

struct fake_capture {
    cudaStream_t origin;
    enum cudaStreamCaptureMode mode;
    bool is_invalidated;
    uint64_t thread;
    cudaGraph_t graph;
    fake_capture *next; /* of those that run */
};

/* What was allocated in a capture: freed with its graph and with all that was instantiated from it. */
typedef struct fake_memory {
    int users;
    size_t count;
    void **allocations;
} fake_memory;

struct CUgraph_st {
    int number;
    size_t count;
    fake_work *work;
    fake_memory *memory;
};

/* Makes an allocation part of the graph that captures a stream. */
void fake_capture_memory(cudaStream_t stream, void *pointer);

/* Ends a capture. Returns whether a stream was not joined. */
bool fake_end_capture(fake_capture *capture);

/* Adds work to the graph that captures a stream, and returns its error. */
cudaError_t fake_capture_work(cudaStream_t stream, const fake_work *work);

/* Invalidates the capture of a stream and returns `error`; 901 if it was invalidated before. */
cudaError_t fake_invalidate(fake_capture *capture, cudaError_t error);

/* What a call returns that may wait, while a capture of this thread or a global one runs; it invalidates that. */
cudaError_t fake_check_unsafe(void);

/* What work on the default stream returns while a stream is captured that it would wait for. */
cudaError_t fake_check_implicit(void);

/* Lets a stream wait for an event where one of the two is captured. */
cudaError_t fake_capture_wait(cudaStream_t stream, cudaEvent_t event);

#endif
