/* Inside the runtime: tables of neighbors. */
#pragma once

#include "gtstub/program.h"

/* The index base of a table: 0 if none was set, as for all tables from Python. */
static inline int64_t gts_index_base(const gts_leaf *leaf)
{
    return leaf->index_base == GTS_NO_INDEX_BASE ? 0 : leaf->index_base;
}

/* Replaces the array of a new table of base 1 by a copy of base 0 with the same strides. */
int gts_shift_table(gts_program *self, uint32_t leaf);

/* ---- check.c --------------------------------------------------------------------------------------------------- */

/* Refuses an array that lacks indices between `lowest` and `highest`. Returns -1. */
GTS_COLD int gts_refuse_indices(gts_program *self, const gts_contract *leaf, int32_t axis, const gts_array *array,
                                int64_t lowest, int64_t highest);
