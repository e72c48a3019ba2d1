/*
 * gtstub: the Fortran entries of stubs and granules, and how they read descriptors. A stub that is compiled with
 * GTS_FORTRAN includes this header after it has defined all that its entry for C uses, and GTS_FORTRAN_CALL and
 * GTS_FORTRAN_BIND, the names of the entries. A granule includes it after gtstub/granule.h.
 */
#ifndef GTSTUB_FORTRAN_H
#define GTSTUB_FORTRAN_H

#include <ISO_Fortran_binding.h>

#include "gtstub/gtstub.h"

/* ---- Descriptors ------------------------------------------------------------------------------------------------- */

/*
 * Whether the descriptor of an array was made by the compiler whose ISO_Fortran_binding.h is included here. In all
 * compilers a descriptor begins with `base_addr`, `elem_len` and `version`; the other members are in an order of their
 * own, and compilers that differ may have the same version. Intel and NAG order an axis as extent, stride, lower bound.
 * Their lower bound would be the stride here. It is 0 in an argument, and most often 1 in a pointer, but elements are as
 * far apart as they are long, unless an axis before is empty.
 */
static inline bool gts_fortran_is_native(const CFI_cdesc_t *found)
{
    if (found->version != CFI_VERSION || found->rank == 0)
        return found->version == CFI_VERSION;
    const CFI_index_t stride = found->dim[0].sm;
    return (uint64_t)(stride < 0 ? -stride : stride) >= found->elem_len;
}

/* The Fortran type of a dtype. Fortran has no unsigned integers: a signed one of the same size takes their place. */
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
    case GTS_COMPLEX64:
        return (CFI_type_t)CFI_type_float_Complex;
    case GTS_COMPLEX128:
        return (CFI_type_t)CFI_type_double_Complex;
    case GTS_FLOAT16: /* which Fortran does not have: no module takes such an array */
        break;
    }
    return (CFI_type_t)CFI_type_other;
}

/* The type of a descriptor's elements, which is `expected` if it may be; 0 if it is none of gtstub's. */
static inline gts_dtype gts_fortran_dtype(CFI_type_t type, gts_dtype expected)
{
    if (type == gts_fortran_type(expected))
        return expected;
    gts_dtype dtype = GTS_BOOL;
    while (dtype <= GTS_LAST_DTYPE && (dtype == GTS_FLOAT16 || type != gts_fortran_type(dtype)))
        ++dtype;
    return dtype <= GTS_LAST_DTYPE ? dtype : (gts_dtype)0;
}

/*
 * Reads a descriptor into an array, in which the expected type and rank and all that a descriptor does not tell are set.
 * Of another type or rank, no axes are read: the check of the array refuses it. If an axis is refused, `rank` becomes its
 * number, and its stride is in bytes.
 */
static inline gts_fortran_reason gts_fortran_read(const CFI_cdesc_t *found, gts_array *array)
{
    if (found == NULL)
        return GTS_FORTRAN_ABSENT;
    if (found->base_addr == NULL)
        return GTS_FORTRAN_UNALLOCATED;
    if (!gts_fortran_is_native(found))
        return GTS_FORTRAN_OTHER_COMPILER;
    const gts_dtype dtype = array->dtype;
    const int32_t rank = array->rank;
    array->data = found->base_addr;
    array->dtype = gts_fortran_dtype(found->type, dtype);
    array->rank = found->rank;
    if (array->dtype != dtype || array->rank != rank)
        return GTS_FORTRAN_FINE;
    const int64_t size = (int64_t)gts_dtype_size(dtype);
    for (int32_t axis = 0; axis < rank; ++axis) {
        const CFI_dim_t dim = found->dim[axis];
        const bool is_odd = dim.sm % size != 0;
        array->shape[axis] = dim.extent;
        array->strides[axis] = is_odd ? dim.sm : dim.sm / size;
        if (dim.extent < 0 || is_odd) {
            array->rank = (int16_t)axis;
            return dim.extent < 0 ? GTS_FORTRAN_NO_SIZE : GTS_FORTRAN_STRIDE;
        }
    }
    return GTS_FORTRAN_FINE;
}

#ifdef GTS_FORTRAN_CALL

#include "gtstub/step.h"
#include "gtstub/stub.h"

/* ---- Calls of a program ------------------------------------------------------------------------------------------ */

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
        if (!gts_is_array(contract->kind))
            continue;
        gts_array *const array = gts_array_in(args, contract);
        *array = (gts_array){.dtype = contract->dtype, .device = contract->device, .rank = (int16_t)contract->rank};
        memcpy(array->origin, self->leaf[leaf].origin, sizeof array->origin);
        const bool needs_base = contract->kind == GTS_CONNECTIVITY && self->leaf[leaf].index_base == GTS_NO_INDEX_BASE;
        const gts_fortran_reason reason = needs_base ? GTS_FORTRAN_NO_INDEX_BASE
                                                     : gts_fortran_read(found[*count], array);
        ++*count;
        if (reason != GTS_FORTRAN_FINE)
            return gts_refuse_fortran(self, leaf, reason, array);
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

/* ---- The entries ----------------------------------------------------------------------------------------------- */

/*
 * Rows of ARGUMENTS: parameters of the entries, and what these do with them. A Fortran compiler may represent true as a
 * logical with all bits set, which is not a valid bool in C.
 */
