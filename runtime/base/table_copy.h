/* Inside the runtime: copies of tables of neighbors, which programs and bound calls share. */
#pragma once

#include <stdlib.h>

#include "gtstub/arrays.h"

struct gts_table_copy {
    _Atomic unsigned int owners; /* it is freed with the last of them */
    _Alignas(16) char bytes[];   /* as malloc() aligns */
};

static inline gts_table_copy *gts_table_copy_keep(gts_table_copy *copy)
{
    ++copy->owners;
    return copy;
}

/* `copy` may be NULL. */
static inline void gts_table_copy_release(gts_table_copy *copy)
{
    if (copy != NULL && --copy->owners == 0)
        free(copy);
}
