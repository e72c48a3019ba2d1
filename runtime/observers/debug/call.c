/*
 * Checks the fields of a call before and after its SDFG.
 *
 * A field that the call only reads is checked before. One that it writes may have any value before, and is checked
 * after the call. If it has values before that are outside of the limits, a copy of it tells those from the ones that
 * the call has written. A field on a GPU is copied to the host, on the stream of the program.
 */
#define _GNU_SOURCE
#include "observers/debug/checked.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/refuse.h"
#include "base/strided.h"

/* ---- Values ---------------------------------------------------------------------------------------------------- */

/* Keeps a copy of a field that the call will write. */
static int keep_before(gts_program *self, gts_checked_field *field, const gts_contract *contract,
                       const gts_array *array)
{
    gts_range memory;
    field->before = gts_find_range(array, &memory) ? malloc(memory.size) : NULL;
    if (field->before == NULL)
        return GTS_REFUSE(self, contract, GTS_RUNTIME_ERROR, "cannot be checked: out of memory.");
    gts_pack(array, field->before);
    return 0;
}

static int check(gts_program *self, gts_checked *checked, bool is_after)
{
    GTS_TRY(gts_checked_trace(self, checked, 0, self->stub->leaf_count, is_after ? "after" : "before"));
    for (uint32_t i = 0; i < self->stub->leaf_count; ++i) {
        const gts_contract *const contract = &self->stub->leaves[i];
        gts_checked_field *const field = &checked->fields[i];
        gts_array array;
        if (!field->is_checked || (is_after && !contract->written))
            continue;
        const int status = gts_checked_array(self, checked, i, &array);
        if (status < 0)
            return -1;
        if (status > 0 || !gts_scan_finds(&array, field->limits))
            continue;
        if (!is_after && contract->written)
            GTS_TRY(keep_before(self, field, contract, &array));
        else
            GTS_TRY(gts_checked_report(self, checked, i, &array, is_after ? "the call" : NULL, false));
    }
    return 0;
}

/* ---- Before and after ------------------------------------------------------------------------------------------ */

static void show_progress(const gts_program *self, const gts_checked *checked, const char *what)
{
    if (!checked->checks->shows_progress)
        return;
    fprintf(stderr, "Call %" PRIu64 " of program '%s' %s.\n", checked->calls, self->stub->name, what);
    fflush(stderr);
}

/* Ends the checks of this call. */
static void finish(gts_program *self)
{
    gts_checked_program *const own = gts_checked_of(self);
    own->is_guarded = false;
    for (gts_checked *checked = own->checked; checked != NULL; checked = checked->next) {
        if (checked->is_running)
            self->runtime->gpu.synchronizes = checked->synchronized;
        checked->is_running = false;
        for (uint32_t i = 0; i < self->stub->leaf_count; ++i) {
            free(checked->fields[i].before);
            checked->fields[i].before = NULL;
        }
    }
}

/* Begins to check the call, unless the program is not selected or the call is captured. */
static void begin(gts_program *self, gts_checked *checked)
{
    if (!checked->is_selected)
        return;
    checked->is_running = !gts_stream_is_captured(self);
    ++checked->calls;
    if (!checked->is_running && !checked->was_captured)
        fprintf(stderr, "Captured calls of program '%s' are not checked: they run when the graph is launched.\n",
                self->stub->name);
    checked->was_captured |= !checked->is_running;
    if (!checked->is_running || checked->checks->guarded == GTS_NOT_GUARDED)
        return;
    const char *const obstacle = gts_guard_obstacle(self);
    gts_checked_of(self)->is_guarded = obstacle == NULL;
    if (obstacle != NULL && checked->calls == 1)
        fprintf(stderr, "Check 'bounds' checks nothing of program '%s', because %s.\n", self->stub->name, obstacle);
}

/* Checks the arguments before the SDFG runs. After -1 it must not run. */
static int before(gts_program *self)
{
    const bool synchronizes = self->runtime->gpu.synchronizes;
    gts_checks *checks = gts_checks_running;
    int status = 0;
    for (; checks != NULL && status == 0; checks = checks->outer) {
        gts_checked *const checked = gts_checked_find(self, checks);
        begin(self, checked);
        if (!checked->is_running)
            continue;
        checked->synchronized = synchronizes;
        self->runtime->gpu.synchronizes = true; /* so that an error of its kernels is that of this call */
        show_progress(self, checked, "begins");
        status = check(self, checked, false);
    }
    if (status == 0)
        gts_maps_begin(self);
    for (gts_checked *checked = gts_checked_of(self)->checked; checked != NULL && status != 0;
         checked = checked->next) {
        if (checked->is_running)
            show_progress(self, checked, "was refused");
    }
    if (status != 0)
        finish(self);
    return status;
}

/* Checks what the SDFG has written. `status` is that of the SDFG, and is returned unless a check fails. */
static int after(gts_program *self, int status)
{
    gts_checked_program *const own = gts_checked_of(self);
    const bool has_run = status == 0;
    const gts_error error = self->error;
    if (gts_maps_end(self) != 0) {
        if (!has_run && own->is_guarded)
            self->error = error; /* what was read outside of an array may be why a map has written something wrong */
        status = -1;
    }
    for (gts_checked *checked = own->checked; checked != NULL; checked = checked->next) {
        if (!checked->is_running)
            continue;
        show_progress(self, checked, has_run ? "has ended" : "has failed");
        if (status == 0)
            status = check(self, checked, true); /* that of the first checks that fail */
    }
    finish(self);
    return status;
}

/* ---- The observer ---------------------------------------------------------------------------------------------- */

static void enter_checked(gts_program *self)
{
    const gts_checks *checks = gts_checks_running;
    while (checks != NULL && !gts_checked_may_select(self, checks))
        checks = checks->outer;
    if (checks == NULL)
        return;
    gts_forget_arrays(self); /* a call that knows its arrays may not know the indices that messages name */
    self->has_extra_work = true;
}

static int run(gts_program *self, gts_observers rest)
{
    if (gts_checks_running == NULL)
        return gts_run_observed(self, rest);
    if (before(self) != 0)
        return -1;
    return after(self, gts_checked_of(self)->is_guarded ? gts_guard_run(self, rest) : gts_run_observed(self, rest));
}

const gts_observer gts_checks_observer = {
    .size = sizeof(gts_checked_program),
    .offset = &gts_checked_offset,
    .read_environment = gts_checks_read_environment,
    .load = gts_maps_find,
    .enter = enter_checked,
    .run = run,
    .workspace = gts_guard_workspace,
    .close = gts_checked_close,
    .after_fork = gts_checks_inherit,
};
