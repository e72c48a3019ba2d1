/* Inside the runtime: how often this process was forked, because a forked child must not use its parent's programs. */
#ifndef GTSTUB_CORE_FORKS_H
#define GTSTUB_CORE_FORKS_H

#include <stdatomic.h>

#include "gtstub/stub.h"

/* Forks that this process has behind it since it loaded its first program. */
extern atomic_uint gts_forks __attribute__((visibility("hidden")));

/* Whether the program belongs to a parent: the threads, locks and device contexts of an SDFG do not survive a fork. */
static inline bool gts_is_parents(const gts_program *self)
{
    return self->generation != atomic_load_explicit(&gts_forks, memory_order_relaxed);
}

#endif
