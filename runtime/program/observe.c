/* Calls the observers of programs. */
#define _POSIX_C_SOURCE 200809L
#include "program/observe.h"

#include <stddef.h>

#include "base/clock.h"
#include "base/refuse.h"

static const gts_observer *const none[] = {NULL};

gts_observers gts_observing = none;
size_t gts_observed_size;

void gts_observe(gts_observers observers)
{
    gts_observing = observers;
    for (; *observers != NULL; ++observers) {
        if ((*observers)->offset == NULL)
            continue;
        *(*observers)->offset = gts_observed_size;
        gts_observed_size += ((*observers)->size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    }
}

int gts_run_observed(gts_program *self, gts_observers observers)
{
    for (; *observers != NULL; ++observers) {
        if ((*observers)->run != NULL)
            return (*observers)->run(self, observers + 1);
    }
    const int status = self->stub->run(self);
    self->runtime->was_called |= status == 0;
    return status;
}

int gts_observe_workspace(gts_program *self, uint32_t workspace, size_t size)
{
    for (gts_observers each = gts_observing; *each != NULL; ++each) {
        if ((*each)->workspace != NULL)
            GTS_TRY((*each)->workspace(self, workspace, size));
    }
    return 0;
}

void gts_observe_span(const char *kind, const char *name, uint64_t begin)
{
    GTS_OBSERVE(span, kind, name, begin, gts_ticks());
}
