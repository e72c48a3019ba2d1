/* Inside the runtime: the tables of neighbors that C and Fortran hosts pass. */
#ifndef GTSTUB_ARGUMENTS_TABLE_H
#define GTSTUB_ARGUMENTS_TABLE_H

#include "gtstub/program.h"

/*
 * Checks all tables of this call against its fields, after the leaves have got their arrays. A table of base 1 is
 * replaced in its leaf by a copy of base 0.
 */
int gts_check_tables(gts_program *self);

#endif
