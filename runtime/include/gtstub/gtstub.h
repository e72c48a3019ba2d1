/*
 * gtstub: the C interface of a compiled gt4py program.
 *
 * A program is two libraries: the SDFG library that DaCe built, and the call stub that gtstub generated for it.
 * gts_load() joins them; <name>_call(), declared in the generated <name>_stub.h, runs the program.
 *
 * Units: sizes, strides and origins are counted in elements, never in bytes.
 * Threads: a program runs one call at a time; a second caller waits. Different programs are independent.
 * Errors: a function that returns int returns 0 for success and -1 after it has filled in an error.
 */
#ifndef GTSTUB_GTSTUB_H
#define GTSTUB_GTSTUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Number of the binary interface between runtime, stubs and hosts. A stub compiled for another one is refused. */
#define GTS_ABI 2

/* Most dimensions that a field can have. */
#define GTS_MAX_RANK 6

#define GTS_EXPORT __attribute__((visibility("default")))

/* Element types, numbered as gt4py's ScalarKind numbers them. */
typedef enum gts_dtype {
    GTS_BOOL = 1,
    GTS_INT8,
    GTS_UINT8,
    GTS_INT16,
    GTS_UINT16,
    GTS_INT32,
    GTS_UINT32,
    GTS_INT64,
    GTS_UINT64,
    GTS_FLOAT32,
    GTS_FLOAT64
} gts_dtype;

/* Where memory lives, numbered as DLPack numbers its devices. */
typedef enum gts_device { GTS_CPU = 1, GTS_CUDA = 2, GTS_ROCM = 10 } gts_device;

/* A field as a program sees it. The memory and the names belong to the caller. */
typedef struct gts_array {
    void *data; /* the element at the lowest index of every axis, also where a stride is negative */
    gts_dtype dtype;
    gts_device device;
    int32_t rank;
    bool readonly;
    int64_t origin[GTS_MAX_RANK];   /* index of the first element: where the domain starts */
    int64_t shape[GTS_MAX_RANK];    /* elements on each axis */
    int64_t strides[GTS_MAX_RANK];  /* elements from one index to the next */
    const char *dims[GTS_MAX_RANK]; /* dimension of each axis, NULL where the caller does not say */
} gts_array;

/* What kind of mistake an error reports; a Python host raises the exception of the same name. */
typedef enum gts_error_kind { GTS_TYPE_ERROR = 1, GTS_VALUE_ERROR, GTS_RUNTIME_ERROR } gts_error_kind;

typedef struct gts_error {
    gts_error_kind kind;
    char message[1024];
} gts_error;

typedef struct gts_program gts_program;

/*
 * Loads a stub and the SDFG library that it calls. Both paths are given to dlopen() as they are.
 * On success *program belongs to the caller, who gives it back with gts_unload().
 */
GTS_EXPORT int gts_load(const char *stub_path, const char *library_path, gts_program **program, gts_error *error);

/* Ends the SDFG's handle and frees the program. The libraries stay mapped: their threads may still be running. */
GTS_EXPORT void gts_unload(gts_program *program);

/* The last error of this program; valid until its next call. */
GTS_EXPORT const gts_error *gts_last_error(const gts_program *program);

/*
 * Lends the program memory for the transients that its SDFG keeps in `storage` (DaCe's name, "CPU_Heap" or "GPU_Global").
 * The memory must be aligned to 256 bytes, hold `size` bytes, and outlive the program or the next gts_set_workspace().
 */
GTS_EXPORT int gts_set_workspace(gts_program *program, const char *storage, void *memory, size_t size);

/*
 * A profile records for each program how often it is called and how long that takes, from gts_profile_begin() to
 * gts_profile_end(), in all threads. Profiles nest: one that ends adds its figures to the one that was running when it
 * began, and ends those that began after it. Any number of threads may call programs meanwhile.
 */
typedef struct gts_profile gts_profile;

/* NULL when memory runs out. */
GTS_EXPORT gts_profile *gts_profile_begin(void);

/*
 * Waits for the calls that are running, and frees the profile. Returns its report, a JSON document (docs/formats.md) that
 * belongs to the caller, who frees it with free(); NULL when memory runs out. Must not be called in a call.
 */
GTS_EXPORT char *gts_profile_end(gts_profile *profile);

GTS_EXPORT const char *gts_dtype_name(gts_dtype dtype);
GTS_EXPORT const char *gts_device_name(gts_device device);
GTS_EXPORT size_t gts_dtype_size(gts_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
