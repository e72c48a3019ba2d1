/* Inside the runtime: the members of a program that neither stubs nor hosts use. */
#ifndef GTSTUB_PROGRAM_PRIVATE_H
#define GTSTUB_PROGRAM_PRIVATE_H

#include "gtstub/program.h"

/* The times of a program in one profile: profile/histogram.h. */
typedef struct gts_program_times gts_program_times;

/* The part of a recording that belongs to one program: record/snapshot.h. */
typedef struct gts_recorder_program gts_recorder_program;

struct gts_runtime {
    gts_function exit;              /* `__dace_exit_<name>` */
    int (*gpu_error)(void *);       /* `__dace_gpu_last_error`; NULL if the SDFG library has none */
    size_t *workspace_size;         /* bytes that were lent, [stub->workspace_count] */
    unsigned int waiters;           /* threads that wait for the lock */
    bool was_called;                /* a call has succeeded */
    bool has_new_handle;            /* the SDFG's handle was initialised in this call */
    uint64_t entered;               /* when this call was entered, in ns; 0 if no profile times it */
    gts_program_times *times;       /* a list: those of the innermost profile first */
    gts_recorder_program *recorder; /* NULL if calls are not recorded */
    gts_program *next;              /* in the list of loaded programs */
    unsigned int pins;              /* visits of gts_loaded_visit() that are running: the program must not be freed */
};

#endif
