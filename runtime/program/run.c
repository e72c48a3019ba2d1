/* Runs the SDFG of a program, with the extra work of the first call, binding, debugging and observers. */
#include "program/bound.h"
#include "program/observe.h"

static GTS_NOINLINE int run_with_extra_work(gts_program *self)
{
    gts_binding *const binding = gts_binding_here;
    if (binding != NULL && binding->bind != NULL)
        return self->stub->prepare(self) != 0 ? -1 : binding->bind(binding, self);
    const bool keeps_extra_work = self->debug || binding != NULL;
    if (keeps_extra_work) /* so that the next call checks all arrays, including those that the SDFG does not take */
        self->knows_args = self->knows_fortran = false;
    self->runtime->has_new_handle = false;
    if (gts_run_observed(self, gts_observing) != 0)
        return -1;
    self->has_extra_work = keeps_extra_work;
    return 0;
}

int gts_run(gts_program *self)
{
    return GTS_LIKELY(!self->has_extra_work) ? self->stub->run(self) : run_with_extra_work(self);
}
