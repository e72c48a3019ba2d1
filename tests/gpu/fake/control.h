/*
 * A stand-in for the CUDA runtime (libcudart.so.13), for tests on machines without a GPU. It runs no kernels. All else
 * happens as on a device: work is pending on its stream until the host waits for it, the host cannot access memory of
 * the device, and some errors stay. These functions tell a test what was called, and make calls fail.
 *
 * Settings of a process that starts with it: FAKE_CUDA_FAIL="cudaMalloc:2=2,cudaSetDevice=101" is what fake_cuda_fail()
 * takes (function, ':' and `after` unless that is 0, '=' and error); FAKE_CUDA_DEVICES=2 is the number of devices; each
 * line of the log is also written to the file FAKE_CUDA_LOG.
 */
#ifndef FAKE_CUDA_CONTROL_H
#define FAKE_CUDA_CONTROL_H

#define FAKE_CUDA_EXPORT __attribute__((visibility("default")))

/*
 * The calls so far, in order, a line for each: "cudaLaunchKernel map_0 stream=3". " -> 700" follows if the call has
 * returned an error, " captured" if the work became part of a graph. Streams, events and graphs are numbered from 1 as
 * they are created; stream 0 is the default stream, and "?" one that was never created. The text is the library's, and
 * valid until the next call of any function.
 */
FAKE_CUDA_EXPORT const char *fake_cuda_log(void);

/* The work that has run so far, in order: "map_0 stream=3". Work that was enqueued and is not here is pending. */
FAKE_CUDA_EXPORT const char *fake_cuda_ran(void);

/* Empties both texts. */
FAKE_CUDA_EXPORT void fake_cuda_clear(void);

/*
 * After `after` calls, the function of this name returns `error` and does nothing, until error 0 is set for it. If it
 * is the name of a kernel, the kernel fails while it runs, and a later call returns the error. "*" is every function
 * and kernel. Errors after which a device is lost (700, 719, ...) are sticky: every later call returns them.
 */
FAKE_CUDA_EXPORT void fake_cuda_fail(const char *function, int after, int error);

/* Forgets all failures and a sticky error. */
FAKE_CUDA_EXPORT void fake_cuda_recover(void);

/* The number of devices, 1 at first; without one, every call returns error 100. */
FAKE_CUDA_EXPORT void fake_cuda_devices(int count);

/* The number in the log of a stream; -1 if there never was such a stream. */
FAKE_CUDA_EXPORT int fake_cuda_stream_number(const void *stream);

/* Allocations of a kind (enum cudaMemoryType) that were not freed. */
FAKE_CUDA_EXPORT int fake_cuda_allocations(int type);

#endif
