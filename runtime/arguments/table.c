/*
 * Checks the elements of tables of neighbors that the SDFG uses as indices, and copies tables of base 1 to base 0.
 *
 * A table has millions of elements. The first check reads the rows that the call uses, for the lowest and the highest
 * index, and later checks those that no call has used before. Only if these indices do not fit, the rows and columns of
 * this call are read, because others may have any value.
 */
#include "arguments/table.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/refuse.h"
#include "base/strided.h"
#include "base/table_copy.h"
#include "base/wide.h"
#include "program/private.h"

/* ---- Reading --------------------------------------------------------------------------------------------------- */

/* The lowest and the highest value. */
typedef struct range {
    int64_t least, most;
} range;

static const range NOTHING = {INT64_MAX, INT64_MIN};

static range join(range a, range b)
{
    return (range){gts_min(a.least, b.least), gts_max(a.most, b.most)};
}

/*
 * The range of `count` elements that are `stride` elements apart, without those that equal -1 if `skips`. There
 * is no branch in the loop, so that compilers use vector instructions where the last two arguments are constants.
 */
#define DEFINE_RANGE_OF(type, TYPE)                                                                                    \
    static inline GTS_ALWAYS_INLINE range range_of_##type(const type *data, int64_t count, int64_t stride, bool skips) \
    {                                                                                                                  \
        type least = TYPE##_MAX, most = TYPE##_MIN;                                                                    \
        for (int64_t i = 0; i < count; ++i) {                                                                          \
            const type value = data[i * stride];                                                                       \
            const type low = skips && value == -1 ? TYPE##_MAX : value;                                                \
            const type high = skips && value == -1 ? TYPE##_MIN : value;                                               \
            least = low < least ? low : least;                                                                         \
            most = high > most ? high : most;                                                                          \
        }                                                                                                              \
        return least > most ? NOTHING : (range){least, most};                                                          \
    }                                                                                                                  \
                                                                                                                       \
    GTS_WIDE static range range_of_consecutive_##type(const type *data, int64_t count)                                 \
    {                                                                                                                  \
        return range_of_##type(data, count, 1, false);                                                                 \
    }

DEFINE_RANGE_OF(int32_t, INT32)
DEFINE_RANGE_OF(int64_t, INT64)

static range range_of_line(const gts_array *table, int64_t offset, int64_t count, int64_t stride, bool skips)
{
    const bool is_dense = stride == 1 && !skips;
    if (table->dtype == GTS_INT32) {
        const int32_t *const data = (const int32_t *)table->data + offset;
        return is_dense ? range_of_consecutive_int32_t(data, count) : range_of_int32_t(data, count, stride, skips);
    }
    const int64_t *const data = (const int64_t *)table->data + offset;
    return is_dense ? range_of_consecutive_int64_t(data, count) : range_of_int64_t(data, count, stride, skips);
}

static range range_of_table(const gts_array *table)
{
    const int64_t rows = table->shape[0], columns = table->shape[1];
    const int64_t down = table->strides[0], right = table->strides[1];
    if (right == 1 && down == columns)
        return range_of_line(table, 0, rows * columns, 1, false);
    range found = NOTHING;
    for (int64_t column = 0; column < columns; ++column)
        found = join(found, range_of_line(table, column * right, rows, down, false));
    return found;
}

/* The range of some rows and columns, without elements that equal -1 if `skips`. */
static range range_of_part(const gts_array *table, gts_table_use use, bool skips)
{
    range found = NOTHING;
    for (int64_t column = 0; column < 64 && use.columns >> column != 0; ++column) {
        const int64_t offset = use.first * table->strides[0] + column * table->strides[1];
        if ((use.columns >> column & 1) != 0)
            found = join(found, range_of_line(table, offset, use.last - use.first + 1, table->strides[0], skips));
    }
    return found;
}

static int64_t element(const gts_array *table, int64_t row, int64_t column)
{
    const int64_t offset = row * table->strides[0] + column * table->strides[1];
    return table->dtype == GTS_INT32 ? ((const int32_t *)table->data)[offset] : ((const int64_t *)table->data)[offset];
}

/* Copies rows of a table of base 1 to base 0. */
static void shift(const gts_array *table, void *copy, int64_t first, int64_t last)
{
    for (int64_t row = first; row <= last; ++row) {
        for (int64_t column = 0; column < table->shape[1]; ++column) {
            const int64_t offset = row * table->strides[0] + column * table->strides[1];
            const uint64_t value = (uint64_t)element(table, row, column) - 1; /* wraps around for any value */
            if (table->dtype == GTS_INT32)
                ((int32_t *)copy)[offset] = (int32_t)(uint32_t)value;
            else
                ((int64_t *)copy)[offset] = (int64_t)value;
        }
    }
}

