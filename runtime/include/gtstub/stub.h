/*
 * gtstub: the header that a generated stub includes.
 *
 * A stub is generated and knows one program; a host (the Python extension module, or a C or Fortran entry of the stub)
 * knows the objects of its callers; the runtime knows neither. They share:
 *
 *     contract.h  the description of a program in its stub
 *     arrays.h    recognition of the arrays of earlier calls
 *     program.h   a loaded program, and the functions of the runtime
 */
#ifndef GTSTUB_STUB_H
#define GTSTUB_STUB_H

#include "gtstub/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Functions of a host that has its own objects ---------------------------------------------------------------- */

/**
 * The functions that a stub calls to convert the objects of a call. Those that return int return 0 for success, and -1
 * after they have written a refusal to the program's error or have set an exception of the host's language.
 */
struct gts_host {
    /**
     * Makes leaf->current the conversion of `object`, which it has checked against the leaf's contract, and sets the
     * leaf's element of gts_program.known.
     */
    int (*field)(gts_program *, uint32_t leaf, void *object);
    /** Reads the one element of a zero-dimensional field into *value, which has the leaf's dtype. */
    int (*zero_dim_field)(gts_program *, uint32_t leaf, void *object, void *value);
    /**
     * Reads a scalar into *value, which is its slot and has the leaf's dtype. It sets the leaf's element of
     * gts_program.known if the object cannot change.
     */
    int (*scalar)(gts_program *, uint32_t leaf, void *object, void *value);
    /** Checks that a scalar equals contract->value, and sets the leaf's element of gts_program.known. */
    int (*static_scalar)(gts_program *, uint32_t leaf, void *object);
    /** Keeps the object of a callback until the call ends, and sets the function in its slot to NULL. */
    int (*callback)(gts_program *, uint32_t leaf, void *object);
    /** The elements of a tuple, which must have `length` of them; NULL after an error. The tuple owns them. */
    void *const *(*tuple)(gts_program *, const char *path, void *object, uint32_t length);
    /** The elements of stub->collections[collection]; NULL after an error. They live until the call ends. */
    void *const *(*collection)(gts_program *, uint32_t collection, void *object);
    /** The object that the offset provider has under the name contract->path; NULL after an error. */
    void *(*connectivity)(gts_program *, uint32_t leaf, void *offset_provider);
    /** After all connectivities were converted: sets the last element of gts_program.known, or leaves it NULL. */
    int (*remember_provider)(gts_program *, void *offset_provider);
};

/** The object that leaf->current was converted from, if a call may pass it again unread; NULL if there is none. */
static inline const void *gts_known_object(const gts_program *self, uint32_t leaf)
{
    return self->known[leaf];
}

/** Sets the object that gts_known_object() returns; NULL forgets it. `leaf` is leaf_count for the offset provider. */
static inline void gts_know_object(gts_program *self, uint32_t leaf, const void *object)
{
    self->known[leaf] = object;
    ++self->known_version;
}

/** For stub->convert(): makes leaf->current the conversion of a field's object, unless it is known. */
static inline int gts_convert_field(gts_program *self, const gts_host *host, uint32_t leaf, void *object)
{
    return GTS_LIKELY(gts_known_object(self, leaf) == object) ? 0 : host->field(self, leaf, object);
}

/** For stub->convert(): reads a scalar into its slot `value`, which has its value already if the object is known. */
static inline int gts_convert_scalar(gts_program *self, const gts_host *host, uint32_t leaf, void *object, void *value)
{
    return GTS_LIKELY(gts_known_object(self, leaf) == object) ? 0 : host->scalar(self, leaf, object, value);
}

/** For stub->convert(): makes leaf->current the conversion of a connectivity. */
static inline int gts_convert_table(gts_program *self, const gts_host *host, uint32_t leaf, void *offset_provider)
{
    void *const object = host->connectivity(self, leaf, offset_provider);
    return GTS_LIKELY(object != NULL) ? gts_convert_field(self, host, leaf, object) : -1;
}

/** Whether the offset provider has the connectivities that are known. */
static inline bool gts_is_known_provider(const gts_program *self, uint32_t leaf_count, const void *offset_provider)
{
    return GTS_LIKELY(gts_known_object(self, leaf_count) == offset_provider);
}

/** For stub->convert(): checks the object of a static argument, unless it is known. */
static inline int gts_convert_static(gts_program *self, const gts_host *host, uint32_t leaf, void *object)
{
    return GTS_LIKELY(gts_known_object(self, leaf) == object) ? 0 : host->static_scalar(self, leaf, object);
}

/* ---- Functions of a host that an SDFG calls ---------------------------------------------------------------------- */

/* DaCe passes no data with them, so that a stub has a function of its own for each, and knows which program is running. */

