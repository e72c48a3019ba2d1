#include "program/counting.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/refuse.h"
#include "program/private.h"

gts_short_text gts_axis_text_for(bool is_fortran, int32_t axis, const char *dim)
{
    gts_short_text text;
    snprintf(text.text, sizeof text.text, dim == NULL ? "%s %" PRId32 : "%s %" PRId32 " ('%s')",
             is_fortran ? "dimension" : "axis", is_fortran ? axis + 1 : axis, dim);
    return text;
}

gts_short_text gts_axis_text(const gts_program *self, int32_t axis)
{
    return gts_axis_text_for(gts_counts_as_fortran(self), axis, NULL);
}

int64_t gts_index_shift(const gts_program *self, uint32_t leaf, const gts_array *array, int32_t axis)
{
    if (!gts_counts_as_fortran(self))
        return 0;
    const int64_t *const bounds = self->runtime->lower_bounds;
    const int64_t bound = bounds == NULL ? 1 : bounds[(size_t)leaf * GTS_MAX_RANK + (size_t)axis];
    return bound - array->origin[axis];
}

gts_short_text gts_place_text(const gts_program *self, uint32_t leaf, const int64_t *index)
{
    const gts_contract *const contract = &self->stub->leaves[leaf];
    const bool is_fortran = gts_counts_as_fortran(self);
    gts_short_text place = {""};
    if (is_fortran)
        gts_append(place.text, sizeof place.text, "%s(", contract->path);
    for (int32_t axis = 0; axis < contract->rank; ++axis) {
        if (is_fortran)
            gts_append(place.text, sizeof place.text, "%s%" PRId64, axis > 0 ? "," : "", index[axis]);
        else
            gts_append(place.text, sizeof place.text, "%s%s %" PRId64, axis > 0 ? ", " : "", contract->axes[axis].dim,
                       index[axis]);
    }
    if (is_fortran)
        gts_append(place.text, sizeof place.text, ")");
    return place;
}
