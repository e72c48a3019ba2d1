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

#ifdef __cplusplus
}
#endif

#endif
