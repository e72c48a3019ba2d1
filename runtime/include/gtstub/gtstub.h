/**
 * @file
 * gtstub: the C interface of a compiled gt4py program.
 *
 * A program is two libraries: the SDFG library that DaCe built, and the call stub that gtstub generated for it.
 * gts_open() joins them; `<name>_call()`, declared in the generated `<name>_stub.h`, runs the program; gts_close() ends
 * it.
 *
 * Units: sizes, strides and origins are counted in elements, never in bytes.
 *
 * Threads: a program runs one call at a time; a second caller waits. Different programs are independent. A program must
 * not be closed while another thread calls it.
 *
 * Errors: a function that returns int returns 0 for success and -1 after it has filled in an error. Nothing has been
 * called or changed then.
 */
#ifndef GTSTUB_GTSTUB_H
#define GTSTUB_GTSTUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Number of the binary interface between runtime, stubs and hosts. A stub compiled for another one is refused. */
#define GTS_ABI 4

/** Most dimensions that a field can have. */
#define GTS_MAX_RANK 6

/** What the libraries export; all else is hidden. */
#define GTS_EXPORT __attribute__((visibility("default")))

/** Element types, numbered as gt4py's ScalarKind numbers them. */
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

/** Where memory lives, numbered as DLPack numbers its devices. */
typedef enum gts_device { GTS_CPU = 1, GTS_CUDA = 2, GTS_ROCM = 10 } gts_device;

/**
 * A field as a program sees it. The memory and the names belong to the caller. What stands behind the rank should be 0:
 * it is not used, but a C host's arrays are recognised by pairs of words. An array, and so a struct of arguments, is
 * aligned to 16 bytes, as malloc() aligns.
 */
typedef struct gts_array {
    /** the element at the lowest index of every axis, also where a stride is negative */
    __attribute__((aligned(16))) void *data;
    gts_dtype dtype : 16;           /**< type of the elements */
    gts_device device : 16;         /**< where `data` lives */
    int16_t rank;                   /**< number of axes */
    bool readonly;                  /**< the program must not write the memory */
    int64_t origin[GTS_MAX_RANK];   /**< index of the first element: where the domain starts */
    int64_t shape[GTS_MAX_RANK];    /**< elements on each axis */
    int64_t strides[GTS_MAX_RANK];  /**< elements from one index to the next */
    const char *dims[GTS_MAX_RANK]; /**< dimension of each axis, NULL where the caller does not say */
} gts_array;

/** What kind of mistake an error reports; a Python host raises the exception of the same name. */
typedef enum gts_error_kind { GTS_TYPE_ERROR = 1, GTS_VALUE_ERROR, GTS_RUNTIME_ERROR } gts_error_kind;

/** A refusal. */
typedef struct gts_error {
    gts_error_kind kind; /**< what kind of mistake it is */
    char message[1024];  /**< one sentence that names program, argument and axis */
} gts_error;

/** A loaded program. */
typedef struct gts_program gts_program;

/**
 * Loads a program from where its two libraries lie together, such as a cache entry.
 *
 * @param path     the stub library `<name>_stub.so`, or a directory that holds exactly one
 * @param program  belongs to the caller, who gives it back with gts_close(); NULL after an error
 * @return 0, or -1 and the error is gts_last_error(NULL)
 */
GTS_EXPORT int gts_open(const char *path, gts_program **program);

/**
 * Loads a program from two libraries, wherever they lie. Both paths are given to dlopen() as they are.
 *
 * @param stub_path     the call stub, `<name>_stub.so`
 * @param library_path  the SDFG library that it calls, `lib<name>.so`
 * @param program       belongs to the caller, who gives it back with gts_close(); NULL after an error
 * @return 0, or -1 with the error in gts_last_error(NULL)
 */
GTS_EXPORT int gts_load(const char *stub_path, const char *library_path, gts_program **program);

/**
 * Ends the SDFG's handle, frees the program and sets *program to NULL. The libraries stay mapped: their threads may
 * still be running.
 *
 * @param program  the program, which no thread may be calling; one that is NULL already stays so
 */
