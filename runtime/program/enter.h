/* Inside the runtime: the lock of a program, and the process that a program belongs to. */
#ifndef GTSTUB_PROGRAM_ENTER_H
#define GTSTUB_PROGRAM_ENTER_H

#include "program/private.h"

#define GTS_FOREVER UINT64_MAX

/* Waits at most `patience` ns for the lock of a program; false if a call still holds it. gts_leave() releases it. */
bool gts_lock(gts_program *self, uint64_t patience);

/* Whether a parent process loaded the program. Threads, locks and device contexts of an SDFG do not survive a fork. */
static inline bool gts_belongs_to_parent(const gts_program *self)
{
    return self->generation != __atomic_load_n(&gts_forks, __ATOMIC_RELAXED);
}

#endif
