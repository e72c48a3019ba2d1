/*
 * gtstub: how a stub describes its program: its parameters, the contract of each argument, and its functions. Tools
 * read the description from the symbol `gts_descriptor` of a stub library.
 */
#ifndef GTSTUB_CONTRACT_H
#define GTSTUB_CONTRACT_H

#include "gtstub/gtstub.h"

/* ---- Attributes -------------------------------------------------------------------------------------------------- */

#define GTS_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define GTS_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define GTS_COLD __attribute__((cold, noinline))
#define GTS_NOINLINE __attribute__((noinline))
#define GTS_ALWAYS_INLINE __attribute__((always_inline))

/** Silences compilers about conditions of an SDFG, whose operands C converts as C++ does. */
#define GTS_CONVERTING_BEGIN                                                                                           \
    GTS_PRAGMA(GCC diagnostic push)                                                                                    \
    GTS_PRAGMA(GCC diagnostic ignored "-Wpragmas")                                                                     \
    GTS_PRAGMA(GCC diagnostic ignored "-Wunknown-warning-option")                                                      \
    GTS_PRAGMA(GCC diagnostic ignored "-Wbool-compare")                                                                \
    GTS_PRAGMA(GCC diagnostic ignored "-Wbool-operation")                                                              \
    GTS_PRAGMA(GCC diagnostic ignored "-Wconstant-logical-operand")                                                    \
    GTS_PRAGMA(GCC diagnostic ignored "-Wconversion")                                                                  \
    GTS_PRAGMA(GCC diagnostic ignored "-Wint-in-bool-context")                                                         \
    GTS_PRAGMA(GCC diagnostic ignored "-Wlogical-not-parentheses")                                                     \
    GTS_PRAGMA(GCC diagnostic ignored "-Wsign-compare")                                                                \
    GTS_PRAGMA(GCC diagnostic ignored "-Wsign-conversion")                                                             \
    GTS_PRAGMA(GCC diagnostic ignored "-Wtautological-compare")                                                        \
    GTS_PRAGMA(GCC diagnostic ignored "-Wtype-limits")
#define GTS_CONVERTING_END GTS_PRAGMA(GCC diagnostic pop)
#define GTS_PRAGMA(text) _Pragma(#text)

/** Returns -1 from the function that it stands in if `call` does not return 0. */
#define GTS_TRY(call)                                                                                                  \
    do {                                                                                                               \
        if (GTS_UNLIKELY((call) != 0))                                                                                 \
            return -1;                                                                                                 \
    } while (0)

