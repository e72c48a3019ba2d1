/* Replays: their archive, the values in it, and comparing them with what was computed. */
#define _GNU_SOURCE
#include "gtstub/replay.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/refuse.h"
#include "record/replay.h"
#include "record/transfer.h"

/* ---- Opening and closing --------------------------------------------------------------------------------------- */

static void free_replay(gts_replay *self)
{
    gts_archive_index_free(&self->index);
    free(self->worst.found);
    free(self->path);
    free(self);
}

int gts_replay_open(const char *path, gts_replay **replay)
{
    *replay = NULL;
    gts_replay *const self = calloc(1, sizeof *self);
    if (self == NULL || (self->path = strdup(path)) == NULL || !gts_findings_begin(&self->findings)) {
        if (self != NULL)
            free_replay(self);
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Out of memory while opening recording '%s'.", path);
    }
    if (gts_archive_index_read(&self->index, path, &gts_own_error) != 0) {
        free(gts_findings_end(&self->findings));
        free_replay(self);
        return -1;
    }
    *replay = self;
    return 0;
}

char *gts_replay_close(gts_replay **replay)
{
    gts_replay *const self = *replay;
    *replay = NULL;
    if (self == NULL)
        return NULL;
    char *const report = gts_findings_end(&self->findings);
    free_replay(self);
    return report;
}

size_t gts_replay_count(const gts_replay *self)
{
    return self->index.call_count;
}

const gts_archive_call *gts_replay_find_call(const gts_replay *self, size_t call, gts_error *error)
{
    if (call < self->index.call_count)
        return self->index.calls[call];
    (void)gts_error_set(error, GTS_VALUE_ERROR, "The recording has %zu calls, counted from 0, and no call %zu.",
                        self->index.call_count, call);
    return NULL;
}

const char *gts_replay_program(const gts_replay *self, size_t call)
{
    const gts_archive_call *const found = gts_replay_find_call(self, call, &gts_own_error);
    return found == NULL ? NULL : found->program->name;
}

bool gts_replay_is_of(const gts_replay *self, size_t call, const gts_program *program)
{
    const gts_archive_call *const found = gts_replay_find_call(self, call, &gts_own_error);
    if (found == NULL || program == NULL)
        return false;
    const gts_archive_program *const recorded = found->program;
    return strcmp(recorded->program_digest, program->stub->program_digest) == 0 &&
           strcmp(recorded->sdfg_digest, program->stub->sdfg_digest) == 0;
}

/* The index of the leaf at `path`; leaf_count if there is none. */
static uint32_t find_path(const gts_archive_program *program, const char *path)
{
    uint32_t i = 0;
    while (i < program->leaf_count && strcmp(program->leaves[i].path, path) != 0)
        ++i;
    return i;
}

int gts_replay_tolerate(gts_replay *self, const char *argument, uint64_t ulp)
{
    if (argument == NULL) {
        self->tolerance = ulp;
        return 0;
    }
    bool is_found = false;
    for (gts_archive_program *program = self->index.programs; program != NULL; program = program->next) {
        const uint32_t i = find_path(program, argument);
        if (i == program->leaf_count)
            continue;
        is_found = program->leaves[i].has_tolerance = true;
        program->leaves[i].tolerance = ulp;
    }
    if (is_found)
        return 0;
    return gts_error_set(&gts_own_error, GTS_VALUE_ERROR, "No program of recording '%s' has an argument '%s'.",
                         self->path, argument);
}

/* ---- Values ---------------------------------------------------------------------------------------------------- */

int gts_replay_refuse_memory(const gts_archive_call *call, gts_error *error)
{
    return gts_error_set(error, GTS_RUNTIME_ERROR, "Out of memory while replaying program '%s'.", call->program->name);
}

