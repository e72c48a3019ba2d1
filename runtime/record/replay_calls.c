/* Makes recorded calls again, alone or as a step: restores their arguments, calls the program and compares the results. */
#include <stdlib.h>

#include "base/error.h"
#include "base/refuse.h"
#include "gtstub/step.h"
#include "record/replay.h"
#include "record/transfer.h"

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

/* An argument of a call that is made again. */
typedef struct staged_value {
    void *memory; /* of all arguments whose gts_archive_value.memory is the number of this one */
    void *copy;   /* of `memory`, on the GPU; NULL where the program takes no array from there */
    gts_array array;
} staged_value;

/* The arguments of one call, and the call's `struct <name>_args`. */
typedef struct stage {
    staged_value *values; /* [call->program->leaf_count] */
    void *args;
} stage;

static void clear(stage *stage, const gts_program *program, uint32_t count)
{
    for (uint32_t i = 0; stage->values != NULL && i < count; ++i) {
        gts_transfer_free(program, stage->values[i].copy); /* before the memory that is being copied */
        free(stage->values[i].memory);
    }
    free(stage->values);
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
    stage->values = calloc(count + 1, sizeof *stage->values);
    stage->args = calloc(1, program->stub->args_size);
    bool has_memory = stage->values != NULL && stage->args != NULL;
    for (uint32_t i = 0; has_memory && i < count; ++i) {
        stage->values[i].memory = calloc(1, memory_size(call, i) + 1);
        has_memory = stage->values[i].memory != NULL;
    }
    if (!has_memory)
        return gts_replay_refuse_memory(call, &program->error);
    for (uint32_t i = 0; i < count; ++i) {
        const gts_archive_value *const value = &call->values[i];
        gts_array *const array = &stage->values[i].array;
        *array = value->array;
        array->data = (char *)stage->values[value->memory].memory + value->offset;
        void *packed;
        if (gts_replay_read_value(self, call, i, value->before, &packed, &program->error) != 0)
            return -1;
        gts_unpack(array, packed);
        free(packed);
    }
    return 0;
}

/* Copies the memory of an array to the GPU, unless another array has done it, and changes the array to be there. */
static int put_on_gpu(const gts_archive_value *value, const gts_archive_call *call, const stage *stage,
                      gts_program *program, const gts_contract *leaf, gts_array *array)
{
    staged_value *const owner = &stage->values[value->memory];
    if (owner->copy == NULL &&
        gts_transfer_put(program, leaf, owner->memory, memory_size(call, value->memory), &owner->copy) != 0)
        return -1;
    array->data = (char *)owner->copy + value->offset;
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
        return GTS_REFUSE_PROGRAM(program, GTS_VALUE_ERROR,
                                  "takes argument '%s', which is not in the recording, or is of another kind there: it "
                                  "is not the program that was recorded.",
                                  leaf->path);
    gts_array array = stage->values[i].array;
    if (leaf->kind == GTS_STATIC) {
        if (memcmp(leaf->value, array.data, gts_dtype_size(leaf->dtype)) == 0)
            return 0;
        return GTS_REFUSE(program, leaf, GTS_VALUE_ERROR, "was compiled in with another value than the recorded one.");
    }
    if (leaf->kind == GTS_CONNECTIVITY && program->leaf[index].index_base == 1)
        return GTS_REFUSE_TABLE(program, leaf, GTS_VALUE_ERROR,
                                "has index base 1, but recorded tables count from 0; open "
                                "the program anew.");
    program->leaf[index].is_base_known = true;
    char *const member = (char *)stage->args + leaf->member;
    if (!gts_is_array(leaf->kind))
        (void)memcpy(member, array.data, gts_dtype_size(leaf->dtype));
    else if (leaf->device != GTS_CPU && put_on_gpu(&call->values[i], call, stage, program, leaf, &array) != 0)
        return -1;
    else
        (void)memcpy(member, &array, sizeof array);
    return 0;
}

