/* Inside the runtime: tables of neighbors. */
#pragma once

#include "program/counting.h"

/* The index base of a table: 0 if none was set, as for all tables from Python. */
static inline int64_t gts_index_base(const gts_leaf *leaf)
{
    return leaf->index_base == GTS_NO_INDEX_BASE ? 0 : leaf->index_base;
}

/* What is added to a row or column, from 0, so that it counts as that of the host: a C host counts from its index base. */
static inline int64_t gts_row_shift(const gts_program *self, uint32_t leaf, const gts_array *table, int32_t axis)
{
    return gts_counts_as_fortran(self) ? gts_index_shift(self, leaf, table, axis) : gts_index_base(&self->leaf[leaf]);
}

/* Replaces the array of a new table of base 1 by a copy of base 0 with the same strides. */
int gts_shift_table(gts_program *self, uint32_t leaf);

/* ---- base.c ---------------------------------------------------------------------------------------------------- */

/* Whether a table may count from 1 though its host says, or does not deny, that it counts from 0. */
static inline bool gts_doubts_base(const gts_program *self, const gts_leaf *leaf)
{
    return self->host == NULL && gts_index_base(leaf) == 0 && !leaf->is_base_known;
}

/* ---- samples.c ------------------------------------------------------------------------------------------------- */

/* Until it is known what calls use of a table, or if it is not. */
#define GTS_WHOLE_TABLE ((gts_table_use){0, INT64_MAX, UINT64_MAX})

/* Keeps some elements of a table, spread over these rows and columns, as far as it has them. */
void gts_samples_take(const gts_array *table, gts_table_use use, gts_samples *samples);

/*
 * Whether a table has other elements than those that were kept of one at the same address, in the same layout. If not,
 * takes what has changed between them.
 */
bool gts_samples_differ(const gts_array *table, gts_samples *samples);

/* ---- check.c --------------------------------------------------------------------------------------------------- */

/* Refuses an array that lacks indices between `lowest` and `highest`. Returns -1. */
GTS_COLD int gts_refuse_indices(gts_program *self, const gts_contract *leaf, int32_t axis, const gts_array *array,
                                int64_t lowest, int64_t highest);
