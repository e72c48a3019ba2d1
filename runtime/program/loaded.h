/* Inside the runtime: the list of the programs that this process has loaded. */
#ifndef GTSTUB_PROGRAM_LOADED_H
#define GTSTUB_PROGRAM_LOADED_H

#include "gtstub/program.h"

void gts_loaded_add(gts_program *self);

/* Waits for the visits that are running, calls gts_profile_close(), and removes the program from the list. */
void gts_loaded_remove(gts_program *self);

/* Calls `visit` for each program. No lock is held meanwhile, so other programs may be loaded and closed. */
void gts_loaded_visit(void (*visit)(gts_program *, void *context), void *context);

/* Empties the list in a forked child, because the programs belong to the parent. */
void gts_loaded_forget(void);

#endif
