/*
 * Shared by the files of the Dispatcher. A Dispatcher is a program with some arguments bound, and with one compiled
 * program for each variant. Functions that return int return 0 for success and -1 after an exception.
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
typedef struct gts_py_call_site {
    PyObject *keywords; /* NULL if there are none */
    Py_ssize_t given;   /* positional arguments; -1 if this entry is free */
} gts_py_call_site;

/* Finds a call site in an array of GTS_PY_SITES structs of a size, whose first member it is; NULL if it is not there. */
static inline void *gts_py_find_site(void *sites, size_t size, Py_ssize_t given, const PyObject *keywords)
{
    for (int i = 0; i < GTS_PY_SITES; ++i, sites = (char *)sites + size) {
        const gts_py_call_site *const site = sites;
        if (GTS_LIKELY(site->keywords == keywords && site->given == given))
            return sites;
    }
    return NULL;
}

/* What a Dispatcher knows of a call site. */
typedef struct gts_py_site {
    gts_py_call_site call;
    uint32_t passed;   /* all arguments, positional ones first */
    bool selects;      /* the call passes a static argument or an offset provider, and so may need another variant */
    bool always_reads; /* each call reads elements of arguments, or looks for the offset provider */
    gts_py_program *program; /* borrowed, of the last call whose arguments were all known; NULL if there was none */
    uint64_t version;        /* its known_version, if the call before had the same program; else 0 */
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

/* A variant: its compiled program, and the key that selects it. */
typedef struct gts_py_variant {
    PyObject *callable; /* NULL until it is built */
    PyObject *label;    /* str, for messages */
    uint64_t *key;      /* [1 + static_count]: the number of the offset provider, then the bits of each static scalar */
} gts_py_variant;

typedef struct gts_py_dispatcher {
    /* All members that a call of the first site needs: at most two cache lines, if it has few keywords. */
    PyObject_HEAD vectorcallfunc vectorcall;
    gts_py_site site[GTS_PY_SITES];

    gts_py_signature takes;
    PyObject *default_callable; /* borrowed: that of the variant of the bound arguments; NULL until it is selected */
    unsigned int next_site;
    gts_py_state *state;
    PyObject *name;                /* str */
    PyObject *keyword_of_provider; /* ("offset_provider",) */

    gts_error error;        /* the last refusal of a static scalar */
    PyObject *static_tuple; /* the tuple that `statics` was read from, which keeps the paths in it */
    gts_py_static *statics; /* [static_count] */
    uint32_t static_count;
    PyObject *providers; /* tuple of our own copies of the offset providers that the program was compiled for */
    uint64_t *bound_key; /* [1 + static_count], of the bound arguments */
    gts_py_variant *variants;
    uint32_t variant_count;
    uint32_t *table; /* [table_size], a hash table with linear probing: 1 + number of a variant, or 0 */
    uint32_t table_size;
    PyObject *build; /* called with the number of a variant that is not built yet; returns its callable */
} gts_py_dispatcher;

/* ---- dispatcher.c ---------------------------------------------------------------------------------------------- */

extern PyType_Spec gts_py_dispatcher_spec;

/* ---- call_site.c ----------------------------------------------------------------------------------------------- */

/* Whether all names are of type str, as they are in source text. Other objects may run code when they are released. */
bool gts_py_is_plain(PyObject *keywords);
/* Checks a call from a new site, and remembers the site or fills *scratch; NULL after an exception. */
gts_py_site *gts_py_add_site(gts_py_dispatcher *, Py_ssize_t given, PyObject *keywords, gts_py_site *scratch);

/* After a conversion in which the program knew all objects: lets the next calls compare only those that they pass. */
void gts_py_recognise_site(gts_py_site *, gts_py_program *);

/* ---- offset_provider.c ----------------------------------------------------------------------------------------- */

/* Copies the offset providers, because their owners may change them. A single one is bound. */
int gts_py_set_providers(gts_py_dispatcher *, PyObject *providers);
/* Finds the number of an offset provider, and replaces *provider by our own copy of it, borrowed. */
int gts_py_find_provider(const gts_py_dispatcher *, PyObject **provider, uint64_t *number);

/* ---- variant.c ------------------------------------------------------------------------------------------------- */

/* statics: tuple of (parameter, ((index, length), ...), path, dtype number). */
int gts_py_set_statics(gts_py_dispatcher *, PyObject *statics);
/* Reads the bound static arguments. */
int gts_py_set_bound_key(gts_py_dispatcher *);
PyObject *gts_py_add_variant(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *gts_py_find_variant(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *gts_py_prepare_variant(PyObject *self, PyObject *index);
/* The compiled program for these arguments, borrowed, which is built first if need be; NULL after an exception. */
PyObject *gts_py_select(gts_py_dispatcher *, PyObject **argv);
void gts_py_free_variants(gts_py_dispatcher *);
