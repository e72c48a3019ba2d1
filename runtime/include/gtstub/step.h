/**
 * @file
 * gtstub: calls whose arguments are bound once, and steps, which start several of them in order.
 *
 * A bound call knows its program and all arguments. They are checked when it is bound. Starting it looks at none of
 * them again. A step is a list of bound calls, of functions of the host, and of other steps.
 *
 * Threads: a bound call may be started by any thread; calls of one program run one at a time. One thread at a time runs
 * a step, or changes a bound call or a step.
 */
#ifndef GTSTUB_STEP_H
#define GTSTUB_STEP_H

#include "gtstub/gtstub.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Bound calls ----------------------------------------------------------------------------------------------- */

/** A call with all its arguments. */
typedef struct gts_bound_call gts_bound_call;

/**
 * Checks the arguments of a call as `<name>_call()` does, and keeps them. Nothing runs. The memory of the arrays stays
 * the host's, which must not free it before gts_unbind() and before all steps that contain the call are freed. With
 * GTSTUB_DEBUG=1, each start looks whether the memory is still there. The names in `dims` may be freed after this call.
 *
 * @param program  loaded; the call cannot be started after gts_close()
 * @param args     the `struct <name>_args` of the program, which is copied
 * @param call     receives the bound call, which the caller owns and passes to gts_unbind(); NULL after an error
 * @return 0, or -1 with the error in gts_last_error(program)
 */
GTS_EXPORT int gts_bind(gts_program *program, const void *args, gts_bound_call **call);

/**
 * Returns the program of a bound call, for gts_last_error().
 *
 * @param call  bound, or NULL
 * @return the program; NULL if it was closed, and for NULL
 */
GTS_EXPORT gts_program *gts_bound_program(const gts_bound_call *call);

/**
 * Runs the program with the arguments of a bound call. If another call has initialised the SDFG for other sizes, it is
 * initialised again.
 *
 * @param call  bound; NULL is refused
 * @return 0, or -1 with the error in gts_last_error(gts_bound_program(call))
 */
GTS_EXPORT int gts_start(gts_bound_call *call);

/**
 * Changes a scalar of a bound call. The arguments are checked again.
 *
 * @param call      bound; NULL is refused
 * @param argument  as in messages: "dtime", "x[0]"
 * @param dtype     of the value: that of the member of `struct <name>_args`. A signed integer may be passed for an
 *                  unsigned one of the same size, because Fortran has no others
 * @param value     is copied
 * @return 0, or -1 with the error as after gts_start(); then the scalar is as before
 */
GTS_EXPORT int gts_set_scalar(gts_bound_call *call, const char *argument, gts_dtype dtype, const void *value);

/**
 * Frees a bound call. The steps that contain it keep it until they are freed themselves, and may still run.
 *
 * @param call  becomes NULL, and may be NULL
 */
GTS_EXPORT void gts_unbind(gts_bound_call **call);

/* ---- Steps ----------------------------------------------------------------------------------------------------- */

/** Actions that are done in order. */
typedef struct gts_step gts_step;

/**
 * What a step does at one of its positions. It has one of `call`, `function`, `step` and `array_function`. The others are
 * NULL. A changed scalar reaches the calls of a step inside the step, and swapped arrays reach them and the arrays of an
 * `array_function`. They do not reach what a `function` finds in its `data`, also not a step that it runs.
 */
typedef struct gts_action {
    gts_bound_call *call;        /**< that is started. The step keeps it */
    int (*function)(void *data); /**< of the host. The step ends if it does not return 0 */
    void *data;                  /**< that the function gets; owned by the host */
    const char *name; /**< of a function or a step in messages and profiles; copied. NULL: the step's, or `unnamed` */
    gts_step *step;   /**< that is run. The outer step keeps it */
    /** A function that uses arrays, such as a halo exchange. It gets their addresses as they are after all swaps. */
    int (*array_function)(void *data, void *const *arrays);
    void *const *arrays; /**< of `array_function`: addresses, as gts_step_swap() takes them; copied */
    size_t array_count;  /**< number of `arrays` */
} gts_action;

/**
 * Makes a step.
 *
 * @param name     in messages and profiles; copied. NULL: `unnamed`
 * @param actions  copied
 * @param count    number of actions
 * @param step     receives the step, which the caller owns and passes to gts_step_free(); NULL after an error
 * @return 0, or -1 with the error in gts_last_error(NULL)
 */
