/*
 * The recorder writes the arguments of every call, before and after it, to the archive of this process.
 *
 * All data is protected by `lock`, which no thread holds while an SDFG runs on the CPU. If a call cannot be recorded,
 * the recorder stops with a message on stderr; the calls themselves continue. If arrays on a GPU cannot be copied, it
 * stops for this program alone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/names.h"
#include "base/new.h"
#include "observers/record/archive.h"
#include "observers/record/snapshot.h"

static struct {
    bool is_on;
    char *wanted;         /* a list of names; NULL: all programs are recorded */
    uint64_t first, last; /* calls of each program to record, counted from 1 */
    gts_recorder_program *programs;
} recorder;

GTS_LOCK(lock)

/* ---- Selecting programs and calls ------------------------------------------------------------------------------ */

/* Reads a number of a range, or returns `open` if there is none; *rest is the text after it. */
static uint64_t read_number(const char *text, uint64_t open, const char **rest)
{
    char *end = (char *)text;
    const bool is_number = *text >= '0' && *text <= '9'; /* strtoull() would accept a sign and blanks */
    const uint64_t number = is_number ? strtoull(text, &end, 10) : open;
    *rest = end;
    return number;
}

static bool read_calls(const char *text)
{
    const char *rest;
    recorder.first = read_number(text, 1, &rest);
    recorder.last = rest == text ? UINT64_MAX : recorder.first;
    if (strncmp(rest, "..", 2) == 0)
        recorder.last = read_number(rest + 2, UINT64_MAX, &rest);
    return *rest == '\0' && recorder.first > 0 && recorder.first <= recorder.last;
}

static void begin(void)
{
    recorder.is_on = true;
    gts_add_attention(1);
}

/* The value of an environment variable; NULL if it is not set or empty. */
static const char *variable(const char *name)
{
    const char *const value = getenv(name);
    return value == NULL || *value == '\0' ? NULL : value;
}

static void read_environment(void)
{
    const char *const directory = variable("GTSTUB_RECORD");
    const char *const calls = variable("GTSTUB_RECORD_CALLS");
    const char *const programs = variable("GTSTUB_RECORD_PROGRAMS");
    if (directory == NULL)
        return;
    recorder.wanted = programs == NULL ? NULL : gts_new_text("%s", programs);
    if (!read_calls(calls == NULL ? "" : calls))
        fprintf(
            stderr,
            "Nothing is recorded: GTSTUB_RECORD_CALLS must be 'N', 'N..M', 'N..' or '..M', counted from 1, not '%s'.\n",
            calls);
    else if (!gts_archive_choose(directory))
        fprintf(stderr, "Nothing is recorded: directory '%s' cannot be created: %s.\n", directory, strerror(errno));
    else
        begin();
}

/* A name that no other program of the recording has. */
static char *new_id(const char *name)
{
    unsigned int number = 1;
    for (const gts_recorder_program *other = recorder.programs; other != NULL; other = other->next)
        number += strcmp(other->stub->name, name) == 0;
    return number == 1 ? gts_new_text("%s", name) : gts_new_text("%s-%u", name, number);
}

static gts_recorder_program *find_or_make(const gts_stub *stub)
{
    for (gts_recorder_program *known = recorder.programs; known != NULL; known = known->next) {
        if (strcmp(known->stub->name, stub->name) == 0 &&
            strcmp(known->stub->program_digest, stub->program_digest) == 0 &&
            strcmp(known->stub->sdfg_digest, stub->sdfg_digest) == 0)
            return known;
    }
    gts_recorder_program *const made = gts_new(1, sizeof *made);
    *made = (gts_recorder_program){
        .next = recorder.programs, .stub = stub, .id = new_id(stub->name), .has_ended = gts_has_callbacks(stub)};
    if (made->has_ended)
        fprintf(stderr, "Program '%s' is not recorded: it calls functions of its host.\n", stub->name);
    return recorder.programs = made;
}

static void load(gts_program *self, void *library)
{
    const gts_stub *const stub = self->stub;
    (void)library;
    pthread_mutex_lock(&lock);
    if (recorder.is_on && recorder.wanted != NULL)
        gts_archive_note_program(stub->name);
    const bool is_recorded = recorder.is_on && (recorder.wanted == NULL || gts_has_name(recorder.wanted, stub->name));
    *(gts_recorder_program **)gts_observed(self, gts_recorder_offset) = is_recorded ? find_or_make(stub) : NULL;
    pthread_mutex_unlock(&lock);
}

/* ---- Calls on a GPU -------------------------------------------------------------------------------------------- */

