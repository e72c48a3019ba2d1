/*
 * Checks the fields of a call before and after its SDFG.
 *
 * A field that the call only reads is checked before. One that it writes may have any value before, and is checked
 * after the call. If it has values before that are out of bounds, a copy of it tells those from the ones that the call
 * has written. A field on a GPU is copied to the host, on the stream of the program.
 */
#define _GNU_SOURCE
#include "debug/checked.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/layout.h"
#include "base/refuse.h"

/* ---- Fields on a GPU ------------------------------------------------------------------------------------------- */

static int copy_to_host(gts_program *self, gts_checked *checked, const gts_contract *contract, gts_array *array)
{
    const gts_cuda *const cuda = gts_gpu_functions(self);
    void *const stream = self->runtime->gpu.stream;
    size_t size;
    gts_extent extent;
    if (!gts_measure(array, &size, &extent) || !gts_buffer_reserve(&checked->copy, (size_t)(extent.high - extent.low)))
        return GTS_REFUSE(self, contract, GTS_RUNTIME_ERROR, "cannot be checked: out of memory.");
    if (size == 0)
        return 0;
    int error = cuda->memcpy_async(checked->copy.bytes, (char *)array->data + extent.low,
                                   (size_t)(extent.high - extent.low), GTS_CUDA_ANY_DIRECTION, stream);
    if (error == 0)
        error = cuda->stream_synchronize(stream);
    if (error != 0) {
        char text[256];
        gts_cuda_describe(cuda, error, text, sizeof text);
        (void)cuda->get_last_error(); /* the SDFG must not find it */
        GTS_TRY(gts_gpu_wait(self));  /* which names the program after which the GPU runs nothing */
        return GTS_REFUSE(self, contract, GTS_RUNTIME_ERROR, "cannot be copied from the GPU to be checked: %s.", text);
    }
    array->data = checked->copy.bytes - extent.low;
    return 0;
}

/* The array of an argument, in host memory. Returns 1 if it cannot be there, which it says once. */
static int find_array(gts_program *self, gts_checked *checked, uint32_t index, gts_array *array)
{
    const gts_contract *const contract = &self->stub->leaves[index];
    *array = *gts_array_of(self, index);
    if (array->device == GTS_CPU)
        return 0;
    if (gts_gpu_functions(self) != NULL)
        return copy_to_host(self, checked, contract, array);
    if (!checked->was_elsewhere)
        (void)fprintf(stderr,
                      "Argument '%s' of program '%s' is not checked: it is on device '%s', and no program has been "
                      "loaded whose kernels run there.\n",
                      contract->path, self->stub->name, gts_device_name(array->device));
    checked->was_elsewhere = true;
    return 1;
}

/* ---- Trace ----------------------------------------------------------------------------------------------------- */

/* Writes "Edge 5, K 7". */
static void describe_index(const gts_contract *contract, const int64_t *index, char *text, size_t size)
{
    size_t used = 0;
    *text = '\0';
    for (int32_t axis = 0; axis < contract->rank && used < size; ++axis)
        used += (size_t)snprintf(text + used, size - used, "%s%s %" PRId64, axis == 0 ? "" : ", ",
                                 contract->axes[axis].dim, index[axis]);
}

static void trace_field(const gts_program *self, gts_checked *checked, uint32_t index, const gts_trace *trace,
                        const gts_array *array, const char *when)
{
    const gts_contract *const contract = &self->stub->leaves[index];
    char place[256], value[40];
    int64_t offset;
    describe_index(contract, trace->index, place, sizeof place);
    if (gts_scan_offset(array, trace->index, &offset)) {
        const char *const element = (const char *)array->data + offset * (int64_t)gts_dtype_size(array->dtype);
        gts_element_text(array->dtype, element, value, sizeof value);
        (void)fprintf(stderr, "Call %" PRIu64 " of program '%s', %s: argument '%s' is %s at %s.\n", checked->calls,
                      self->stub->name, when, contract->path, value, place);
    } else if (!checked->fields[index].lacks_index) {
        checked->fields[index].lacks_index = true;
        (void)fprintf(stderr, "Argument '%s' of program '%s' has no element at %s for check '%s'.\n", contract->path,
                      self->stub->name, place, trace->fields.item);
    }
}

