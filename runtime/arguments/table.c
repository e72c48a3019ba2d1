/* Checks the tables of neighbors that C and Fortran hosts pass, and copies those of index base 1 to base 0. */
#include "arguments/table.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/layout.h"
#include "base/refuse.h"

/* Indices along a dimension, in base 0. If no field has the dimension, `stop` is NO_STOP and `shortest` is 0. */
typedef struct range {
    int64_t start, stop; /* from the lowest index of all fields to one after the highest */
    int64_t shortest;    /* one after the last index of the field that ends first */
} range;

#define NO_STOP INT64_MAX

/* The indices that the fields of this call have along a dimension. */
static range find_range(const gts_program *self, const char *dim)
{
    range found = {.start = INT64_MAX, .stop = INT64_MIN, .shortest = INT64_MAX};
    bool is_found = false;
    for (uint32_t i = 0; i < self->stub->leaf_count; ++i) {
        const gts_contract *const contract = &self->stub->leaves[i];
        if (contract->kind != GTS_FIELD)
            continue;
        const gts_array *const array = &self->leaf[i].current->array;
        for (int32_t axis = 0; axis < contract->rank; ++axis) {
            if (strcmp(contract->axes[axis].dim, dim) != 0)
                continue;
            const int64_t first = array->origin[axis];
            const int64_t behind = (int64_t)((uint64_t)first + (uint64_t)array->shape[axis]);
            found.start = found.start < first ? found.start : first;
            found.stop = found.stop > behind ? found.stop : behind;
            found.shortest = found.shortest < behind ? found.shortest : behind;
            is_found = true;
        }
    }
    return is_found ? found : (range){0, NO_STOP, 0};
}

static gts_table *table_of(gts_program *self, uint32_t leaf)
{
    return &self->leaf[leaf].table[self->leaf[leaf].table_of[self->current_index]];
}

static int64_t base_of(const gts_leaf *leaf)
{
    return leaf->index_base == GTS_NO_INDEX_BASE ? 0 : leaf->index_base;
}

static int64_t element(const gts_array *table, int64_t offset)
{
    return table->dtype == GTS_INT32 ? ((const int32_t *)table->data)[offset] : ((const int64_t *)table->data)[offset];
}

static void set_element(void *copy, gts_dtype dtype, int64_t offset, int64_t value)
{
    if (dtype == GTS_INT32)
        ((int32_t *)copy)[offset] = (int32_t)value;
    else
        ((int64_t *)copy)[offset] = value;
}

/* The message counts indices, rows and columns from `base`; the arguments count from 0. */
static GTS_COLD int refuse_index(gts_program *self, const gts_contract *contract, int64_t base, int64_t row,
                                 int64_t column, int64_t index, range right)
{
    if (right.stop == NO_STOP)
        return GTS_REFUSE_TABLE(self, contract, GTS_VALUE_ERROR,
                                "has index %" PRId64 " in row %" PRId64 ", column %" PRId64
                                ", which is below its index base %" PRId64
                                "; gts_set_index_base() sets the index base.",
                                index + base, row + base, column + base, base);
    return GTS_REFUSE_TABLE(self, contract, GTS_VALUE_ERROR,
                            "has index %" PRId64 " in row %" PRId64 ", column %" PRId64 ", but with index base %" PRId64
                            " those of '%s' are %" PRId64 " to %" PRId64 "; gts_set_index_base() sets the index base.",
                            index + base, row + base, column + base, base, contract->codomain, right.start + base,
                            right.stop - 1 + base);
}

/*
 * Checks every index of a table of base `from`, and notes the lowest and the highest one. If `copy` is not NULL, the
 * indices in base 0 are written to it. Messages show an index in the host's base.
 */
