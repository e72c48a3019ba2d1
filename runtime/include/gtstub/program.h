/*
 * gtstub: a loaded program, as its stub, its host and the runtime share it, and the functions of the runtime that stubs
 * and hosts call. A host that calls `<name>_call()` needs none of this.
 *
 * A function that returns int returns 0 for success, and -1 after it has written a refusal to the program's error.
 */
#ifndef GTSTUB_PROGRAM_H
#define GTSTUB_PROGRAM_H

#include <string.h>

#include "gtstub/arrays.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Any function, until it is cast to its type. */
typedef void (*gts_function)(void);

/** The members that only the runtime uses. */
typedef struct gts_runtime gts_runtime;

/** A loaded program. */
struct gts_program {
    /* All members that a call with known arrays needs: one cache line. gts_load() aligns the struct to 64 bytes. */
    /** The descriptor of the stub that a C or Fortran host is linked with, which is like `stub`; NULL for other hosts. */
    const gts_stub *linked;
    void *slots;             /**< the arguments of the SDFG, as the last call has left them */
    void *args;              /**< the last `struct <name>_args`, if knows_args */
    uint64_t *descriptors;   /**< the words of the Fortran descriptors of `args`, if knows_fortran */
    void *sdfg;              /**< the result of `__dace_init_<name>`, or NULL until it has been called */
    gts_function program;    /**< `__program_<name>` */
    unsigned int is_busy;    /**< a call is running: this is the lock of all members */
    unsigned int generation; /**< gts_forks when the program was loaded */
    int32_t metrics_level;   /**< gt4py's: 10 and above measure */
    bool has_new_array;      /**< an array has changed since the slots were filled */
    bool knows_args;         /**< the leaves have the arrays of `args` */
    bool knows_fortran;      /**< the leaves have the arrays that `descriptors` describes */
    bool has_extra_work;     /**< the call is the first, debugged, checked, timed or recorded, and needs gts_run() */

    const gts_stub *stub;   /**< the descriptor */
    gts_leaf *leaf;         /**< [stub->leaf_count] */
    gts_arrays other;       /**< for C and Fortran: the arrays of the call before the last, because time levels swap */
    uint32_t current_index; /**< for C and Fortran: the index in gts_leaf.remembered of the arrays of the last call */
    bool debug;             /**< GTSTUB_DEBUG was set when the program was loaded */
    void *host;             /**< owned by the host; Python: the Program object */
    gts_function init;      /**< `__dace_init_<name>` */
    gts_function *bytes;    /**< `__dace_get_external_memory_size_<storage>`, [stub->workspace_count] */
    gts_function *install;  /**< `__dace_set_external_memory_<storage>`, [stub->workspace_count] */
    void **workspace;       /**< lent memory, [stub->workspace_count] */
    int64_t *memory_symbol; /**< values that the handle was initialised with, [stub->memory_symbol_count] */
    double compute_time;    /**< in seconds; the SDFG writes it when metrics_level asks for it */
    gts_runtime *runtime;   /**< owned by the runtime */
    gts_error error;        /**< the last one */
    bool callback_failed;   /**< a callback of the running call has failed */
    bool has_new_table;     /**< a table has been read since gts_end_tables() */
    bool from_fortran;      /**< a Fortran host has passed arguments: messages count as Fortran does */
    const struct gts_callback_frame *outer_callback; /**< in which the running call was made; NULL if in none */
    /** For a host that has its own objects: calls a callback (gts_callback_host()); -1 if it has failed. */
    int (*call_back)(gts_program *, uint32_t leaf, const gts_callback_value *values, uint32_t arguments,
                     uint32_t results);
    /** For a host that has its own objects: increases when an element of `known` is set. */
    uint64_t known_version __attribute__((aligned(64)));
    /**
     * For a host that has its own objects: [stub->leaf_count + 1], the addresses of the objects that a call may pass
     * unread, because they have been converted and have not changed. The last one is the offset provider, if it has not
     * changed since all connectivities are known. The host clears an address when the object dies or changes. They lie
     * close together, so that a call reads few cache lines to recognise its arguments.
     */
    const void *known[];
};

