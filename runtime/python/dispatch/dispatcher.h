/*
 * Shared by the files of the Dispatcher: a program that calls reach from several places in the source. Its `choose` finds
 * what takes the calls of a new place. Functions that return int return 0 for success and -1 after an exception.
 */
#pragma once

#include "python/host.h"

/* Parameters of a program: a call collects its arguments on the stack. */
#define GTS_PY_MAX_PARAMETERS 255

/* Nesting of the tuples around a static scalar. */
#define GTS_PY_MAX_DEPTH 4

/* Call sites that are remembered for each program. */
#define GTS_PY_SITES 4

/* A call site: all calls from one place in the source have as many positional arguments and the same tuple of names. */
typedef struct gts_py_site {
    PyObject *keywords; /* NULL if there are none */
    /*
     * What `choose` has returned for the site. If the dispatcher has parameters: the Program of the last call whose
     * arguments were all known, or NULL.
     */
    PyObject *target;
    uint64_t version; /* the known_version of that Program, if the call before had the same one; else 0 */
    int32_t given;    /* positional arguments; -1 if this entry is free */

    /* Only of dispatchers with parameters: */
    uint16_t passed;   /* all arguments, positional ones first */
    bool selects;      /* the call passes a static argument or an offset provider, and so may need another variant */
    bool always_reads; /* each call reads elements of arguments, or looks for the offset provider */
    uint16_t leaf[GTS_PY_MAX_PARAMETERS + 1]; /* of each argument, if `version` is not 0 */
    uint8_t place[GTS_PY_MAX_PARAMETERS + 1]; /* the parameter of each argument */
} gts_py_site;

/* A static scalar: the parameter that contains it, and the elements of tuples that lead to it. */
typedef struct gts_py_static {
    gts_py_argument argument;
    uint32_t parameter;
    uint32_t depth;
    struct {
        uint32_t index;
        uint32_t length; /* of the tuple */
    } step[GTS_PY_MAX_DEPTH];
} gts_py_static;

/* A variant that calls have used. */
typedef struct gts_py_variant {
    PyObject *key; /* bytes of uint64_t[1 + static_count]: the number of the offset provider, then each static scalar */
    PyObject *callable;
} gts_py_variant;

typedef struct gts_py_dispatcher {
    /* All members that a call of the first site needs: at most two cache lines, if it has few keywords. */
    PyObject_HEAD vectorcallfunc vectorcall;
    PyTypeObject *overload_type; /* borrowed */
    gts_py_site site[GTS_PY_SITES];

    unsigned int next_site;
    PyObject *name; /* str */
    PyObject *choose;

    /* Only of dispatchers with parameters, which bind arguments and select variants: */
    gts_py_signature takes;
    PyObject *default_callable;    /* borrowed: that of the variant of the bound arguments; NULL until it is selected */
    PyObject *keyword_of_provider; /* ("offset_provider",) */
    gts_error error;               /* the last refusal of a static scalar */
    PyObject *static_tuple;        /* the tuple that `statics` was read from, which keeps the paths in it */
    gts_py_static *statics;        /* [static_count] */
    uint32_t static_count;
    uint32_t variant_count;
    gts_py_variant *variants; /* [variant_count] */
    uint64_t *bound_key;      /* [1 + static_count], of the bound arguments */
    PyObject *providers;      /* tuple of our own copies of the offset providers that the program was compiled for */
} gts_py_dispatcher;

/* ---- dispatcher.c ---------------------------------------------------------------------------------------------- */

extern PyType_Spec gts_py_dispatcher_spec;

/* ---- call_site.c ----------------------------------------------------------------------------------------------- */

/* The site with an equal tuple of names, or NULL: func(*args, **kwargs) makes one in each call. */
gts_py_site *gts_py_find_equal_site(gts_py_dispatcher *, Py_ssize_t given, PyObject *keywords);

/* The site of a call, or NULL. */
static inline gts_py_site *gts_py_find_site(gts_py_dispatcher *self, Py_ssize_t given, PyObject *keywords)
{
    gts_py_site *site = self->site;
    for (int i = 0; i < GTS_PY_SITES; ++i, ++site) {
        if (GTS_LIKELY(site->keywords == keywords && site->given == (int32_t)given))
            return site;
    }
    return gts_py_find_equal_site(self, given, keywords);
}

/* Remembers a copy of a site with new references, or returns NULL if its names are no plain ones. */
gts_py_site *gts_py_remember_site(gts_py_dispatcher *, const gts_py_site *);
void gts_py_forget_sites(gts_py_dispatcher *);
/* Calls `choose`; a new reference, or NULL after an exception. */
PyObject *gts_py_choose(const gts_py_dispatcher *, PyObject *const *args, size_t flagged_given, PyObject *keywords);

/* ---- overloads.c ----------------------------------------------------------------------------------------------- */

/* vectorcall of dispatchers without parameters. */
PyObject *gts_py_call_overloads(PyObject *, PyObject *const *args, size_t flagged_given, PyObject *keywords);

/* ---- offset_provider.c ----------------------------------------------------------------------------------------- */

/* Copies a tuple of offset providers, because their owners may change them. A single one is bound. */
int gts_py_set_providers(gts_py_dispatcher *, PyObject *providers);
/* Finds the number of an offset provider, and replaces *provider by our own copy of it, borrowed. */
int gts_py_find_provider(const gts_py_dispatcher *, PyObject **provider, uint64_t *number);

/* ---- variant.c ------------------------------------------------------------------------------------------------- */

/* statics: tuple of (parameter, ((index, length), ...), path, dtype number). Reads those that are bound. */
int gts_py_set_statics(gts_py_dispatcher *, PyObject *statics);
PyObject *gts_py_key(PyObject *self, PyObject *args);
/* The compiled program for these arguments, borrowed, which is built first if need be; NULL after an exception. */
PyObject *gts_py_select(gts_py_dispatcher *, PyObject **argv);
