/*
 * gtstub: what a generated stub and a host share.
 *
 * A stub is written by the generator and knows its program; a host (the Python extension module, or the C entry) knows
 * the objects that callers pass. This header is all that either knows of the other.
 */
#ifndef GTSTUB_STUB_H
#define GTSTUB_STUB_H

#include <string.h>

#include "gtstub/gtstub.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GTS_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define GTS_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define GTS_COLD __attribute__((cold, noinline))
#define GTS_NOINLINE __attribute__((noinline))
#define GTS_ALWAYS_INLINE __attribute__((always_inline))

/** In a contract: whatever the caller brings. */
#define GTS_ANY INT64_MIN

/** What a slot takes from an axis. */
enum { GTS_START = 1, GTS_STOP = 2, GTS_SIZE = 4, GTS_STRIDE = 8 };

/** What an axis of a field must satisfy; numbers are elements. */
typedef struct gts_axis {
    const char *dim;    /**< name of the dimension */
    int64_t size;       /**< the one value that was fixed at compile time, or GTS_ANY */
    int64_t start;      /**< likewise: index of the first element */
    int64_t stop;       /**< likewise: index behind the last element */
    int64_t stride;     /**< likewise */
    unsigned int slots; /**< GTS_START | ...: what slots take from this axis, and so must fit their int32 */
} gts_axis;

/** What an argument is. */
typedef enum gts_leaf_kind {
    GTS_FIELD = 1,
    GTS_ZERO_DIM_FIELD,
    GTS_SCALAR,
    GTS_CONNECTIVITY,
    GTS_STATIC
} gts_leaf_kind;

/** What an argument must satisfy before its program may run. */
typedef struct gts_contract {
    const char *name;     /**< flattened, as gt4py names it: x_0_1 */
    const char *path;     /**< as its user writes it: x[0][1], state.vn */
    gts_leaf_kind kind;   /**< what it is */
    gts_dtype dtype;      /**< of the elements, or of the scalar */
    gts_device device;    /**< of a field: where its memory must be */
    int32_t rank;         /**< of a field: number of axes */
    bool written;         /**< the SDFG writes it */
    bool has_skip_values; /**< of a connectivity: -1 stands for no neighbor */
    const char *codomain; /**< of a connectivity: the dimension that its elements are indices of */
    size_t member; /**< where the argument stands in `struct <name>_args`; SIZE_MAX of GTS_STATIC, which has no place */
    size_t slot;   /**< of a scalar: where it stands among the slots */
    union {
        const gts_axis *axes; /**< [rank], of a field */
        const void *value;    /**< of GTS_STATIC: the element of `dtype` that was compiled in */
    };
} gts_contract;

/** Whether an argument is passed as an array. */
static inline bool gts_is_array(gts_leaf_kind kind)
{
    return kind == GTS_FIELD || kind == GTS_CONNECTIVITY;
}

/** A tuple whose elements have names: a host may also take an object that has them as attributes. */
typedef struct gts_collection {
    const char *path;        /**< as its user writes it: state, x[1] */
    uint32_t length;         /**< number of elements */
    const char *const *keys; /**< [length] */
} gts_collection;

/** An object that was converted, and how to recognise it. */
typedef struct gts_seen {
    const void *const *object; /**< where the object's address stands while the object lives; then gts_host.nothing */
    gts_array array;           /**< what it was converted to */
    void *host; /**< the host's own; Python: the weak reference that `object` points into; of GTS_STATIC the object */
} gts_seen;

/** What is known of a table of neighbors that C or Fortran has passed. */
typedef struct gts_table {
    bool is_new;         /**< its indices have not been looked at */
    int64_t least, most; /**< the indices that it has, in base 0; least > most: none */
    void *copy;          /**< of one of base 1: in base 0 */
} gts_table;

/** The two objects that an argument had last: a model that swaps time levels alternates between two. */
typedef struct gts_leaf {
    gts_seen *now;                /**< the one of the call at hand */
    gts_seen way[2];              /**< both of them */
    int64_t origin[GTS_MAX_RANK]; /**< what gts_set_origin() has said */
    int64_t index_base;           /**< what gts_set_index_base() has said, or GTS_ANY */
    gts_table table[2];           /**< of a connectivity */
    uint8_t table_of[2];          /**< which of them belongs to each way; it may be one */
} gts_leaf;

/** Any function, until it is cast to its type. */
typedef void (*gts_function)(void);

/** Memory that the SDFG wants lent. */
typedef struct gts_workspace {
    const char *storage;                  /**< DaCe's name of it */
    gts_device device;                    /**< where it must be */
    size_t (*bytes)(const gts_program *); /**< what the SDFG needs for the arguments at hand */
    void (*install)(const gts_program *); /**< gives the SDFG the memory of this workspace */
} gts_workspace;