static int check_indices(gts_program *self, uint32_t leaf, const gts_array *table, int64_t from, void *copy)
{
    const gts_contract *const contract = &self->stub->leaves[leaf];
    gts_table *const known = table_of(self, leaf);
    const range right = find_range(self, contract->codomain);
    for (int64_t column = 0; column < table->shape[1]; ++column) {
        for (int64_t row = 0; row < table->shape[0]; ++row) {
            const int64_t offset = row * table->strides[0] + column * table->strides[1];
            const int64_t index = element(table, offset) - from;
            if (copy != NULL)
                set_element(copy, table->dtype, offset, index);
            if (index == -1 && contract->has_skip_values)
                continue;
            if (GTS_UNLIKELY(index < right.start || index >= right.stop))
                return refuse_index(self, contract, base_of(&self->leaf[leaf]), row, column, index, right);
            known->least = index < known->least ? index : known->least;
            known->most = index > known->most ? index : known->most;
        }
    }
    return 0;
}

/* Replaces the leaf's array by a copy of base 0 with the same strides. */
static int shift(gts_program *self, uint32_t index, gts_array *table)
{
    gts_table *const known = table_of(self, index);
    size_t size;
    gts_extent extent;
    char *const copy = gts_measure(table, &size, &extent) ? malloc((size_t)extent.high - (size_t)extent.low) : NULL;
    if (copy == NULL)
        return GTS_REFUSE_TABLE(self, &self->stub->leaves[index], GTS_RUNTIME_ERROR,
                                "cannot be copied to index base 0: out of memory.");
    if (check_indices(self, index, table, self->leaf[index].index_base, copy - extent.low) != 0) {
        free(copy);
        return -1;
    }
    free(known->copy);
    known->copy = copy;
    table->data = copy - extent.low;
    return 0;
}

/*
 * Checks the number of rows. The rows that the program reads are not known here, but they are indices of fields on the
 * table's own dimension. A field may be longer than the program needs, so the shortest one counts.
 */
static int check_rows(gts_program *self, uint32_t index)
{
    const gts_contract *const contract = &self->stub->leaves[index];
    const char *const dim = contract->axes[0].dim;
    const int64_t rows = self->leaf[index].current->array.shape[0];
    const int64_t needed = find_range(self, dim).shortest;
    if (GTS_LIKELY(rows >= needed))
        return 0;
    return GTS_REFUSE_TABLE(self, contract, GTS_VALUE_ERROR,
                            "has %" PRId64 " row%s, but all fields on '%s' have index %" PRId64 ".", rows,
                            rows == 1 ? "" : "s", dim, needed - 1);
}

static int check_new(gts_program *self, uint32_t index)
{
    const gts_contract *const contract = &self->stub->leaves[index];
    gts_leaf *const leaf = &self->leaf[index];
    gts_array *const table = &leaf->current->array;
    gts_table *const known = table_of(self, index);
    known->least = INT64_MAX; /* stays if the table is empty or on a GPU */
    known->most = INT64_MIN;
    if (table->shape[0] == 0 || table->shape[1] == 0)
        return 0;
    if (table->device != GTS_CPU)
        return base_of(leaf) == 0 ? 0
                                  : GTS_REFUSE_TABLE(self, contract, GTS_VALUE_ERROR,
                                                     "must have index base 0, because it is on device '%s'.",
                                                     gts_device_name(table->device));
    return base_of(leaf) == 0 ? check_indices(self, index, table, 0, NULL) : shift(self, index, table);
}

/* Checks a known table against the fields of this call. All indices are read again only to report a wrong one. */
static int check_known(gts_program *self, uint32_t index)
{
    const gts_table *const known = table_of(self, index);
    const range right = find_range(self, self->stub->leaves[index].codomain);
    if (known->least > known->most || (known->least >= right.start && known->most < right.stop))
        return 0;
    return check_indices(self, index, &self->leaf[index].current->array, 0, NULL);
}

int gts_check_tables(gts_program *self)
{
    for (uint32_t i = 0; i < self->stub->leaf_count; ++i) {
        gts_table *const known = table_of(self, i);
        if (self->stub->leaves[i].kind != GTS_CONNECTIVITY)
            continue;
        if (check_rows(self, i) != 0 || (known->is_new ? check_new(self, i) : check_known(self, i)) != 0)
            return -1;
        known->is_new = false;
    }
    return 0;
}