/* ---- Checking -------------------------------------------------------------------------------------------------- */

static bool contains(range allowed, range found)
{
    return found.least > found.most || (found.least >= allowed.least && found.most <= allowed.most);
}

/* The range of a part of a table, which is remembered. */
static range known_part(gts_table *known, const gts_array *table, gts_table_use use, bool skips)
{
    for (uint32_t i = 0; i < known->part_count && i < GTS_TABLE_PARTS; ++i) {
        const gts_table_part *const part = &known->part[i];
        if (memcmp(&part->use, &use, sizeof use) == 0 && part->skips == skips)
            return (range){part->least, part->most};
    }
    const range found = range_of_part(table, use, skips);
    known->part[known->part_count % GTS_TABLE_PARTS] = (gts_table_part){use, found.least, found.most, skips};
    ++known->part_count;
    return found;
}

/* Writes "in row 3, column 2" of a table, or "at E2V(3,2)". */
static gts_short_text place_text(const gts_program *self, uint32_t leaf, int64_t row, int64_t column)
{
    const gts_array *const table = gts_array_of(self, leaf);
    const int64_t index[] = {row + gts_row_shift(self, leaf, table, 0), column + gts_row_shift(self, leaf, table, 1)};
    gts_short_text text;
    if (gts_counts_as_fortran(self))
        snprintf(text.text, sizeof text.text, "at %.500s", gts_place_text(self, leaf, index).text);
    else
        snprintf(text.text, sizeof text.text, "in row %" PRId64 ", column %" PRId64, index[0], index[1]);
    return text;
}

/* Has the next call read a refused table again, which its host may have corrected in place. */
static void forget_refused(gts_program *self, gts_leaf *leaf)
{
    gts_table_of(leaf)->is_new = true;
    gts_table_of(leaf)->is_checked = false;
    self->has_new_array = true;
    self->knows_args = self->knows_fortran = false;
    if (leaf->table_of[0] == leaf->table_of[1])
        self->other.knows_args = self->other.knows_fortran = false;
}

/* Refuses the first wrong element of a part. It is shown in the host's base. */
static GTS_COLD int refuse_element(gts_program *self, const gts_follow *follow, int64_t first, int64_t last,
                                   range allowed)
{
    const gts_contract *const contract = &self->stub->leaves[follow->table];
    const gts_array *const table = gts_array_of(self, follow->table);
    const int64_t base = gts_index_base(&self->leaf[follow->table]);
    int64_t row = first, column = 0;
    for (int64_t i = 0; i < (last - first + 1) * table->shape[1]; ++i) {
        row = first + i / table->shape[1];
        column = i % table->shape[1];
        const int64_t value = element(table, row, column);
        const bool is_skipped = follow->skips && value == -1;
        if (column < 64 && (follow->columns >> column & 1) != 0 && !is_skipped &&
            !contains(allowed, (range){value, value}))
            break;
    }
    /* As the host wrote it: shift() wraps around at the least value of the table's type. */
    const uint64_t sum = (uint64_t)element(table, row, column) + (uint64_t)base;
    const int64_t value = table->dtype == GTS_INT32 ? (int32_t)(uint32_t)sum : (int64_t)sum;
    const gts_short_text place = place_text(self, follow->table, row, column);
    char base_text[64] = ""; /* a Python host has no index bases */
    if (self->host == NULL)
        snprintf(base_text, sizeof base_text, " (index base %" PRId64 ", see gts_set_index_base())", base);
    const range shown = {allowed.least + base, allowed.most + base};
    if (follow->leaf == GTS_TEMPORARY && contract->kind == GTS_CONNECTIVITY && allowed.least == 0)
        return GTS_REFUSE_TABLE(
            self, contract, GTS_VALUE_ERROR,
            "has index %" PRId64 " %s%s, but this program computes values for the indices %" PRId64 " to %" PRId64
            " only: %s.size = %" PRId64
            " was compiled in, from the tables that it was built with. Build the program for each grid.",
            value, place.text, base_text, shown.least, shown.most, contract->codomain, allowed.most + 1);
    if (follow->leaf == GTS_TEMPORARY)
        return GTS_REFUSE_TABLE(self, contract, GTS_VALUE_ERROR,
                                "has index %" PRId64 " %s%s, but this call computes values for the indices %" PRId64
                                " to %" PRId64 " only." GTS_BOUNDS_HINT,
                                value, place.text, base_text, shown.least, shown.most);
    const gts_contract *const field = &self->stub->leaves[follow->leaf];
    const char *const dim = field->axes[follow->axis].dim;
    const gts_short_text axis = gts_axis_text(self, follow->axis);
    if (allowed.least > allowed.most)
        return GTS_REFUSE_TABLE(self, contract, GTS_VALUE_ERROR,
                                "has index %" PRId64 " %s%s, but argument '%s' is empty on %s ('%s')." GTS_BOUNDS_HINT,
                                value, place.text, base_text, field->path, axis.text, dim);
    return GTS_REFUSE_TABLE(self, contract, GTS_VALUE_ERROR,
                            "has index %" PRId64 " %s%s, but argument '%s' has the indices %" PRId64 " to %" PRId64
                            " on %s ('%s')." GTS_BOUNDS_HINT,
                            value, place.text, base_text, field->path, shown.least, shown.most, axis.text, dim);
}

