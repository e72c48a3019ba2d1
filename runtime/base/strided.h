/* Shared by the runtime and the Python host: the elements of strided arrays, their memory and copies of them. */
#pragma once

#include "gtstub/gtstub.h"

/* The memory that an array uses. */
typedef struct gts_range {
    uintptr_t low, high; /* addresses: of the first byte, and of the one after the last; the same without elements */
    size_t lead;         /* bytes before array->data, because of negative strides */
    size_t size;         /* bytes of all elements, without what lies between them */
} gts_range;

/* Finds the memory of an array; false if its size or its strides exceed what an address can hold. */
bool gts_find_range(const gts_array *array, gts_range *range);

/* Copies all elements of an array to another one of the same type and sizes. */
void gts_copy(const gts_array *from, const gts_array *to);

/* Copies all elements of an array to packed memory: contiguous, with the first axis fastest. */
void gts_pack(const gts_array *array, void *packed);

/* Axes with more than one element and a stride above 0, longest stride first. There is room for those of two arrays. */
typedef struct gts_axes {
    int64_t shape[2 * GTS_MAX_RANK], strides[2 * GTS_MAX_RANK]; /* strides in elements */
    int32_t rank;
} gts_axes;

/* The elements of an array, counted from the one at the lowest address. */
typedef struct gts_elements {
    gts_axes axes;
    uintptr_t first; /* address */
    int64_t size;    /* of an element in bytes */
} gts_elements;

/* Finds where the elements of an array are; false if it has none. */
bool gts_find_elements(const gts_array *array, gts_elements *found);

/* Joins axes that continue each other, as those of a contiguous array do. */
void gts_join_axes(gts_axes *self);

/* Whether two arrays have the same type, sizes, strides and origin. A stride of an axis of size 1 may be any number. */
bool gts_have_one_layout(const gts_array *a, const gts_array *b);

/* Whether an address is that of an element. */
bool gts_has_element(const gts_array *array, const void *data);

/*
 * Whether all elements of an array, which has at least one, are elements of another array. Some sections are not
 * recognised: those with elements on both sides of a gap of the other array, at distances that are not along its axes.
 */
bool gts_is_section(const gts_array *section, const gts_array *of);

/*
 * Whether two arrays may share an element; false is always right. True without proof for arrays whose elements differ
 * in size, if each begins before the other one ends, and if too many combinations of indices would have to be tried.
 */
bool gts_overlap(const gts_array *a, const gts_array *b);
