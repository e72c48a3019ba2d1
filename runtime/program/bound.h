/*
 * gtstub: bound calls for the runtime and for hosts that have their own objects, such as the Python host. A host that uses
 * the functions of gtstub/step.h needs none of this.
 */
#pragma once

#include "gtstub/program.h"
#include "gtstub/step.h"

/* An array that is swapped. */
typedef struct gts_swapped {
    gts_array array;
    uintptr_t low, high; /* its memory */
    bool is_there;       /* something has it */
} gts_swapped;

/* An array that a swap may change: of a bound call, or of a function. */
typedef struct gts_held_array {
    _Alignas(16) gts_array *array;
    uintptr_t low, high; /* its memory; equal if it has no elements */
    uint32_t index;      /* of the leaf, or among what the function gets */
    bool is_patched;     /* a swap need not bind the call again */
    bool written;        /* by the program */
    bool is_inside;      /* an object that a function gets, where no swap reaches it */
    size_t slot;         /* where the address is among the slots, in bytes; GTS_NO_SLOT if no slot has it */
    /* While a step is changed: the array that it becomes, or a section of which it becomes; NULL if it stays. */
    const gts_swapped *by;
    void *to; /* its new address */
} gts_held_array;

typedef struct gts_held {
    _Atomic bool is_changing; /* a step that has them is being changed */
    size_t count;
    gts_held_array array[];
} gts_held;

struct gts_bound_call {
    gts_program *program;            /* NULL after it was closed */
    void *slots;                     /* of this call, in the same block of memory */
    int (*run)(gts_program *);       /* of the stub: `start` for a C or Fortran host, `run` for other hosts */
    bool needs_host;                 /* each start converts objects of the host */
    _Atomic unsigned int references; /* of the host, and of the steps that contain the call */
    const gts_stub *stub;            /* never unmapped */
    void *args;                      /* the `struct <name>_args` */
    gts_table_copy **tables;         /* [stub->leaf_count], those that the slots contain; NULL if there is none */
    gts_bound_call *next;            /* of the same program */
    gts_held *held;                  /* the arrays of `args` and `fields`, which gts_bound_hold() finds; NULL before */
    gts_array *fields;        /* [stub->leaf_count], those without axes, of a host with its own objects; or NULL */
    _Atomic bool is_changing; /* it is being changed, by itself or in a step */
};

/* ---- Binding --------------------------------------------------------------------------------------------------- */

/*
 * While a thread binds, each call that it makes enters its program slowly, and has extra work. If `bind` is not NULL,
 * the call does not run its SDFG. It checks its arguments, and then passes the program to `bind`.
 */
typedef struct gts_binding {
    int (*bind)(struct gts_binding *, gts_program *);
    unsigned int generation;                           /* gts_forks when it began */
    struct gts_binding *outer;                         /* in which it began */
    int (*before)(struct gts_binding *);               /* what the host of the program does before each call; or NULL */
    int (*after)(struct gts_binding *, gts_program *); /* and after it */
} gts_binding;

/* The innermost binding of this thread; NULL if it does not bind. */
GTS_EXPORT extern __thread gts_binding *gts_binding_here;

GTS_EXPORT void gts_binding_begin(gts_binding *);
GTS_EXPORT void gts_binding_end(gts_binding *);

/* ---- Bound calls ----------------------------------------------------------------------------------------------- */

/*
 * Runs `act`, which may wait for calls of `program`, without the host's own lock (the GIL). Refuses if the wait would never
 * end; without a program it never refuses.
 */
typedef int (*gts_waiting)(gts_program *program, int (*act)(void *), void *context);

/*
 * Binds a call with the arguments that a program of a host with its own objects has now. The program is entered. The host
 * may write what it knows of `fields`.
 */
GTS_EXPORT gts_bound_call *gts_bound_take(gts_program *);

/* Forgets the objects of a program's host, because the arguments of another one replace arrays and slots. */
GTS_EXPORT void gts_forget_host(gts_program *);

/* The leaf of an argument, by its path or its flattened name; -1 if there is none. */
GTS_EXPORT int64_t gts_bound_find(const gts_stub *, const char *argument);

/* Refuses an argument that is no scalar, or was compiled in. */
int gts_bound_check_scalar(gts_program *, const gts_contract *);

/* Finds the memory of an array; all of it if that is not known. */
GTS_EXPORT void gts_find_memory(const gts_array *, uintptr_t *low, uintptr_t *high);

/* A new value of a scalar. */
typedef struct gts_scalar {
    const char *argument;
    gts_dtype dtype;
    const void *value;
} gts_scalar;

/* gts_set_scalar() of several scalars at once. */
GTS_EXPORT int gts_set_scalars(gts_bound_call *, const gts_scalar *, size_t count);

/* Runs the SDFG with the slots of a bound call. The program is entered, and has no extra work. */
static inline int gts_bound_run(const gts_bound_call *call, gts_program *self)
{
    void *const slots = self->slots;
    const bool has_new_array = self->has_new_array;
    self->slots = call->slots;
    self->has_new_array = false;
    const int status = call->run(self);
    self->slots = slots;
    self->has_new_array = has_new_array;
    return status;
}

/* Starts a bound call unless this needs its host, or a table has changed: then the status is > 0, and it has done nothing. */
static inline int gts_start_known(const gts_bound_call *call)
{
    gts_program *const self = call->program;
    if (GTS_UNLIKELY(self == NULL) || GTS_UNLIKELY(call->needs_host) || GTS_UNLIKELY(!gts_try_enter(self)))
        return 1;
    const int status = GTS_UNLIKELY(self->has_extra_work) ? 1 : gts_bound_run(call, self);
    gts_leave(self);
    return status;
}
