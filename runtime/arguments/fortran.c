/*
 * Refusals of a Fortran entry, and how it reports errors. The layout of descriptors depends on the Fortran compiler and
 * is not known here: gtstub/fortran.h reads them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/refuse.h"
#include "gtstub/program.h"

int gts_refuse_missing(gts_program *self, uint32_t leaf, bool is_absent)
{
    const gts_contract *const contract = &self->stub->leaves[leaf];
    if (is_absent)
        return GTS_REFUSE(self, contract, GTS_TYPE_ERROR, "must not be absent.");
    return GTS_REFUSE(self, contract, GTS_VALUE_ERROR, "must be allocated or associated.");
}

int gts_refuse_descriptor(gts_program *self, uint32_t leaf)
{
    return GTS_REFUSE(self, &self->stub->leaves[leaf], GTS_TYPE_ERROR,
                      "has the descriptor of another Fortran compiler: compile the stub with the ISO_Fortran_binding.h "
                      "of the host's compiler.");
}

int gts_refuse_type(gts_program *self, uint32_t leaf, gts_dtype dtype, int32_t rank)
{
    const gts_array array = {.dtype = dtype, .device = self->stub->leaves[leaf].device, .rank = (int16_t)rank};
    return gts_check_array(self, leaf, &array);
}

int gts_refuse_axis(gts_program *self, uint32_t leaf, int32_t axis, int64_t extent, int64_t bytes)
{
    const gts_contract *const contract = &self->stub->leaves[leaf];
    if (extent < 0)
        return GTS_REFUSE(self, contract, GTS_VALUE_ERROR,
                          "has no size on dimension %" PRId32 " ('%s'): pass a section with an upper bound.", axis + 1,
                          contract->axes[axis].dim);
    return GTS_REFUSE(self, contract, GTS_VALUE_ERROR,
                      "has a stride of %" PRId64 " bytes on dimension %" PRId32
                      ", which is not a multiple of its element size %zu.",
                      bytes, axis + 1, gts_dtype_size(contract->dtype));
}

int gts_refuse_index_base(gts_program *self, uint32_t leaf)
{
    return GTS_REFUSE_TABLE(self, &self->stub->leaves[leaf], GTS_VALUE_ERROR,
                            "has no index base: set 0 or 1 with gts_set_index_base().");
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
    (void)fprintf(stderr, "ERROR STOP %s\n", error->message);
    exit(EXIT_FAILURE);
}
