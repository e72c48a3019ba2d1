/*
 * gtstub: the types of Fortran's arrays. Only code that is compiled where the host is compiled includes this header.
 *
 * ISO_Fortran_binding.h belongs to the Fortran compiler, which defines the layout of a descriptor and the numbers of
 * types. A descriptor contains the address, the type, the sizes and the strides in bytes of an array. It does not
 * contain the device, which is assumed to be that of the contract, nor for assumed-shape arguments the lower bounds.
 */
#ifndef GTSTUB_FORTRAN_TYPES_H
#define GTSTUB_FORTRAN_TYPES_H

#include <ISO_Fortran_binding.h>

#include "gtstub/gtstub.h"

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

#endif
