/*
 * gtstub: stubs that are linked into an executable or a shared library together with the runtime, libgtstub.a. Such a
 * stub is compiled with -DGTS_LINKED=<name>, and exports nothing.
 */
#ifndef GTSTUB_LINKED_H
#define GTSTUB_LINKED_H

#include "gtstub/contract.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A stub that is linked statically. */
typedef struct gts_linked_stub {
    const char *file;             /**< file name that its library would have: "<name>_stub.so" */
    const gts_stub *stub;         /**< its descriptor */
    struct gts_linked_stub *next; /**< set by the runtime */
} gts_linked_stub;

/** Makes a stub known to gts_open() and gts_load(), for the whole process. Only libgtstub.a has this function. */
void gts_link_stub(gts_linked_stub *linked);

#ifdef __cplusplus
}
#endif

#endif