/* Reads rows that no call has used before. A C or Fortran host may have changed them since they were copied to base 0. */
static void read_rows(const gts_array *of_host, const gts_array *table, gts_table *known, int64_t first, int64_t last)
{
    gts_array rows = *table;
    rows.data = (char *)rows.data + first * rows.strides[0] * (int64_t)gts_dtype_size(rows.dtype);
    rows.shape[0] = last - first + 1;
    if (of_host != NULL && of_host->data != table->data)
        shift(of_host, table->data, first, last);
    const range found = range_of_table(&rows);
    known->least[false] = gts_min(known->least[false], found.least);
    known->least[true] = gts_min(known->least[true], found.least == -1 ? 0 : found.least); /* the next takes as long */
    known->most = gts_max(known->most, found.most);
}

/* Reads what no call has used before, and keeps elements of all that calls have used. */
static void use_more(gts_program *self, uint32_t index, gts_table_use use)
{
    gts_leaf *const leaf = &self->leaf[index];
    gts_table *const known = gts_table_of(leaf);
    const gts_axis *const rows = &self->stub->leaves[index].axes[0];
    if (self->host == NULL && self->stub->leaves[index].is_followed)
        use = (gts_table_use){0, leaf->current->array.shape[0] - 1, UINT64_MAX};
    else if (rows->used)
        use = (gts_table_use){gts_min(use.first, rows->lowest), gts_max(use.last, rows->highest), UINT64_MAX};
    const gts_array *const of_host = self->knows_args ? gts_array_in(self->args, &self->stub->leaves[index]) : NULL;
    if (known->is_new)
        *known = (gts_table){.used = {use.first, use.last, 0},
                             .lowest = INT64_MAX,
                             .copy = known->copy,
                             .least = {INT64_MAX, INT64_MAX},
                             .most = INT64_MIN};
    gts_table_use before = known->used;
    known->used = (gts_table_use){gts_min(use.first, before.first), gts_max(use.last, before.last),
                                  use.columns | before.columns};
    if (known->used.columns != before.columns) /* no row was used in these columns */
        before.last = (before.first = known->used.first) - 1;
    read_rows(of_host, &leaf->current->array, known, known->used.first, before.first - 1);
    read_rows(of_host, &leaf->current->array, known, before.last + 1, known->used.last);
    if (of_host == NULL) /* the tables of Python are objects */
        return;
    gts_samples_take(of_host, known->used, gts_samples_of(self->stub, index, self->slots));
    if (leaf->table_of[0] == leaf->table_of[1]) /* the call before the last has elements of fewer rows */
        self->other.knows_args = self->other.knows_fortran = false;
}

int gts_check_table_slowly(gts_program *self, const gts_follow *follow, int64_t first, int64_t last, int64_t least,
                           int64_t most)
{
    gts_leaf *const leaf = &self->leaf[follow->table];
    const gts_array *const table = &leaf->current->array;
    const gts_table_use use = {first, last, follow->columns};
    const range allowed = {least, most};
    if (table->device != GTS_CPU)
        return 0;
    if (GTS_UNLIKELY(first < 0 || last >= table->shape[0]))
        return gts_refuse_indices(self, &self->stub->leaves[follow->table], 0, table, first, last);
    if (first > last)
        return 0;
    gts_table *const known = gts_table_of(leaf);
    if (known->is_new || !gts_is_used(known, follow, first, last))
        use_more(self, follow->table, use);
    if (GTS_UNLIKELY(!known->is_checked)) {
        self->has_new_table = true;
        if (gts_doubts_base(self, leaf) && known->lowest > 0)
            known->lowest = gts_min(known->lowest, known_part(known, table, use, follow->skips).least);
    }
    if (GTS_LIKELY(contains(allowed, (range){known->least[follow->skips], known->most})))
        return 0;
    const range part = known_part(known, table, use, follow->skips);
    if (contains(allowed, part))
        return 0;
    forget_refused(self, leaf);
    return refuse_element(self, follow, first, last, allowed);
}

