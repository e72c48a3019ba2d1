/**
 * @file
 * gtstub: the C interface of a compiled gt4py program.
 *
 * A program consists of two libraries: the SDFG library that DaCe built, and the call stub that gtstub generated for
 * it. gts_open() loads both; `<name>_call()`, declared in the generated `<name>_stub.h`, runs the program; gts_close()
 * frees it.
 *
 * Units: sizes, strides and origins are counted in elements, never in bytes.
 *
 * Threads: a program runs one call at a time; a second caller waits. Different programs are independent. A program must
 * not be closed while another thread calls it.
 *
 * Errors: a function that returns int returns 0 for success and -1 after it has set an error. After -1, nothing has
 * been called or changed, unless the error is that of a GPU or of gts_checks_begin().
 */
#ifndef GTSTUB_GTSTUB_H
#define GTSTUB_GTSTUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Version of the binary interface between runtime, stubs and hosts. A stub compiled for another one is refused. */
#define GTS_ABI 11

/** Maximum number of dimensions of a field. */
#define GTS_MAX_RANK 6

/** Marks the symbols that a library exports; all others are hidden. What is linked statically exports none. */
#if defined GTS_LINKED || defined GTS_STATIC_RUNTIME
#define GTS_EXPORT __attribute__((visibility("hidden")))
#else
#define GTS_EXPORT __attribute__((visibility("default")))
#endif

/** Element types. Those up to GTS_FLOAT64 are numbered as gt4py's ScalarKind numbers them. */
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
    GTS_FLOAT64,
    GTS_FLOAT16, /**< of arrays alone */
    GTS_COMPLEX64,
    GTS_COMPLEX128
} gts_dtype;

/** The last of the element types. */
#define GTS_LAST_DTYPE GTS_COMPLEX128

/** Devices that memory can be on, numbered as DLPack numbers them. */
typedef enum gts_device { GTS_CPU = 1, GTS_CUDA = 2, GTS_ROCM = 10 } gts_device;

/**
 * A field as a program takes it. The caller owns the memory and the names. Elements of `origin`, `shape`, `strides` and
 * `dims` from index `rank` on should be 0: they are not used, but arrays of earlier calls are recognised by pairs of
 * words. An array, and so a struct of arguments, is aligned to 16 bytes, as malloc() aligns.
 */
typedef struct gts_array {
    /** the element at the lowest index of every axis, also where a stride is negative */
    __attribute__((aligned(16))) void *data;
    gts_dtype dtype : 16;           /**< type of the elements */
    gts_device device : 16;         /**< that `data` is on */
    int16_t rank;                   /**< number of axes */
    bool readonly;                  /**< the memory must not be written */
    int64_t origin[GTS_MAX_RANK];   /**< index of the first element in gt4py's index space */
    int64_t shape[GTS_MAX_RANK];    /**< number of elements on each axis */
    int64_t strides[GTS_MAX_RANK];  /**< elements from one index to the next; may be negative */
    const char *dims[GTS_MAX_RANK]; /**< name of each axis's dimension, or NULL not to have it checked */
} gts_array;

/** Kind of an error; a Python host raises the exception of the same name. */
typedef enum gts_error_kind { GTS_TYPE_ERROR = 1, GTS_VALUE_ERROR, GTS_RUNTIME_ERROR } gts_error_kind;

/** An error. */
typedef struct gts_error {
    gts_error_kind kind; /**< its kind */
    char message[1024];  /**< names program, argument and axis */
} gts_error;

/** What is wrong with an array of a Fortran host, as gtstub/fortran.h finds it. */
typedef enum gts_fortran_reason {
    GTS_FORTRAN_FINE,           /**< nothing, except that type or rank may be others */
    GTS_FORTRAN_ABSENT,         /**< the host has omitted the argument */
    GTS_FORTRAN_UNALLOCATED,    /**< it is not allocated, or not associated */
    GTS_FORTRAN_OTHER_COMPILER, /**< the descriptor is that of another compiler */
    GTS_FORTRAN_NO_SIZE,        /**< an axis has no size */
    GTS_FORTRAN_STRIDE,         /**< a stride is no multiple of the element size */
    GTS_FORTRAN_NO_INDEX_BASE,  /**< it is a table, and the host has set no index base for it */
    GTS_FORTRAN_POINTER         /**< a pointer has another type or rank than the array of a granule */
} gts_fortran_reason;

