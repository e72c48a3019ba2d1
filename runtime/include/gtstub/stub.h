/*
 * gtstub: the header that a generated stub includes.
 *
 * A stub is generated and knows one program; a host (the Python extension module, or a C or Fortran entry of the stub)
 * knows the objects of its callers; the runtime knows neither. They share:
 *
 *     contract.h    the description of a program in its stub
 *     arrays.h      recognition of the arrays of earlier calls
 *     program.h     a loaded program, and the runtime's functions
 *     callback.h    functions of a host that an SDFG calls
 *     host.h        the functions of a host that convert its objects
 *     attributes.h  hot and cold paths
 *     linked.h      stubs that are linked statically
 */
#ifndef GTSTUB_STUB_H
#define GTSTUB_STUB_H

#include "gtstub/callback.h"
#include "gtstub/host.h"
#include "gtstub/linked.h"

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
