/**
 * @file
 * gtstub: granules. A granule is a set of steps over one set of arrays, which gtstub.Granule has exported from Python.
 *
 * The generated `<name>_granule.h` declares `<name>_open()`, `<name>_bind()` and a function for each step. The functions
 * here do the rest. Each array of a granule is either an argument, which the host passes when it binds, or kept: then
 * the granule owns the memory, whose values at the start are those of the export.
 *
 * Errors: a function that returns int returns 0 for success, and -1 with the error in gts_last_error(NULL).
 *
 * Threads: one thread at a time uses a granule.
 */
#ifndef GTSTUB_GRANULE_H
#define GTSTUB_GRANULE_H

#include "gtstub/step.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A granule that was opened. */
typedef struct gts_granule gts_granule;

/** A function of the host that a granule calls at some of its positions, such as a halo exchange. */
typedef struct gts_hook {
    /** Gets the arrays that the hook was declared with, as they are after all swaps; origins are not set. The step ends if it
     * does not return 0. */
    int (*function)(void *data, const gts_array *arrays);
    void *data; /**< that the function gets; owned by the host */
} gts_hook;

/**
 * Exchanges the memory of two arrays in all steps of a granule, as models do with time levels.
 *
 * @param granule  bound
 * @param a        name of an array, an argument or a kept one. A temporary can be swapped after a step has run
 * @param b        name of another one of the same type, sizes and strides
 * @return 0 or -1; then nothing has changed
 */
GTS_EXPORT int gts_granule_swap(gts_granule *granule, const char *a, const char *b);

/**
 * Looks at an array as it is now.
 *
 * @param granule  open; for an argument it must be bound, and for a temporary a step must have run
 * @param name     of an argument or of a kept array
 * @param array    receives the array. The memory of kept arrays is the granule's, until gts_granule_close()
 * @return 0 or -1
 */
GTS_EXPORT int gts_granule_array(const gts_granule *granule, const char *name, gts_array *array);

/**
 * Forgets the arguments and hooks, whose memory the host may then free. Kept arrays keep their values.
 *
 * @param granule  need not be bound, and may be closed or NULL. If it is running, it is refused: a hook cannot unbind it
 * @return 0 or -1; then nothing has changed
 */
GTS_EXPORT int gts_granule_unbind(gts_granule *granule);

/**
 * Closes the programs and frees the kept arrays. Other functions refuse a copy of the pointer afterwards. For that
 * refusal, a few hundred bytes of the granule stay in memory.
 *
 * @param granule  becomes NULL after success. It may be NULL, or a copy of one that was closed. If it is running, it is
 *                 refused: a hook cannot close it
 * @return 0 or -1; then nothing has changed
 */
GTS_EXPORT int gts_granule_close(gts_granule **granule);

/* ---- For generated code ------------------------------------------------------------------------------------------ */

/** An array of a granule. Kept arrays have these strides. */
typedef struct gts_granule_array_descriptor {
    const char *name;               /**< that the host knows it by */
    gts_dtype dtype;                /**< of its elements */
    int32_t rank;                   /**< number of axes, at least 1 */
    bool is_argument;               /**< the memory is the host's */
    bool is_table;                  /**< its elements are indices of a dimension */
    bool written;                   /**< a step writes it */
    int64_t shape[GTS_MAX_RANK];    /**< number of elements on each axis */
    int64_t strides[GTS_MAX_RANK];  /**< in elements; not used for an argument */
    const char *dims[GTS_MAX_RANK]; /**< names of the dimensions; NULL where no program has named them */
} gts_granule_array_descriptor;

/** A part of an array that is passed as an array of its own: axis i of it is axis `axis[i]` of the whole. */
typedef struct gts_section {
    int32_t rank;                /**< number of axes of the part */
    int64_t shape[GTS_MAX_RANK]; /**< of the part */
    int32_t axis[GTS_MAX_RANK];  /**< of the whole */
    int64_t step[GTS_MAX_RANK];  /**< along that axis, in indices; may be negative */
    int64_t first[GTS_MAX_RANK]; /**< index of the first element on each axis of the whole, from 0 */
} gts_section;

/** How a program gets an argument. */
typedef enum gts_granule_source {
    GTS_COMPILED_IN, /**< the program has its value */
    GTS_WHOLE,       /**< an array of the granule */
    GTS_SECTION,     /**< a part of one */
    GTS_CONSTANT,    /**< a value that nothing changes */
    GTS_VARIABLE     /**< a scalar that the host may set */
} gts_granule_source;

/** An argument of a program at one position. */
typedef struct gts_granule_argument {
    gts_granule_source source;  /**< which of the other members count */
    uint32_t index;             /**< of the array, or of the scalar for GTS_VARIABLE */
    const int64_t *origin;      /**< [rank] of the array as the program gets it; NULL if it is 0 on all axes */
    const gts_section *section; /**< for GTS_SECTION */
    const void *value;          /**< for GTS_CONSTANT: of the type of the argument */
} gts_granule_argument;

