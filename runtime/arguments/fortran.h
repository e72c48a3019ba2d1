/* Inside the runtime: how arrays of Fortran hosts are refused. */
#pragma once

#include "gtstub/program.h"

/*
 * Refuses an array that gtstub/fortran.h has read. `subject` is how the message begins, with a blank at its end, and
 * `compiled` names what the descriptors are read by. The array has the names of its dimensions, or NULL.
 */
GTS_COLD int gts_refuse_fortran_array(gts_error *, const char *subject, const char *compiled, gts_fortran_reason,
                                      const gts_array *);