/** A loaded program. */
typedef struct gts_program gts_program;

/**
 * Loads a program whose two libraries are in one directory, such as a cache entry. A stub that is linked into the host
 * statically needs no library: it counts as being in each directory that contains its SDFG library.
 *
 * @param path     the stub library `<name>_stub.so`, or a directory that contains exactly one. "$ORIGIN" at its
 *                 beginning stands for the directory of the executable
 * @param program  receives the program, which the caller owns and passes to gts_close(); NULL after an error
 * @return 0, or -1 with the error in gts_last_error(NULL)
 */
GTS_EXPORT int gts_open(const char *path, gts_program **program);

/**
 * Loads a program from two libraries in any directories. A path without a slash is relative to the working directory,
 * too: LD_LIBRARY_PATH is not searched.
 *
 * @param stub_path     the call stub, `<name>_stub.so`; the name of this file for a stub that is linked statically
 * @param library_path  the SDFG library that it calls, `lib<name>.so`
 * @param program       receives the program, which the caller owns and passes to gts_close(); NULL after an error
 * @return 0, or -1 with the error in gts_last_error(NULL)
 */
GTS_EXPORT int gts_load(const char *stub_path, const char *library_path, gts_program **program);

/**
 * Ends the SDFG's handle, frees the program and sets *program to NULL. The libraries stay mapped, because their threads
 * may still be running.
 *
 * @param program  the program, which no thread may be calling; *program may be NULL
 */
GTS_EXPORT void gts_close(gts_program **program);

/**
 * Returns the last error of a program, or of this thread.
 *
 * @param program  the program; NULL: the last error of this thread that belongs to no program, as after gts_open() and
 *                 after the call of a closed program
 * @return the error, which the program owns. It is valid until the next call of the program, by any thread
 */
GTS_EXPORT const gts_error *gts_last_error(const gts_program *program);

/**
 * Returns the name of a program.
 *
 * @param program  the program
 * @return a text that is valid until the process ends
 */
GTS_EXPORT const char *gts_name(const gts_program *program);

/**
 * Lends the program memory for the transients of its SDFG.
 *
 * @param program  the program
 * @param storage  DaCe's name of the storage of these transients: "CPU_Heap" or "GPU_Global"
 * @param memory   aligned to 256 bytes. The caller owns it, and must not free it before gts_close() or the next
 *                 gts_set_workspace()
 * @param size     of the memory, in bytes
 * @return 0, or -1 with the error in gts_last_error(program)
 */
GTS_EXPORT int gts_set_workspace(gts_program *program, const char *storage, void *memory, size_t size);

/**
 * Sets the stream of a GPU that the kernels, copies and allocations of calls are put on. A call returns when its work
 * is on the stream, and waits for none of it. Calls on a new stream begin after the calls on the one before it have
 * ended on the GPU, because they use the same temporary memory.
 *
 * @param program  the program; NULL for all programs of this process that have no stream of their own, and for those
 *                 that are loaded later
 * @param stream   a cudaStream_t or hipStream_t of the GPU that is current in this thread; NULL is the default stream.
 *                 The caller owns it, and must not destroy it before the program has another one or is closed
 * @return 0, or -1 with the error in gts_last_error(program): the stream was destroyed or is another GPU's, or the
 *         program runs on the CPU. Then the streams are as before
 */
GTS_EXPORT int gts_set_stream(gts_program *program, void *stream);

/**
 * Makes a program follow gts_set_stream(NULL, ...) again.
 *
 * @param program  the program
 * @return 0, or -1 with the error in gts_last_error(program)
 */
GTS_EXPORT int gts_reset_stream(gts_program *program);

/**
 * Returns the stream that the next call of a program uses.
 *
 * @param program  the program; NULL for the stream of all programs that have none of their own
 * @return the stream; NULL is the default stream
 */
GTS_EXPORT void *gts_stream(const gts_program *program);

/**
 * Sets where a field begins in gt4py's index space, for hosts whose arrays do not contain it, such as the assumed-shape
 * arrays of Fortran. It becomes the origin of every array that a Fortran host passes for the argument. Until it is set,
 * the origin is 0 on every axis. A C host sets gts_array.origin instead.
 *
 * @param program   the program
 * @param argument  as in messages: "vn", "x[0]", "state.vn"
 * @param origin    [rank], index of the first element on each axis
 * @param rank      number of axes of the field
 * @return 0, or -1 with the error in gts_last_error(program)
 */
