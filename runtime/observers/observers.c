/* Everything that observes the programs of this process, each in one line. The first one is outside the others. */
#include "observers/debug/checked.h"
#include "observers/times/times.h"
#include "observers/record/snapshot.h"

static const gts_observer *const OBSERVERS[] = {
    &gts_checks_observer,   /* its guarded copies are what the others see */
    &gts_recorder_observer, /* is not timed */
    &gts_times_observer,    /* times the SDFG alone */
    NULL,
};

/* Runs when the library is loaded. No function of another file calls this one: folders below do not know this file. */
__attribute__((constructor(101))) static void observe(void)
{
    gts_observe(OBSERVERS);
}

/*
 * Here, because every stub that is linked statically refers to it: a linker takes no file out of libgtstub.a to which
 * nothing refers.
 */
void gts_link_stub(gts_linked_stub *linked)
{
    gts_linked_add(linked);
}
