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
