/* Inside the runtime: strided memory, and copies of it whose elements lie one after the other, the first axis fastest. */
#ifndef GTSTUB_BASE_LAYOUT_H
#define GTSTUB_BASE_LAYOUT_H

#include "gtstub/gtstub.h"

/* Bytes that an array touches, from array->data on; both are 0 of an array without elements. */
typedef struct gts_extent {
    int64_t low;  /* of the first one, not positive */
    int64_t high; /* behind the last one */
} gts_extent;

/* Bytes of all elements, and which bytes they are. False where that is more than an address can be. */
bool gts_measure(const gts_array *array, size_t *size, gts_extent *extent);

/* Copies all elements out of an array, and back into it. */
void gts_pack(const gts_array *array, void *packed);
void gts_unpack(const gts_array *array, const void *packed);

/* The index of an element of a packed copy, in gt4py's index space. */
void gts_index_of(const gts_array *array, size_t element, int64_t index[GTS_MAX_RANK]);

#endif
