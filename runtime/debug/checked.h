/* Inside the runtime: what checks know of a program. All data is protected by the lock of the program. */
#ifndef GTSTUB_DEBUG_CHECKED_H
#define GTSTUB_DEBUG_CHECKED_H

#include "base/buffer.h"
#include "debug/text.h"
#include "program/hooks.h"

/* What checks know of one argument. */
typedef struct gts_checked_field {
    bool is_checked;   /* some rule applies */
    bool lacks_index;  /* it was said that it does not have the index of a trace */
    gts_bounds bounds; /* of all rules that apply */
    void *before;      /* a packed copy from before the call; NULL if its elements were in bounds */
} gts_checked_field;

struct gts_checked {
    gts_checked *next;
    gts_checks *checks;
    bool *applies;              /* whether a rule applies to an argument, [leaf_count][rule_count] */
    bool is_selected;           /* the program is one of those that are checked */
    bool is_running;            /* a call is being checked */
    bool was_captured;          /* it was said that captured calls are not checked */
    bool was_elsewhere;         /* it was said that an argument on a GPU cannot be copied */
    bool synchronized;          /* gpu.synchronizes, as it was before the call */
    uint64_t calls;             /* number of calls that have begun */
    gts_buffer copy;            /* of a field on a GPU */
    gts_checked_field fields[]; /* [leaf_count] */
};

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

/* What `checks` know of the program, which they may meet for the first time; NULL when memory runs out. */
gts_checked *gts_checked_find(gts_program *self, gts_checks *checks);

/* Joins the bounds of the rules that apply to an argument, when these have changed. */
void gts_checked_join_bounds(gts_checked *checked, uint32_t index);

/* Frees what `checks` know of a program. */
void gts_checked_forget(gts_program *self, const gts_checks *checks);

#endif
