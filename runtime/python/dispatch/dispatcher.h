/*
 * What the files of the Dispatcher share: a program as its user calls it, with some arguments bound, and one compiled
 * program for each variant. Functions that return int return 0 for success and -1 after an exception.
 */
#ifndef GTSTUB_DISPATCHER_H
#define GTSTUB_DISPATCHER_H

#include "python/host.h"

/* A call gathers its arguments on the stack. */
#define GTS_PY_MAX_PARAMETERS 255

/* Tuples within tuples, down to a static scalar. */
#define GTS_PY_MAX_DEPTH 4

/* How many places in a model's source are remembered from which one program is called. */
#define GTS_PY_SITES 4

/* What a call passes is decided by its place in the source: so many positional arguments, and this tuple of names. */
typedef struct gts_py_site {
    PyObject *keywords; /* NULL: none */
    Py_ssize_t given;   /* -1: no place is remembered here */
    bool selects;       /* it passes a static argument or an offset provider, and so may want another variant */
    uint8_t place[GTS_PY_MAX_PARAMETERS + 1]; /* where each keyword's argument goes */
} gts_py_site;

/* The way to a static scalar: a parameter, then elements of tuples. Its contract is selection.stub->leaves[i]. */
typedef struct gts_py_static {
    uint32_t parameter;
    uint32_t depth;
    struct {
        uint32_t index;
        uint32_t length; /* of the tuple */
    } step[GTS_PY_MAX_DEPTH];
} gts_py_static;

/* A compiled program and what chooses it: the number of its offset provider, then the bits of each static scalar. */
typedef struct gts_py_variant {
    PyObject *callable; /* NULL: not built yet */
    PyObject *label;    /* str, for messages */
    uint64_t *key;      /* [1 + static_count] */
} gts_py_variant;

typedef struct gts_py_dispatcher {
    PyObject_HEAD vectorcallfunc vectorcall;
    gts_py_state *state;
    PyObject *name;       /* str */
    const char *utf8;     /* of name */
    PyObject *parameters; /* tuple of interned names, of bound ones too */
    PyObject **bound;     /* [parameters + 1], NULL where a call must pass it; last the offset provider */
    bool overridable;     /* a call may pass bound arguments too, as functools.partial allows by keyword */
    uint32_t positional_count;
    uint8_t positional[GTS_PY_MAX_PARAMETERS]; /* parameters that a call may pass by position */
    PyObject *keyword_of_provider;             /* ("offset_provider",) */
    gts_py_site site[GTS_PY_SITES];
    unsigned int next_site;

    /* The static scalars are read and refused as the scalars of a program of their own, which has no other leaves. */
    gts_program selection;
    gts_stub selection_stub;
    gts_py_program selection_host;
    gts_contract *contracts; /* [static_count] */
    gts_py_static *statics;  /* [static_count] */
    uint32_t static_count;
    PyObject *providers; /* tuple of dicts that nobody else has: all that were compiled for */
    uint64_t *bound_key; /* [1 + static_count], of bound arguments */
    gts_py_variant *variants;
    uint32_t variant_count;
    uint32_t *table; /* [table_size]: 1 + variant at its hash or behind it; 0: none */
    uint32_t table_size;
    PyObject *build; /* called with the number of a variant that is not built yet; returns its callable */
    PyObject *usual; /* borrowed: the variant of the bound arguments, once it was chosen */
} gts_py_dispatcher;

/* dispatcher.c */
extern PyType_Spec gts_py_dispatcher_spec;

/* site.c */
/* Checks a call from a place that is not remembered, and remembers it or fills *scratch; NULL after an exception. */
const gts_py_site *gts_py_add_site(gts_py_dispatcher *, Py_ssize_t given, PyObject *keywords, gts_py_site *scratch);

/* provider.c */
/* Copies, so that a compiled offset provider stays what it was. A single one is bound. */
int gts_py_set_providers(gts_py_dispatcher *, PyObject *providers);
/* The number of the offset provider in *provider, which becomes our own copy of it, borrowed. */
int gts_py_find_provider(const gts_py_dispatcher *, PyObject **provider, uint64_t *number);

/* variant.c */
/* statics: tuple of (parameter, ((index, length), ...), path, dtype number). */
int gts_py_set_statics(gts_py_dispatcher *, PyObject *statics);
/* Reads the bound static arguments, which are refused here if ever. */
int gts_py_set_bound_key(gts_py_dispatcher *);
PyObject *gts_py_add_variant(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *gts_py_find_variant(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *gts_py_prepare_variant(PyObject *self, PyObject *index);
/* The compiled program for these arguments, borrowed; builds it first where need be. NULL after an exception. */
PyObject *gts_py_select(gts_py_dispatcher *, PyObject **argv);
void gts_py_free_variants(gts_py_dispatcher *);

#endif
