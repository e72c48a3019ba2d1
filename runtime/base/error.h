/* Inside the runtime: errors of functions that have no program to keep them. */
#ifndef GTSTUB_BASE_ERROR_H
#define GTSTUB_BASE_ERROR_H

#include "gtstub/stub.h"

/* What gts_last_error(NULL) returns in this thread. */
extern _Thread_local gts_error gts_own_error __attribute__((visibility("hidden")));

/* Fills in an error and returns -1. */
GTS_COLD int gts_error_write(gts_error *error, gts_error_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
