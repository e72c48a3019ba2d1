/*
 * Writes the arguments of one call to the archive, before and after the call, and then the call to the index. Arrays on
 * a GPU are copied to the host first, on the stream of the program: behind the work whose results they are.
 */
#define _GNU_SOURCE
#include "observers/record/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/new.h"

size_t gts_recorder_offset;

static gts_buffer packed; /* that a value is packed into */
static gts_buffer copies; /* of the arrays on a GPU */

/* ---- Copies of arrays on a GPU --------------------------------------------------------------------------------- */

/* The bytes of the memory that a value spans, if it must be copied; else 0. */
static size_t bytes_to_copy(const gts_program *self, const gts_recorder_call *call, uint32_t index, bool only_written)
{
    const gts_recorder_value *const value = &call->values[index];
    const bool is_copied = value->array.device != GTS_CPU && (!only_written || self->stub->leaves[index].written);
    return is_copied ? value->range.high - value->range.low : 0;
}

/* Copies the arrays that are on a GPU, or those of them that the call writes, and waits for the stream once. */
static bool copy_to_host(gts_program *self, gts_recorder_call *call, bool only_written)
{
    size_t size = 0;
    for (uint32_t i = 0; i < self->stub->leaf_count; ++i)
        size += bytes_to_copy(self, call, i, only_written);
    if (size > 0 && !gts_buffer_reserve(&copies, size))
        return false;
    char *place = copies.bytes;
    for (uint32_t i = 0; i < self->stub->leaf_count && call->gpu_error == 0; ++i) {
        gts_recorder_value *const value = &call->values[i];
        const size_t bytes = bytes_to_copy(self, call, i, only_written);
        if (bytes == 0)
            continue;
        size -= bytes;
        call->gpu_error = gts_cuda_copy(gts_gpu_functions(self), self->runtime->gpu.stream, place,
                                        (void *)value->range.low, bytes, size == 0);
        value->host = place + value->range.lead;
        place += bytes;
    }
    return call->gpu_error == 0;
}

/* ---- Values ---------------------------------------------------------------------------------------------------- */

/* The argument of a leaf in this call; a scalar becomes an array without axes. */
static gts_array array_of(gts_program *self, uint32_t index)
{
    const gts_contract *const leaf = &self->stub->leaves[index];
    if (gts_is_array(leaf->kind))
        return self->leaf[index].current->array;
    void *const place = leaf->kind == GTS_STATIC ? (void *)leaf->value : (char *)self->slots + leaf->slot;
    return (gts_array){.data = place, .dtype = leaf->dtype, .device = GTS_CPU};
}

static gts_store *find_store(gts_recorder_program *program, uint32_t leaf, const gts_array *array)
{
    unsigned int number = 1;
    for (gts_store *store = program->stores; store != NULL; store = store->next) {
        if (store->leaf != leaf)
            continue;
        if (memcmp(store->shape, array->shape, (size_t)array->rank * sizeof *array->shape) == 0)
            return store;
        ++number;
    }
    gts_store *const store = gts_new(1, sizeof *store);
    *store = (gts_store){.next = program->stores, .leaf = leaf, .number = number, .last = -1};
    memcpy(store->shape, array->shape, sizeof store->shape);
    return program->stores = store;
}

/* Writes the current contents of a value to its store. Returns the offset in bytes; -1 with errno. */
static int64_t put(gts_recorder_program *program, uint32_t leaf, gts_recorder_value *value)
{
    if (value->store == NULL)
        value->store = find_store(program, leaf, &value->array);
    if (!gts_buffer_reserve(&packed, value->range.size))
        return -1;
    gts_array array = value->array;
    array.data = value->host;
    gts_pack(&array, packed.bytes);
    return gts_archive_put(value->store, program->id, program->stub->leaves[leaf].name, packed.bytes,
                           value->range.size);
}

/* Joins two spans, and with them all spans that were joined with either before. */
static void join(gts_recorder_value *values, uint32_t count, gts_span a, gts_span b)
{
    const gts_span both = {a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high,
                           a.memory < b.memory ? a.memory : b.memory};
    for (uint32_t i = 0; i < count; ++i) {
        if (values[i].span.memory == a.memory || values[i].span.memory == b.memory)
            values[i].span = both;
    }
}

static void join_overlapping(gts_recorder_value *values, uint32_t count)
{
    for (uint32_t i = 1; i < count; ++i) {
        for (uint32_t j = 0; j < i; ++j) {
            const gts_span a = values[i].span, b = values[j].span;
            if (a.memory != b.memory && a.low < b.high && b.low < a.high) {
                join(values, count, a, b);
                i = 0; /* the larger span may overlap others */
                break;
            }
        }
    }
}

