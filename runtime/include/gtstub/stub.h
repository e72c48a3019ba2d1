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
 */
#ifndef GTSTUB_STUB_H
#define GTSTUB_STUB_H

#include "gtstub/callback.h"
#include "gtstub/host.h"

#endif
