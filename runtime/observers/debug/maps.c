/*
 * Checks the arrays that the maps of an SDFG write, while the SDFG runs.
 *
 * An SDFG that was built with GTSTUB_BUILD_CHECKS=1 calls after_map() for each array that a map has written. The array
 * may be an argument, a part of one, or a transient. The call goes on after a value that checks refuse, because nothing
 * can stop an SDFG; it fails when the SDFG has returned, with the first value that was found.
 */
#define _GNU_SOURCE
#include "observers/debug/checked.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/lock.h"
#include "base/refuse.h"
#include "base/strided.h"
#include "embedded/map_output.h"

_Static_assert(GTS_MAP_OUTPUT_RANK == GTS_MAX_RANK, "the header cannot include the other one");

/* Protects the list and the checks of its programs, because sections of an SDFG may run in several threads. */
GTS_LOCK(lock)
static gts_program *programs;

/* ---- Arguments ------------------------------------------------------------------------------------------------- */

/* The field that has this element; UINT32_MAX if there is none. */
static uint32_t find_argument(const gts_program *self, const void *data)
{
    for (uint32_t i = 0; i < self->stub->leaf_count; ++i) {
        gts_range memory;
        if (gts_checked_is_field(self, i) && self->stub->leaves[i].written &&
            gts_find_range(gts_array_of(self, i), &memory) && (uintptr_t)data >= memory.low &&
            (uintptr_t)data < memory.high)
            return i;
    }
    return UINT32_MAX;
}

static int check_argument(gts_program *self, gts_checked *checked, uint32_t index, const char *map)
{
    gts_array array;
    char when[512];
    snprintf(when, sizeof when, "after %s", map);
    GTS_TRY(gts_checked_trace(self, checked, index, index + 1, when));
    if (!checked->fields[index].is_checked)
        return 0;
    const int status = gts_checked_array(self, checked, index, &array);
    if (status != 0)
        return status < 0 ? -1 : 0;
    if (!gts_scan_finds(&array, checked->fields[index].limits))
        return 0;
    return gts_checked_report(self, checked, index, &array, map, true);
}

/* ---- Transients ------------------------------------------------------------------------------------------------ */

static gts_array array_of(const gts_program *self, const gts_map_output *output)
{
    gts_array array = {
        .data = output->data, .dtype = (gts_dtype)output->dtype, .device = GTS_CPU, .rank = (int16_t)output->rank};
    if (output->is_on_gpu)
        array.device = self->stub->device;
    for (int32_t axis = 0; axis < output->rank; ++axis) {
        array.shape[axis] = output->axes[axis].size;
        array.strides[axis] = output->axes[axis].stride;
    }
    return array;
}

/* Writes "[3, 7]": the index in the array, of which `index` is that in the output. */
static void describe_index(const gts_map_output *output, const int64_t *index, char *text, size_t size)
{
    *text = '\0';
    for (int32_t axis = 0; axis < output->rank; ++axis)
        gts_append(text, size, "%s%" PRId64, axis == 0 ? "[" : ", ",
                   output->axes[axis].begin + index[axis] * output->axes[axis].step);
    gts_append(text, size, output->rank == 0 ? "[]" : "]");
}

static int check_rule(gts_program *self, gts_checked *checked, const gts_map_output *output, const gts_array *array,
                      gts_rule *rule)
{
    if (rule->fields.pattern != NULL && !gts_pattern_selects(&rule->fields, output->array))
        return 0;
    if (!gts_scan_finds(array, rule->limits))
        return 0;
    const gts_finding finding = gts_scan_find(array, rule->limits, NULL);
    if (finding.count == 0)
        return 0;
    gts_error error;
    char place[256], value[64];
    describe_index(output, finding.index, place, sizeof place);
    gts_element_text(array->dtype, finding.element, value, sizeof value);
    gts_error_set(
        &error, GTS_RUNTIME_ERROR,
        "Array '%s' of program '%s' is %s at %s after %s; check '%s' refuses %" PRIu64 " of %" PRIu64 " elements.",
        output->array, self->stub->name, value, place, output->map, rule->fields.item, finding.count, finding.total);
    return gts_checked_refuse(self, checked, output->array, rule, &error);
}

static int check_transient(gts_program *self, gts_checked *checked, const gts_map_output *output)
{
    gts_array array = array_of(self, output);
    if (!output->is_whole) /* the other elements may never have been written */
        return 0;
    const int status = gts_checked_to_host(self, checked, output->array, &array);
    if (status != 0)
        return status < 0 ? -1 : 0;
    for (uint32_t i = 0; i < checked->checks->rule_count; ++i)
        GTS_TRY(check_rule(self, checked, output, &array, &checked->checks->rules[i]));
    return 0;
}

/* ---- Maps ------------------------------------------------------------------------------------------------------ */

static int check_output(gts_program *self, gts_checked *checked, const gts_map_output *output)
{
    if (output->is_first && checked->checks->shows_progress) {
        fprintf(stderr, "Call %" PRIu64 " of program '%s' has run %s.\n", checked->calls, self->stub->name,
                output->map);
        fflush(stderr);
    }
    const uint32_t index = find_argument(self, output->data);
    if (index == UINT32_MAX)
        return check_transient(self, checked, output);
    return check_argument(self, checked, index, output->map);
}

/* The program whose running call has this handle; NULL if its maps are not checked. */
static gts_program *find_program(const void *handle)
{
    gts_program *program = programs;
    while (program != NULL && __atomic_load_n(&program->sdfg, __ATOMIC_SEQ_CST) != handle)
        program = gts_checked_of(program)->next;
    return program;
}

static void after_map(void *handle, const gts_map_output *output)
{
    pthread_mutex_lock(&lock);
    gts_program *const self = find_program(handle);
    gts_checked_program *const own = self == NULL ? NULL : gts_checked_of(self);
    if (own != NULL && own->guard != NULL)
        gts_guard_after_map(self, output->map);
    if (own != NULL && !own->map_failed) {
        for (gts_checked *checked = own->checked; checked != NULL && !own->map_failed; checked = checked->next)
            own->map_failed = checked->is_running && check_output(self, checked, output) != 0;
        if (own->map_failed)
            own->map_error = self->error;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- Programs -------------------------------------------------------------------------------------------------- */

void gts_maps_find(gts_program *self, void *library)
{
    gts_after_map *_Atomic *variable;
    gts_library_find(library, "__gtstub_after_map_", self->stub->name, &variable);
    if (variable != NULL)
        *variable = after_map;
}

void gts_maps_begin(gts_program *self)
{
    gts_checked_program *const own = gts_checked_of(self);
    own->map_failed = false;
    pthread_mutex_lock(&lock);
    own->next = programs;
    programs = self;
    pthread_mutex_unlock(&lock);
}

int gts_maps_end(gts_program *self)
{
    gts_checked_program *const own = gts_checked_of(self);
    pthread_mutex_lock(&lock);
    gts_program **link = &programs;
    while (*link != NULL && *link != self)
        link = &gts_checked_of(*link)->next;
    if (*link != NULL)
        *link = own->next;
    pthread_mutex_unlock(&lock);
    if (!own->map_failed)
        return 0;
    own->map_failed = false;
    self->error = own->map_error;
    return -1;
}

void gts_maps_forget(void)
{
    programs = NULL;
}