/* ---- Lines of the index ---------------------------------------------------------------------------------------- */

static void print_program(FILE *out, const gts_recorder_program *program)
{
    const gts_stub *const stub = program->stub;
    fprintf(out, "program\t%s\t%s\t%s\t%s\t%" PRIu32 "\n", program->id, stub->name, stub->program_digest,
            stub->sdfg_digest, stub->leaf_count);
    for (uint32_t i = 0; i < stub->leaf_count; ++i) {
        const gts_contract *const leaf = &stub->leaves[i];
        fprintf(out, "leaf\t%s\t%s\t%s\t%s\t%d\t%" PRId32, leaf->name, leaf->path, gts_kind_names[leaf->kind],
                gts_dtype_name(leaf->dtype), leaf->written, leaf->rank);
        for (int32_t axis = 0; axis < leaf->rank; ++axis)
            fprintf(out, "\t%s", leaf->axes[axis].dim);
        if (leaf->kind == GTS_CONNECTIVITY)
            fprintf(out, "\t%s\t%d", leaf->codomain, leaf->has_skip_values);
        fputc('\n', out);
    }
}

static void print_numbers(FILE *out, const int64_t *numbers, int32_t count)
{
    for (int32_t i = 0; i < count; ++i)
        fprintf(out, "\t%" PRId64, numbers[i]);
}

static void print_call(FILE *out, const gts_recorder_program *program, const gts_recorder_call *call)
{
    fprintf(out, "call\t%s\t%" PRIu64 "\n", program->id, call->number);
    for (uint32_t i = 0; i < program->stub->leaf_count; ++i) {
        const gts_recorder_value *const value = &call->values[i];
        const gts_array *const array = &value->array;
        fprintf(out, "value\t%u\t%" PRId64 "\t%" PRId64 "\t%" PRIu32 "\t%" PRIu64, value->store->number, value->before,
                value->after, value->span.memory, (uint64_t)((uintptr_t)array->data - value->span.low));
        print_numbers(out, array->shape, array->rank);
        print_numbers(out, array->origin, array->rank);
        print_numbers(out, array->strides, array->rank);
        fputc('\n', out);
    }
}

/* Adds a call to the index, and before it its program if the index does not have it. */
static bool append(gts_recorder_program *program, const gts_recorder_call *call)
{
    char *text = NULL;
    size_t size = 0;
    FILE *const out = open_memstream(&text, &size);
    if (out == NULL)
        return false;
    if (!program->is_announced)
        print_program(out, program);
    print_call(out, program, call);
    const bool is_added = fclose(out) == 0 && gts_archive_append(text, size);
    program->is_announced |= is_added;
    free(text);
    return is_added;
}

/* ---- Before and after -------------------------------------------------------------------------------------------- */

bool gts_snapshot_before(gts_program *self, gts_recorder_call *call)
{
    gts_recorder_program *const program = gts_recorder_of(self);
    const uint32_t count = self->stub->leaf_count;
    if (!gts_archive_make() || (program->stores == NULL && count > 0 && !gts_archive_make_program(program->id)))
        return false;
    for (uint32_t i = 0; i < count; ++i) {
        gts_recorder_value *const value = &call->values[i];
        *value = (gts_recorder_value){.array = array_of(self, i), .after = -1};
        if (!gts_find_range(&value->array, &value->range)) {
            errno = EOVERFLOW;
            return false;
        }
        value->host = value->array.data;
        value->span = (gts_span){value->range.low, value->range.high, i};
    }
    join_overlapping(call->values, count);
    if (!copy_to_host(self, call, false))
        return false;
    for (uint32_t i = 0; i < count; ++i) {
        call->values[i].before = put(program, i, &call->values[i]);
        if (call->values[i].before < 0)
            return false;
    }
    return true;
}

bool gts_snapshot_after(gts_program *self, gts_recorder_call *call)
{
    if (!copy_to_host(self, call, true))
        return false;
    for (uint32_t i = 0; i < self->stub->leaf_count; ++i) {
        if (!self->stub->leaves[i].written)
            continue;
        call->values[i].after = put(gts_recorder_of(self), i, &call->values[i]);
        if (call->values[i].after < 0)
            return false;
    }
    return append(gts_recorder_of(self), call);
}

void gts_snapshot_forget(void)
{
    packed = copies = (gts_buffer){0};
}
