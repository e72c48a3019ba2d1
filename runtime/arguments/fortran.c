/*
 * Refusals of a Fortran entry, and how it reports errors. The layout of descriptors depends on the Fortran compiler and
 * is not known here: gtstub/fortran.h reads them.
 */
#include "arguments/fortran.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/refuse.h"
#include "program/counting.h"

int gts_refuse_fortran_array(gts_error *error, const char *subject, const char *compiled, gts_fortran_reason reason,
                             const gts_array *array)
{
    const int32_t axis = array->rank;
    switch (reason) {
    case GTS_FORTRAN_ABSENT:
        return gts_error_set(error, GTS_TYPE_ERROR, "%smust not be absent.", subject);
    case GTS_FORTRAN_UNALLOCATED:
        return gts_error_set(error, GTS_VALUE_ERROR, "%smust be allocated or associated.", subject);
    case GTS_FORTRAN_OTHER_COMPILER:
        return gts_error_set(error, GTS_TYPE_ERROR,
                             "%shas the descriptor of another Fortran compiler: compile the %s with the "
                             "ISO_Fortran_binding.h of the host's compiler.",
                             subject, compiled);
    case GTS_FORTRAN_NO_SIZE:
        return gts_error_set(error, GTS_VALUE_ERROR, "%shas no size on %s: pass a section with an upper bound.",
                             subject, gts_axis_text_for(true, axis, array->dims[axis]).text);
    default: /* GTS_FORTRAN_STRIDE: the callers have sentences of their own for what is left */
        return gts_error_set(error, GTS_VALUE_ERROR,
                             "%shas a stride of %" PRId64 " bytes on %s, which is not a multiple of its element size "
                             "%zu.",
                             subject, array->strides[axis], gts_axis_text_for(true, axis, NULL).text,
                             gts_dtype_size(array->dtype));
    }
}

int gts_refuse_fortran(gts_program *self, uint32_t leaf, gts_fortran_reason reason, const gts_array *array)
{
    const gts_contract *const contract = &self->stub->leaves[leaf];
    if (reason == GTS_FORTRAN_NO_INDEX_BASE)
        return GTS_REFUSE_TABLE(self, contract, GTS_VALUE_ERROR,
                                "has no index base: set 0 or 1 with gts_set_index_base().");
    gts_array named = *array;
    for (int32_t axis = 0; axis < contract->rank; ++axis)
        named.dims[axis] = contract->axes[axis].dim;
    gts_short_text subject;
    snprintf(subject.text, sizeof subject.text, GTS_ARGUMENT, contract->path, self->stub->name);
    return gts_refuse_fortran_array(&self->error, subject.text, "stub", reason, &named);
}

void gts_copy_text(char *to, size_t length, const char *text)
{
    const size_t given = strlen(text);
    const size_t copied = given < length ? given : length;
    memcpy(to, text, copied);
    memset(to + copied, ' ', length - copied);
}

void gts_error_stop(const gts_error *error)
{
    fprintf(stderr, "ERROR STOP %s\n", error->message);
    exit(EXIT_FAILURE);
}