GTS_EXPORT int gts_set_origin(gts_program *program, const char *argument, const int64_t *origin, int32_t rank);

/**
 * Sets the index of the first element that a connectivity refers to: 0, as in gt4py, or 1, as in ICON. It is 0 for C
 * hosts until they set it. Fortran hosts must set it before the first call.
 *
 * A table is checked when it is first passed: every index must be one of a field of the call, or be base - 1 for no
 * neighbor if the program allows that. It is checked again when one of the elements that calls compare has changed. The
 * program copies a table of base 1 to base 0. After a change that may leave the compared elements as they are, call this
 * function again. Tables on a GPU must have base 0, and are neither checked nor compared.
 *
 * @param program       the program
 * @param connectivity  its name in the offset provider: "E2C2V"
 * @param base          0 or 1
 * @return 0, or -1 with the error in gts_last_error(program)
 */
GTS_EXPORT int gts_set_index_base(gts_program *program, const char *connectivity, int64_t base);

/**
 * A profile measures for each program how often it is called and how long the calls take, and the same for each
 * position of a step (gtstub/step.h), from gts_profile_begin() to gts_profile_end(), in all threads. Profiles nest: a
 * call counts in all profiles that were running when it began, and a profile that ends also ends all that began after
 * it. Any number of threads may call programs meanwhile.
 */
typedef struct gts_profile gts_profile;

/**
 * Begins to time all calls of all programs and threads, and the positions of all steps.
 *
 * @return the profile, which the caller owns and passes to gts_profile_end()
 */
GTS_EXPORT gts_profile *gts_profile_begin(void);

/**
 * Waits for the calls that are running, and frees the profile. A thread that is in a call must not use this function,
 * because it would wait for its own call.
 *
 * @param profile  the result of gts_profile_begin()
 * @return the report, a JSON document (docs/formats.md) that the caller frees with free(); NULL when memory runs out
 */
GTS_EXPORT char *gts_profile_end(gts_profile *profile);

/**
 * Gives the memory that SDFGs have freed, and that the process keeps for their next arrays, back to the system
 * (docs/memory.md). May be called at any time, in any thread.
 *
 * @return how many bytes were kept
 */
GTS_EXPORT size_t gts_pool_trim(void);

/**
 * Debug checks of the values of fields, from gts_checks_begin() to gts_checks_end(), in all threads. A call that writes
 * a value which they refuse fails with GTS_RUNTIME_ERROR after its SDFG has run. A call with such a value in a field
 * that it only reads fails before its SDFG runs. With the check "bounds", a call that accesses memory outside of its
 * arguments fails after its SDFG has run, and its arguments are as before. Each call is checked by all checks that have begun and not ended. Any
 * number of threads may call programs meanwhile.
 */
typedef struct gts_checks gts_checks;

/**
 * Begins to check all calls of all programs and threads.
 *
 * @param text  what is checked (docs/debugging.md): "nan; min delp*=0; range u=-280:280; only diffuse*; warn"
 * @return the checks, which the caller owns and passes to gts_checks_end(); NULL with the error in gts_last_error(NULL)
 */
GTS_EXPORT gts_checks *gts_checks_begin(const char *text);

/**
 * Waits for the calls that are running, and frees the checks. Prints a warning on stderr for each pattern that has
 * selected nothing, if any call was checked. A thread that is in a call must not use this function, because it would
 * wait for its own call.
 *
 * @param checks  the result of gts_checks_begin(); becomes NULL, and may be NULL
 */
GTS_EXPORT void gts_checks_end(gts_checks **checks);

/**
 * Returns numpy's name of an element type.
 *
 * @param dtype  the type
 * @return a constant text, "float64" for example
 */
GTS_EXPORT const char *gts_dtype_name(gts_dtype dtype);

/**
 * Returns the name of a device.
 *
 * @param device  the device
 * @return a constant text: "cpu", "cuda" or "rocm"
 */
GTS_EXPORT const char *gts_device_name(gts_device device);

/**
 * Returns the size of an element.
 *
 * @param dtype  its type
 * @return the size in bytes; 0 if `dtype` is not an element type
 */
GTS_EXPORT size_t gts_dtype_size(gts_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
