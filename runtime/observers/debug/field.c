/* One field of a call that is checked: where it is, its traced values, and what is said of values that are refused. */
#define _GNU_SOURCE
#include "observers/debug/checked.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/refuse.h"
#include "base/strided.h"
#include "program/counting.h"

/* ---- Fields on a GPU ------------------------------------------------------------------------------------------- */

int gts_checked_to_host(gts_program *self, gts_checked *checked, const char *name, gts_array *array)
{
    const gts_cuda *const cuda = gts_gpu_functions(self);
    if (array->device == GTS_CPU)
        return 0;
    if (cuda == NULL) {
        if (!checked->was_elsewhere)
            fprintf(stderr,
                    "Argument '%s' of program '%s' is not checked: it is on device '%s', and no program has been "
                    "loaded whose kernels run there.\n",
                    name, self->stub->name, gts_device_name(array->device));
        checked->was_elsewhere = true;
        return 1;
    }
    gts_range memory;
    if (!gts_find_range(array, &memory) || !gts_buffer_reserve(&checked->copy, memory.high - memory.low))
        return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR, "cannot be checked: out of memory.");
    if (memory.size == 0)
        return 0;
    const int error = gts_cuda_copy(cuda, self->runtime->gpu.stream, checked->copy.bytes, (void *)memory.low,
                                    memory.high - memory.low, true);
    if (error != 0) {
        GTS_TRY(gts_gpu_wait(self)); /* which names the program after which the GPU runs nothing */
        return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR, "cannot be checked: '%s' cannot be copied from the GPU: %s.",
                                  name, gts_cuda_describe(cuda, error).text);
    }
    array->data = checked->copy.bytes + memory.lead;
    return 0;
}

int gts_checked_array(gts_program *self, gts_checked *checked, uint32_t index, gts_array *array)
{
    *array = *gts_array_of(self, index);
    return gts_checked_to_host(self, checked, self->stub->leaves[index].path, array);
}

/* ---- Trace ----------------------------------------------------------------------------------------------------- */

/* Makes an index of the host of one of gt4py, or the other way round. */
static void convert_index(const gts_program *self, uint32_t leaf, const gts_array *array, const int64_t *from,
                          bool to_host, int64_t *to)
{
    for (int32_t axis = 0; axis < array->rank; ++axis) {
        const int64_t shift = gts_index_shift(self, leaf, array, axis);
        to[axis] = to_host ? from[axis] + shift : from[axis] - shift;
    }
}

static void print_value(const gts_program *self, gts_checked *checked, uint32_t index, const gts_trace *trace,
                        const gts_array *array, const char *when)
{
    const gts_contract *const contract = &self->stub->leaves[index];
    const gts_short_text place = gts_place_text(self, index, trace->index);
    char value[64];
    int64_t offset, traced[GTS_MAX_RANK];
    convert_index(self, index, array, trace->index, false, traced);
    if (gts_scan_offset(array, traced, &offset)) {
        const char *const element = (const char *)array->data + offset * (int64_t)gts_dtype_size(array->dtype);
        gts_element_text(array->dtype, element, value, sizeof value);
        fprintf(stderr, "Call %" PRIu64 " of program '%s', %s: argument '%s' is %s at %s.\n", checked->calls,
                self->stub->name, when, contract->path, value, place.text);
    } else if (!checked->fields[index].lacks_index) {
        checked->fields[index].lacks_index = true;
        fprintf(stderr, "Argument '%s' of program '%s' has no element at %s for check '%s'.\n", contract->path,
                self->stub->name, place.text, trace->fields.item);
    }
}

int gts_checked_trace(gts_program *self, gts_checked *checked, uint32_t first, uint32_t end, const char *when)
{
    for (uint32_t i = 0; i < checked->checks->trace_count; ++i) {
        const gts_trace *const trace = &checked->checks->traces[i];
        for (uint32_t index = first; index < end; ++index) {
            gts_array array;
            if (!gts_checked_is_field(self, index) || self->stub->leaves[index].rank != trace->rank)
                continue;
            const int status = gts_checked_array(self, checked, index, &array);
            if (status < 0)
                return -1;
            if (status == 0)
                print_value(self, checked, index, trace, &array, when);
        }
    }
    return 0;
}

/* ---- Values ---------------------------------------------------------------------------------------------------- */

static void describe(const gts_program *self, uint32_t index, const gts_array *array, const gts_rule *rule,
                     const gts_finding *finding, const char *what, gts_error *error)
{
    const gts_contract *const contract = &self->stub->leaves[index];
    const char *const path = contract->path, *const name = self->stub->name, *const item = rule->fields.item;
    char value[64];
    int64_t shown[GTS_MAX_RANK];
    convert_index(self, index, array, finding->index, true, shown);
    const gts_short_text where = gts_place_text(self, index, shown);
    const char *const place = where.text;
    gts_element_text(array->dtype, finding->element, value, sizeof value);
    if (what == NULL)
        gts_error_set(error, GTS_RUNTIME_ERROR,
                      GTS_ARGUMENT "is %s at %s before the call; check '%s' refuses %" PRIu64 " of %" PRIu64
                                   " elements.",
                      path, name, value, place, item, finding->count, finding->total);
    else if (finding->count == finding->old_count)
        gts_error_set(error, GTS_RUNTIME_ERROR,
                      GTS_ARGUMENT "is %s at %s before and after the call; check '%s' refuses %" PRIu64 " of %" PRIu64
                                   " elements.",
                      path, name, value, place, item, finding->count, finding->total);
    else
        gts_error_set(error, GTS_RUNTIME_ERROR,
                      GTS_ARGUMENT "is %s at %s after %s; check '%s' refuses %" PRIu64 " of %" PRIu64
                                   " elements, %" PRIu64 " of them also before the call.",
                      path, name, value, place, what, item, finding->count, finding->total, finding->old_count);
}

int gts_checked_report(gts_program *self, gts_checked *checked, uint32_t index, const gts_array *array,
                       const char *what, bool is_for_new)
{
    for (uint32_t i = 0; i < checked->checks->rule_count; ++i) {
        const gts_rule *const rule = &checked->checks->rules[i];
        bool *const applies = &gts_checked_rules(checked, index)[i];
        if (!*applies)
            continue;
        const gts_finding finding = gts_scan_find(array, rule->limits, checked->fields[index].before);
        if (finding.count == 0 || (is_for_new && finding.count == finding.old_count))
            continue;
        gts_error error;
        describe(self, index, array, rule, &finding, what, &error);
        if (!checked->checks->warns) {
            self->error = error;
            return -1;
        }
        fprintf(stderr, "%s\n", error.message);
        *applies = false;
    }
    gts_checked_join_limits(checked, index);
    return 0;
}
