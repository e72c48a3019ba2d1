/* Inside the runtime: how often this process was forked, because a forked child must not use its parent's programs. */
#ifndef GTSTUB_BASE_FORKS_H
#define GTSTUB_BASE_FORKS_H

#include "gtstub/stub.h"

/* Whether the program belongs to a parent: the threads, locks and device contexts of an SDFG do not survive a fork. */
static inline bool gts_is_parents(const gts_program *self)
{
    return self->generation != __atomic_load_n(&gts_forks, __ATOMIC_RELAXED);
}

#endif