#define GTS_DESCRIPTOR_PARAMETER(leaf, axes, what) , const CFI_cdesc_t *leaf##_
#define GTS_SCALAR_PARAMETER(leaf, type) , GTS_FORTRAN_TYPE(type) leaf##_
#define GTS_FORTRAN_TYPE(type) __typeof__(_Generic((type)0, bool: (unsigned char)0, default: (type)0))
#define GTS_FUNCTION_PARAMETER(leaf, type) , gts_function leaf##_
#define GTS_DESCRIPTOR(leaf, axes, what) leaf##_,
#define GTS_OR_IS_NEW(leaf, axes, what) || !gts_fortran_is_known(&known, leaf##_, axes, what)
#define GTS_TAKE_SCALAR(leaf, type) to->leaf = _Generic((type)0, bool: leaf##_ != 0, default: leaf##_);
#define GTS_TAKE_FUNCTION(leaf, type)                                                                                  \
    memcpy(&to->leaf.function, &leaf##_, sizeof to->leaf.function);                                                    \
    to->leaf.data = NULL;
#define GTS_PLUS_ONE(...) +1

#define GTS_PARAMETERS                                                                                                 \
    gts_program *const *program ARGUMENTS(GTS_DESCRIPTOR_PARAMETER, GTS_SCALAR_PARAMETER, GTS_FUNCTION_PARAMETER,      \
                                          GTS_NOTHING)
#define GTS_DESCRIPTORS                                                                                                \
    (const CFI_cdesc_t *const[])                                                                                       \
    {                                                                                                                  \
        ARGUMENTS(GTS_DESCRIPTOR, GTS_NOTHING, GTS_NOTHING, GTS_NOTHING) NULL                                          \
    }

enum {
    GTS_DESCRIPTOR_COUNT = 0 ARGUMENTS(GTS_PLUS_ONE, GTS_NOTHING, GTS_NOTHING, GTS_NOTHING),
    GTS_FUNCTION_COUNT = 0 ARGUMENTS(GTS_NOTHING, GTS_NOTHING, GTS_PLUS_ONE, GTS_NOTHING)
};

static GTS_COLD int gts_fortran_check_new(gts_program *self, const CFI_cdesc_t *const *found)
{
    arguments args;
    return gts_fortran_check(self, found, &args);
}

GTS_EXPORT void GTS_FORTRAN_CALL(GTS_PARAMETERS, int *stat, const CFI_cdesc_t *errmsg)
{
    gts_program *const self = *program;
    if (GTS_UNLIKELY(gts_enter_linked(self, &STUB) != 0)) {
        gts_fortran_fail(self, false, stat, errmsg);
        return;
    }
    int status = 0;
    const uint64_t *known = self->descriptors;
    if (GTS_DESCRIPTOR_COUNT > 0 &&
        (GTS_UNLIKELY(!self->knows_fortran) ARGUMENTS(GTS_OR_IS_NEW, GTS_NOTHING, GTS_NOTHING, GTS_NOTHING) ||
         GTS_UNLIKELY(gts_is_table_changed(&STUB, self->slots))))
        status = gts_fortran_check_new(self, GTS_DESCRIPTORS);
    if (GTS_LIKELY(status == 0)) {
        struct slots *const to = self->slots;
        ARGUMENTS(GTS_NOTHING, GTS_TAKE_SCALAR, GTS_TAKE_FUNCTION, GTS_NOTHING)
        (void)known, (void)to;
        if (GTS_FUNCTION_COUNT > 0)
            status = gts_check_callbacks(self);
        if (GTS_LIKELY(status == 0))
            status = gts_call_run(self, run);
    }
    if (GTS_UNLIKELY(status != 0)) {
        gts_fortran_fail(self, true, stat, errmsg);
        return;
    }
    gts_leave(self);
    if (stat != NULL)
        *stat = 0;
}

GTS_EXPORT void GTS_FORTRAN_BIND(GTS_PARAMETERS, gts_bound_call **bound, int *stat, const CFI_cdesc_t *errmsg)
{
    arguments args, *const to = &args;
    memset(to, 0, sizeof *to);
    ARGUMENTS(GTS_NOTHING, GTS_TAKE_SCALAR, GTS_TAKE_FUNCTION, GTS_NOTHING)
    gts_fortran_bind(*program, &STUB, GTS_DESCRIPTORS, to, bound, stat, errmsg);
}

#endif

#ifdef GTSTUB_GRANULE_H

/* ---- Granules ---------------------------------------------------------------------------------------------------- */

/* Reads the descriptors of all arguments, or refuses one of them. */
static inline int gts_fortran_granule_read(const gts_granule *granule, const gts_granule_descriptor *descriptor,
                                           const CFI_cdesc_t *const *found, gts_array *arrays)
{
    for (uint32_t i = 0; i < descriptor->array_count; ++i) {
        const gts_granule_array_descriptor *const wanted = &descriptor->arrays[i];
        if (!wanted->is_argument)
            continue;
        *arrays = (gts_array){.dtype = wanted->dtype, .device = GTS_CPU, .rank = (int16_t)wanted->rank};
        const gts_fortran_reason reason = gts_fortran_read(*found++, arrays);
        if (reason != GTS_FORTRAN_FINE)
            return gts_granule_refuse_fortran(granule, wanted->name, reason, arrays);
        ++arrays;
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
        return gts_granule_refuse_fortran(granule, name, GTS_FORTRAN_OTHER_COMPILER, &array);
    const gts_array given = {.dtype = gts_fortran_dtype(pointer->type, array.dtype), .rank = pointer->rank};
    if (given.dtype != array.dtype || given.rank != array.rank)
        return gts_granule_refuse_fortran(granule, name, GTS_FORTRAN_POINTER, &given);
    pointer->base_addr = array.data;
    for (int32_t axis = 0; axis < array.rank; ++axis) {
        pointer->dim[axis].lower_bound = 1;
        pointer->dim[axis].extent = array.shape[axis];
        pointer->dim[axis].sm = array.strides[axis] * (CFI_index_t)gts_dtype_size(array.dtype);
    }
    return 0;
}

#endif

#endif
