/* Enters a program: one call at a time, and only in the process that loaded it. */
#define _GNU_SOURCE

#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/refuse.h"
#include "gtstub/stub.h"
#include "program/bound.h"
#include "program/observe.h"

/* ---- What a call looks at -------------------------------------------------------------------------------------- */

unsigned int gts_attention;
unsigned int gts_forks;
__thread gts_binding *gts_binding_here;
__thread const gts_callback_frame *gts_innermost_callback;

/* ---- Callbacks ------------------------------------------------------------------------------------------------- */

bool gts_calls_back(const gts_program *self)
{
    const gts_callback_frame *frame = gts_innermost_callback;
    while (frame != NULL && frame->program != self)
        frame = frame->outer;
    return frame != NULL;
}

int gts_refuse_own_callback(gts_program *self)
{
    return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR, "was called by one of its own callbacks.");
}

/* ---- The lock -------------------------------------------------------------------------------------------------- */

/* Pauses double up to this length, because most calls that are worth waiting for take longer. */
#define LONGEST_PAUSE_NS 128000L

static GTS_COLD bool wait_for_lock(gts_program *self, uint64_t patience, bool others_wait)
{
    ++self->runtime->waiters;
    gts_add_attention(1);
    const uint64_t begin = gts_ticks(), begin_ns = gts_clock_ns();
    /* A newcomer first pauses longer than any waiting thread does, so that each of those tries once before it. */
    struct timespec pause = {.tv_nsec = others_wait ? 2 * LONGEST_PAUSE_NS : 1000};
    bool is_locked;
    do {
        nanosleep(&pause, NULL);
        pause.tv_nsec = pause.tv_nsec < LONGEST_PAUSE_NS ? 2 * pause.tv_nsec : LONGEST_PAUSE_NS;
        is_locked = gts_try_lock(self);
    } while (!is_locked && (patience == GTS_FOREVER || gts_clock_ns() - begin_ns < patience));
    gts_add_attention(-1);
    --self->runtime->waiters;
    gts_observe_span("wait", self->stub->name, begin);
    return is_locked;
}

bool gts_lock(gts_program *self, uint64_t patience)
{
    const bool others_wait = self->runtime->waiters > 0;
    if (GTS_LIKELY(!others_wait) && gts_try_lock(self))
        return true;
    return patience > 0 && wait_for_lock(self, patience, others_wait);
}

/* The longest wait of gts_enter(), so that its caller can look for signals. */
#define LONGEST_WAIT_NS UINT64_C(100000000)

/* ---- Entering -------------------------------------------------------------------------------------------------- */

int gts_enter(gts_program *self, bool wait)
{
    if (GTS_UNLIKELY(self->runtime->home != &gts_attention))
        return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR,
                                  "was opened by another copy of gtstub's runtime in this process; call it there.");
    if (GTS_UNLIKELY(gts_belongs_to_parent(self)))
        return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR,
                                  "was loaded before this process was forked; load it again in the child, in Python by "
                                  "with_backend() or gtstub.compile().");
    if (GTS_UNLIKELY(gts_calls_back(self)))
        return gts_refuse_own_callback(self);
    if (GTS_UNLIKELY(!gts_lock(self, wait ? LONGEST_WAIT_NS : 0)))
        return 1;
    GTS_OBSERVE(enter, self);
    if (GTS_UNLIKELY(gts_binding_here != NULL))
        self->has_extra_work = true;
    return 0;
}

/* Enters however long another call takes. */
static int enter_at_last(gts_program *self)
{
    int status;
    do
        status = gts_enter(self, true);
    while (status > 0);
    return status;
}

int gts_enter_open(gts_program *self)
{
    if (self == NULL)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                             "The program is not open: it was closed, or never opened.");
    return enter_at_last(self);
}

/* Whether two stubs come from the same gtstub and the same signatures, so that either may fill the other's slots. */
static bool is_like(const gts_stub *a, const gts_stub *b)
{
    return a->abi == b->abi && a->leaf_count == b->leaf_count && a->args_size == b->args_size &&
           a->slots_size == b->slots_size && strcmp(a->program_digest, b->program_digest) == 0 &&
           strcmp(a->sdfg_digest, b->sdfg_digest) == 0 && strcmp(a->version, b->version) == 0;
}

void gts_forget_host(gts_program *self)
{
    gts_forget_objects(self);
    for (uint32_t i = 0; i < self->stub->leaf_count; ++i)
        self->leaf[i].remembered[0].object = self->leaf[i].remembered[1].object = NULL;
}

int gts_enter_linked_slowly(gts_program *self, const gts_stub *stub)
{
    if (GTS_UNLIKELY(self == NULL))
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                             "Program '%s' is not open: it was closed, or never opened.", stub->name);
    const int status = enter_at_last(self);
    if (GTS_LIKELY(status != 0 || self->linked == stub))
        return status;
    if (!is_like(self->stub, stub)) {
        GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR,
                           "was opened from a stub that differs from that of '%s' in the host; "
                           "generate and build both from the same signatures.",
                           stub->name);
        gts_leave(self);
        return -1;
    }
    if (GTS_UNLIKELY(self->host != NULL))
        gts_forget_host(self);
    else
        self->linked = stub;
    return 0;
}