GTS_EXPORT void gts_close(gts_program **program);

/**
 * The last error of a program, or of this thread.
 *
 * @param program  the program; NULL for this thread's last error without one, which gts_open() and the call of a closed
 *                 program leave
 * @return the error, which belongs to the program and is valid until its next call; of no use while another thread calls
 */
GTS_EXPORT const gts_error *gts_last_error(const gts_program *program);

/**
 * The name of a program.
 *
 * @param program  the program
 * @return text that lives as long as the process
 */
GTS_EXPORT const char *gts_name(const gts_program *program);

/**
 * Lends the program memory for the transients that its SDFG keeps in `storage` (DaCe's name, "CPU_Heap" or "GPU_Global").
 *
 * @param program  the program
 * @param storage  where the SDFG wants it
 * @param memory   aligned to 256 bytes; it stays the caller's, and must outlive the program or the next gts_set_workspace()
 * @param size     bytes
 * @return 0, or -1 and the error is gts_last_error(program)
 */
GTS_EXPORT int gts_set_workspace(gts_program *program, const char *storage, void *memory, size_t size);

/**
 * Says where a field begins in gt4py's index space, for hosts whose arrays cannot say it, as Fortran's assumed-shape
 * ones. From then on it is the origin of every array that a Fortran host passes for the argument; before, it is 0 on
 * every axis. A C host writes gts_array.origin instead.
 *
 * @param program   the program
 * @param argument  as in messages: "vn", "x[0]", "state.vn"
 * @param origin    index of the first element of each axis
 * @param rank      number of axes, that of the field
 * @return 0, or -1 and the error is gts_last_error(program)
 */
GTS_EXPORT int gts_set_origin(gts_program *program, const char *argument, const int64_t *origin, int32_t rank);

/**
 * Says at which index the elements of a connectivity start counting: 0, as in gt4py, or 1, as in ICON. C hosts pass
 * tables of base 0 unless they say otherwise; Fortran hosts must say it.
 *
 * A table is checked when it is first seen: every index must be one of a field that is passed, or stand for no neighbor
 * (base - 1) where the program knows such. Of a table of base 1 the program makes a copy of base 0, so it must not be
 * changed in place afterwards, nor made anew where another one was; tables on a GPU must have base 0 and are not checked.
 *
 * @param program       the program
 * @param connectivity  its name in the offset provider: "E2C2V"
 * @param base          0 or 1
 * @return 0, or -1 and the error is gts_last_error(program)
 */
GTS_EXPORT int gts_set_index_base(gts_program *program, const char *connectivity, int64_t base);

/**
 * A profile records for each program how often it is called and how long that takes, from gts_profile_begin() to
 * gts_profile_end(), in all threads. Profiles nest: one that ends adds its figures to the one that was running when it
 * began, and ends those that began after it. Any number of threads may call programs meanwhile.
 */
typedef struct gts_profile gts_profile;

/**
 * Begins to time all calls of all programs and threads.
 *
 * @return the profile, which belongs to the caller, who gives it back with gts_profile_end(); NULL when memory runs out
 */
GTS_EXPORT gts_profile *gts_profile_begin(void);

/**
 * Waits for the calls that are running, and frees the profile. Must not be called in a call, for which it would wait.
 *
 * @param profile  what gts_profile_begin() has returned
 * @return its report, a JSON document (docs/formats.md) that belongs to the caller, who frees it with free(); NULL when
 *         memory runs out
 */
GTS_EXPORT char *gts_profile_end(gts_profile *profile);

/**
 * The name of an element type, as numpy has it.
 *
 * @param dtype  the type
 * @return "float64", for example: a constant
 */
GTS_EXPORT const char *gts_dtype_name(gts_dtype dtype);

/**
 * The name of a device.
 *
 * @param device  the device
 * @return "cpu", "cuda" or "rocm": a constant
 */
GTS_EXPORT const char *gts_device_name(gts_device device);

/**
 * The size of an element.
 *
 * @param dtype  its type
 * @return bytes, 0 for what is no type
 */
GTS_EXPORT size_t gts_dtype_size(gts_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
