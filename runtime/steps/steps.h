/*
 * gtstub: steps for the runtime and for hosts that have their own objects, such as the Python host. A host that uses the
 * functions of gtstub/step.h needs none of this.
 */
#pragma once

#include "gtstub/step.h"
#include "program/bound.h"

/* Whether no more is known of an array of a function than its address. */
static inline bool gts_is_address(const gts_array *array)
{
    return array->dtype == 0;
}

/* What messages, profiles and changes need of a position, in one block of memory with its name. */
typedef struct gts_role {
    const char *kind; /* "program", "function" or "step" */
    const char *name; /* of that */
    gts_step *step;   /* owned; NULL unless the position runs a step */
    int (*array_function)(void *data, void *const *arrays);
    void *data; /* that it gets; of each action of the Python host: its object, borrowed */
    gts_held
        *held; /* the arrays of the function: their addresses or, borrowed from the Python host, all of them; or NULL */
    size_t array_count;
    void *arrays[]; /* that it gets, from C alone */
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

typedef struct gts_step_tree gts_step_tree;
typedef struct gts_swap gts_swap;

/* What a host that has its own objects does when C or Fortran use a step that it has handed over, which was entered. */
typedef struct gts_step_host {
    int (*run)(gts_step *);                                   /* 0, or -1 with gts_last_error(NULL) */
    void (*swapped)(const gts_step_tree *, const gts_swap *); /* exchanges what keeps the arrays alive */
} gts_step_host;

/* The members of a step. */
struct gts_step {
    char *name;
    size_t count;
    gts_position *positions;         /* [count] */
    unsigned int is_running;         /* or is being changed */
    _Atomic unsigned int references; /* of the host, of hosts that have found it, and of steps that contain it */
    uint64_t id;                     /* > 0; no other step of the process ever has it */
    const gts_step_host *host;       /* NULL until the step is handed over */
    void *owner;                     /* an object, there while the step is handed over; NULL in C and Fortran */
    _Atomic gts_step_access access;  /* by C and Fortran. It changes while the step is entered, or when its host ends */
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

/* Adds a reference to a step, which may be NULL; gts_step_free() gives it back. */
gts_step *gts_step_keep(gts_step *self);

/* For C and Fortran: refuses a step, which was entered, that its host has taken back. */
int gts_step_check_access(const gts_step *self);

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

/* As gts_step_start_known(), but releases the host's own lock (the GIL) around it. */
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
 * The same, with `act` alone. Adds the time of each action to all profiles that were running when the action began, and
 * to the timeline, if there are such.
 */
GTS_EXPORT int gts_step_do_timed(const gts_step *, size_t *position, gts_step_act act);

/* ---- Changing steps -------------------------------------------------------------------------------------------- */

/* A position with a bound call, or with a function that has arrays. */
typedef struct gts_place {
    const gts_step *step;
    size_t position;
    gts_held *held;          /* the arrays of a call, before a swap changes them, and of a function; or NULL */
    gts_bound_call *changed; /* owned: the call with other arguments; NULL if it is not bound again */
} gts_place;

/* Some steps and those inside them, outer ones first, and their places: those of each bound call or function once. */
struct gts_step_tree {
    gts_step **steps;
    size_t step_count;
    gts_place *places;
    size_t place_count;
    size_t begun;     /* places whose change has begun: nobody else changes them */
    gts_waiting wait; /* NULL if the host has no lock */
    gts_step *first_steps[4];
    gts_place first_places[16];
};

static inline const gts_position *gts_position_of(const gts_place *place)
{
    return &place->step->positions[place->position];
}

/* Enters steps and all inside them; -1 with gts_last_error(NULL). gts_step_tree_end() must be called also after -1. */
GTS_EXPORT int gts_step_tree_begin(gts_step_tree *, gts_step *const *, size_t count, gts_waiting wait);

/* Leaves the steps, and forgets what was not committed. */
GTS_EXPORT void gts_step_tree_end(gts_step_tree *);

/*
 * Makes "Step 'x' cannot be changed at position 3, program 'p': <reason>" gts_last_error(NULL). The reason may be empty.
 * Returns -1.
 */
GTS_EXPORT GTS_COLD int gts_place_refuse(const gts_place *, gts_error_kind kind, const char *reason);

/* Changes what was prepared. */
void gts_step_tree_commit(gts_step_tree *);

/* Reads the values of the scalars that the call of a place has, before they are changed; -1 refuses. */
typedef int (*gts_place_read)(const gts_place *, void *host);

/* Changes scalars, those that each call has. All calls are checked before any of them changes; `read` may be NULL. */
GTS_EXPORT int gts_step_set(gts_step *, const gts_scalar *, size_t count, gts_waiting wait, gts_place_read read,
                            void *host);

/* Arrays that are swapped: each even one with the next. */
struct gts_swap {
    gts_swapped *arrays;
    size_t count;
    bool moves_sections; /* else a step that has one is refused, and so is an array that nothing has */
    bool is_memory;      /* they are bytes, and whatever lies in them moves */
    bool may_be_parts;   /* they are arguments: the host may mean larger arrays that begin there */
};

/* Finds the arrays of all places. */
GTS_EXPORT int gts_step_tree_hold(const gts_step_tree *);

/* Swaps arrays. `by` of each gts_held_array says what has happened to it, until the change ends. */
GTS_EXPORT int gts_step_tree_swap(gts_step_tree *, const gts_swap *);

/*
 * gts_step_swap() of arrays whose layout the caller knows, and which is the same. Calls may have any sections of them, or
 * none.
 */
int gts_step_swap_arrays(gts_step *, const gts_array *, const gts_array *);
