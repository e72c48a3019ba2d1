/* Settings of arguments: the origin of a field, the index base of a connectivity, and lower bounds in Fortran. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/new.h"
#include "base/refuse.h"
#include "program/private.h"

/* The index of the leaf with this path and kind; leaf_count if there is none. */
static uint32_t find_index(const gts_program *self, const char *path, gts_leaf_kind kind)
{
    const gts_stub *const stub = self->stub;
    uint32_t i = 0;
    while (i < stub->leaf_count && (stub->leaves[i].kind != kind || strcmp(stub->leaves[i].path, path) != 0))
        ++i;
    return i;
}

/* The index of the leaf with this path and kind; leaf_count after an error. */
static uint32_t find_leaf(gts_program *self, const char *path, gts_leaf_kind kind)
{
    const gts_stub *const stub = self->stub;
    const uint32_t found = find_index(self, path, kind);
    char others[sizeof self->error.message] = "";
    for (uint32_t i = 0; found == stub->leaf_count && i < stub->leaf_count; ++i) {
        if (stub->leaves[i].kind == kind)
            gts_append_name(others, sizeof others, stub->leaves[i].path);
    }
    if (found == stub->leaf_count)
        GTS_REFUSE_PROGRAM(self, GTS_VALUE_ERROR, "has no %s '%s'; it has %s.",
                           kind == GTS_FIELD ? "field" : "connectivity", path, *others == '\0' ? "none" : others);
    return found;
}

int gts_set_origin(gts_program *self, const char *argument, const int64_t *origin, int32_t rank)
{
    if (gts_enter_open(self) != 0)
        return -1;
    int status = -1;
    const uint32_t i = find_leaf(self, argument, GTS_FIELD);
    if (i < self->stub->leaf_count && rank != self->stub->leaves[i].rank) {
        GTS_REFUSE(self, &self->stub->leaves[i], GTS_VALUE_ERROR,
                   "has %" PRId32 " axes, but its origin was given for %" PRId32 ".", self->stub->leaves[i].rank, rank);
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
        GTS_REFUSE_TABLE(self, &self->stub->leaves[i], GTS_VALUE_ERROR,
                         "must have an index base of 0 or 1, not %" PRId64 ".", base);
    } else if (i < self->stub->leaf_count) {
        self->leaf[i].index_base = base;
        gts_forget_arrays(self); /* so that the next call checks the table again */
        status = 0;
    }
    gts_leave(self);
    return status;
}

static int set_lower_bounds(gts_program *self, const char *argument, const int64_t *bounds, int32_t rank)
{
    const gts_stub *const stub = self->stub;
    const uint32_t table = find_index(self, argument, GTS_CONNECTIVITY);
    const uint32_t i = table < stub->leaf_count ? table : find_leaf(self, argument, GTS_FIELD);
    if (i == stub->leaf_count)
        return -1;
    if (rank != stub->leaves[i].rank)
        return GTS_REFUSE(self, &stub->leaves[i], GTS_VALUE_ERROR,
                          "has %" PRId32 " dimensions, but its lower bounds were given for %" PRId32 ".",
                          stub->leaves[i].rank, rank);
    const size_t count = (size_t)stub->leaf_count * GTS_MAX_RANK;
    if (self->runtime->lower_bounds == NULL) {
        self->runtime->lower_bounds = gts_new(count, sizeof *bounds);
        for (size_t k = 0; k < count; ++k)
            self->runtime->lower_bounds[k] = 1;
    }
    memcpy(self->runtime->lower_bounds + (size_t)i * GTS_MAX_RANK, bounds, (size_t)rank * sizeof *bounds);
    return 0;
}

int gts_set_lower_bounds(gts_program *self, const char *argument, const int64_t *bounds, int32_t rank)
{
    if (gts_enter_open(self) != 0)
        return -1;
    const int status = set_lower_bounds(self, argument, bounds, rank);
    gts_leave(self);
    return status;
}