/** Converts objects for a stub. Each function reports its refusals in the program's error. */
typedef struct gts_host {
    /** Makes leaf->now the conversion of `object`, which has been checked against the leaf's contract. */
    int (*field)(gts_program *, uint32_t leaf, void *object);
    /** Reads the one element of a zero-dimensional field into *value, which has the leaf's dtype. */
    int (*zero_dim_field)(gts_program *, uint32_t leaf, void *object, void *value);
    /** Reads a scalar into *value, which has the leaf's dtype. */
    int (*scalar)(gts_program *, uint32_t leaf, void *object, void *value);
    /** Checks that a scalar is contract->value, and makes leaf->now what recognises the object. */
    int (*static_scalar)(gts_program *, uint32_t leaf, void *object);
    /** The elements of a tuple that must have `length` of them; NULL after an error. They belong to the tuple. */
    void *const *(*tuple)(gts_program *, const char *path, void *object, uint32_t length);
    /** The elements of stub->collections[collection]; NULL after an error. They live until the call ends. */
    void *const *(*collection)(gts_program *, uint32_t collection, void *object);
    /** The object that the offset provider has under the name contract->path; NULL after an error. */
    void *(*connectivity)(gts_program *, uint32_t leaf, void *offset_provider);
    /** What stands in the place of an object that has died; Python: None. An argument that is this is always new. */
    const void *nothing;
} gts_host;

/** The descriptor of a program. A stub library exports it as `gts_descriptor`. */
typedef struct gts_stub {
    uint32_t abi;                      /**< GTS_ABI of the header that it was compiled with */
    const char *name;                  /**< of the program */
    const char *library;               /**< file of the SDFG library that it was generated for */
    const char *version;               /**< of the gtstub that generated it */
    const char *program_digest;        /**< SHA-256 of the program signature, hexadecimal */
    const char *sdfg_digest;           /**< SHA-256 of the SDFG signature, hexadecimal */
    uint32_t parameter_count;          /**< length of `parameters` */
    const char *const *parameters;     /**< the program's, by name */
    uint32_t leaf_count;               /**< length of `leaves` */
    const gts_contract *leaves;        /**< arguments with tuples taken apart, connectivities last */
    uint32_t collection_count;         /**< length of `collections` */
    const gts_collection *collections; /**< tuples whose elements have names */
    uint32_t workspace_count;          /**< length of `workspaces` */
    const gts_workspace *workspaces;   /**< what the SDFG wants lent */
    uint32_t memory_symbol_count;      /**< symbols that size memory which the SDFG's handle keeps */
    bool init_at_load;                 /**< `__dace_init_<name>` has no arguments */
    bool has_metrics;                  /**< the SDFG takes metrics_level and compute_time */
    size_t args_size;                  /**< of `struct <name>_args` */
    size_t slots_size;                 /**< of what the SDFG is passed */
    /** args: one object for each parameter, then the offset provider. */
    int (*convert)(gts_program *, const gts_host *, void *const *args);
    int (*call)(gts_program *, const void *args); /**< `<name>_call()`; args: `struct <name>_args` */
    int (*run)(gts_program *);                    /**< calls the SDFG with the slots */
    void *(*init)(const gts_program *);           /**< calls `__dace_init_<name>`, whose result it returns */
} gts_stub;

/** What a profile has recorded of a program. */
typedef struct gts_program_times gts_program_times;

/** What a recording has of a program. */
typedef struct gts_recorder_program gts_recorder_program;

/** The arrays of another call, as the members of gts_program tell of those of the last one. */
typedef struct gts_arrays {
    void *slots;
    void *args;
    uint64_t *described;
    bool has_new_array;
    bool knows_args;
    bool knows_fortran;
} gts_arrays;

/** A loaded program: what its stub, its host and the runtime know of it. A C host needs none of it. */
struct gts_program {
    /* All that a call needs whose arrays are known: one cache line, where gts_load() has made it. */
    const gts_stub *linked;  /**< that of the host's own copy of the stub, which is like `stub` */
    void *slots;             /**< what the SDFG is passed, as it was filled last */
    void *args;              /**< `struct <name>_args` that came last, if knows_args */
    uint64_t *described;     /**< what Fortran's descriptors said of them: a few words, where `args` has cache lines */
    void *sdfg;              /**< what `__dace_init_<name>` returned; NULL until it has been called */
    gts_function program;    /**< `__program_<name>` */
    unsigned int is_busy;    /**< a call is running: the lock of everything here */
    unsigned int generation; /**< gts_forks when the program was loaded */
    int32_t metrics_level;   /**< gt4py's: 10 and above measure */
    bool has_new_array;      /**< since the slots were filled */
    bool knows_args;         /**< the arrays of `args` are those of the leaves */
    bool knows_fortran;      /**< and so are those that `described` tells of */
    bool is_special;         /**< gts_run() does more than to run: the call is the first, debugged, timed or recorded */

