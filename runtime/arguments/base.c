/*
 * Says that a table may count from 1 though its host has said that it counts from 0: a call uses no index 0. Such a table
 * is refused where a field ends at the highest index of the table less one, but not where fields have spare rows.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "arguments/table.h"
#include "base/names.h"
#include "program/private.h"

void gts_end_tables_slowly(gts_program *self)
{
    const gts_stub *const stub = self->stub;
    for (uint32_t i = gts_first_table(stub); i < stub->leaf_count; ++i) {
        gts_leaf *const leaf = &self->leaf[i];
        gts_table *const table = gts_table_of(leaf);
        if (table->is_new || table->is_checked)
            continue;
        table->is_checked = true;
        if (!gts_doubts_base(self, leaf) || table->lowest <= 0 || table->lowest == INT64_MAX)
            continue;
        leaf->is_base_known = true;
        const char *const path = stub->leaves[i].path;
        if (!gts_has_name(getenv("GTSTUB_SUBSETS"), path)) /* parts of larger tables may lack index 0 */
            fprintf(stderr,
                    "Program '%s' uses no index 0 of connectivity '%s', which has index base 0: the lowest is %" PRId64
                    ". If the table counts from 1, set its index base to 1; if it is a part of a grid, silence this "
                    "line with GTSTUB_SUBSETS=%s.\n",
                    stub->name, path, table->lowest, path);
    }
    self->has_new_table = false;
}
