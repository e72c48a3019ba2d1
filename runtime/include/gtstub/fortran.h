/*
 * gtstub: how the Fortran entry of a stub reads descriptors. Stubs that are compiled with GTS_FORTRAN include this
 * header.
 */
#ifndef GTSTUB_FORTRAN_H
#define GTSTUB_FORTRAN_H

#include "gtstub/fortran_types.h"
#include "gtstub/step.h"
#include "gtstub/stub.h"

/*
 * Whether a descriptor equals an earlier one in everything that the SDFG takes from it. `*next` points to the words of
 * the earlier one: its address, then the extent and the stride in bytes of each axis. `what` selects the words to
 * compare. `*next` is advanced to the words of the next descriptor. The type is not compared: at the same address,
 * another type would have other strides, or would not match the program's interface. Words are compared one by one,
 * because the caller has just written them one by one, and a wider load would wait for these stores.
 */
static inline GTS_ALWAYS_INLINE bool gts_fortran_is_known(const uint64_t **next, const CFI_cdesc_t *found, int32_t rank,
                                                          unsigned int what)
{
    const uint64_t *const known = *next;
    *next += 1 + 2 * rank;
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

/* Reads the descriptor of a leaf into an array, or refuses it. */
static inline int gts_fortran_read(gts_program *self, uint32_t leaf, const CFI_cdesc_t *found, gts_array *array)
{
    const gts_contract *const contract = &self->stub->leaves[leaf];
    if (contract->kind == GTS_CONNECTIVITY && self->leaf[leaf].index_base == GTS_NO_INDEX_BASE)
        return gts_refuse_index_base(self, leaf);
    if (found == NULL || found->base_addr == NULL)
        return gts_refuse_missing(self, leaf, found == NULL);
    if (!gts_fortran_is_native(found))
        return gts_refuse_descriptor(self, leaf);
    const gts_dtype dtype = gts_fortran_dtype(found->type, contract->dtype);
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

/* Stores the words of a descriptor for gts_fortran_is_known(); returns where those of the next one are stored. */
static inline uint64_t *gts_fortran_remember(const CFI_cdesc_t *found, uint64_t *known)
{
    *known++ = (uintptr_t)found->base_addr;
    for (CFI_rank_t axis = 0; axis < found->rank; ++axis) {
        *known++ = (uint64_t)found->dim[axis].extent;
        *known++ = (uint64_t)found->dim[axis].sm;
    }
    return known;
}

/* Whether the descriptors describe the arrays of the call before the last, which must be known. */
static inline bool gts_fortran_is_other(const gts_program *self, const CFI_cdesc_t *const *found)
{
    const uint64_t *known = self->other.descriptors;
    uint32_t next = 0;
    for (uint32_t leaf = 0; leaf < self->stub->leaf_count; ++leaf) {
        const gts_contract *const contract = &self->stub->leaves[leaf];
        if (!gts_is_array(contract->kind))
            continue;
        if (!gts_fortran_is_known(&known, found[next++], contract->rank, GTS_SIZE | GTS_STRIDE))
            return false;
    }
    return true;
}

/* Reads all descriptors into a `struct <name>_args`, and counts them, or refuses one of them. */
static inline int gts_fortran_read_all(gts_program *self, const CFI_cdesc_t *const *found, void *args, uint32_t *count)
{
    *count = 0;
    self->from_fortran = true;
    for (uint32_t leaf = 0; leaf < self->stub->leaf_count; ++leaf) {
        const gts_contract *const contract = &self->stub->leaves[leaf];
        if (gts_is_array(contract->kind) &&
            gts_fortran_read(self, leaf, found[(*count)++], (gts_array *)((char *)args + contract->member)) != 0)
            return -1;
    }
    return 0;
}

/* Checks the arrays of a call that are not those of the last call. `args` has room for the `struct <name>_args`. */
static inline int gts_fortran_check(gts_program *self, const CFI_cdesc_t *const *found, void *args)
{
    if (self->other.knows_fortran && gts_fortran_is_other(self, found) && gts_swap_arrays(self))
        return 0;
    uint32_t count;
    if (gts_fortran_read_all(self, found, args, &count) != 0 || gts_check_args(self, args) != 0)
        return -1;
    uint64_t *known = self->descriptors;
    for (uint32_t i = 0; i < count; ++i)
        known = gts_fortran_remember(found[i], known);
    self->knows_fortran = true;
    return 0;
}

/*
 * Returns the error of this call in `stat` and `errmsg`, or stops the process if there is no `stat`. The members of
 * `errmsg` that are used are in the same place in the descriptors of all compilers.
 */
static inline void gts_fortran_fail(gts_program *self, bool is_entered, int *stat, const CFI_cdesc_t *errmsg)
{
    const gts_error error = *gts_last_error(self);
    if (is_entered)
        gts_leave(self);
    if (stat == NULL)
        gts_error_stop(&error);
    *stat = (int)error.kind;
    if (errmsg != NULL)
        gts_copy_text(errmsg->base_addr, errmsg->elem_len, error.message);
}

/*
 * Binds a call, and frees the one that was bound before, unless there is an error. `args` is the `struct <name>_args`, in
 * which everything but arrays is set. Each stub calls it once.
 */
static GTS_COLD void gts_fortran_bind(gts_program *self, const gts_stub *stub, const CFI_cdesc_t *const *found,
                                      void *args, gts_bound_call **call, int *stat, const CFI_cdesc_t *errmsg)
{
    uint32_t count;
    gts_bound_call *bound;
    const bool is_entered = gts_enter_linked(self, stub) == 0;
    const bool is_read = is_entered && gts_fortran_read_all(self, found, args, &count) == 0;
    if (is_read)
        gts_leave(self);
    if (!is_read || gts_bind(self, args, &bound) != 0) {
        gts_fortran_fail(self, is_entered && !is_read, stat, errmsg);
        return;
    }
    gts_unbind(call);
    *call = bound;
    if (stat != NULL)
        *stat = 0;
}

#endif
