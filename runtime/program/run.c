/* Runs the SDFG of a program, with the extra work of the first call, binding, debugging, checks, profiles and recordings. */
#include "gtstub/bound.h"
#include "program/hooks.h"

static int run_recorded(gts_program *self)
{
    gts_runtime *const runtime = self->runtime;
    gts_recorder_call *const call = runtime->recorder != NULL ? gts_recorder_before(self) : NULL;
    const int status = runtime->entered != 0 ? gts_profile_run(self) : self->stub->run(self);
    if (call != NULL)
        gts_recorder_after(self, call, status == 0);
    runtime->was_called |= status == 0;
    return status;
}

static int run_checked(gts_program *self)
{
    self->runtime->is_checked = false;
    if (gts_checks_before(self) != 0)
        return -1;
    const int status = self->runtime->is_guarded ? gts_guard_run(self, run_recorded) : run_recorded(self);
    return gts_checks_after(self, status);
}

static GTS_NOINLINE int run_with_extra_work(gts_program *self)
{
    gts_runtime *const runtime = self->runtime;
    gts_binding *const binding = gts_binding_here;
    if (binding != NULL && binding->bind != NULL)
        return self->stub->prepare(self) < 0 ? -1 : binding->bind(binding, self);
    const bool is_captured = gts_graph_is_captured(self);
    const bool keeps_extra_work = self->debug || runtime->recorder != NULL || gts_graph_captures() || binding != NULL;
    if (is_captured && gts_graph_before_run(self) != 0)
        return -1;
    if (keeps_extra_work) /* so that the next call checks all arrays, including those that the SDFG does not take */
        self->knows_args = self->knows_fortran = false;
    runtime->has_new_handle = false;
    const int status = runtime->is_checked ? run_checked(self) : run_recorded(self);
    if (is_captured && gts_graph_after_run(self) != 0)
        return -1;
    if (status != 0)
        return -1;
    self->has_extra_work = keeps_extra_work;
    return 0;
}

int gts_run(gts_program *self)
{
    return GTS_LIKELY(!self->has_extra_work) ? self->stub->run(self) : run_with_extra_work(self);
}
