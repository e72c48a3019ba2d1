/* What C hosts pass: arrays by value, recognised by what is in them, and what is said once of an argument. */
#include <inttypes.h>
#include <stdio.h>

#include "gtstub/program.h"
#include "arguments/table.h"
#include "base/refuse.h"

_Static_assert(offsetof(gts_array, origin) == sizeof(gts_words), "gts_differ() takes memory and type as two words");
_Static_assert(GTS_MAX_RANK % 2 == 0, "gts_differ() takes axes two by two");

/* ---- Recognising ----------------------------------------------------------------------------------------------- */

static bool is_same(const gts_array *a, const gts_array *b)
{
    return gts_same_array(a, b) && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

/* Without elements, and so perhaps without memory. */
static bool is_empty(const gts_array *array)
{
    for (int32_t axis = 0; axis < array->rank && axis < GTS_MAX_RANK; ++axis) {
        if (array->shape[axis] == 0)
            return true;
    }
    return false;
}

void gts_swap_arrays(gts_program *self)
{
    const gts_stub *const stub = self->stub;
    const gts_arrays last = {
        .slots = self->slots,
        .args = self->args,
        .descriptors = self->descriptors,
        .has_new_array = self->has_new_array,
        .knows_args = self->knows_args,
        .knows_fortran = self->knows_fortran,
    };
    self->slots = self->other.slots;
    self->args = self->other.args;
    self->descriptors = self->other.descriptors;
    self->has_new_array = self->other.has_new_array;
    self->knows_args = self->other.knows_args;
    self->knows_fortran = self->other.knows_fortran;
    self->other = last;
    self->current_index ^= 1;
    for (uint32_t i = 0; i < stub->leaf_count; ++i) {
        if (gts_is_array(stub->leaves[i].kind))
            self->leaf[i].current = &self->leaf[i].remembered[self->current_index];
    }
}

/* What the leaf is passed, in a struct of arguments. */
static const gts_array *member(const gts_program *self, uint32_t leaf, const void *args)
{
    return (const gts_array *)((const char *)args + self->stub->leaves[leaf].member);
}

/* Whether the arguments before the last have this array. What it was converted to is then taken from there. */
static bool take_other(gts_program *self, uint32_t index, const gts_array *array)
{
    gts_leaf *const leaf = &self->leaf[index];
    const uint32_t other = self->current_index ^ 1;
    if (!self->other.knows_args || !is_same(array, member(self, index, self->other.args)))
        return false;
    gts_forget(leaf->current);
    leaf->current->array = leaf->remembered[other].array;
    leaf->table_of[self->current_index] = leaf->table_of[other];
    return true;
}

static int take_new(gts_program *self, uint32_t index, const gts_array *array)
{
    gts_leaf *const leaf = &self->leaf[index];
    if (GTS_UNLIKELY(array->data == NULL && !is_empty(array)))
        return gts_error_set(&self->error, GTS_TYPE_ERROR, GTS_ARGUMENT "must be an array, not NULL.",
                             self->stub->leaves[index].path, self->stub->name);
    if (gts_check_array(self, index, array) != 0)
        return -1;
    gts_forget(leaf->current);
    leaf->current->array = *array;
    leaf->table_of[self->current_index] = leaf->table_of[self->current_index ^ 1] ^ 1;
    leaf->table[leaf->table_of[self->current_index]].is_new = true;
    return 0;
}

int gts_check_args(gts_program *self, const void *args)
{
    const gts_stub *const stub = self->stub;
    if (GTS_UNLIKELY(args == NULL))
        return gts_error_set(&self->error, GTS_TYPE_ERROR, "The arguments of program '%s' must be a struct, not NULL.",
                             stub->name);
    if (self->knows_args)
        gts_swap_arrays(self);
    const bool knew = self->knows_args;
    self->has_new_array = true;
    self->knows_args = self->knows_fortran = false;
    for (uint32_t i = 0; i < stub->leaf_count; ++i) {
        if (!gts_is_array(stub->leaves[i].kind))
            continue;
        self->leaf[i].current = &self->leaf[i].remembered[self->current_index]; /* Python may have had the other one */
        const gts_array *const array = member(self, i, args);
        const bool is_known = (knew && is_same(array, member(self, i, self->args))) || take_other(self, i, array);
        if (!is_known && take_new(self, i, array) != 0)
            return -1;
    }
    if (gts_check_tables(self) != 0)
        return -1;
    memcpy(self->args, args, stub->args_size);
    self->knows_args = true;
    return 0;
}

/* ---- What is said once ----------------------------------------------------------------------------------------- */

static GTS_COLD void refuse_path(gts_program *self, const char *path, gts_leaf_kind kind)
{
    const gts_stub *const stub = self->stub;
    char others[sizeof self->error.message] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < stub->leaf_count && used < sizeof others; ++i) {
        if (stub->leaves[i].kind != kind)
            continue;
        const int n = snprintf(others + used, sizeof others - used, "%s'%s'", used == 0 ? "" : ", ",
                               stub->leaves[i].path);
        used += n > 0 ? (size_t)n : 0;
    }
    gts_error_set(&self->error, GTS_VALUE_ERROR, "Program '%s' has no %s '%s', but %s.", stub->name,
                  kind == GTS_FIELD ? "field" : "connectivity", path, used == 0 ? "none" : others);
}

/* The leaf of this path and kind; leaf_count after an error. */
static uint32_t find_leaf(gts_program *self, const char *path, gts_leaf_kind kind)
{
    const gts_stub *const stub = self->stub;
    uint32_t i = 0;
    while (i < stub->leaf_count && (stub->leaves[i].kind != kind || strcmp(stub->leaves[i].path, path) != 0))
        ++i;
    if (i == stub->leaf_count)
        refuse_path(self, path, kind);
    return i;
}

int gts_set_origin(gts_program *self, const char *argument, const int64_t *origin, int32_t rank)
{
    if (gts_enter_open(self) != 0)
        return -1;
    int status = -1;
    const uint32_t i = find_leaf(self, argument, GTS_FIELD);
    if (i < self->stub->leaf_count && rank != self->stub->leaves[i].rank) {
        gts_error_set(&self->error, GTS_VALUE_ERROR,
                      GTS_ARGUMENT "has %" PRId32 " axes, but its origin was given for %" PRId32 ".", argument,
                      self->stub->name, self->stub->leaves[i].rank, rank);
    } else if (i < self->stub->leaf_count) {
        memcpy(self->leaf[i].origin, origin, (size_t)rank * sizeof *origin);
        gts_forget_arrays(self);
        status = 0;
    }
    gts_leave(self);
    return status;
}

int gts_set_index_base(gts_program *self, const char *connectivity, int64_t base)
{
    if (gts_enter_open(self) != 0)
        return -1;
    int status = -1;
    const uint32_t i = find_leaf(self, connectivity, GTS_CONNECTIVITY);
    if (i < self->stub->leaf_count && base != 0 && base != 1) {
        gts_error_set(&self->error, GTS_VALUE_ERROR, GTS_TABLE "must have an index base of 0 or 1, not %" PRId64 ".",
                      connectivity, self->stub->name, base);
    } else if (i < self->stub->leaf_count) {
        self->leaf[i].index_base = base;
        gts_forget_arrays(self); /* the next call takes the table again */
        status = 0;
    }
    gts_leave(self);
    return status;
}
