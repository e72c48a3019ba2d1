/* A loaded program at work: the SDFG's handle, its workspaces, one call at a time. */
#define _GNU_SOURCE
#include <time.h>

#include "base/error.h"
#include "base/forks.h"
#include "gtstub/stub.h"
#include "base/lock.h"
#include "profile/profile.h"
#include "record/recorder.h"

/* DaCe's external memory is laid out in multiples of this many bytes; CUDA's own allocators promise it as well. */
#define WORKSPACE_ALIGNMENT 256

/* ---- The handle ------------------------------------------------------------------------------------------------ */

static int end_handle(gts_program *self)
{
    void *const sdfg = self->sdfg;
    self->sdfg = NULL;
    if (sdfg == NULL)
        return 0;
    const int status = ((int (*)(void *))self->exit)(sdfg);
    if (status != 0)
        return gts_error_set(&self->error, GTS_RUNTIME_ERROR,
                             "The SDFG of program '%s' could not be finalised (__dace_exit returned %d).",
                             self->stub->name, status);
    return 0;
}

static int install_workspaces(gts_program *self)
{
    const gts_stub *const stub = self->stub;
    for (uint32_t i = 0; i < stub->workspace_count; ++i) {
        const size_t needed = stub->workspaces[i].bytes(self);
        const char *const storage = stub->workspaces[i].storage;
        if (needed == 0)
            continue;
        if (self->workspace[i] == NULL)
            return gts_error_set(&self->error, GTS_RUNTIME_ERROR,
                                 "Program '%s' needs a workspace of %zu bytes in '%s', but none has been set.",
                                 stub->name, needed, storage);
        if (self->workspace_size[i] < needed)
            return gts_error_set(&self->error, GTS_VALUE_ERROR,
                                 "Program '%s' needs a workspace of %zu bytes in '%s', but the one set has %zu.",
                                 stub->name, needed, storage, self->workspace_size[i]);
        stub->workspaces[i].install(self);
    }
    return 0;
}

int gts_handle_init(gts_program *self, const int64_t *memory_symbols)
{
    const gts_stub *const stub = self->stub;
    if (end_handle(self) != 0)
        return -1;
    self->has_new_handle = true;
    self->sdfg = stub->init(self);
    if (self->sdfg == NULL)
        return gts_error_set(&self->error, GTS_RUNTIME_ERROR,
                             "The SDFG of program '%s' could not be initialised (__dace_init returned NULL).",
                             stub->name);
    if (install_workspaces(self) != 0) {
        const gts_error reason = self->error;
        (void)end_handle(self);
        self->error = reason;
        return -1;
    }
    if (memory_symbols != NULL)
        memcpy(self->memory_symbol, memory_symbols, stub->memory_symbol_count * sizeof *memory_symbols);
    return 0;
}

int gts_set_workspace(gts_program *self, const char *storage, void *memory, size_t size)
{
    if (gts_enter_open(self) != 0)
        return -1;
    const gts_stub *const stub = self->stub;
    uint32_t i = 0;
    while (i < stub->workspace_count && strcmp(stub->workspaces[i].storage, storage) != 0)
        ++i;
    int status = 0;
    if (i == stub->workspace_count) {
        status = gts_error_set(&self->error, GTS_VALUE_ERROR, "Program '%s' has no workspace in '%s'.", stub->name,
                               storage);
    } else if ((uintptr_t)memory % WORKSPACE_ALIGNMENT != 0) {
        status = gts_error_set(&self->error, GTS_VALUE_ERROR,
                               "The workspace of program '%s' in '%s' must be aligned to %d bytes.", stub->name,
                               storage, WORKSPACE_ALIGNMENT);
    } else {
        status = end_handle(self); /* the next call initialises it with the new memory */
        self->workspace[i] = memory;
        self->workspace_size[i] = size;
    }
    gts_leave(self);
    return status;
}

const char *gts_name(const gts_program *self)
{
    return self->stub->name;
}

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

unsigned int gts_attention;

/* Pauses double up to this: of the calls that are worth waiting for, most take longer. */
#define LONGEST_PAUSE_NS 128000L

