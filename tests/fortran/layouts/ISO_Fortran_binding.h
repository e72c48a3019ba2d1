/*
 * The descriptors of several Fortran compilers, as far as gtstub reads them, for tests without these compilers. LAYOUT is
 * one of the numbers below. test_descriptors.py compares this file with the header of gfortran.
 */
#ifndef GTSTUB_TESTS_LAYOUTS_H
#define GTSTUB_TESTS_LAYOUTS_H

#include <stddef.h>
#include <stdint.h>

#define GFORTRAN 1
#define FLANG_19 2
#define FLANG_20 3
#define EXTENT_FIRST 4 /* gfortran's descriptors, but axes begin with the extent, as those of Intel and NAG */

typedef ptrdiff_t CFI_index_t;

typedef struct CFI_dim_t {
#if LAYOUT == EXTENT_FIRST
    CFI_index_t extent, sm, lower_bound;
#else
    CFI_index_t lower_bound, extent, sm;
#endif
} CFI_dim_t;

#if LAYOUT == FLANG_19 || LAYOUT == FLANG_20

#define CFI_VERSION (LAYOUT == FLANG_19 ? 20180515 : 20240719)
#define CFI_type_int8_t 7
#define CFI_type_int16_t 8
#define CFI_type_int32_t 9
#define CFI_type_int64_t 10
#define CFI_type_float 27
#define CFI_type_double 28
#define CFI_type_float_Complex 34
#define CFI_type_double_Complex 35
#define CFI_type_Bool 39
#define CFI_type_char 40
#define CFI_type_other (-1)
#define CFI_attribute_other 0
typedef unsigned char CFI_rank_t;
typedef signed char CFI_type_t;
typedef unsigned char CFI_attribute_t;
typedef struct CFI_cdesc_t {
    void *base_addr;
    size_t elem_len;
    int version;
    CFI_rank_t rank;
    CFI_type_t type;
    CFI_attribute_t attribute;
    unsigned char extra;
    CFI_dim_t dim[];
} CFI_cdesc_t;

#else

#define CFI_VERSION 1
#define CFI_type_int8_t 0x101
#define CFI_type_int16_t 0x201
#define CFI_type_int32_t 0x401
#define CFI_type_int64_t 0x801
#define CFI_type_float 0x403
#define CFI_type_double 0x803
#define CFI_type_float_Complex 0x404
#define CFI_type_double_Complex 0x804
#define CFI_type_Bool 0x102
#define CFI_type_char 0x105
#define CFI_type_other (-1)
#define CFI_attribute_other 2
typedef int8_t CFI_rank_t;
typedef int8_t CFI_attribute_t;
typedef int16_t CFI_type_t;
typedef struct CFI_cdesc_t {
    void *base_addr;
    size_t elem_len;
    int version;
    CFI_rank_t rank;
    CFI_attribute_t attribute;
    CFI_type_t type;
    CFI_dim_t dim[];
} CFI_cdesc_t;

#endif

#endif
