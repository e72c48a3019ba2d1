/* Initialises and ends the handle of a program's SDFG, and lends workspaces to it. */
#define _POSIX_C_SOURCE 200809L
#include "base/clock.h"
#include "base/refuse.h"
#include "program/observe.h"

/* DaCe lays out external memory in multiples of this many bytes; CUDA's allocators guarantee the same. */
#define WORKSPACE_ALIGNMENT 256

/* ---- The handle ------------------------------------------------------------------------------------------------ */

int gts_handle_end(gts_program *self)
{
    void *const sdfg = self->sdfg;
    __atomic_store_n(&self->sdfg, NULL, __ATOMIC_SEQ_CST); /* before its address is free: after_map() compares it */
    if (sdfg == NULL)
        return 0;
    const int status = ((int (*)(void *))self->runtime->exit)(sdfg);
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
            return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR,
                                      "needs a workspace of %zu bytes in '%s', but none has been set.", needed,
                                      storage);
        if (self->runtime->workspace_size[i] < needed)
            return GTS_REFUSE_PROGRAM(self, GTS_VALUE_ERROR,
                                      "needs a workspace of %zu bytes in '%s', but the one set has %zu.", needed,
                                      storage, self->runtime->workspace_size[i]);
        GTS_TRY(gts_observe_workspace(self, i, needed));
        stub->workspaces[i].install(self);
    }
    return 0;
}

int gts_handle_init(gts_program *self, const int64_t *memory_symbols)
{
    const gts_stub *const stub = self->stub;
    const bool is_on_gpu = stub->device != GTS_CPU;
    if ((is_on_gpu && gts_gpu_before_init(self) != 0) || gts_handle_end(self) != 0)
        return -1;
    self->runtime->has_new_handle = true;
    const uint64_t begin = gts_ticks();
    gts_pool_pause(true);
    __atomic_store_n(&self->sdfg, stub->init(self), __ATOMIC_SEQ_CST);
    gts_pool_pause(false);
    gts_observe_span("init", stub->name, begin);
    if (self->sdfg == NULL)
        return gts_error_set(&self->error, GTS_RUNTIME_ERROR,
                             "The SDFG of program '%s' could not be initialised (__dace_init returned NULL).",
                             stub->name);
    if ((is_on_gpu && gts_gpu_after_init(self) != 0) || install_workspaces(self) != 0) {
        const gts_error reason = self->error;
        gts_handle_end(self);
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
        status = GTS_REFUSE_PROGRAM(self, GTS_VALUE_ERROR, "has no workspace in '%s'.", storage);
    } else if ((uintptr_t)memory % WORKSPACE_ALIGNMENT != 0) {
        status = gts_error_set(&self->error, GTS_VALUE_ERROR, GTS_WORKSPACE "must be aligned to %d bytes.", stub->name,
                               storage, WORKSPACE_ALIGNMENT);
    } else if (stub->workspaces[i].device == GTS_CPU ||
               (status = gts_gpu_check_workspace(self, storage, memory)) == 0) {
        status = gts_handle_end(self); /* the next call initialises it again, with the new memory */
        if (status == 0) {
            self->workspace[i] = memory;
            self->runtime->workspace_size[i] = size;
        }
    }
    gts_leave(self);
    return status;
}

const char *gts_name(const gts_program *self)
{
    return self->stub->name;
}