GTS_EXPORT int gts_step_new(const char *name, const gts_action *actions, size_t count, gts_step **step);

/**
 * Finds a step of this process that Python has handed over under a name (`gtstub.hand_over()`). It is Python's own step,
 * with Python's memory: a scalar that one side sets, and arrays that one side swaps, are changed for both. Python keeps
 * the step and its arrays until it takes them back. After that, and after Python has ended, the step is refused, but must
 * still be freed. In a forked child it is refused, too.
 *
 * Programs run without the GIL. The GIL is taken for functions of Python, for programs that read objects at each start
 * (zero-dimensional fields, callbacks), at the end of gts_step_swap(), and while calls are observed by profiles,
 * timelines, checks or recordings. The exception of a function becomes the error of gts_step_run(), and its
 * traceback goes to `sys.unraisablehook`. A step of C or Fortran may contain the step, but its changes do not reach it:
 * they are refused.
 *
 * @param name  that Python has given it
 * @param step  receives the step, a reference that the caller owns and passes to gts_step_free(); NULL after an error
 * @return 0, or -1 with the error in gts_last_error(NULL), which lists the names that there are
 */
GTS_EXPORT int gts_step_find(const char *name, gts_step **step);

/**
 * Does all actions. After an error, the actions before the one that has failed have been done, and no others. If a
 * profile or a timeline is running when the step begins, each action is timed.
 *
 * @param step  neither it nor a step inside it is running in another thread or called by one of its own functions; NULL
 *              is refused
 * @return 0, or -1 with the error in gts_last_error(NULL), which names the step and the position
 */
GTS_EXPORT int gts_step_run(gts_step *step);

/**
 * Changes a scalar in all bound calls of a step, and of the steps inside it, that have it.
 *
 * @param step      not running, nor are the steps inside it
 * @param argument  as in gts_set_scalar()
 * @param dtype     as in gts_set_scalar(); in all these calls the scalar must have this type
 * @param value     is copied
 * @return 0, or -1 with the error in gts_last_error(NULL); then all scalars are as before
 */
GTS_EXPORT int gts_step_set_scalar(gts_step *step, const char *argument, gts_dtype dtype, const void *value);

/**
 * Exchanges the memory of two arrays in all bound calls and among the arrays of all functions of a step, and of the steps
 * inside it, as models do with time levels. An array is known by its address, and has the layout of the largest argument
 * that begins there: if calls have sections alone, pass its size to gts_step_swap_memory() instead. Both must have the
 * same type, sizes, strides and origin. Sections move along. An argument between the elements of one of the two is
 * refused, because both may be sections of a third array. An array that only functions have is exchanged with another one
 * that only functions have, because its layout is not known.
 *
 * @param step   not running, nor are the steps inside it
 * @param a      address of the element at the lowest index of every axis of one array
 * @param b      that of the other array, which must not be the same
 * @return 0, or -1 with the error in gts_last_error(NULL); then all arrays are as before
 */
GTS_EXPORT int gts_step_swap(gts_step *step, const void *a, const void *b);

/**
 * The same for arrays of which calls may have any sections, and no call the whole: whatever arguments and arrays of
 * functions lie in the memory of one of the two move to the same place in the other. An array that lies there in part is
 * refused. Both arrays have the same layout, which is not checked. A step that was handed over is refused.
 *
 * @param step   as in gts_step_swap()
 * @param a      lowest address of one array
 * @param b      lowest address of the other one
 * @param bytes  from the lowest address of an array to the end of its last element
 * @return 0, or -1 with the error in gts_last_error(NULL); then all arrays are as before
 */
GTS_EXPORT int gts_step_swap_memory(gts_step *step, const void *a, const void *b, size_t bytes);

/**
 * Frees a step, and what it alone has kept: bound calls that were unbound, and steps that were freed. A step that contains
 * it keeps it until it is freed itself.
 *
 * @param step  becomes NULL after success, and may be NULL. If it is running, and no other step contains it, it is
 *              refused: a function of the step cannot free it
 * @return 0, or -1 with the error in gts_last_error(NULL); then the step is as before
 */
GTS_EXPORT int gts_step_free(gts_step **step);

#ifdef __cplusplus
}
#endif

#endif
