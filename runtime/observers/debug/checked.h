/* Inside the runtime: the data of the debug checks about a program. All data is protected by the lock of the program. */
#pragma once

#include "base/buffer.h"
#include "observers/debug/text.h"
#include "program/observe.h"

/* What checks know of one argument. */
typedef struct gts_checked_field {
    bool is_checked;   /* some rule applies */
    bool lacks_index;  /* it was said that it does not have the index of a trace */
    gts_limits limits; /* of all rules that apply */
    void *before;      /* a packed copy from before the call; NULL if its elements were within the limits */
} gts_checked_field;

/* An array of the SDFG, by its name, and a check that has warned of it. */
typedef struct gts_warned {
    struct gts_warned *next;
    const char *array;
    const gts_rule *rule;
} gts_warned;

/* What checks know of one program. */
typedef struct gts_checked {
    struct gts_checked *next;
    gts_checks *checks;
    bool *applies;              /* whether a rule applies to an argument, [leaf_count][rule_count] */
    bool is_selected;           /* the program is one of those that are checked */
    bool is_running;            /* a call is being checked */
    bool was_captured;          /* it was said that captured calls are not checked */
    bool was_elsewhere;         /* it was said that an argument on a GPU cannot be copied */
    bool synchronized;          /* gpu.synchronizes, as it was before the call */
    uint64_t calls;             /* number of calls that have begun */
    gts_warned *warned;         /* of arrays, by their names */
    gts_buffer copy;            /* of a field on a GPU */
    gts_checked_field fields[]; /* [leaf_count] */
} gts_checked;

/* The guarded copies on which the running call runs: guard.c. */
typedef struct gts_guard gts_guard;

/* What all checks know of one program. */
typedef struct gts_checked_program {
    gts_checked *checked; /* a list: one for each of the running checks that had a call of the program */
    bool is_guarded;      /* the running call is one that needs `guard` */
    gts_guard *guard;     /* NULL unless the SDFG runs on guarded copies */
    gts_program *next;    /* in the list of programs with a call whose maps are checked */
    bool map_failed;      /* a map of the running call has written what checks refuse */
    gts_error map_error;  /* if map_failed */
} gts_checked_program;

/* The checks that began last and have not ended; NULL when there are none. */
extern gts_checks *_Atomic gts_checks_running __attribute__((visibility("hidden")));

extern const gts_observer gts_checks_observer;
extern size_t gts_checked_offset __attribute__((visibility("hidden")));

static inline gts_checked_program *gts_checked_of(const gts_program *self)
{
    return gts_observed(self, gts_checked_offset);
}

/* Whether an argument is one that is checked or traced. */
static inline bool gts_checked_is_field(const gts_program *self, uint32_t index)
{
    return self->stub->leaves[index].kind == GTS_FIELD;
}

/* Whether each rule applies to an argument, [rule_count]. */
static inline bool *gts_checked_rules(const gts_checked *checked, uint32_t index)
{
    return checked->applies + (size_t)index * checked->checks->rule_count;
}

/* What `checks` know of the program, which they may meet for the first time. */
gts_checked *gts_checked_find(gts_program *self, gts_checks *checks);

/* Whether `checks` check the program, or have not met it yet. */
bool gts_checked_may_select(const gts_program *self, const gts_checks *checks);

/* Joins the limits of the rules that apply to an argument, when these have changed. */
void gts_checked_join_limits(gts_checked *checked, uint32_t index);

/* Frees what `checks` know of a program. */
void gts_checked_forget(gts_program *self, const gts_checks *checks);

/* Frees what all checks know of a program that is being closed. */
void gts_checked_close(gts_program *self);

/* ---- field.c --------------------------------------------------------------------------------------------------- */

/*
 * Copies an array to host memory, unless it is there. `name` is for messages. Returns 1 if it cannot be
 * copied, which is printed once, and -1 after setting self->error.
 */
int gts_checked_to_host(gts_program *self, gts_checked *checked, const char *name, gts_array *array);

/* The array of an argument, in host memory. Returns what gts_checked_to_host() returns. */
int gts_checked_array(gts_program *self, gts_checked *checked, uint32_t index, gts_array *array);

/* Prints the traced values of the arguments from `first` to `end` - 1. `when` says when: "before". */
int gts_checked_trace(gts_program *self, gts_checked *checked, uint32_t first, uint32_t end, const char *when);

/*
 * Finds the rules that refuse an argument, and fails for the first of them or prints each one once. `what` has run, as
 * messages name it: "the call", a map; it is NULL before the call. With `is_for_new`, values that were there before the
 * call are left out.
 */
int gts_checked_report(gts_program *self, gts_checked *checked, uint32_t index, const gts_array *array,
                       const char *what, bool is_for_new);

/*
 * Fails with an error about an array, or prints it if the checks only warn: once for each name of an array and each
 * rule, which is NULL for 'bounds'.
 */
int gts_checked_refuse(gts_program *self, gts_checked *checked, const char *array, const gts_rule *rule,
                       const gts_error *error);

/* ---- guard.c --------------------------------------------------------------------------------------------------- */

/* Why the calls of a program cannot be guarded; NULL if they can. */
const char *gts_guard_obstacle(const gts_program *self);

/*
 * For a call with `is_guarded`: runs the SDFG inside the rest of the observers while the arrays of the program
 * are guarded copies, and copies the results back. Fails if the SDFG has accessed memory outside of them.
 */
int gts_guard_run(gts_program *self, gts_observers rest);

/* Replaces a workspace of `size` bytes by a guarded copy until the call ends, if this has a guard. */
int gts_guard_workspace(gts_program *self, uint32_t workspace, size_t size);

/* Notes that a map has ended, so that messages name the first one that ends after an access. The call is guarded. */
void gts_guard_after_map(const gts_program *self, const char *map);

/* ---- maps.c ---------------------------------------------------------------------------------------------------- */

/* Connects the checks that an SDFG has after its maps, if it was built with them; `library` is from dlopen(). */
void gts_maps_find(gts_program *self, void *library);

/* Begins and ends to check the maps of a call, if the SDFG was built for it. After -1, self->error says what was found. */
void gts_maps_begin(gts_program *self);
int gts_maps_end(gts_program *self);

/* Takes all programs off the list, in a forked child. */
void gts_maps_forget(void);

/* ---- checks.c -------------------------------------------------------------------------------------------------- */

/* Begins the checks that GTSTUB_CHECK asks for. */
void gts_checks_read_environment(void);

/* Keeps the running checks in a forked child. */
void gts_checks_inherit(void);