int gts_replay_read_value(const gts_replay *self, const gts_archive_call *call, uint32_t leaf, int64_t place,
                          void **packed, gts_error *error)
{
    const gts_archive_program *const program = call->program;
    const gts_archive_value *const value = &call->values[leaf];
    char name[PATH_MAX], path[PATH_MAX];
    *packed = malloc(value->size + 1);
    if (*packed == NULL)
        return gts_replay_refuse_memory(call, error);
    (void)gts_store_path(name, sizeof name, program->id, program->leaves[leaf].name, value->store);
    const int length = snprintf(path, sizeof path, "%s/%s", self->path, name);
    FILE *const file = length < (int)sizeof path ? gts_archive_open(path) : NULL;
    const bool is_read = file != NULL && fseeko(file, place, SEEK_SET) == 0 &&
                         fread(*packed, 1, value->size, file) == value->size;
    if (file != NULL)
        (void)fclose(file);
    if (is_read)
        return 0;
    free(*packed);
    return gts_error_set(error, GTS_RUNTIME_ERROR,
                         "Recording '%s' lacks a value of argument '%s' of program '%s': '%s' cannot be read, or is "
                         "shorter than the index says.",
                         self->path, program->leaves[leaf].path, program->name, name);
}

int gts_replay_compare_field(gts_replay *self, const gts_archive_call *call, uint32_t leaf, const gts_array *found,
                             gts_error *error)
{
    const gts_archive_leaf *const recorded = &call->program->leaves[leaf];
    const gts_archive_value *const value = &call->values[leaf];
    void *expected;
    if (gts_replay_read_value(self, call, leaf, value->after, &expected, error) != 0)
        return -1;
    void *const packed = malloc(value->size + 1);
    if (packed == NULL) {
        free(expected);
        return gts_replay_refuse_memory(call, error);
    }
    gts_pack(found, packed);
    const uint64_t tolerance = recorded->has_tolerance ? recorded->tolerance : self->tolerance;
    const gts_difference difference = gts_compare(recorded->dtype, value->size / gts_dtype_size(recorded->dtype),
                                                  expected, packed, tolerance);
    gts_findings_add(&self->findings, call, leaf, tolerance, &difference, expected, packed);
    free(expected);
    if (difference.ulp > self->worst.ulp) {
        free(self->worst.found);
        self->worst = (struct worst){call, leaf, difference.ulp, packed};
    } else {
        free(packed);
    }
    return difference.beyond > 0;
}

const void *gts_replay_worst(const gts_replay *self, size_t *call, const char **argument)
{
    if (self->worst.ulp == 0)
        return NULL;
    *call = 0;
    while (self->index.calls[*call] != self->worst.call)
        ++*call;
    *argument = self->worst.call->program->leaves[self->worst.leaf].path;
    return self->worst.found;
}

int gts_replay_compare(gts_replay *self, size_t index, const char *argument, const gts_array *found)
{
    const gts_archive_call *const call = gts_replay_find_call(self, index, &gts_own_error);
    if (call == NULL)
        return -1;
    const uint32_t leaf = find_path(call->program, argument);
    if (leaf == call->program->leaf_count || call->values[leaf].after < 0)
        return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                             GTS_ARGUMENT "is not one that the recorded call has written.", argument,
                             call->program->name);
    const gts_array *const recorded = &call->values[leaf].array;
    if (found->dtype != recorded->dtype || found->rank != recorded->rank ||
        memcmp(found->shape, recorded->shape, (size_t)recorded->rank * sizeof *found->shape) != 0)
        return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                             GTS_ARGUMENT "must have the type and the shape that were recorded.", argument,
                             call->program->name);
    if (found->data == NULL && call->values[leaf].size > 0)
        return gts_error_set(&gts_own_error, GTS_VALUE_ERROR, GTS_ARGUMENT "has no memory: its pointer is NULL.",
                             argument, call->program->name);
    if (found->device == GTS_CPU)
        return gts_replay_compare_field(self, call, leaf, found, &gts_own_error);
    gts_array copied = *found;
    char *memory = NULL;
    int status = gts_transfer_array(call->program->name, argument, &copied, &memory);
    if (status == 0)
        status = gts_replay_compare_field(self, call, leaf, &copied, &gts_own_error);
    free(memory);
    return status;
}
