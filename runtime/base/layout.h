/* Inside the runtime: strided arrays, and packed copies of them: contiguous, with the first axis fastest. */
#pragma once

#include "gtstub/gtstub.h"

/* The memory that an array uses, in bytes from array->data; both are 0 if the array has no elements. */
typedef struct gts_extent {
    int64_t low;  /* of the first byte; not positive */
    int64_t high; /* one after the last byte */
} gts_extent;

/* Computes the size of all elements in bytes, and their extent; false if either exceeds what an address can hold. */
bool gts_measure(const gts_array *array, size_t *size, gts_extent *extent);

/* Addresses of bytes, from the first one to the one after the last. */
typedef struct gts_range {
    uintptr_t low, high;
} gts_range;

/* Finds the memory that an array uses, which is empty if it has no elements; false if no address can hold its strides. */
bool gts_find_range(const gts_array *array, gts_range *range);

/* Copies all elements of an array to another one of the same type and sizes. */
void gts_copy(const gts_array *from, const gts_array *to);

/* Copies all elements of an array to packed memory. */
void gts_pack(const gts_array *array, void *packed);
