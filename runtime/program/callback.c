/* Callbacks: which program calls them, and what happens after one has failed. */
#define _GNU_SOURCE

#include "gtstub/stub.h"

#include <time.h>

#include "base/refuse.h"
#include "program/private.h"

void gts_callback_host(gts_program *self, uint32_t leaf, const gts_callback_value *values, uint32_t arguments,
                       uint32_t results)
{
    if (self->call_back(self, leaf, values, arguments, results) != 0)
        __atomic_store_n(&self->callback_failed, true, __ATOMIC_SEQ_CST);
}

int gts_callbacks_begin(gts_program **running, gts_program *self)
{
    struct timespec pause = {.tv_nsec = 1000};
    for (;;) {
        gts_program *other = NULL;
        if (__atomic_compare_exchange_n(running, &other, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            self->outer_callback = gts_innermost_callback;
            return 0;
        }
        if (other == NULL)
            continue;
        if (gts_calls_back(other)) /* it ends only after this call */
            return gts_refuse_own_callback(self);
        /* In a forked child, another thread of the parent was in a call of that program: it will never end here. */
        if (gts_forks > 0 && (other == self || !gts_loaded_has(other)))
            __atomic_compare_exchange_n(running, &other, NULL, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        nanosleep(&pause, NULL);
        pause.tv_nsec = gts_min(2 * pause.tv_nsec, 128000);
    }
}

int gts_callbacks_end(gts_program **running, gts_program *self)
{
    const bool failed = __atomic_load_n(&self->callback_failed, __ATOMIC_SEQ_CST);
    if (GTS_UNLIKELY(failed))
        __atomic_store_n(&self->callback_failed, false, __ATOMIC_SEQ_CST);
    __atomic_store_n(running, NULL, __ATOMIC_RELEASE);
    if (GTS_LIKELY(!failed))
        return 0;
    return gts_error_set(&self->error, GTS_RUNTIME_ERROR, "A callback of program '%s' has failed.", self->stub->name);
}

int gts_check_callbacks(gts_program *self)
{
    for (uint32_t i = 0; i < self->stub->leaf_count; ++i) {
        const gts_contract *const leaf = &self->stub->leaves[i];
        gts_function function; /* the first member of the struct of a callback */
        if (leaf->kind != GTS_CALLBACK)
            continue;
        memcpy(&function, (const char *)self->slots + leaf->slot, sizeof function);
        if (function == NULL)
            return GTS_REFUSE(self, leaf, GTS_TYPE_ERROR, "must be a function, not NULL.");
    }
    return 0;
}
