/**
 * @file
 * What an SDFG that was built with GTSTUB_BUILD_CHECKS=1 tells the runtime after each of its maps. The C++ code of such
 * an SDFG contains this file as text, so that it compiles as C and C++, and includes nothing of gtstub's.
 */
#ifndef GTSTUB_MAP_OUTPUT_H
#define GTSTUB_MAP_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

/** The largest number of axes: GTS_MAX_RANK. */
#define GTS_MAP_OUTPUT_RANK 6

/** The part of an array that a map has written. Sizes and strides are in elements. */
typedef struct gts_map_output {
    const char *map;   /**< the map, as messages name it: "map 'scale' (model.py:12)" */
    const char *array; /**< the name in the SDFG */
    void *data;        /**< the first element of the part */
    uint32_t dtype;    /**< gts_dtype */
    int32_t rank;      /**< number of axes */
    bool is_first;     /**< this is the first one of the arrays that the map has written */
    bool is_on_gpu;    /**< `data` is on the device of the program */
    bool is_whole;     /**< the map has written all elements of the part */
    struct {
        int64_t begin;           /**< index of the first element in the array */
        int64_t step;            /**< indices from one element of the part to the next */
        int64_t size;            /**< number of elements in the part */
        int64_t stride;          /**< elements of memory from one element of the part to the next */
    } axes[GTS_MAP_OUTPUT_RANK]; /**< [rank] */
} gts_map_output;

/**
 * The function in the variable `__gtstub_after_map_<name>` of the library, which is NULL until the runtime sets it.
 * `handle` is the result of `__dace_init_<name>`. May be called in any thread.
 */
typedef void gts_after_map(void *handle, const gts_map_output *output);

#endif
