/* Inside the runtime: the lock of a program, for those who do not call it. */
#ifndef GTSTUB_CORE_LOCK_H
#define GTSTUB_CORE_LOCK_H

#include "gtstub/stub.h"

#define GTS_FOREVER UINT64_MAX

/* Waits at most so many nanoseconds until no call is running; false if one still is. gts_leave() gives the lock back. */
bool gts_lock(gts_program *self, uint64_t patience);

#endif
