/* Settings of arguments: the origin of a field, and the index base of a connectivity. */
#include <inttypes.h>

#include "base/refuse.h"
#include "gtstub/program.h"

static GTS_COLD void refuse_path(gts_program *self, const char *path, gts_leaf_kind kind)
{
    const gts_stub *const stub = self->stub;
    char others[sizeof self->error.message] = "";
    for (uint32_t i = 0; i < stub->leaf_count; ++i) {
        if (stub->leaves[i].kind == kind)
            gts_append_name(others, sizeof others, stub->leaves[i].path);
    }
    GTS_REFUSE_PROGRAM(self, GTS_VALUE_ERROR, "has no %s '%s'; it has %s.",
                       kind == GTS_FIELD ? "field" : "connectivity", path, *others == '\0' ? "none" : others);
}

/* The index of the leaf with this path and kind; leaf_count after an error. */
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