static int trace_fields(gts_program *self, gts_checked *checked, const char *when)
{
    for (uint32_t i = 0; i < checked->checks->trace_count; ++i) {
        const gts_trace *const trace = &checked->checks->traces[i];
        for (uint32_t leaf = 0; leaf < self->stub->leaf_count; ++leaf) {
            gts_array array;
            if (!gts_checked_is_field(self, leaf) || self->stub->leaves[leaf].rank != trace->rank)
                continue;
            const int status = find_array(self, checked, leaf, &array);
            if (status < 0)
                return -1;
            if (status == 0)
                trace_field(self, checked, leaf, trace, &array, when);
        }
    }
    return 0;
}

/* ---- Values ---------------------------------------------------------------------------------------------------- */

static void describe(const gts_program *self, uint32_t index, const gts_array *array, const gts_rule *rule,
                     const gts_finding *finding, bool is_after, gts_error *error)
{
    const gts_contract *const contract = &self->stub->leaves[index];
    const char *const path = contract->path, *const name = self->stub->name, *const item = rule->fields.item;
    char place[256], value[40];
    describe_index(contract, finding->index, place, sizeof place);
    gts_element_text(array->dtype, finding->element, value, sizeof value);
    if (!is_after)
        (void)gts_error_set(error, GTS_RUNTIME_ERROR,
                            GTS_ARGUMENT "is %s at %s before the call; check '%s' refuses %" PRIu64 " of %" PRIu64
                                         " elements.",
                            path, name, value, place, item, finding->count, finding->total);
    else if (finding->count == finding->old_count)
        (void)gts_error_set(error, GTS_RUNTIME_ERROR,
                            GTS_ARGUMENT "is %s at %s before and after the call; check '%s' refuses %" PRIu64
                                         " of %" PRIu64 " elements.",
                            path, name, value, place, item, finding->count, finding->total);
    else
        (void)gts_error_set(error, GTS_RUNTIME_ERROR,
                            GTS_ARGUMENT "is %s at %s after the call; check '%s' refuses %" PRIu64 " of %" PRIu64
                                         " elements, %" PRIu64 " of them also before the call.",
                            path, name, value, place, item, finding->count, finding->total, finding->old_count);
}

/* Finds the rules that refuse a field, and fails for the first of them or prints each one once. */
static int report(gts_program *self, gts_checked *checked, uint32_t index, const gts_array *array, bool is_after)
{
    for (uint32_t i = 0; i < checked->checks->rule_count; ++i) {
        const gts_rule *const rule = &checked->checks->rules[i];
        bool *const applies = &gts_checked_rules(checked, index)[i];
        if (!*applies)
            continue;
        const gts_finding finding = gts_scan_find(array, rule->bounds, checked->fields[index].before);
        if (finding.count == 0)
            continue;
        gts_error error;
        describe(self, index, array, rule, &finding, is_after, &error);
        if (!checked->checks->warns) {
            self->error = error;
            return -1;
        }
        (void)fprintf(stderr, "%s\n", error.message);
        *applies = false;
    }
    gts_checked_join_bounds(checked, index);
    return 0;
}

/* Keeps a copy of a field that the call will write. */
static int keep_before(gts_program *self, gts_checked_field *field, const gts_contract *contract,
                       const gts_array *array)
{
    size_t size;
    gts_extent extent;
    field->before = gts_measure(array, &size, &extent) ? malloc(size) : NULL;
    if (field->before == NULL)
        return GTS_REFUSE(self, contract, GTS_RUNTIME_ERROR, "cannot be checked: out of memory.");
    gts_pack(array, field->before);
    return 0;
}

