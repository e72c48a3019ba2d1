/*
 * gtstub: how the Fortran entries of a granule read and set descriptors. Granules that are compiled with GTS_FORTRAN
 * include this header; gtstub/fortran_types.h says what a descriptor is.
 */
#ifndef GTSTUB_FORTRAN_GRANULE_H
#define GTSTUB_FORTRAN_GRANULE_H

#include "gtstub/fortran_types.h"
#include "gtstub/granule_descriptor.h"

/* Reads the descriptors of all arguments. */
static inline int gts_fortran_granule_read(gts_granule *granule, const gts_granule_descriptor *descriptor,
                                           const CFI_cdesc_t *const *found, gts_array *arrays)
{
    uint32_t argument = 0;
    gts_granule_count_as_fortran(granule);
    for (uint32_t i = 0; i < descriptor->array_count; ++i) {
        if (!descriptor->arrays[i].is_argument)
            continue;
        const CFI_cdesc_t *const from = found[argument];
        if (from == NULL || from->base_addr == NULL)
            return gts_granule_refuse_missing(granule, argument);
        if (!gts_fortran_is_native(from))
            return gts_granule_refuse_descriptor(granule, descriptor->arrays[i].name);
        gts_array *const to = &arrays[argument++];
        const gts_dtype dtype = gts_fortran_dtype(from->type, descriptor->arrays[i].dtype);
        const int64_t size = (int64_t)gts_dtype_size(descriptor->arrays[i].dtype);
        *to = (gts_array){.data = from->base_addr, .dtype = dtype, .device = GTS_CPU, .rank = from->rank};
        for (int32_t axis = 0; axis < from->rank && axis < GTS_MAX_RANK; ++axis) {
            if (from->dim[axis].sm % size != 0)
                return gts_granule_refuse_stride(granule, argument - 1, axis);
            to->shape[axis] = from->dim[axis].extent;
            to->strides[axis] = from->dim[axis].sm / size;
        }
    }
    return 0;
}

/* Points a pointer of Fortran to an array of a granule, with lower bounds of 1. */
static inline int gts_fortran_granule_get(const gts_granule *granule, const char *name, CFI_cdesc_t *pointer)
{
    gts_array array;
    if (gts_granule_array(granule, name, &array) != 0)
        return -1;
    if (pointer->version != CFI_VERSION)
        return gts_granule_refuse_descriptor(granule, name);
    if (gts_fortran_dtype(pointer->type, array.dtype) != array.dtype || pointer->rank != array.rank)
        return gts_granule_refuse_pointer(granule, name, gts_fortran_dtype(pointer->type, array.dtype), pointer->rank);
    pointer->base_addr = array.data;
    for (int32_t axis = 0; axis < array.rank; ++axis) {
        pointer->dim[axis].lower_bound = 1;
        pointer->dim[axis].extent = array.shape[axis];
        pointer->dim[axis].sm = array.strides[axis] * (CFI_index_t)gts_dtype_size(array.dtype);
    }
    return 0;
}

#endif
