/* gtstub: how a call recognises arrays and objects of earlier calls, so that it need not check them again. */
#ifndef GTSTUB_ARRAYS_H
#define GTSTUB_ARRAYS_H

#include <string.h>

#include "gtstub/contract.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A checked array, and the object of a host that it was converted from. */
typedef struct gts_remembered {
    const void *object; /**< its address; NULL if it has died, or is converted again in each call */
    gts_array array;    /**< what the object was converted to */
} gts_remembered;

/** The rows and columns of a table that calls use. */
typedef struct gts_table_use {
    int64_t first, last; /**< rows, counted from 0 */
    uint64_t columns;    /**< as in gts_follow */
} gts_table_use;

/** The lowest and the highest index in a part of a table, in base 0; least > most if there are none. */
typedef struct gts_table_part {
    gts_table_use use;
    int64_t least, most;
    bool skips; /**< without elements that equal -1, as in gts_follow */
} gts_table_part;

/** The parts of a table that are remembered: some programs use several, and time levels alternate. */
#define GTS_TABLE_PARTS 4

/** Two words of memory, which gcc and clang compare as one vector on any machine. */
typedef uint64_t gts_words __attribute__((vector_size(16), may_alias));

/** Half the words of the elements that are kept of a table. */
#define GTS_SAMPLES 4

/**
 * Some elements of a table, as they were when it was read: one word at each address, and one `step` bytes after it. A
 * table at the same address may be another one, or have been changed.
 */
typedef struct gts_samples {
    gts_words words[GTS_SAMPLES];
    const char *at[GTS_SAMPLES];
    int64_t step;
    gts_table_use of; /**< what they are spread over */
} gts_samples;

/** A copy of a table in base 0, which programs and bound calls share. */
typedef struct gts_table_copy gts_table_copy;

/** The runtime's knowledge of a table of neighbors. */
typedef struct gts_table {
    bool is_new;            /**< its indices have not been read */
    bool is_checked;        /**< a call has found all indices right that it uses */
    gts_table_use used;     /**< by all calls */
    int64_t lowest;         /**< index that calls use, until is_checked; INT64_MAX if they use none */
    int64_t least[2], most; /**< index in the used rows; least[true] if -1 is skipped, where 0 may stand for more */
    gts_table_part part[GTS_TABLE_PARTS]; /**< parts of it, the first `part_count` of which are known */
    uint32_t part_count;                  /**< number of parts that were read; the next one replaces the oldest */
    gts_table_copy *copy; /**< of a table of base 1 of a C or Fortran host; NULL if the table itself is used */
} gts_table;

/** The index base of a connectivity for which none was set. */
#define GTS_NO_INDEX_BASE INT64_MIN

/** The last two objects of an argument: two, because a model that swaps time levels alternates between them. */
typedef struct gts_leaf {
    gts_remembered *current;      /**< the one that this call uses */
    gts_remembered remembered[2]; /**< both of them */
    int64_t origin[GTS_MAX_RANK]; /**< set by gts_set_origin() */
    int64_t index_base;           /**< set by gts_set_index_base(), or GTS_NO_INDEX_BASE */
    bool is_base_known;           /**< the base is certain, or was doubted on stderr already */
    gts_table table[2];           /**< of a connectivity */
    uint8_t table_of[2];          /**< the index in `table` for each element of `remembered`; both may have the same */
} gts_leaf;

/** What is known of the table that a connectivity has in this call. */
static inline gts_table *gts_table_of(gts_leaf *leaf)
{
    return &leaf->table[leaf->table_of[leaf->current == &leaf->remembered[1]]];
}

/** For a host that stores another table in leaf->remembered[index]: forgets what is known of the table that was there. */
static inline void gts_forget_table(gts_leaf *leaf, uint32_t index)
{
    leaf->table_of[index] = leaf->table_of[index ^ 1] ^ 1;
    leaf->table[leaf->table_of[index]].is_new = true;
    leaf->table[leaf->table_of[index]].is_checked = false;
}

/** The arrays of the call before the last. Each member has the meaning of the one of the same name in gts_program. */
typedef struct gts_arrays {
    void *slots;
    void *args;
    uint64_t *descriptors;
    bool has_new_array;
    bool knows_args;
    bool knows_fortran;
} gts_arrays;

/** Whether an array has no elements. Its rank may exceed GTS_MAX_RANK, because arrays are asked before they are checked. */
static inline bool gts_is_empty(const gts_array *array)
{
    for (int32_t axis = 0; axis < array->rank && axis < GTS_MAX_RANK; ++axis) {
        if (array->shape[axis] == 0)
            return true;
    }
    return false;
}

/** Whether two arrays are the same memory in the same layout on the same device. Dimension names are not compared. */
GTS_EXPORT bool gts_same_array(const gts_array *a, const gts_array *b);

static inline gts_words gts_differ_words(const void *a, const void *b)
{
    return *(const gts_words *)a ^ *(const gts_words *)b;
}

/** Compares one word of each axis. If `rank` is odd it compares one word more, which callers should leave 0. */
static inline GTS_ALWAYS_INLINE gts_words gts_differ_axes(const void *a, const void *b, int32_t rank)
{
    gts_words difference = {0, 0};
    for (int32_t i = 0; i < rank; i += 2)
        difference |= gts_differ_words((const int64_t *)a + i, (const int64_t *)b + i);
    return difference;
}

/**
 * Compares two arrays of the same rank without a branch, so that a call can gather the differences of all its arrays.
 *
 * @param what  GTS_START | ...: what the SDFG takes of the axes, and so is compared in addition to memory and type
 * @return not zero if they differ
 */
static inline GTS_ALWAYS_INLINE gts_words gts_differ(const gts_array *a, const gts_array *b, int32_t rank,
                                                     unsigned int what)
{
    gts_words difference = gts_differ_words(a, b); /* memory and type are the first two words */
    if ((what & (GTS_START | GTS_STOP)) != 0)
        difference |= gts_differ_axes(a->origin, b->origin, rank);
    if ((what & (GTS_SIZE | GTS_STOP)) != 0)
        difference |= gts_differ_axes(a->shape, b->shape, rank);
    if ((what & GTS_STRIDE) != 0)
        difference |= gts_differ_axes(a->strides, b->strides, rank);
    return difference;
}

/** A word at any address. */
static inline uint64_t gts_word_at(const char *address)
{
    uint64_t word;
    memcpy(&word, address, sizeof word);
    return word;
}

/** Compares the samples of a table, which must be at the same address in the same layout, with what is there now. */
static inline GTS_ALWAYS_INLINE gts_words gts_differ_samples(const gts_samples *table)
{
    gts_words difference = {0, 0};
#pragma GCC unroll 4
    for (int i = 0; i < GTS_SAMPLES; ++i) {
        const gts_words found = {gts_word_at(table->at[i]), gts_word_at(table->at[i] + table->step)};
        difference |= found ^ table->words[i];
    }
    return difference;
}

/** Whether a table has other elements than when it was read; `slots` is the struct of all slots of a program. */
static inline GTS_ALWAYS_INLINE bool gts_is_table_changed(const gts_stub *stub, const void *slots)
{
    const gts_samples *const tables = (const gts_samples *)((const char *)slots + stub->tables);
    gts_words difference = {0, 0};
#pragma GCC unroll 32
    for (uint32_t i = 0; i < stub->table_count; ++i)
        difference |= gts_differ_samples(&tables[i]);
    return (difference[0] | difference[1]) != 0;
}

#ifdef __cplusplus
}
#endif

#endif