int gts_check_tables(gts_program *self, const gts_follow *follows, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        const gts_follow *const each = &follows[i];
        GTS_TRY(gts_check_table(self, each, each->first, each->last, each->plus, each->size));
    }
    return 0;
}

/* ---- Indices of several arrays ---------------------------------------------------------------------------------- */

/* The table whose rows are an axis, if it was copied to base 0: the copy may lack changes of rows not used before. */
static const gts_table *copied_rows(const gts_program *self, gts_leaf_axis each)
{
    const gts_table *const table = gts_table_of(&self->leaf[each.leaf]);
    return each.axis == 0 && table->copy != NULL ? table : NULL;
}

int gts_miss_indices(gts_program *self, const gts_use *use, int64_t lowest, int64_t highest)
{
    for (uint32_t i = 0; i < use->axis_count; ++i) {
        const gts_leaf_axis each = use->axes[i];
        const gts_array *const array = gts_array_of(self, each.leaf);
        if (lowest < array->origin[each.axis] || highest >= gts_stop(array, each.axis))
            return gts_refuse_indices(self, &self->stub->leaves[each.leaf], each.axis, array, lowest, highest);
        if (copied_rows(self, each) != NULL && lowest <= highest)
            use_more(self, each.leaf, (gts_table_use){lowest, highest, UINT64_MAX});
    }
    return 0;
}

void gts_find_common(const gts_program *self, const gts_use *uses, size_t count, gts_indices *common)
{
    for (size_t i = 0; i < count; ++i) {
        gts_indices found = {INT64_MIN, INT64_MAX};
        for (uint32_t k = 0; k < uses[i].axis_count; ++k) {
            const gts_array *const array = gts_array_of(self, uses[i].axes[k].leaf);
            const int32_t axis = uses[i].axes[k].axis;
            found.start = gts_max(found.start, array->origin[axis]);
            found.stop = gts_min(found.stop, gts_stop(array, axis));
            const gts_table *const table = copied_rows(self, uses[i].axes[k]);
            if (table != NULL) {
                found.start = gts_max(found.start, table->used.first);
                found.stop = table->is_new ? INT64_MIN : gts_min(found.stop, table->used.last + 1);
            }
        }
        common[i] = found;
    }
}

/* ---- Index base 1 ---------------------------------------------------------------------------------------------- */

int gts_shift_table(gts_program *self, uint32_t index)
{
    const gts_contract *const contract = &self->stub->leaves[index];
    gts_leaf *const leaf = &self->leaf[index];
    gts_array *const table = &leaf->current->array;
    gts_table *const known = gts_table_of(leaf);
    gts_table_copy_release(known->copy);
    known->copy = NULL;
    if (gts_index_base(leaf) == 0 || table->shape[0] == 0 || table->shape[1] == 0)
        return 0;
    if (table->device != GTS_CPU)
        return GTS_REFUSE_TABLE(self, contract, GTS_VALUE_ERROR,
                                "must have index base 0, because it is on device '%s'.",
                                gts_device_name(table->device));
    if (table->dtype != GTS_INT32 && table->dtype != GTS_INT64)
        return GTS_REFUSE_TABLE(self, contract, GTS_VALUE_ERROR, "must have index base 0, because its dtype is '%s'.",
                                gts_dtype_name(table->dtype));
    gts_range memory;
    gts_table_copy *const copy = gts_find_range(table, &memory) ? malloc(sizeof *copy + (memory.high - memory.low))
                                                                : NULL;
    if (copy == NULL)
        return GTS_REFUSE_TABLE(self, contract, GTS_RUNTIME_ERROR, "cannot be copied to index base 0: out of memory.");
    copy->owners = 1;
    shift(table, copy->bytes + memory.lead, 0, table->shape[0] - 1);
    known->copy = copy;
    table->data = copy->bytes + memory.lead;
    return 0;
}