/** A program of a granule. */
typedef struct gts_granule_program {
    const char *folder;         /**< in the granule's folder */
    const char *program_digest; /**< as in gts_stub */
    const char *sdfg_digest;    /**< as in gts_stub */
} gts_granule_program;

/** A scalar that the host passes to the steps that use it. */
typedef struct gts_granule_scalar {
    const char *name;  /**< of the argument of programs */
    gts_dtype dtype;   /**< of the value */
    const void *value; /**< when the granule was exported */
    bool is_size;      /**< a signed integer that must not be negative */
} gts_granule_scalar;

/** A position of a step: a program, or a hook if there are no `arguments`. */
typedef struct gts_granule_position {
    uint32_t index;                        /**< of the program, or of the hook */
    const gts_granule_argument *arguments; /**< one for each leaf of the stub */
    uint32_t array_count;                  /**< of a hook: length of `arrays` */
    const uint32_t *arrays;                /**< of a hook: indices of the arrays that it gets */
} gts_granule_position;

/** A step of a granule. */
typedef struct gts_granule_step {
    const char *name;                      /**< in messages and profiles: the granule's name, _, the step's name */
    uint32_t count;                        /**< number of `positions` */
    const gts_granule_position *positions; /**< in the order of their calls */
} gts_granule_step;

/** Everything that the generated code knows of a granule. */
typedef struct gts_granule_descriptor {
    uint32_t abi;                               /**< GTS_ABI of the header that it was compiled with */
    const char *name;                           /**< of the granule */
    const char *digest;                         /**< SHA-256 of granule.json, hexadecimal */
    uint32_t array_count;                       /**< number of `arrays` */
    uint32_t program_count;                     /**< number of `programs` */
    uint32_t scalar_count;                      /**< number of `scalars` */
    uint32_t hook_count;                        /**< number of `hooks` */
    uint32_t step_count;                        /**< number of `steps` */
    const gts_granule_array_descriptor *arrays; /**< the host's and the kept ones */
    const gts_granule_program *programs;        /**< each once, whatever calls it */
    const gts_granule_scalar *scalars;          /**< that the host may set */
    const char *const *hooks;                   /**< names */
    const gts_granule_step *steps;              /**< that gts_granule_run() runs, by index */
} gts_granule_descriptor;

/**
 * Opens the programs in a folder, and maps its kept arrays.
 *
 * @param descriptor  of the generated code; must outlive the granule
 * @param folder      that gtstub.Granule.export() has written
 * @param granule     receives the granule, which the caller owns and passes to gts_granule_close(); NULL after an error
 * @return 0 or -1
 */
GTS_EXPORT int gts_granule_open(const gts_granule_descriptor *descriptor, const char *folder, gts_granule **granule);

/**
 * Checks the arguments of all steps, and keeps their addresses. Nothing runs. What was bound before is unbound after
 * success, and stays bound after an error.
 *
 * @param granule       open, and not running
 * @param arguments     the arrays that are arguments, in the order of the descriptor. Their origins are not used
 * @param index_base    of the first element that the tables among them refer to: 0 or 1
 * @param hooks         [hook_count], in the order of the descriptor
 * @param from_fortran  messages count dimensions and indices as Fortran does
 * @return 0 or -1
 */
GTS_EXPORT int gts_granule_bind(gts_granule *granule, const gts_array *arguments, int64_t index_base,
                                const gts_hook *hooks, bool from_fortran);

/**
 * Sets a scalar for the steps that run from now on. The next run of a step gives its calls all scalars that have changed.
 *
 * @param granule  bound
 * @param scalar   index in the descriptor
 * @param value    of the scalar's type; copied
 * @return 0 or -1
 */
GTS_EXPORT int gts_granule_set(gts_granule *granule, uint32_t scalar, const void *value);

/**
 * Runs a step with the scalars that were set last. They are checked together; after a refusal nothing has run, and the
 * calls of the step have the scalars of its run before.
 *
 * @param granule  bound
 * @param step     index in the descriptor
 * @return 0 or -1; the error says what has run
 */
GTS_EXPORT int gts_granule_run(gts_granule *granule, uint32_t step);

/**
 * For gtstub/fortran.h: refuses an array or a pointer of a Fortran host.
 *
 * @param granule  open; another one is refused as such
 * @param name     of the array
 * @param reason   what is wrong
 * @param array    what gtstub/fortran.h has read of it; of a pointer the type and the rank
 * @return -1
 */
GTS_EXPORT int gts_granule_refuse_fortran(const gts_granule *granule, const char *name, gts_fortran_reason reason,
                                          const gts_array *array);

#ifdef __cplusplus
}
#endif

#endif