/* Restores all arguments, and fills the `struct <name>_args` of the stage. The caller clears the stage, also after -1. */
static int prepare(const gts_replay *self, const gts_archive_call *call, stage *stage, gts_program *program)
{
    if (strcmp(call->program->name, program->stub->name) != 0)
        return gts_error_set(&program->error, GTS_VALUE_ERROR,
                             "A call of program '%s' was recorded; it cannot be replayed on '%s'.", call->program->name,
                             program->stub->name);
    if (set_up(self, call, stage, program) != 0)
        return -1;
    for (uint32_t i = 0; i < program->stub->leaf_count; ++i) {
        if (pass(call, stage, program, i) != 0)
            return -1;
    }
    return 0;
}

/* The number of fields that differ by more than is tolerated, or -1. */
static int compare(gts_replay *self, const gts_archive_call *call, const stage *stage, gts_program *program)
{
    int differing = 0;
    for (uint32_t i = 0; i < call->program->leaf_count; ++i) {
        const staged_value *const value = &stage->values[i];
        if (value->copy != NULL && gts_transfer_get(program, value->memory, value->copy, memory_size(call, i)) != 0)
            return -1;
    }
    for (uint32_t i = 0; i < call->program->leaf_count; ++i) {
        if (call->values[i].after < 0)
            continue;
        const int found = gts_replay_compare_field(self, call, i, &stage->values[i].array, &program->error);
        if (found < 0)
            return -1;
        differing += found;
    }
    return differing;
}

static GTS_COLD int refuse_closed(void)
{
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "The program is not open: it was closed, or never opened.");
}

int gts_replay_call(gts_replay *self, size_t index, gts_program *program)
{
    if (program == NULL)
        return refuse_closed();
    const gts_archive_call *const call = gts_replay_find_call(self, index, &program->error);
    if (call == NULL)
        return -1;
    stage stage = {0};
    int status = prepare(self, call, &stage, program);
    if (status == 0)
        status = program->stub->call(program, stage.args);
    if (status == 0)
        status = compare(self, call, &stage, program);
    clear(&stage, program, call->program->leaf_count);
    return status;
}

/* ---- Steps ----------------------------------------------------------------------------------------------------- */

/* A call of a step. */
typedef struct staged {
    const gts_archive_call *call; /* NULL before it is staged */
    gts_program *program;
    stage stage;
    gts_bound_call *bound;
} staged;

static int bind_call(const gts_replay *self, size_t index, staged *one)
{
    if (one->program == NULL)
        return refuse_closed();
    one->call = gts_replay_find_call(self, index, &gts_own_error);
    if (one->call == NULL)
        return -1;
    if (prepare(self, one->call, &one->stage, one->program) == 0 &&
        gts_bind(one->program, one->stage.args, &one->bound) == 0)
        return 0;
    gts_own_error = *gts_last_error(one->program);
    return -1;
}

static int run_step(const staged *calls, size_t count)
{
    gts_action *const actions = calloc(count + 1, sizeof *actions);
    if (actions == NULL)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Out of memory.");
    for (size_t i = 0; i < count; ++i)
        actions[i].call = calls[i].bound;
    gts_step *step;
    int status = gts_step_new("replay", actions, count, &step);
    free(actions);
    if (status == 0)
        status = gts_step_run(step);
    (void)gts_step_free(&step);
    return status;
}

static int replay_staged(gts_replay *self, const size_t *calls, staged *all, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        if (bind_call(self, calls[i], &all[i]) != 0)
            return -1;
    }
    if (run_step(all, count) != 0)
        return -1;
    int differing = 0;
    for (size_t i = 0; i < count; ++i) {
        const int found = compare(self, all[i].call, &all[i].stage, all[i].program);
        if (found < 0) {
            gts_own_error = *gts_last_error(all[i].program);
            return -1;
        }
        differing += found;
    }
    return differing;
}

int gts_replay_step(gts_replay *self, const size_t *calls, gts_program *const *programs, size_t count)
{
    staged *const all = calloc(count + 1, sizeof *all);
    if (all == NULL)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Out of memory.");
    for (size_t i = 0; i < count; ++i)
        all[i].program = programs[i];
    const int status = replay_staged(self, calls, all, count);
    for (size_t i = 0; i < count && all[i].call != NULL; ++i) {
        gts_unbind(&all[i].bound);
        clear(&all[i].stage, all[i].program, all[i].call->program->leaf_count);
    }
    free(all);
    return status;
}