    const gts_stub *stub;   /**< the descriptor */
    gts_leaf *leaf;         /**< [stub->leaf_count] */
    gts_arrays other;       /**< of C and Fortran: the arrays before; time levels swap */
    uint32_t way;           /**< of C and Fortran: which way of each leaf has the arrays of the last call */
    void *host;             /**< the host's own; Python: the Program object */
    gts_function init;      /**< `__dace_init_<name>` */
    gts_function *bytes;    /**< `__dace_get_external_memory_size_<storage>`, [stub->workspace_count] */
    gts_function *install;  /**< `__dace_set_external_memory_<storage>`, [stub->workspace_count] */
    void **workspace;       /**< lent memory, [stub->workspace_count] */
    int64_t *memory_symbol; /**< values that the handle was initialised with, [stub->memory_symbol_count] */
    double compute_time;    /**< seconds, written by the SDFG when metrics_level asks for it */
    gts_error error;        /**< the last one */
    /* Of the runtime alone. */
    size_t *workspace_size;   /**< bytes that were lent, [stub->workspace_count] */
    gts_function exit;        /**< `__dace_exit_<name>` */
    int (*gpu_error)(void *); /**< __dace_gpu_last_error, or NULL */
    unsigned int waiters;     /**< threads that wait for the lock */
    bool debug;               /**< GTSTUB_DEBUG was set */
    bool was_called;          /**< with success */
    bool has_new_handle;      /**< since the last special call began */
    uint64_t entered;         /**< when the call was entered that a profile times, in nanoseconds; 0 when none does */
    gts_program_times *times; /**< of the innermost profile, then of those around it */
    gts_recorder_program *recorder; /**< NULL when calls are not recorded */
    gts_program *next;              /**< the program that was loaded before */
    unsigned int pins;              /**< profiles that end and wait for this program: it must not be freed */
};

/** Whether `object` is another one than in the last call. */
static inline bool gts_is_new(const gts_host *host, const gts_leaf *leaf, const void *object)
{
    return GTS_UNLIKELY(*leaf->now->object != object) || GTS_UNLIKELY(object == host->nothing);
}

/** Whether the SDFG's handle exists and its memory was sized with these values. */
static inline bool gts_handle_fits(const gts_program *self, const int64_t *memory_symbols)
{
    return self->sdfg != NULL &&
           (memory_symbols == NULL ||
            memcmp(self->memory_symbol, memory_symbols, self->stub->memory_symbol_count * sizeof *memory_symbols) == 0);
}

/** Nothing is known of the arrays of any call: for hosts, before they change leaf->now. */
static inline void gts_renew(gts_program *self)
{
    self->has_new_array = true;
    self->knows_args = self->other.knows_args = false;
    self->knows_fortran = self->other.knows_fortran = false;
}

/** Initialises the SDFG's handle, or initialises it again, for self->slots. */
GTS_EXPORT int gts_handle_init(gts_program *self, const int64_t *memory_symbols);

/** Forks that this process has behind it since it loaded its first program. */
GTS_EXPORT extern unsigned int gts_forks;

/** Profiles that are running, and threads that wait for any program: as long as there are some, calls look closer. */
GTS_EXPORT extern unsigned int gts_attention;

