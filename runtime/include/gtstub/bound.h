/*
 * gtstub: bound calls and steps for the runtime and for hosts that have their own objects, such as the Python host. A
 * host that uses the functions of gtstub/step.h needs none of this.
 */
#ifndef GTSTUB_BOUND_H
#define GTSTUB_BOUND_H

#include "gtstub/program.h"
#include "gtstub/step.h"

struct gts_bound_call {
    gts_program *program;      /* NULL after it was closed */
    void *slots;               /* of this call, in the same block of memory */
    int (*run)(gts_program *); /* of the stub: `start` for a C or Fortran host, `run` for other hosts */
    bool needs_host;           /* each start converts objects of the host */
    unsigned int references;   /* of the host, and of the steps that contain the call */
    const gts_stub *stub;      /* never unmapped */
    void *args;                /* a copy of the `struct <name>_args` of a C or Fortran host; NULL for other hosts */
    gts_table_copy **tables;   /* [stub->leaf_count], those that the slots contain; NULL if there is none */
    gts_bound_call *next;      /* of the same program */
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

/* Makes a bound call, whose arguments are not set. NULL when memory runs out, which is written to its error. */
GTS_EXPORT gts_bound_call *gts_bound_new(gts_program *);

/* Gives a bound call the arguments that its program has now. The program is entered. */
GTS_EXPORT void gts_bound_take(gts_bound_call *);

/* The leaf of an argument, by its path or its flattened name; -1 if there is none. */
GTS_EXPORT int64_t gts_bound_find(const gts_program *, const char *argument);

/* Refuses an argument that is no scalar, or was compiled in. */
GTS_EXPORT int gts_bound_check_scalar(gts_program *, const gts_contract *);

/* The same, and refuses a value of another type. */
GTS_EXPORT int gts_bound_check_value(gts_program *, const gts_contract *, gts_dtype);

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

/* ---- Steps ----------------------------------------------------------------------------------------------------- */

/* What messages, profiles and changes need of a position, in one block of memory with its name. */
typedef struct gts_role {
    const char *kind; /* "program", "function" or "step" */
    const char *name; /* of that */
    gts_step *step;   /* owned; NULL unless the position runs a step */
    int (*array_function)(void *data, void *const *arrays);
    void *data; /* that it gets; of each action of the Python host: its object, borrowed */
    size_t array_count;
    void *arrays[]; /* that it gets */
} gts_role;

/* A position of a step, which has what a run needs. */
typedef struct gts_position {
    gts_bound_call *call;        /* owned; NULL for a function */
    int (*function)(void *data); /* of the host, or one that runs a step or an array function */
    void *data;
    gts_role *role; /* owned */
} gts_position;

/* Whether C and Fortran may use a step of a host that has its own objects. */
typedef enum gts_step_access {
    GTS_STEP_TAKEN_BACK, /* or never handed over */
    GTS_STEP_HANDED_OVER,
    GTS_STEP_OF_PARENT, /* was handed over before the fork */
    GTS_STEP_HOST_ENDED,
} gts_step_access;

/*
 * What a host that has its own objects does when C or Fortran use a step that it has handed over. The step was entered.
 * The functions return 0, or -1 with gts_last_error(NULL).
 */
typedef struct gts_step_host {
    int (*run)(gts_step *);
    /* These two leave the step before they change it. */
    int (*set_scalar)(gts_step *, const char *argument, gts_dtype dtype, const void *value);
    int (*swap)(gts_step *, const void *a, const void *b);
} gts_step_host;

/* The members of a step. */
struct gts_step {
    char *name;
    size_t count;
    gts_position *positions;   /* [count] */
    unsigned int is_running;   /* or is being changed */
    unsigned int references;   /* of the host, of hosts that have found it, and of the steps that contain this one */
    uint64_t id;               /* > 0; no other step of the process ever has it */
    const gts_step_host *host; /* NULL until the step is handed over */
    void *owner;               /* an object, which is there while the step is handed over; NULL in C and Fortran */
    gts_step_access access;    /* by C and Fortran. It changes while the step is entered, or when its host ends */
};

/* Takes a step for the caller alone; -1 if it is running, which gts_last_error(NULL) says. */
GTS_EXPORT int gts_step_enter(gts_step *);

static inline void gts_step_leave(gts_step *self)
{
    __atomic_store_n(&self->is_running, 0, __ATOMIC_RELEASE);
}

/* Whether something may time the actions of steps, as a profile or a timeline does. */
static inline bool gts_step_is_timed(void)
{
    return __atomic_load_n(&gts_attention, __ATOMIC_RELAXED) > 0;
}

/* The name of the program, the function or the step at a position. */
static inline const char *gts_step_name_at(const gts_step *self, size_t position)
{
    return self->positions[position].role->name;
}

/*
 * Makes "Step 'x' has stopped at position 3 of 5, program 'p': <reason>", and which positions have run, gts_last_error(NULL).
 * The reason may be empty. Returns -1.
 */
GTS_EXPORT GTS_COLD int gts_step_fail(const gts_step *, size_t position, gts_error_kind kind, const char *reason);

/* Makes a text gts_last_error(NULL). Returns -1. */
GTS_EXPORT GTS_COLD int gts_step_set_error(gts_error_kind kind, const char *text);

/* Exchanges the actions of two steps. Nobody else uses them. Each keeps its name. */
GTS_EXPORT void gts_step_exchange(gts_step *, gts_step *);

/* ---- Handing over ---------------------------------------------------------------------------------------------- */

/*
 * Hands a step of a host that has its own objects over to C and Fortran, which find it by a name. It gets a reference. -1
 * with gts_last_error(NULL).
 */
GTS_EXPORT int gts_step_hand_over(gts_step *, const char *name);

/* Takes a step back that is not running, with its reference. -1 with gts_last_error(NULL), and then *step is NULL. */
GTS_EXPORT int gts_step_take_back(const char *name, gts_step **step);

/*
 * When the host ends: takes any step back, with its reference, and waits until it is not running. From the beginning of
 * this call on, C and Fortran are refused. Returns NULL if there is none.
 */
GTS_EXPORT gts_step *gts_step_end_one(void);

/* ---- Running steps --------------------------------------------------------------------------------------------- */

/*
 * Starts bound calls from a position on, and returns the first position that is left: that of a function, or of a bound
 * call after which *status is not 0. Returns `end` if none is left.
 */
static inline const gts_position *gts_step_start_known(const gts_position *at, const gts_position *end, int *status)
{
    for (*status = 0; at != end && at->call != NULL; ++at) {
        *status = gts_start_known(at->call);
        if (GTS_UNLIKELY(*status != 0))
            break;
    }
    return at;
}

/* gts_step_start_known(), with what a host does around it. */
typedef const gts_position *(*gts_step_start)(const void *host, const gts_position *at, const gts_position *end,
                                              int *status);

/* Does the action at a position, whatever it is. */
typedef int (*gts_step_act)(const gts_position *);

/*
 * Does all actions of a step that was entered: `act` does those that `start` leaves. After an error, whose status is
 * returned, *position is where.
 */
static inline GTS_ALWAYS_INLINE int gts_step_do(const gts_step *self, size_t *position, gts_step_act act,
                                                gts_step_start start, const void *host)
{
    const gts_position *const end = self->positions + self->count;
    for (const gts_position *at = self->positions; at != end; ++at) {
        int status;
        at = start(host, at, end, &status);
        if (at == end)
            break;
        if (GTS_LIKELY(status >= 0))
            status = act(at);
        if (GTS_UNLIKELY(status != 0)) {
            *position = (size_t)(at - self->positions);
            return status;
        }
    }
    return 0;
}

/*
 * The same, with `act` alone. Adds the time of each action to the innermost profile that is running and was when the action
 * began, and to the timeline, if there are such.
 */
GTS_EXPORT int gts_step_do_timed(const gts_step *, size_t *position, gts_step_act act);

/* ---- Changing steps -------------------------------------------------------------------------------------------- */

/* A position with a bound call, or with a function that has arrays. */
typedef struct gts_place {
    const gts_step *step;
    size_t position;
    void *changed; /* for the host: what takes the place of the arguments; all zero at first */
} gts_place;

/* A step and those inside it, outer ones first, and their places: those of each bound call once. */
typedef struct gts_step_tree {
    gts_step **steps;
    size_t step_count;
    gts_place *places;
    size_t place_count;
} gts_step_tree;

static inline const gts_position *gts_position_of(const gts_place *place)
{
    return &place->step->positions[place->position];
}

/*
 * Enters a step and all inside it; -1 with gts_last_error(NULL). gts_step_tree_end() must be called also after -1.
 * `changed` of each place gets `size` bytes.
 */
GTS_EXPORT int gts_step_tree_begin(gts_step_tree *, gts_step *, size_t size);

/* Changes all places or, after -1, none: calls `change` for each after `check` has returned 0 for all. */
GTS_EXPORT int gts_step_tree_change(const gts_step_tree *, int (*check)(gts_place *, const void *what),
                                    void (*change)(gts_place *), const void *what);

/* A new value of a scalar. */
typedef struct gts_scalar {
    const char *argument;
    gts_dtype dtype;
    const void *value;
} gts_scalar;

/* gts_step_set_scalar() of several scalars of a C or Fortran host at once: each call is checked with all of them. */
GTS_EXPORT int gts_step_set_scalars(gts_step *, const gts_scalar *, size_t count);

/*
 * gts_step_swap() of arrays whose layout the caller knows, and which is the same. Calls may have any sections of them, or
 * none.
 */
GTS_EXPORT int gts_step_swap_arrays(gts_step *, const gts_array *, const gts_array *);

/* Leaves the steps, and then calls `release` for each place, which frees what `changed` contains. */
GTS_EXPORT void gts_step_tree_end(gts_step_tree *, void (*release)(gts_place *));

#endif