/** An argument or a result of a callback: a scalar, or an array. */
typedef struct gts_callback_value {
    void *data;             /**< address of the scalar, or of the array's first element */
    gts_dtype dtype;        /**< of the scalar, or of the elements */
    int32_t rank;           /**< number of axes; 0 for a scalar */
    const int64_t *shape;   /**< [rank], in elements */
    const int64_t *strides; /**< [rank], in elements */
} gts_callback_value;

/** A callback that this thread is running. They form a list, because a callback may call another program. */
typedef struct gts_callback_frame {
    const gts_program *program;                /**< whose SDFG has called it */
    const struct gts_callback_frame *outer;    /**< the callback in which that program was called, in any thread */
    const struct gts_callback_frame *previous; /**< the innermost callback of this thread before */
} gts_callback_frame;

/** The innermost callback of this thread; NULL outside callbacks. */
GTS_EXPORT extern __thread const gts_callback_frame *gts_innermost_callback;

/* gcc 14 warns in stubs that the frame does not outlive their function: gts_callback_end() has taken it back by then. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdangling-pointer"
#endif

/** Begins a callback. Returns -1 if an earlier one has failed: then no other is called, and results are 0. */
static inline int gts_callback_begin(const gts_program *self, gts_callback_frame *frame)
{
    if (GTS_UNLIKELY(__atomic_load_n(&self->callback_failed, __ATOMIC_SEQ_CST)))
        return -1;
    frame->program = self;
    frame->outer = self->outer_callback;
    frame->previous = gts_innermost_callback;
    gts_innermost_callback = frame;
    return 0;
}

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#pragma GCC diagnostic pop
#endif

static inline void gts_callback_end(const gts_callback_frame *frame)
{
    gts_innermost_callback = frame->previous;
}

/**
 * Calls the function of a host that has its own objects, by self->call_back.
 *
 * @param leaf    the leaf of the callback
 * @param values  the `arguments` arguments, then the `results` results, which are written
 */
GTS_EXPORT void gts_callback_host(gts_program *self, uint32_t leaf, const gts_callback_value *values,
                                  uint32_t arguments, uint32_t results);

/** Before the SDFG runs: waits until no other program of the same stub is running, and makes `self` *running. */
GTS_EXPORT int gts_callbacks_begin(gts_program **running, gts_program *self);

/** After the SDFG has run. Returns -1 if a callback has failed. */
GTS_EXPORT int gts_callbacks_end(gts_program **running, gts_program *self);

/** For C and Fortran hosts: refuses a callback without a function. */
GTS_EXPORT int gts_check_callbacks(gts_program *self);

#ifdef __cplusplus
}
#endif

/* ---- The text of stubs ------------------------------------------------------------------------------------------- */

/*
 * Rows of the lists of a stub. ARGUMENTS has those of its arguments, SLOTS and INIT those of what its SDFG takes. `self`
 * is the program, and `s` its slots.
 */
#define GTS_NOTHING(...)
#define GTS_LEAF(leaf, ...) LEAF_##leaf,
#define GTS_DIFFER(leaf, axes, what) difference |= gts_differ(&a->leaf, &b->leaf, axes, what);
#define GTS_TAKE(leaf, type) s->leaf = args->leaf;
#define GTS_SLOT(type, slot, source) type slot;
#define GTS_FILL(type, slot, source) s->slot = (type)(source);
#define GTS_PARAMETER(type, slot, source) , type slot
#define GTS_STORED(type, slot, source) , s->slot
#define GTS_GIVEN(type, slot, value) , value

/* A list of slots without the comma before the first one. */
#define GTS_LIST(...) GTS_REST(__VA_ARGS__)
#define GTS_REST(nothing, ...) __VA_ARGS__

/* An array of the call. */
#define GTS_OF(array) gts_array_of(self, LEAF_##array)

#ifdef GTS_NEEDED_CPU
/* What the program needs of a CPU, under the names of its manifest with blanks between them: gts_load() looks for it. */
GTS_EXPORT extern const char gts_needed_cpu[];
const char gts_needed_cpu[] = GTS_NEEDED_CPU;
#endif

#ifdef GTS_LINKED

#define GTS_TEXT_OF(name) #name
#define GTS_FILE_OF(name) GTS_TEXT_OF(name) "_stub.so"

static const gts_stub STUB; /* the descriptor, which the stub defines below */

/* Runs before main(), and before the constructors of C++ objects, which may open programs. */
static void gts_link_this_stub(void) __attribute__((constructor(101)));
static void gts_link_this_stub(void)
{
    static gts_linked_stub linked = {.file = GTS_FILE_OF(GTS_LINKED), .stub = &STUB};
    gts_link_stub(&linked);
}

#endif

#endif
