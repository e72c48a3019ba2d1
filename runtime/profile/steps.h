/* Inside the runtime: the times that a profile keeps of steps, and its report. */
#pragma once

#include "gtstub/bound.h"

#include "profile/histogram.h"

/* The times of one position of a step. */
typedef struct gts_position_times {
    const char *name; /* of the program or function, in the memory of the step's times */
    bool is_program;
    uint64_t count;     /* how often it has succeeded */
    gts_histogram time; /* in ns */
} gts_position_times;

/* The times of one step in one profile, in one block of memory. */
typedef struct gts_step_times {
    struct gts_step_times *next; /* of another step */
    uint64_t id;                 /* of the step; 0 after it was freed */
    const char *name;
    size_t count;
    gts_position_times position[];
} gts_step_times;

/* The times of a step in a list, to which they are added if they are not there; NULL when memory runs out. */
gts_step_times *gts_step_times_find(gts_step_times **list, const gts_step *step);

/*
 * Moves times into a list, and returns those of the list. A step that was freed shares its times with the next one of
 * its name that has the same positions, so that a host which makes a step anew again and again needs no more memory.
 */
gts_step_times *gts_step_times_keep(gts_step_times **list, gts_step_times *times);

/* Notes in a list that a step is freed. */
void gts_step_times_release(gts_step_times **list, uint64_t id);

/* The same for a list that a report may be reading: nothing is merged. */
void gts_step_times_forget(gts_step_times *list, uint64_t id);

/* Removes the first times of a list and returns them; NULL if the list is empty. */
gts_step_times *gts_step_times_pop(gts_step_times **list);

/* ---- report.c -------------------------------------------------------------------------------------------------- */

/* The JSON report of a profile that took `wall` ns, to be freed with free(); NULL when memory runs out. */
char *gts_profile_report(const gts_program_times *programs, const gts_step_times *steps, uint64_t wall);