/** Takes the lock of a program, unless it is taken. */
static inline bool gts_try_lock(gts_program *self)
{
    unsigned int free = 0;
    return __atomic_compare_exchange_n(&self->is_busy, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/**
 * Enters when there is nothing more to it: the program belongs to this process, no call is running, and nothing wants
 * attention. Leaving is a plain store, half as much as two atomic operations, so nobody can be woken: who waits looks
 * again, and who comes meanwhile lets him look first.
 */
static inline bool gts_try_enter(gts_program *self)
{
    return GTS_LIKELY(__atomic_load_n(&gts_forks, __ATOMIC_RELAXED) == self->generation) &&
           GTS_LIKELY(__atomic_load_n(&gts_attention, __ATOMIC_RELAXED) == 0) && GTS_LIKELY(gts_try_lock(self));
}

static inline void gts_leave(gts_program *self)
{
    __atomic_store_n(&self->is_busy, 0, __ATOMIC_RELEASE);
}

/** One caller at a time. Fails at once when `wait` is false and another call is running: then it returns 1. */
GTS_EXPORT int gts_enter(gts_program *self, bool wait);

/** Enters, waiting, a program that may be NULL because it was closed. */
GTS_EXPORT int gts_enter_open(gts_program *self);

/** For the entries of a stub that hosts are linked with: enters a program that was opened from this stub or its like. */
GTS_EXPORT int gts_enter_linked_slowly(gts_program *self, const gts_stub *stub);

static inline int gts_enter_linked(gts_program *self, const gts_stub *stub)
{
    if (GTS_LIKELY(self != NULL) && GTS_LIKELY(gts_try_enter(self))) {
        if (GTS_LIKELY(self->linked == stub))
            return 0;
        gts_leave(self);
    }
    return gts_enter_linked_slowly(self, stub);
}

/** stub->run() and, when debugging, the GPU's verdict. To be called between enter and leave. */
GTS_EXPORT int gts_run(gts_program *self);

/** Checks an array against a leaf's contract. */
GTS_EXPORT int gts_check_array(gts_program *self, uint32_t leaf, const gts_array *array);

/** Whether two arrays are the same memory in the same layout, on the same device. Names of dimensions are not compared. */
GTS_EXPORT bool gts_same_array(const gts_array *a, const gts_array *b);

/** Two words of memory, compared at once: a vector of gcc and clang, on any machine. */
typedef uint64_t gts_words __attribute__((vector_size(16), may_alias));

static inline gts_words gts_differ_words(const void *a, const void *b)
{
    return *(const gts_words *)a ^ *(const gts_words *)b;
}

/** Of each axis one word, and of an odd number of axes one more, which is 0 where the caller has left it alone. */
static inline GTS_ALWAYS_INLINE gts_words gts_differ_axes(const void *a, const void *b, int32_t rank)
{
    gts_words difference = {0, 0};
    for (int32_t i = 0; i < rank; i += 2)
        difference |= gts_differ_words((const int64_t *)a + i, (const int64_t *)b + i);
    return difference;
}

/**
 * Not zero where two arrays of this rank differ in what the SDFG takes: memory and type, which are two words, and `what`
 * of the axes. All differences of a call are gathered without a branch.
 */
static inline GTS_ALWAYS_INLINE gts_words gts_differ(const gts_array *a, const gts_array *b, int32_t rank,
                                                     unsigned int what)
{
    gts_words difference = gts_differ_words(a, b);
    if ((what & (GTS_START | GTS_STOP)) != 0)
        difference |= gts_differ_axes(a->origin, b->origin, rank);
    if ((what & (GTS_SIZE | GTS_STOP)) != 0)
        difference |= gts_differ_axes(a->shape, b->shape, rank);
    if ((what & GTS_STRIDE) != 0)
        difference |= gts_differ_axes(a->strides, b->strides, rank);
    return difference;
}

/** For C hosts: checks all arrays of a struct <name>_args that are unknown, and remembers them for those before the last. */
GTS_EXPORT int gts_see_args(gts_program *self, const void *args);

/** For C hosts, which have found that this call's arrays are those before the last: makes them the last ones. */
GTS_EXPORT void gts_swap_arrays(gts_program *self);

/** Forgets what `way` has seen. */
GTS_EXPORT void gts_forget(gts_seen *way);

/** Two leaves have different values for one symbol: says so, blaming both. */
GTS_EXPORT GTS_COLD int gts_error_symbol(gts_program *self, const char *what, int64_t value, const char *other_what,
                                         int64_t other_value);

/** For the Fortran entry of a stub, which refuses what it finds in descriptors. All return -1. */
GTS_EXPORT GTS_COLD int gts_refuse_nothing(gts_program *self, uint32_t leaf, bool is_absent);
GTS_EXPORT GTS_COLD int gts_refuse_type(gts_program *self, uint32_t leaf, gts_dtype dtype, int32_t rank);
GTS_EXPORT GTS_COLD int gts_refuse_axis(gts_program *self, uint32_t leaf, int32_t axis, int64_t extent, int64_t bytes);
GTS_EXPORT GTS_COLD int gts_refuse_index_base(gts_program *self, uint32_t leaf);

/** Copies a text to where Fortran wants one: cut there, or filled up with blanks. */
GTS_EXPORT GTS_COLD void gts_copy_text(char *to, size_t length, const char *text);

/** Ends the process as ERROR STOP does. */
GTS_EXPORT GTS_COLD void gts_stop(const gts_error *error) __attribute__((noreturn));

/** Sets an error and returns -1. */
GTS_EXPORT GTS_COLD int gts_error_set(gts_error *error, gts_error_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif

#endif
