/*
 * gtstub: how the Fortran entry of a stub reads what Fortran passes. Stubs that are compiled with GTS_FORTRAN include it.
 *
 * ISO_Fortran_binding.h is the Fortran compiler's: layout of a descriptor and numbers of types are its own. A descriptor
 * says where an array is, its type, its sizes, and its strides in bytes. It does not say where the memory lives, which is
 * taken for the device of the contract, and those of assumed-shape arguments do not say where their bounds are.
 */
#ifndef GTSTUB_FORTRAN_H
#define GTSTUB_FORTRAN_H

#include <ISO_Fortran_binding.h>

#include "gtstub/stub.h"

/* Fortran has no unsigned integers: signed ones of the same size stand for them. */
static inline CFI_type_t gts_fortran_type(gts_dtype dtype)
{
    switch (dtype) {
    case GTS_BOOL:
        return (CFI_type_t)CFI_type_Bool;
    case GTS_INT8:
    case GTS_UINT8:
        return (CFI_type_t)CFI_type_int8_t;
    case GTS_INT16:
    case GTS_UINT16:
        return (CFI_type_t)CFI_type_int16_t;
    case GTS_INT32:
    case GTS_UINT32:
        return (CFI_type_t)CFI_type_int32_t;
    case GTS_INT64:
    case GTS_UINT64:
        return (CFI_type_t)CFI_type_int64_t;
    case GTS_FLOAT32:
        return (CFI_type_t)CFI_type_float;
    case GTS_FLOAT64:
        return (CFI_type_t)CFI_type_double;
    }
    return (CFI_type_t)CFI_type_other;
}

/*
 * Whether a descriptor says what one said before, as far as the SDFG can tell: `known` is its address, then extent and bytes
 * to the next element of each axis, and `what` of them counts. The type is looked at where something is new: at the same
 * address another one would have other bytes, or another interface than that of the program's module. Word by word, because
 * the caller has only just written the descriptor so, and wider loads would have to wait for it.
 */
static inline GTS_ALWAYS_INLINE bool gts_fortran_is_known(const CFI_cdesc_t *found, int32_t rank, unsigned int what,
                                                          const uint64_t *known)
{
    if (GTS_UNLIKELY(found == NULL) || GTS_UNLIKELY(found->rank != rank))
        return false;
    uint64_t difference = (uintptr_t)found->base_addr ^ known[0];
#pragma GCC unroll 6
    for (int32_t axis = 0; axis < rank; ++axis) {
        if ((what & (GTS_SIZE | GTS_STOP)) != 0)
            difference |= (uint64_t)found->dim[axis].extent ^ known[2 * axis + 1];
        if ((what & GTS_STRIDE) != 0)
            difference |= (uint64_t)found->dim[axis].sm ^ known[2 * axis + 2];
    }
    return GTS_LIKELY(difference == 0);
}

/* Describes what Fortran passes for a leaf, or says what is wrong with it. */
static inline int gts_fortran_read(gts_program *self, uint32_t leaf, const CFI_cdesc_t *found, gts_array *array)
{
    const gts_contract *const contract = &self->stub->leaves[leaf];
    if (contract->kind == GTS_CONNECTIVITY && self->leaf[leaf].index_base == GTS_ANY)
        return gts_refuse_index_base(self, leaf);
    if (found == NULL || found->base_addr == NULL)
        return gts_refuse_missing(self, leaf, found == NULL);
    gts_dtype dtype = contract->dtype;
    if (found->type != gts_fortran_type(dtype)) {
        dtype = GTS_BOOL;
        while (dtype <= GTS_FLOAT64 && found->type != gts_fortran_type(dtype))
            ++dtype;
    }
    if (dtype != contract->dtype || found->rank != contract->rank)
        return gts_refuse_type(self, leaf, dtype, found->rank);
    *array = (gts_array){.data = found->base_addr, .dtype = dtype, .device = contract->device, .rank = found->rank};
    const int64_t size = (int64_t)gts_dtype_size(dtype);
    for (int32_t axis = 0; axis < contract->rank; ++axis) {
        const CFI_dim_t dim = found->dim[axis];
        if (dim.extent < 0 || dim.sm % size != 0)
            return gts_refuse_axis(self, leaf, axis, dim.extent, dim.sm);
        array->origin[axis] = self->leaf[leaf].origin[axis];
        array->shape[axis] = dim.extent;
        array->strides[axis] = dim.sm / size;
    }
    return 0;
}

/* Notes what a descriptor says, for gts_fortran_is_known(); returns where the next one is noted. */
static inline uint64_t *gts_fortran_remember(const CFI_cdesc_t *found, uint64_t *known)
{
    *known++ = (uintptr_t)found->base_addr;
    for (CFI_rank_t axis = 0; axis < found->rank; ++axis) {
        *known++ = (uint64_t)found->dim[axis].extent;
        *known++ = (uint64_t)found->dim[axis].sm;
    }
    return known;
}

/* Whether the arrays are those before the last, which must be known. */
static inline bool gts_fortran_is_other(const gts_program *self, const CFI_cdesc_t *const *found)
{
    const uint64_t *known = self->other.descriptors;
    uint32_t next = 0;
    for (uint32_t leaf = 0; leaf < self->stub->leaf_count; ++leaf) {
        const gts_contract *const contract = &self->stub->leaves[leaf];
        if (!gts_is_array(contract->kind))
            continue;
        if (!gts_fortran_is_known(found[next++], contract->rank, GTS_SIZE | GTS_STRIDE, known))
            return false;
        known += 1 + 2 * contract->rank;
    }
    return true;
}

/* For a call whose arrays are not those of the call before. `args` has room for the stub's struct. */
static inline int gts_fortran_check(gts_program *self, const CFI_cdesc_t *const *found, void *args)
{
    if (self->other.knows_fortran && gts_fortran_is_other(self, found)) {
        gts_swap_arrays(self);
        return 0;
    }
    uint32_t next = 0;
    for (uint32_t leaf = 0; leaf < self->stub->leaf_count; ++leaf) {
        const gts_contract *const contract = &self->stub->leaves[leaf];
        if (gts_is_array(contract->kind) &&
            gts_fortran_read(self, leaf, found[next++], (gts_array *)((char *)args + contract->member)) != 0)
            return -1;
    }
    if (gts_check_args(self, args) != 0)
        return -1;
    uint64_t *known = self->descriptors;
    for (uint32_t i = 0; i < next; ++i)
        known = gts_fortran_remember(found[i], known);
    self->knows_fortran = true;
    return 0;
}

/* Tells Fortran of the error that this call has left; ends the call, where it was entered. Without `stat` it ends all. */
static inline void gts_fortran_fail(gts_program *self, bool is_entered, int *stat, const CFI_cdesc_t *errmsg)
{
    const gts_error error = *gts_last_error(self);
    if (is_entered)
        gts_leave(self);
    if (stat == NULL)
        gts_stop(&error);
    *stat = (int)error.kind;
    if (errmsg != NULL)
        gts_copy_text(errmsg->base_addr, errmsg->elem_len, error.message);
}

#endif