bool gts_lock(gts_program *self, uint64_t patience)
{
    /* Who waits already looks at least once in the first pause of who comes now. */
    const bool others_wait = __atomic_load_n(&self->waiters, __ATOMIC_RELAXED) > 0;
    if (!others_wait && gts_try_lock(self))
        return true;
    if (patience == 0)
        return false;
    (void)__atomic_fetch_add(&self->waiters, 1, __ATOMIC_RELAXED);
    (void)__atomic_fetch_add(&gts_attention, 1, __ATOMIC_RELAXED);
    const uint64_t begin = gts_now();
    struct timespec pause = {.tv_nsec = others_wait ? 2 * LONGEST_PAUSE_NS : 1000};
    bool is_locked;
    do {
        (void)nanosleep(&pause, NULL);
        pause.tv_nsec = pause.tv_nsec < LONGEST_PAUSE_NS ? 2 * pause.tv_nsec : LONGEST_PAUSE_NS;
        is_locked = gts_try_lock(self);
    } while (!is_locked && (patience == GTS_FOREVER || gts_now() - begin < patience));
    (void)__atomic_fetch_sub(&gts_attention, 1, __ATOMIC_RELAXED);
    (void)__atomic_fetch_sub(&self->waiters, 1, __ATOMIC_RELAXED);
    return is_locked;
}

int gts_enter(gts_program *self, bool wait)
{
    if (GTS_UNLIKELY(gts_is_parents(self)))
        return gts_error_set(&self->error, GTS_RUNTIME_ERROR,
                             "Program '%s' was loaded before this process was forked; load it again in the child.",
                             self->stub->name);
    if (!gts_lock(self, wait ? GTS_FOREVER : 0))
        return 1;
    gts_profile *const profile = __atomic_load_n(&gts_profile_running, __ATOMIC_RELAXED);
    if (GTS_UNLIKELY(profile != NULL))
        gts_profile_enter(self, profile);
    return 0;
}

int gts_enter_open(gts_program *self)
{
    if (self == NULL)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                             "The program is not open: it was closed, or never opened.");
    return gts_enter(self, true);
}

/* Whether two stubs were generated from the same signatures by the same gtstub, so that one may fill the other's slots. */
static bool is_like(const gts_stub *a, const gts_stub *b)
{
    return a->abi == b->abi && a->leaf_count == b->leaf_count && a->args_size == b->args_size &&
           a->slots_size == b->slots_size && strcmp(a->program_digest, b->program_digest) == 0 &&
           strcmp(a->sdfg_digest, b->sdfg_digest) == 0 && strcmp(a->version, b->version) == 0;
}

static GTS_COLD int refuse_stub(gts_program *self, const gts_stub *stub)
{
    gts_error_set(&self->error, GTS_RUNTIME_ERROR,
                  "Program '%s' was opened from another stub than that of '%s' which the host is linked with; "
                  "generate and build both from the same signatures.",
                  self->stub->name, stub->name);
    gts_leave(self);
    return -1;
}

int gts_enter_linked_slowly(gts_program *self, const gts_stub *stub)
{
    if (GTS_UNLIKELY(self == NULL))
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                             "Program '%s' is not open: it was closed, or never opened.", stub->name);
    const int status = gts_enter(self, true);
    if (GTS_LIKELY(status != 0 || self->linked == stub))
        return status;
    if (!is_like(self->stub, stub))
        return refuse_stub(self, stub);
    self->linked = stub;
    return 0;
}

static GTS_COLD int check_gpu(gts_program *self)
{
    const int status = self->gpu_error(self->sdfg);
    if (status == 0)
        return 0;
    return gts_error_set(&self->error, GTS_RUNTIME_ERROR, "The GPU reported error %d while program '%s' ran.", status,
                         self->stub->name);
}

static __attribute__((noinline)) int run_specially(gts_program *self)
{
    self->has_new_handle = false;
    const bool stays_special = self->debug || self->recorder != NULL;
    if (stays_special) /* the next call looks at all of its arrays, whatever the SDFG takes */
        self->knows_args = self->knows_fortran = false;
    gts_recorder_call *const call = self->recorder != NULL ? gts_recorder_before(self) : NULL;
    const int status = self->entered != 0 ? gts_profile_run(self) : self->stub->run(self);
    if (call != NULL)
        gts_recorder_after(self, call, status == 0);
    if (status != 0)
        return -1;
    self->was_called = true;
    self->is_special = stays_special;
    if (self->debug && self->gpu_error != NULL)
        return check_gpu(self);
    return 0;
}

int gts_run(gts_program *self)
{
    return GTS_LIKELY(!self->is_special) ? self->stub->run(self) : run_specially(self);
}
