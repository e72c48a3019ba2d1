/* Makes recorded calls again: restores their arguments in memory, calls the program and compares the results. */
#define _GNU_SOURCE
#include "gtstub/replay.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/refuse.h"
#include "record/archive.h"
#include "record/report.h"
#include "record/transfer.h"

struct gts_replay {
    char *path;
    gts_archive_index index;
    uint64_t tolerance; /* for arguments without their own */
    gts_findings findings;
    struct worst {
        const gts_archive_call *call;
        uint32_t leaf;
        uint64_t ulp; /* 0 if no field has differed yet */
        void *found;  /* packed */
    } worst;
};

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

/* The call of this number; NULL with an error if there is none. */
static const gts_archive_call *find_call(const gts_replay *self, size_t call, gts_error *error)
{
    if (call < self->index.call_count)
        return self->index.calls[call];
    (void)gts_error_set(error, GTS_VALUE_ERROR, "The recording has %zu calls, counted from 0, and no call %zu.",
                        self->index.call_count, call);
    return NULL;
}

const char *gts_replay_program(const gts_replay *self, size_t call)
{
    const gts_archive_call *const found = find_call(self, call, &gts_own_error);
    return found == NULL ? NULL : found->program->name;
}

bool gts_replay_is_of(const gts_replay *self, size_t call, const gts_program *program)
{
    const gts_archive_call *const found = find_call(self, call, &gts_own_error);
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

static GTS_COLD int refuse_memory(const gts_archive_call *call, gts_error *error)
{
    return gts_error_set(error, GTS_RUNTIME_ERROR, "Out of memory while replaying program '%s'.", call->program->name);
}

/* Reads the packed value of an argument from offset `place` of its store into memory to be freed with free(). */
static int read_value(const gts_replay *self, const gts_archive_call *call, uint32_t leaf, int64_t place, void **packed,
                      gts_error *error)
{
    const gts_archive_program *const program = call->program;
    const gts_archive_value *const value = &call->values[leaf];
    char name[PATH_MAX], path[PATH_MAX];
    *packed = malloc(value->size + 1);
    if (*packed == NULL)
        return refuse_memory(call, error);
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

/* Compares a field with its recorded result. Returns 0, 1 if it differs by more than is tolerated, or -1. */
static int compare(gts_replay *self, const gts_archive_call *call, uint32_t leaf, const gts_array *found,
                   gts_error *error)
{
    const gts_archive_leaf *const recorded = &call->program->leaves[leaf];
    const gts_archive_value *const value = &call->values[leaf];
    void *expected;
    if (read_value(self, call, leaf, value->after, &expected, error) != 0)
        return -1;
    void *const packed = malloc(value->size + 1);
    if (packed == NULL) {
        free(expected);
        return refuse_memory(call, error);
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
    const gts_archive_call *const call = find_call(self, index, &gts_own_error);
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
        return compare(self, call, leaf, found, &gts_own_error);
    gts_array copied = *found;
    char *memory = NULL;
    int status = gts_transfer_array(call->program->name, argument, &copied, &memory);
    if (status == 0)
        status = compare(self, call, leaf, &copied, &gts_own_error);
    free(memory);
    return status;
}

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

/* The memory of the arguments of one call, and the call's `struct <name>_args`. */
typedef struct stage {
    void **memories; /* [call->program->leaf_count] */
    void **copies;   /* of memories, on the GPU; NULL where the program takes no array from there */
    gts_array *arrays;
    void *args;
} stage;

static void clear(stage *stage, const gts_program *program, uint32_t count)
{
    for (uint32_t i = 0; stage->copies != NULL && i < count; ++i)
        gts_transfer_free(program, stage->copies[i]); /* before the memory that is being copied */
    for (uint32_t i = 0; stage->memories != NULL && i < count; ++i)
        free(stage->memories[i]);
    free(stage->memories);
    free(stage->copies);
    free(stage->arrays);
    free(stage->args);
}

/* The bytes that the values of one memory need. */
static size_t memory_size(const gts_archive_call *call, uint32_t memory)
{
    int64_t high = 0;
    for (uint32_t i = 0; i < call->program->leaf_count; ++i) {
        const gts_archive_value *const value = &call->values[i];
        if (value->memory == memory && value->offset + value->extent.high > high)
            high = value->offset + value->extent.high;
    }
    return (size_t)high;
}

/* Restores all arguments as they were before the call. */
static int set_up(const gts_replay *self, const gts_archive_call *call, stage *stage, gts_program *program)
{
    const uint32_t count = call->program->leaf_count;
    stage->memories = calloc(count + 1, sizeof *stage->memories);
    stage->copies = calloc(count + 1, sizeof *stage->copies);
    stage->arrays = calloc(count + 1, sizeof *stage->arrays);
    stage->args = calloc(1, program->stub->args_size);
    bool has_memory = stage->memories != NULL && stage->copies != NULL && stage->arrays != NULL && stage->args != NULL;
    for (uint32_t i = 0; has_memory && i < count; ++i) {
        stage->memories[i] = calloc(1, memory_size(call, i) + 1);
        has_memory = stage->memories[i] != NULL;
    }
    if (!has_memory)
        return refuse_memory(call, &program->error);
    for (uint32_t i = 0; i < count; ++i) {
        const gts_archive_value *const value = &call->values[i];
        stage->arrays[i] = value->array;
        stage->arrays[i].data = (char *)stage->memories[value->memory] + value->offset;
        void *packed;
        if (read_value(self, call, i, value->before, &packed, &program->error) != 0)
            return -1;
        gts_unpack(&stage->arrays[i], packed);
        free(packed);
    }
    return 0;
}

/* Copies the memory of an array to the GPU, unless another array has done it, and changes the array to be there. */
static int put_on_gpu(const gts_archive_value *value, const gts_archive_call *call, const stage *stage,
                      gts_program *program, const gts_contract *leaf, gts_array *array)
{
    void **const copy = &stage->copies[value->memory];
    if (*copy == NULL &&
        gts_transfer_put(program, leaf, stage->memories[value->memory], memory_size(call, value->memory), copy) != 0)
        return -1;
    array->data = (char *)*copy + value->offset;
    array->device = leaf->device;
    return 0;
}

/* Copies one argument to `struct <name>_args`. The stub will check arrays; all else is checked here. */
static int pass(const gts_archive_call *call, const stage *stage, gts_program *program, uint32_t index)
{
    const gts_contract *const leaf = &program->stub->leaves[index];
    const gts_archive_program *const recorded = call->program;
    uint32_t i = 0;
    while (i < recorded->leaf_count && strcmp(recorded->leaves[i].name, leaf->name) != 0)
        ++i;
    if (i == recorded->leaf_count || gts_is_array(leaf->kind) != gts_is_array(recorded->leaves[i].kind) ||
        (!gts_is_array(leaf->kind) && leaf->dtype != recorded->leaves[i].dtype))
        return gts_error_set(&program->error, GTS_VALUE_ERROR,
                             "Program '%s' takes argument '%s', which is not in the recording, or is of another kind "
                             "there: it is not the program that was recorded.",
                             program->stub->name, leaf->path);
    gts_array array = stage->arrays[i];
    if (leaf->kind == GTS_STATIC) {
        if (memcmp(leaf->value, array.data, gts_dtype_size(leaf->dtype)) == 0)
            return 0;
        return GTS_REFUSE(program, leaf, GTS_VALUE_ERROR, "was compiled in with another value than the recorded one.");
    }
    if (leaf->kind == GTS_CONNECTIVITY && program->leaf[index].index_base == 1)
        return GTS_REFUSE_TABLE(program, leaf, GTS_VALUE_ERROR,
                                "has index base 1, but recorded tables count from 0; open "
                                "the program anew.");
    char *const member = (char *)stage->args + leaf->member;
    if (!gts_is_array(leaf->kind))
        (void)memcpy(member, array.data, gts_dtype_size(leaf->dtype));
    else if (leaf->device != GTS_CPU && put_on_gpu(&call->values[i], call, stage, program, leaf, &array) != 0)
        return -1;
    else
        (void)memcpy(member, &array, sizeof array);
    return 0;
}

static int call_and_compare(gts_replay *self, const gts_archive_call *call, const stage *stage, gts_program *program)
{
    const gts_stub *const stub = program->stub;
    for (uint32_t i = 0; i < stub->leaf_count; ++i) {
        if (pass(call, stage, program, i) != 0)
            return -1;
    }
    if (stub->call(program, stage->args) != 0)
        return -1;
    int differing = 0;
    for (uint32_t i = 0; i < call->program->leaf_count; ++i) {
        if (stage->copies[i] != NULL &&
            gts_transfer_get(program, stage->memories[i], stage->copies[i], memory_size(call, i)) != 0)
            return -1;
    }
    for (uint32_t i = 0; i < call->program->leaf_count; ++i) {
        if (call->values[i].after < 0)
            continue;
        const int found = compare(self, call, i, &stage->arrays[i], &program->error);
        if (found < 0)
            return -1;
        differing += found;
    }
    return differing;
}

int gts_replay_call(gts_replay *self, size_t index, gts_program *program)
{
    if (program == NULL)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                             "The program is not open: it was closed, or never opened.");
    const gts_archive_call *const call = find_call(self, index, &program->error);
    if (call == NULL)
        return -1;
    if (strcmp(call->program->name, program->stub->name) != 0)
        return gts_error_set(&program->error, GTS_VALUE_ERROR,
                             "A call of program '%s' was recorded; it cannot be replayed on '%s'.", call->program->name,
                             program->stub->name);
    stage stage = {0};
    int status = set_up(self, call, &stage, program);
    if (status == 0)
        status = call_and_compare(self, call, &stage, program);
    clear(&stage, program, call->program->leaf_count);
    return status;
}
