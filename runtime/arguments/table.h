/* Inside the runtime: tables of neighbors that C hosts pass. */
#ifndef GTSTUB_ARGUMENTS_TABLE_H
#define GTSTUB_ARGUMENTS_TABLE_H

#include "gtstub/program.h"

/*
 * Checks the indices of new tables, and those of the others against the fields of this call. The leaves have their arrays
 * already. Of a table of base 1 the leaf gets a copy of base 0.
 */
int gts_check_tables(gts_program *self);

#endif