/* Whether the arguments of this call can be copied; says once on stderr why not. */
static bool can_be_copied(const gts_program *self)
{
    gts_recorder_program *const program = gts_recorder_of(self);
    const gts_contract *leaf = self->stub->leaves, *const end = leaf + self->stub->leaf_count;
    while (leaf < end && (!gts_is_array(leaf->kind) || leaf->device == GTS_CPU))
        ++leaf;
    if (leaf == end)
        return true;
    if (gts_gpu_functions(self) == NULL) {
        program->has_ended = true;
        fprintf(stderr,
                "Program '%s' is not recorded: its argument '%s' is on device '%s', and no program has been loaded "
                "whose kernels run there.\n",
                self->stub->name, leaf->path, gts_device_name(leaf->device));
        return false;
    }
    if (!gts_stream_is_captured(self))
        return true;
    if (!program->was_captured)
        fprintf(stderr, "Captured calls of program '%s' are not recorded: they run when the graph is launched.\n",
                self->stub->name);
    program->was_captured = true;
    return false;
}

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

/*
 * Ends the recording: of this program, if its arguments could not be copied from the GPU; otherwise of all programs, and
 * errno is the reason.
 */
static void stop(const gts_program *self, const gts_recorder_call *call, uint64_t number)
{
    const int reason = errno;
    const char *const name = self->stub->name;
    gts_archive_give_up();
    if (call->gpu_error != 0) {
        gts_recorder_of(self)->has_ended = true;
        fprintf(stderr,
                "The recording of program '%s' ends before call %" PRIu64 ", because its arguments cannot be "
                "copied from the GPU: %s. All calls before it can be replayed.\n",
                name, number, gts_cuda_describe(gts_gpu_functions(self), call->gpu_error).text);
    } else {
        recorder.is_on = false;
        gts_add_attention(-1);
        fprintf(stderr,
                "The recording ends before call %" PRIu64 " of program '%s', because '%s' cannot be written: %s. "
                "All calls before it can be replayed.\n",
                number, name, gts_archive_path(), strerror(reason));
    }
}

/* Whether a call may be recorded, or one after it. The caller holds the lock. */
static bool counts_call(const gts_recorder_program *program, uint64_t number)
{
    return recorder.is_on && !program->has_ended && number <= recorder.last;
}

static void enter_recorded(gts_program *self)
{
    const gts_recorder_program *const program = gts_recorder_of(self);
    if (program == NULL)
        return;
    pthread_mutex_lock(&lock);
    const uint64_t number = program->calls + 1;
    const bool counts = counts_call(program, number);
    const bool records = counts && number >= recorder.first;
    pthread_mutex_unlock(&lock);
    if (records)
        gts_forget_arrays(self); /* so that the call reads all arrays, also those that the SDFG does not take */
    self->has_extra_work |= counts;
}

/* Records the arguments before the SDFG runs. Returns NULL if this call is not recorded. */
static gts_recorder_call *before(gts_program *self)
{
    pthread_mutex_lock(&lock);
    gts_recorder_call *call = NULL;
    gts_recorder_program *const program = gts_recorder_of(self);
    const uint64_t number = ++program->calls;
    if (counts_call(program, number) && number >= recorder.first && can_be_copied(self)) {
        call = gts_new(1, sizeof *call + self->stub->leaf_count * sizeof *call->values);
        call->number = number;
        if (!gts_snapshot_before(self, call)) {
            stop(self, call, number);
            free(call);
            call = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return call;
}

/* Records the results, if the SDFG has run, and frees `call`. */
static void after(gts_program *self, gts_recorder_call *call, bool has_run)
{
    pthread_mutex_lock(&lock);
    if (has_run && recorder.is_on && !gts_snapshot_after(self, call))
        stop(self, call, call->number);
    pthread_mutex_unlock(&lock);
    free(call);
}

static int run(gts_program *self, gts_observers rest)
{
    gts_recorder_call *const call = gts_recorder_of(self) == NULL ? NULL : before(self);
    const int status = gts_run_observed(self, rest);
    if (call != NULL)
        after(self, call, status == 0);
    return status;
}

/* Forgets the recording in a forked child, which begins its own. */
static void after_fork(void)
{
    gts_archive_forget();
    recorder.programs = NULL;
    gts_snapshot_forget();
    if (recorder.is_on)
        begin();
}

const gts_observer gts_recorder_observer = {
    .size = sizeof(gts_recorder_program *),
    .offset = &gts_recorder_offset,
    .read_environment = read_environment,
    .load = load,
    .enter = enter_recorded,
    .run = run,
    .after_fork = after_fork,
};