#ifdef __cplusplus
extern "C" {
#endif

/** Properties of an axis, as flags. */
enum { GTS_START = 1, GTS_STOP = 2, GTS_SIZE = 4, GTS_STRIDE = 8, GTS_LAYOUT = GTS_START | GTS_SIZE | GTS_STRIDE };

/** The conditions that an axis of a field must satisfy. All numbers count elements. */
typedef struct gts_axis {
    const char *dim;    /**< name of the dimension */
    unsigned int fixed; /**< GTS_START | ...: the properties that were fixed at compile time, to the values below */
    unsigned int slots; /**< GTS_START | ...: the properties that slots take; their values must fit an int32 */
    int64_t start;      /**< index of the first element */
    int64_t stop;       /**< index after the last element */
    int64_t size;       /**< number of elements */
    int64_t stride;     /**< elements from one index to the next */
    bool used;          /**< each call accesses all indices from `lowest` to `highest` */
    int64_t lowest;     /**< index */
    int64_t highest;    /**< index */
} gts_axis;

/** The kind of an argument. */
typedef enum gts_leaf_kind {
    GTS_FIELD,
    GTS_ZERO_DIM_FIELD,
    GTS_SCALAR,
    GTS_CONNECTIVITY,
    GTS_STATIC,
    GTS_CALLBACK
} gts_leaf_kind;

/** The conditions that an argument must satisfy before its program may run. */
typedef struct gts_contract {
    const char *name;     /**< flattened, as gt4py names it: x_0_1 */
    const char *path;     /**< as its user writes it: x[0][1], state.vn */
    gts_leaf_kind kind;   /**< of the argument */
    gts_dtype dtype;      /**< of the elements, or of the scalar */
    gts_device device;    /**< of a field: where its memory must be */
    int32_t rank;         /**< of a field: number of axes */
    bool written;         /**< the SDFG writes it */
    bool has_skip_values; /**< of a connectivity: -1 stands for no neighbor */
    bool is_followed;     /**< of a connectivity: elements of another one are its rows, so all of them count as used */
    const char *codomain; /**< of a connectivity: the dimension that its elements are indices of */
    size_t member;        /**< of an array or a scalar: its offset in `struct <name>_args`, in bytes */
    bool is_parallel;     /**< of a callback: several threads may call it at the same time */
    size_t slot; /**< its offset among the slots, in bytes; GTS_NO_SLOT for an array that the SDFG does not take */
    union {
        const gts_axis *axes; /**< [rank], of a field */
        const void *value;    /**< of GTS_STATIC: the element of `dtype` that was compiled in */
    };
} gts_contract;

/** For gts_contract.slot. */
#define GTS_NO_SLOT SIZE_MAX

/** The members of a contract that name a static argument. */
#define GTS_NAMED(leaf) .name = #leaf, .path = #leaf

/** The members of a contract that name an argument and the slot that has its name; an array is on the CPU. */
#define GTS_MEMBER(type, leaf) GTS_MEMBER_ON(GTS_CPU, type, leaf, #leaf)

/** The same for an argument whose user writes `text`. */
#define GTS_MEMBER_AT(type, leaf, text) GTS_MEMBER_ON(GTS_CPU, type, leaf, text)

/** The same for an array on a GPU. */
#define GTS_MEMBER_ON(where, type, leaf, text)                                                                         \
    .name = #leaf, .path = text, .member = offsetof(type, leaf), .slot = offsetof(struct slots, leaf), .device = where

/** The members of a contract that describe the axes of a field. */
#define GTS_AXES(...)                                                                                                  \
    .rank = sizeof((const gts_axis[]){__VA_ARGS__}) / sizeof(gts_axis), .axes = (const gts_axis[])                     \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

/** The members of an axis with indices that each call accesses. */
#define GTS_USED(from, to) .used = true, .lowest = from, .highest = to

/** Whether an argument is passed as an array. */
static inline bool gts_is_array(gts_leaf_kind kind)
{
    return kind == GTS_FIELD || kind == GTS_CONNECTIVITY;
}

/** The array of a leaf in a `struct <name>_args`, which a caller that gave a constant one must not change. */
static inline gts_array *gts_array_in(const void *args, const gts_contract *leaf)
{
    return (gts_array *)((uintptr_t)args + leaf->member);
}

/** An axis of a field or a table. */
typedef struct gts_leaf_axis {
    uint32_t leaf;
    int32_t axis;
} gts_leaf_axis;

/** Axes of which a call uses the same indices. */
typedef struct gts_use {
    uint32_t axis_count;       /**< length of `axes` */
    const gts_leaf_axis *axes; /**< those of the program's leaves */
} gts_use;

/** A gts_use: its axes, in braces. */
#define GTS_USE(...)                                                                                                   \
    {                                                                                                                  \
        .axis_count = sizeof((const gts_leaf_axis[]){__VA_ARGS__}) / sizeof(gts_leaf_axis),                            \
        .axes = (const gts_leaf_axis[])                                                                                \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

/** Indices of a dimension. */
typedef struct gts_indices {
    int64_t start, stop; /**< the first, and the one after the last */
} gts_indices;

/**
 * A table whose elements the SDFG uses as indices of a field, or of its own temporary memory. The last four members are
 * what gts_check_table() takes, if all calls use the same rows.
 */
typedef struct gts_follow {
    uint32_t table;   /**< the leaf of the table */
    uint32_t leaf;    /**< the leaf of the field; GTS_TEMPORARY if there is none */
    int32_t axis;     /**< of the field */
    bool skips;       /**< elements that equal -1 are not used */
    uint64_t columns; /**< of the table, as bits: bit 0 is the first column */
    int64_t first;    /**< row */
    int64_t last;     /**< row */
    int64_t plus;     /**< what the SDFG adds to elements */
    int64_t size;     /**< of temporary memory */
} gts_follow;

/** For gts_follow.leaf. */
#define GTS_TEMPORARY UINT32_MAX

/** A tuple whose elements have names: a host may also accept an object that has them as attributes. */
typedef struct gts_collection {
    const char *path;        /**< as its user writes it: state, x[1] */
    uint32_t length;         /**< number of elements */
    const char *const *keys; /**< [length] */
} gts_collection;

/** Memory that a host must lend to the SDFG. */
typedef struct gts_workspace {
    const char *storage;                  /**< DaCe's name of it */
    gts_device device;                    /**< where it must be */
    size_t (*bytes)(const gts_program *); /**< the size that the SDFG needs for the slots of this call */
    void (*install)(const gts_program *); /**< passes the lent memory to the SDFG */
} gts_workspace;

/** How a host converts its objects: gtstub/stub.h. */
typedef struct gts_host gts_host;

/** An argument or a result of a callback: gtstub/stub.h. */
typedef struct gts_callback_value gts_callback_value;

/** The status of gts_stub.start if a table is not the one that was bound. */
#define GTS_TABLE_CHANGED 2

/** The descriptor of a program. A stub library exports it as `gts_descriptor`. */
typedef struct gts_stub {
    uint32_t abi;                      /**< GTS_ABI of the header that it was compiled with */
    const char *name;                  /**< of the program */
    const char *library;               /**< file name of the SDFG library that it was generated for */
    const char *version;               /**< of the gtstub that generated it */
    gts_device device;                 /**< that the SDFG runs on */
    const char *program_digest;        /**< SHA-256 of the program signature, hexadecimal */
    const char *sdfg_digest;           /**< SHA-256 of the SDFG signature, hexadecimal */
    const char *interface_digest;      /**< the one of the SDFG library that it was generated for */
    uint32_t parameter_count;          /**< length of `parameters` */
    const char *const *parameters;     /**< names of the program's parameters */
    uint32_t leaf_count;               /**< length of `leaves` */
    const gts_contract *leaves;        /**< the arguments after tuples are flattened, connectivities last */
    uint32_t collection_count;         /**< length of `collections` */
    const gts_collection *collections; /**< the tuples whose elements have names */
    uint32_t workspace_count;          /**< length of `workspaces` */
    const gts_workspace *workspaces;   /**< the memory that a host must lend */
    uint32_t memory_symbol_count;      /**< number of symbols that size memory which the SDFG's handle keeps */
    bool init_at_load;                 /**< `__dace_init_<name>` has no arguments */
    bool has_metrics;                  /**< the SDFG takes metrics_level and compute_time */
    size_t args_size;                  /**< of `struct <name>_args`, in bytes */
    size_t slots_size;                 /**< of the struct of all slots, in bytes */
    uint32_t table_count;              /**< number of connectivities, which are the last leaves */
    size_t tables;                     /**< the offset of a gts_samples for each of them in that struct, in bytes */
    /** Converts the arguments of a call. args: one object for each parameter, then the offset provider. */
    int (*convert)(gts_program *, const gts_host *, void *const *args);
    /** Whether the arrays of two calls differ in what the SDFG takes of them; NULL if no argument is an array. */
    bool (*differ)(const void *args, const void *other_args);
    int (*call)(gts_program *, const void *args); /**< `<name>_call()`; args: `struct <name>_args` */
    int (*prepare)(gts_program *);                /**< fills the slots of new arrays, and checks all slots */
    int (*run)(gts_program *);                    /**< prepares, and calls the SDFG with the slots */
    int (*start)(gts_program *);                  /**< `run` of a bound call; or GTS_TABLE_CHANGED, without a run */
    void *(*init)(const gts_program *);           /**< calls `__dace_init_<name>` and returns its result */
} gts_stub;

/* ---- Stubs that are linked statically ---------------------------------------------------------------------------- */

/*
 * They are linked into an executable or a shared library together with the runtime, libgtstub.a. Such a stub is compiled
 * with -DGTS_LINKED=<name>, and exports nothing.
 */

/** A stub that is linked statically. */
typedef struct gts_linked_stub {
    const char *file;             /**< file name that its library would have: "<name>_stub.so" */
    const gts_stub *stub;         /**< its descriptor */
    struct gts_linked_stub *next; /**< set by the runtime */
} gts_linked_stub;

/** Makes a stub known to gts_open() and gts_load(), for the whole process. Only libgtstub.a has this function. */
void gts_link_stub(gts_linked_stub *linked);

#ifdef __cplusplus
}
#endif

#endif
