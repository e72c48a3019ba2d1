/*
 * Shared by the files of Overload: a way to call a program whose calls may leave parameters out, and that reads some of
 * its arguments itself, as DaCe programs do. Functions that return int return 0 for success and -1 after an exception.
 */
#pragma once

#include "python/dispatch/dispatcher.h"

/*
 * An object that a call reads: an item of a dict, the content of a cell, an argument of the call, what a function
 * evaluates, or `root` itself; then attributes and items of that.
 */
typedef struct gts_py_reading {
    PyObject *root;      /* a dict, a cell, an int, a function, or any other object */
    int32_t argument;    /* the number in `root`; -1 if it is no int */
    PyObject *arguments; /* tuple: the numbers of the arguments with which `root` is called; NULL if it is not called */
    PyObject *names; /* tuple: the item of a dict; then names of attributes, (index,) for items, () for their number */
    PyObject *value; /* what the object must equal; NULL if it may be any */
    PyObject *text;  /* str, how its user writes it: self.w */
    int32_t same;    /* the reading whose very object it must be, or -1 */
    int is_distinct; /* it reads an array, which must be none of those of other such readings */
    bool is_identical; /* the object must be `value` itself; another one may be equal only now */
} gts_py_reading;

/* An argument whose type decides between overloads, because its parameter has no type of its own. */
typedef struct gts_py_exact {
    int32_t argument;
    PyObject *types; /* tuple: the argument is of one of these very types */
    PyObject *text;  /* str, the name of the parameter */
} gts_py_exact;

/* Why an overload has not called its program, so that another one may. */
typedef enum gts_py_refusal {
    GTS_PY_NOT_REFUSED,
    GTS_PY_REFUSED, /* for the arguments */
    GTS_PY_CHANGED  /* for what it reads itself, and was compiled in */
} gts_py_refusal;

/* How a call from one kind of call site becomes a call of a Program. */
typedef struct gts_py_overload {
    PyObject_HEAD PyObject *spec; /* the tuple that the members were read from, which owns all objects in them */
    gts_py_program *program;
    uint32_t count;                           /* parameters of the program */
    int16_t place[GTS_PY_MAX_PARAMETERS + 1]; /* of each parameter: an argument of the call, or -1 - a reading */
    uint32_t reading_count;
    gts_py_reading *readings; /* [reading_count] */
    uint32_t constant_count;
    gts_py_reading *constants; /* [constant_count], whose values were compiled in */
    uint32_t exact_count;
    gts_py_exact *exact;     /* [exact_count] */
    uint32_t result_count;   /* parameters that are results; they are the last ones */
    PyObject *allocate;      /* called with the arguments before the results; returns a tuple of the results */
    PyObject *convert;       /* called with refused arguments and whether they are bound; returns others, or None */
    int32_t out;             /* the argument of the call that has the results instead, or -1 */
    int32_t least_arguments; /* of a call */
    bool is_single;          /* the call returns the only result, not a tuple */
    bool has_callbacks;      /* the program calls functions, which may change what was compiled in */
    bool has_owners;         /* callbacks get the objects whose attributes are the arguments */
    bool recompiles;         /* what has changed is compiled anew: a refusal of it is tried again */
    PyObject *advice;        /* str: what to do if what was compiled in has changed; NULL for the usual one */
    /* The arguments with which gts_py_check_distinct() succeeded last. */
    const void *distinct[GTS_PY_MAX_PARAMETERS + 1];
} gts_py_overload;

/* ---- same.c ---------------------------------------------------------------------------------------------------- */

/*
 * Whether two objects are the same, or of the same type and equal, with all their items if they are collections; false if
 * they cannot be compared.
 */
bool gts_py_is_same(PyObject *, PyObject *);

/* ---- reading.c ------------------------------------------------------------------------------------------------- */

/*
 * A new reference to what a call reads, and, unless `owner` is NULL, to the object whose attribute or item that is, or
 * NULL in *owner. NULL after an exception.
 */
PyObject *gts_py_read(const gts_py_overload *, const gts_py_reading *, PyObject *const *args, PyObject **owner);

/* Which refusal it is if a call has refused what it has read: none if the user's code has raised an exception. */
GTS_COLD gts_py_refusal gts_py_refusal_of(const gts_py_reading *);

/* Checks a constant. If it is another one now, *refused says so, because another overload may have been compiled. */
int gts_py_check_constant(const gts_py_overload *, const gts_py_reading *, PyObject *const *args,
                          gts_py_refusal *refused);

/* Checks that arrays that were different when the program was compiled still are, as DaCe takes for granted. */
int gts_py_check_distinct(gts_py_overload *, PyObject *const *argv);

/* Notes that a call must have an argument of this number. */
int gts_py_need_argument(gts_py_overload *, long number);

/*
 * Reads a tuple of (root, names, text, is_distinct=False), or of (root, names, text, value), (root, names, text, None, same), and
 * (root, names, text, value, -2) for a value that must be the very object.
 */
int gts_py_set_readings(gts_py_overload *, PyObject *items, bool have_values, gts_py_reading **, uint32_t *count);

/* ---- overload.c ------------------------------------------------------------------------------------------------ */

extern PyType_Spec gts_py_overload_spec;

/* Calls the program. *refused says whether another overload may take the arguments. */
PyObject *gts_py_call_overload(gts_py_overload *, PyObject *const *args, gts_py_refusal *refused);

/* After the program has refused `count` arguments: calls it with what `convert` makes of them. */
PyObject *gts_py_call_converted(gts_py_overload *, PyObject *const *args, Py_ssize_t count);