static int check_fields(gts_program *self, gts_checked *checked, bool is_after)
{
    for (uint32_t i = 0; i < self->stub->leaf_count; ++i) {
        const gts_contract *const contract = &self->stub->leaves[i];
        gts_checked_field *const field = &checked->fields[i];
        gts_array array;
        if (!field->is_checked || (is_after && !contract->written))
            continue;
        const int status = find_array(self, checked, i, &array);
        if (status < 0)
            return -1;
        if (status > 0 || !gts_scan_finds(&array, field->bounds))
            continue;
        if (!is_after && contract->written)
            GTS_TRY(keep_before(self, field, contract, &array));
        else
            GTS_TRY(report(self, checked, i, &array, is_after));
    }
    return 0;
}

/* ---- Before and after ------------------------------------------------------------------------------------------ */

static void show_progress(const gts_program *self, const gts_checked *checked, const char *what)
{
    if (!checked->checks->shows_progress)
        return;
    (void)fprintf(stderr, "Call %" PRIu64 " of program '%s' %s.\n", checked->calls, self->stub->name, what);
    (void)fflush(stderr);
}

/* Ends the checks of this call. */
static void finish(gts_program *self)
{
    for (gts_checked *checked = self->runtime->checked; checked != NULL; checked = checked->next) {
        if (checked->is_running)
            self->runtime->gpu.synchronizes = checked->synchronized;
        checked->is_running = false;
        for (uint32_t i = 0; i < self->stub->leaf_count; ++i) {
            free(checked->fields[i].before);
            checked->fields[i].before = NULL;
        }
    }
}

static bool is_captured(const gts_program *self)
{
    const gts_cuda *const cuda = gts_gpu_functions(self);
    return self->stub->device != GTS_CPU && cuda != NULL && gts_cuda_capture(cuda, self->runtime->gpu.stream) != 0;
}

/* Begins to check the call, unless the program is not selected or the call is captured. */
static void begin(gts_program *self, gts_checked *checked)
{
    if (!checked->is_selected)
        return;
    checked->is_running = !is_captured(self);
    ++checked->calls;
    if (!checked->is_running && !checked->was_captured)
        (void)fprintf(stderr, "Captured calls of program '%s' are not checked: they run when the graph is launched.\n",
                      self->stub->name);
    checked->was_captured |= !checked->is_running;
}

int gts_checks_before(gts_program *self)
{
    const bool synchronizes = self->runtime->gpu.synchronizes;
    gts_checks *checks = __atomic_load_n(&gts_checks_running, __ATOMIC_ACQUIRE);
    int status = 0;
    for (; checks != NULL && status == 0; checks = __atomic_load_n(&checks->outer, __ATOMIC_ACQUIRE)) {
        gts_checked *const checked = gts_checked_find(self, checks);
        if (checked == NULL) {
            status = gts_error_set(&self->error, GTS_RUNTIME_ERROR, "Program '%s' cannot be checked: out of memory.",
                                   self->stub->name);
            break;
        }
        begin(self, checked);
        if (!checked->is_running)
            continue;
        checked->synchronized = synchronizes;
        self->runtime->gpu.synchronizes = true; /* so that an error of its kernels is that of this call */
        show_progress(self, checked, "begins");
        status = trace_fields(self, checked, "before") != 0 ? -1 : check_fields(self, checked, false);
    }
    for (gts_checked *checked = self->runtime->checked; checked != NULL && status != 0; checked = checked->next) {
        if (checked->is_running)
            show_progress(self, checked, "was refused");
    }
    if (status != 0)
        finish(self);
    return status;
}

int gts_checks_after(gts_program *self, int status)
{
    const bool has_run = status == 0;
    for (gts_checked *checked = self->runtime->checked; checked != NULL; checked = checked->next) {
        if (!checked->is_running)
            continue;
        show_progress(self, checked, has_run ? "has ended" : "has failed");
        if (status == 0 && (trace_fields(self, checked, "after") != 0 || check_fields(self, checked, true) != 0))
            status = -1; /* that of the first checks that fail */
    }
    finish(self);
    return status;
}
