/*
 * The readers: they convert Python objects to arrays and scalars.
 *
 * A reader that returns int returns 0 for success. It returns -1 after it has written a refusal to argument->error, or
 * after a Python exception. The caller must hold the GIL, and the lock of the program if there is one.
 */
#pragma once

#include "base/refuse.h"
#include "python/state.h"

/* The argument that an object is passed for. */
typedef struct gts_py_argument {
    const char *program;  /* name of the program */
    const char *path;     /* name of the argument in messages */
    gts_dtype dtype;      /* that it must have */
    gts_device device;    /* that it must be on */
    gts_error *error;     /* receives refusals */
    gts_program *waiting; /* on its GPU, for what is on the stream of an array; NULL if nothing does */
    bool is_plain;        /* its axes have numbers, not names, as those of DaCe programs: an array, not a field */
} gts_py_argument;

/* Refuses the object that is passed for an argument: `format` is what follows GTS_ARGUMENT. Returns -1. */
#define GTS_PY_REFUSE(argument, kind, format, ...)                                                                     \
    gts_error_set((argument)->error, kind, GTS_ARGUMENT format, (argument)->path, (argument)->program, ##__VA_ARGS__)

/* A decoded domain. It is valid for all fields that come with this very object. */
typedef struct gts_py_domain {
    PyObject *object; /* a strong reference */
    int32_t rank;
    int64_t origin[GTS_MAX_RANK];
    int64_t shape[GTS_MAX_RANK];
    const char *dims[GTS_MAX_RANK];
} gts_py_domain;

/* The members of a leaf that only the host uses, in addition to gts_leaf. */
typedef struct gts_py_leaf {
    gts_py_argument argument;
    const gts_contract *contract;
    PyObject *name; /* of a connectivity, interned; a strong reference */
    gts_py_domain domain;
    PyObject *dimension[GTS_MAX_RANK];  /* gt4py's dimensions that have the contract's names; strong references */
    PyObject *other_name[GTS_MAX_RANK]; /* the names in `domain` that are not the contract's; strong references */
    PyObject *object;                   /* of a field: the last that was read; borrowed, for one call */
    PyObject *owner;                    /* of its memory; borrowed; NULL if that is the object */
    PyObject *callable;                 /* of a callback: borrowed, for one call */
    const PyObject *passed[2];          /* the last two objects that were passed for the first time; not references */
} gts_py_leaf;

/* Drops the objects that a leaf has remembered of domains. */
static inline void gts_py_forget_domain(gts_py_leaf *leaf)
{
    Py_CLEAR(leaf->domain.object);
    for (int axis = 0; axis < GTS_MAX_RANK; ++axis) {
        Py_CLEAR(leaf->dimension[axis]);
        Py_CLEAR(leaf->other_name[axis]);
    }
}

/* ---- common.c -------------------------------------------------------------------------------------------------- */

/* Refuses an array, whose `data` and `dtype` are set, if its elements are not aligned to their size. */
int gts_py_check_alignment(const gts_py_argument *, const gts_array *array);

/* Sets the strides of `array`, whose other members are set. Refuses elements that are not aligned to their size. */
int gts_py_set_strides(const gts_py_argument *, gts_array *array, const int64_t *byte_strides);

/*
 * Raises the AttributeError of an attribute that the object's type has, as a property has raised it; false if there is
 * none. Called where the attribute was not found, so that the reason is not lost.
 */
GTS_COLD bool gts_py_raise_property(PyObject *object, PyObject *name);

GTS_COLD int gts_py_refuse_dtype(const gts_py_argument *, const char *found);
GTS_COLD int gts_py_refuse_mask(const gts_py_argument *);
GTS_COLD int gts_py_refuse_object(const gts_py_argument *, PyObject *object);

/* ---- exchange.c, field.c --------------------------------------------------------------------------------------- */

/*
 * These read an array or a field without checking its contract. If the memory may not live as long as `object`, *owner
 * becomes a new reference to an object that keeps the memory, else NULL; the caller releases it even after -1. An array
 * has origin 0 and no dimension names.
 */
int gts_py_read_array(const gts_py_argument *, PyObject *object, gts_array *array, PyObject **owner);
int gts_py_read_exchange(const gts_py_argument *, PyObject *object, gts_array *array, PyObject **owner);
int gts_py_read_field(gts_py_leaf *, PyObject *object, gts_array *array, PyObject **owner);
/* Reads the array of any object. Returns 1, 0 if it is none, or -1 after an exception that is no Exception. */
int gts_py_read_any(gts_py_leaf *, PyObject *object, gts_array *array, PyObject **owner);

/* ---- connectivity.c, scalar.c, static.c, tuple.c --------------------------------------------------------------- */

/* A new Python object for an element; NULL after an exception. */
PyObject *gts_py_scalar_object(gts_dtype dtype, const void *value);

/* A new tuple of `times` each number; NULL after an exception. */
PyObject *gts_py_numbers(const int64_t *numbers, int32_t count, int64_t times);

/* Reads a scalar into *value, which has argument->dtype. */
int gts_py_read_scalar(const gts_py_argument *, PyObject *object, void *value);

/* Refuses an object that is not a tuple of `length` elements. */
GTS_COLD void gts_py_refuse_tuple(gts_error *, const char *program, const char *path, PyObject *object,
                                  uint32_t length);

/* Raises an exception if an offset provider of `program` is not a mapping. */
int gts_py_check_mapping(const char *program, PyObject *provider);