/* ---- Entering and leaving -------------------------------------------------------------------------------------- */

/** How often this process was forked since it loaded its first program. */
GTS_EXPORT extern unsigned int gts_forks;

/**
 * The number of running profiles, timelines, checks and recordings, and of threads that bind calls or wait for a
 * program. While it is not 0, gts_try_enter() fails.
 */
GTS_EXPORT extern unsigned int gts_attention;

/** Takes the lock of a program, unless it is taken. */
static inline bool gts_try_lock(gts_program *self)
{
    unsigned int free = 0;
    return __atomic_compare_exchange_n(&self->is_busy, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/**
 * Enters in the most frequent case: the program belongs to this process, no call is running, and gts_attention is 0.
 * gts_leave() is a plain store, which costs half as much as an atomic exchange but wakes no thread. So waiting threads
 * try again and again, and a thread that comes later lets them try first.
 */
static inline bool gts_try_enter(gts_program *self)
{
    return GTS_LIKELY(gts_forks == self->generation) &&
           GTS_LIKELY(__atomic_load_n(&gts_attention, __ATOMIC_RELAXED) == 0) && GTS_LIKELY(gts_try_lock(self));
}

static inline void gts_leave(gts_program *self)
{
    __atomic_store_n(&self->is_busy, 0, __ATOMIC_RELEASE);
}

/** Enters, one caller at a time. Returns 1 if another call is running: at once or, if `wait`, after 0.1 s. */
GTS_EXPORT int gts_enter(gts_program *self, bool wait);

/** Does the work of gts_enter_linked() in all but the most frequent case. */
GTS_EXPORT int gts_enter_linked_slowly(gts_program *self, const gts_stub *stub);

/** For the entries of a stub that a host links: enters a program that was opened from this stub or one like it. */
static inline int gts_enter_linked(gts_program *self, const gts_stub *stub)
{
    if (GTS_LIKELY(self != NULL) && GTS_LIKELY(gts_try_enter(self))) {
        if (GTS_LIKELY(self->linked == stub))
            return 0;
        gts_leave(self);
    }
    return gts_enter_linked_slowly(self, stub);
}

/* ---- Between entering and leaving: the arguments --------------------------------------------------------------- */

/** The array of a leaf in this call. */
static inline const gts_array *gts_array_of(const gts_program *self, uint32_t leaf)
{
    return &self->leaf[leaf].current->array;
}

/** The index after the last element of an axis. It wraps around for impossible values of a C host. */
static inline int64_t gts_stop(const gts_array *array, int32_t axis)
{
    return (int64_t)((uint64_t)array->origin[axis] + (uint64_t)array->shape[axis]);
}

/**
 * Whether no access depends on the stride of an axis: the axis has fewer than two elements, or the array has none. Then
 * the stride may be any number; numpy makes it 0 for all axes of an array without elements.
 */
static inline bool gts_is_any_stride(const gts_array *array, int32_t axis)
{
    return gts_is_empty(array) || array->shape[axis] < 2;
}

/** Checks an array against a leaf's contract. */
GTS_EXPORT int gts_check_array(gts_program *self, uint32_t leaf, const gts_array *array);

/** gts_check_shape() for a value that is not as expected. */
GTS_EXPORT GTS_COLD int gts_check_shape_slowly(gts_program *self, uint32_t leaf, int32_t axis, unsigned int property,
                                               uint64_t expected, const char *text);

/**
 * Checks that the size or the stride of an axis is the value of a polynomial, whose text is for messages. A
 * stride on which no access depends (gts_is_any_stride()) may be any number.
 *
 * @param property  GTS_SIZE or GTS_STRIDE
 * @param expected  the value, modulo 2^64
 */
static inline int gts_check_shape(gts_program *self, uint32_t leaf, int32_t axis, unsigned int property,
                                  uint64_t expected, const char *text)
{
    const gts_array *const array = gts_array_of(self, leaf);
    const int64_t found = property == GTS_SIZE ? array->shape[axis] : array->strides[axis];
    if (GTS_LIKELY((uint64_t)found == expected))
        return 0;
    return gts_check_shape_slowly(self, leaf, axis, property, expected, text);
}

/** A power in the size of an array: 0 for a negative exponent, and INT64_MAX if int64 does not hold it. */
GTS_EXPORT uint64_t gts_power(uint64_t base, uint64_t exponent);

/** A quotient in the size of an array, as DaCe's int_floor() computes it: rounded towards 0. 0 for a quotient by 0. */
GTS_EXPORT uint64_t gts_int_floor(uint64_t numerator, uint64_t divisor);

/** The quotient of numerator + divisor - 1, as DaCe's int_ceil() computes it. */
GTS_EXPORT uint64_t gts_int_ceil(uint64_t numerator, uint64_t divisor);

/**
 * Computes a symbol that follows from sizes or strides as the quotient of two values, modulo 2^64. Refuses a property of
 * an axis, whose value is `text`, if the divisor is 0 or the quotient is no integer.
 */
GTS_EXPORT int gts_solve(gts_program *self, uint32_t leaf, int32_t axis, unsigned int property, uint64_t numerator,
                         uint64_t divisor, const char *symbol, const char *text, int64_t *value);

/** Refuses the first array that lacks an index of a use, or reads the rows of copied tables that no call has used. */
GTS_EXPORT GTS_COLD int gts_miss_indices(gts_program *self, const gts_use *use, int64_t lowest, int64_t highest);

/** Finds the indices that the arrays of each use have in common: of copied tables, the rows that calls have used. */
GTS_EXPORT void gts_find_common(const gts_program *self, const gts_use *uses, size_t count, gts_indices *common);

/** Checks that all arrays of a use have the indices from `lowest` to `highest`. */
static inline int gts_check_indices(gts_program *self, const gts_use *use, gts_indices *common, int64_t lowest,
                                    int64_t highest)
{
    if (GTS_LIKELY(lowest >= common->start) && GTS_LIKELY(highest < common->stop))
        return 0;
    GTS_TRY(gts_miss_indices(self, use, lowest, highest));
    gts_find_common(self, use, 1, common);
    return 0;
}

/**
 * gts_check_table() for a table that is new, of which no call has used all these rows and columns, or whose used rows
 * have elements that are not from `least` to `most`.
 */
GTS_EXPORT GTS_COLD int gts_check_table_slowly(gts_program *self, const gts_follow *follow, int64_t first, int64_t last,
                                               int64_t least, int64_t most);

/** Whether calls have used these rows of a table, and the columns that the SDFG uses of them. */
static inline bool gts_is_used(const gts_table *known, const gts_follow *follow, int64_t first, int64_t last)
{
    return GTS_LIKELY(first >= known->used.first) && GTS_LIKELY(last <= known->used.last) &&
           GTS_LIKELY((follow->columns & ~known->used.columns) == 0);
}

/**
 * Checks the elements of a table that the SDFG uses as indices in this call: those in the rows from `first` to `last`,
 * after it has added `plus`. In temporary memory, the indices are those from 0 to below `size`.
 */
static inline int gts_check_table(gts_program *self, const gts_follow *follow, int64_t first, int64_t last,
                                  int64_t plus, int64_t size)
{
    const gts_table *const known = gts_table_of(&self->leaf[follow->table]);
    const gts_array *const field = follow->leaf == GTS_TEMPORARY ? NULL : gts_array_of(self, follow->leaf);
    const int64_t start = field == NULL ? 0 : field->origin[follow->axis];
    const int64_t stop = field == NULL ? size : gts_stop(field, follow->axis);
    const int64_t least = (int64_t)((uint64_t)start - (uint64_t)plus); /* wraps around as gts_stop() does */
    const int64_t most = (int64_t)((uint64_t)stop - 1 - (uint64_t)plus);
    if (GTS_LIKELY(known->is_checked) && GTS_LIKELY(known->least[follow->skips] >= least) &&
        GTS_LIKELY(known->most <= most) && gts_is_used(known, follow, first, last))
        return 0;
    return gts_check_table_slowly(self, follow, first, last, least, most);
}

/** gts_check_table() for tables of which all calls use the same rows. */
GTS_EXPORT int gts_check_tables(gts_program *self, const gts_follow *follows, size_t count);

/** gts_end_tables() after a table was read. */
GTS_EXPORT GTS_COLD void gts_end_tables_slowly(gts_program *self);

/** Ends a check of tables that has refused none. Says on stderr if the index base of a new one may be wrong. */
static inline void gts_end_tables(gts_program *self)
{
    if (GTS_UNLIKELY(self->has_new_table))
        gts_end_tables_slowly(self);
}

/** Refuses a call that gives a temporary or a copy a negative size. `what` and the text of the size are for the message. */
GTS_EXPORT GTS_COLD int gts_refuse_extent(gts_program *self, const char *what, int32_t axis, int64_t size,
                                          const char *text);

/** Checks that the size of a temporary or a copy on an axis is not negative. */
static inline int gts_check_extent(gts_program *self, const char *what, int32_t axis, int64_t size, const char *text)
{
    return GTS_LIKELY(size >= 0) ? 0 : gts_refuse_extent(self, what, axis, size, text);
}

/** The lesser and the greater of two values. */
static inline int64_t gts_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t gts_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/** Sums of multiples of 64-bit scalars, which do not overflow. */
__extension__ typedef __int128 gts_wide;

static inline gts_wide gts_wide_min(gts_wide a, gts_wide b)
{
    return a < b ? a : b;
}

static inline gts_wide gts_wide_max(gts_wide a, gts_wide b)
{
    return a > b ? a : b;
}

/** Whether gts_wide holds products of a 64-bit scalar with two others of this kind. */
static inline bool gts_is_factor(gts_wide value)
{
    const int64_t most = INT64_C(1) << 40;
    return -most <= value && value <= most;
}

/** An index that was computed from 64-bit scalars, within limits: no array has so many elements. */
static inline int64_t gts_index(gts_wide value)
{
    const int64_t most = INT64_C(1) << 60;
    return value > most ? most : value < -most ? -most : (int64_t)value;
}

/** For C hosts whose arrays or tables differ from those of the last call: checks unknown ones, and remembers all. */
GTS_EXPORT int gts_check_args(gts_program *self, const void *args);

/**
 * For C hosts that pass the arrays of the call before the last: swaps them with those of the last call, unless a table
 * has changed.
 *
 * @return whether they were swapped
 */
GTS_EXPORT bool gts_swap_arrays(gts_program *self);

/** Forgets the objects of all calls, so that the next call converts all of its objects. */
static inline void gts_forget_objects(gts_program *self)
{
    memset(self->known, 0, (self->stub->leaf_count + 1) * sizeof *self->known);
    ++self->known_version;
}

/** Forgets the arrays of all calls. A host must call it before it changes leaf->current. */
static inline void gts_forget_arrays(gts_program *self)
{
    self->has_new_array = true;
    self->knows_args = self->other.knows_args = false;
    self->knows_fortran = self->other.knows_fortran = false;
}

/* ---- Between entering and leaving: the SDFG -------------------------------------------------------------------- */

/** Whether the SDFG's handle exists and its memory has the size for these values. NULL: no symbol sizes the memory. */
static inline bool gts_handle_fits(const gts_program *self, const int64_t *memory_symbols)
{
    return self->sdfg != NULL &&
           (memory_symbols == NULL ||
            memcmp(self->memory_symbol, memory_symbols, self->stub->memory_symbol_count * sizeof *memory_symbols) == 0);
}

/** Initialises the SDFG's handle for self->slots, after it has ended an earlier handle. */
GTS_EXPORT int gts_handle_init(gts_program *self, const int64_t *memory_symbols);

/** Calls stub->run(), with the extra work for debugging, checks, profiles and recordings. */
GTS_EXPORT int gts_run(gts_program *self);

/** gts_run() for the stub itself: the compiler can inline its `run`. */
static inline GTS_ALWAYS_INLINE int gts_call_run(gts_program *self, int (*run)(gts_program *))
{
    return GTS_LIKELY(!self->has_extra_work) ? run(self) : gts_run(self);
}

/** Checks what a GPU has reported; the last thing that `run` of a program for a GPU does. Waits for nothing. */
GTS_EXPORT int gts_gpu_after_run(gts_program *self);

/** Waits until the calls of a program have ended on its GPU; returns at once for a program on the CPU. */
GTS_EXPORT int gts_gpu_wait(gts_program *self);

/**
 * Makes the next calls of a program wait on its GPU for the work that is on another stream now. Captured calls do not
 * wait, because they run when the host launches its graph. The program is entered.
 */
GTS_EXPORT int gts_stream_wait(gts_program *self, void *stream);

/** Whether the stream of a program is being captured. */
GTS_EXPORT bool gts_stream_is_captured(const gts_program *self);

/* ---- Refusals: all return -1 ----------------------------------------------------------------------------------- */

/** Sets an error. */
GTS_EXPORT GTS_COLD int gts_error_set(gts_error *error, gts_error_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Refuses two arguments that have different values for one symbol; `what` and `other_what` name where they are. */
GTS_EXPORT GTS_COLD int gts_error_symbol(gts_program *self, const char *what, int64_t value, const char *other_what,
                                         int64_t other_value);

/** Checks that two values of one symbol are equal; the texts say where each value is. */
static inline int gts_check_symbol(gts_program *self, const char *what, int64_t value, const char *other_what,
                                   int64_t other_value)
{
    return GTS_LIKELY(value == other_value) ? 0 : gts_error_symbol(self, what, value, other_what, other_value);
}

/** gts_check_symbol() for a symbol that is also the stride of an axis. */
static inline int gts_check_stride(gts_program *self, const char *what, int64_t value, const char *other_what,
                                   uint32_t leaf, int32_t axis)
{
    const gts_array *const array = gts_array_of(self, leaf);
    if (GTS_LIKELY(value == array->strides[axis]) || gts_is_any_stride(array, axis))
        return 0;
    return gts_error_symbol(self, what, value, other_what, array->strides[axis]);
}

/**
 * For the module gtstub: sets the lower bounds of the arrays that a Fortran host passes for a field or a table, so that
 * messages count from them. They are 1 until this is called, because a descriptor does not have them.
 */
GTS_EXPORT int gts_set_lower_bounds(gts_program *self, const char *argument, const int64_t *bounds, int32_t rank);

/**
 * For gtstub/fortran.h: refuses an array of a Fortran host.
 *
 * @param array  what gtstub/fortran.h has read of it
 */
GTS_EXPORT GTS_COLD int gts_refuse_fortran(gts_program *self, uint32_t leaf, gts_fortran_reason reason,
                                           const gts_array *array);

/* ---- Errors in Fortran ----------------------------------------------------------------------------------------- */

/** Copies a text to a Fortran variable of `length` characters: truncates it, or pads it with blanks. */
GTS_EXPORT GTS_COLD void gts_copy_text(char *to, size_t length, const char *text);

/** Ends the process as ERROR STOP does. */
GTS_EXPORT GTS_COLD void gts_error_stop(const gts_error *error) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif

#endif
