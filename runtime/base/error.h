/* Inside the runtime: the error of functions that have no program. */
#pragma once

#include "gtstub/program.h"

/* The error that gts_last_error(NULL) returns in this thread. */
extern _Thread_local gts_error gts_own_error __attribute__((visibility("hidden")));
