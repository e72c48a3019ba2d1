/* Inside the runtime: the checks of one call. All data belongs to a program and is protected by its lock. */
#ifndef GTSTUB_DEBUG_CALL_H
#define GTSTUB_DEBUG_CALL_H

#include "debug/text.h"
#include "program/hooks.h"

/* Frees what `checks` know of a program. */
void gts_checked_forget(gts_program *self, const gts_checks *checks);

#endif
