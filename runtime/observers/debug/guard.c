/*
 * Runs a call on copies of its arrays in guarded memory (pages.h), so that an access outside of them is noticed.
 *
 * Arrays that share memory share a copy, with the same distances between them. One end of a copy is next to a page that
 * is not open; the rest of the open pages, and what lies between the elements of strided arrays, is filled with bytes
 * that tell after the call whether something was written there. The SDFG runs to its end in any case. If it has
 * accessed something else than its arrays, the call fails and its results are not copied back.
 */
#define _GNU_SOURCE
#include "base/new.h"
#include "base/refuse.h"
#include "base/strided.h"
#include "observers/debug/guard.h"

/* Memory on each side of a copy that is not open, in bytes; more for a larger copy. */
#define LEAST_ZONE ((size_t)256 << 20)

/* The accesses that are noted around one copy. */
#define MOST_ACCESSES 256

/* DaCe aligns workspaces to this many bytes. */
#define WORKSPACE_ALIGNMENT 256

/* ---- Copies ------------------------------------------------------------------------------------------------------ */

/* Reserves memory for the copy of a region, and opens its pages. */
static bool place_copy(gts_region *region, bool at_end)
{
    const size_t page = gts_page_size(), size = region->high - region->low;
    const size_t lead = at_end ? 0 : region->low % region->align;
    const size_t tail = at_end ? (region->align - region->high % region->align) % region->align : 0;
    const size_t open = (lead + size + tail + page - 1) / page * page;
    const size_t zone = open > LEAST_ZONE ? open : LEAST_ZONE;
    region->pages = gts_pages_reserve(zone + open + zone, MOST_ACCESSES);
    if (region->pages == NULL)
        return false;
    region->begin = region->pages->begin + zone;
    region->end = region->begin + open;
    region->copy = at_end ? region->end - tail - size : region->begin + lead;
    if (!gts_pages_open(region->begin, region->end))
        return false;
    gts_guard_fill((void *)region->begin, region->begin, open);
    return true;
}

/* Moves an array from the memory of the host to the copy, or back. */
static void move_arrays(gts_program *self, const gts_guard *guard, bool for_copies)
{
    for (size_t i = 0; i < guard->part_count; ++i) {
        const gts_part *const part = &guard->parts[i];
        gts_array *const array = &self->leaf[part->leaf].current->array;
        const uintptr_t distance = part->region->copy - part->region->low;
        array->data = (void *)((uintptr_t)array->data + (for_copies ? distance : 0 - distance));
    }
    self->has_new_array = true;
}

static void copy_to(const gts_guard *guard)
{
    for (size_t i = 0; i < guard->part_count; ++i) {
        const gts_array copy = gts_copy_of(&guard->parts[i], guard->parts[i].region->begin);
        gts_copy(&guard->parts[i].array, &copy);
    }
}

/* Copies the arrays that the SDFG writes back. */
static void copy_back(const gts_program *self, const gts_guard *guard)
{
    for (size_t i = 0; i < guard->part_count; ++i) {
        const gts_array copy = gts_copy_of(&guard->parts[i], guard->parts[i].region->begin);
        if (self->stub->leaves[guard->parts[i].leaf].written)
            gts_copy(&copy, &guard->parts[i].array);
    }
}

/* ---- Workspaces -------------------------------------------------------------------------------------------------- */

int gts_guard_workspace(gts_program *self, uint32_t workspace, size_t size)
{
    gts_guard *const guard = gts_checked_of(self)->guard;
    if (guard == NULL || self->stub->workspaces[workspace].device != GTS_CPU)
        return 0;
    gts_region *const region = &guard->workspaces[workspace];
    gts_pages_release(region->pages); /* the handle was initialised again */
    const uintptr_t low = region->low;
    *region = (gts_region){.low = low, .high = low + size, .align = WORKSPACE_ALIGNMENT};
    if (!place_copy(region, guard->at_end))
        return gts_guard_refuse_memory(self);
    memcpy((void *)region->copy, (void *)low, size);
    self->workspace[workspace] = (void *)region->copy;
    return 0;
}

/* Guards the workspaces of a handle that exists. Those of a new one are guarded when it is initialised. */
static int guard_workspaces(gts_program *self)
{
    for (uint32_t i = 0; i < self->stub->workspace_count && self->sdfg != NULL; ++i) {
        const gts_workspace *const workspace = &self->stub->workspaces[i];
        const size_t size = workspace->bytes(self);
        if (size == 0 || self->workspace[i] == NULL || self->runtime->workspace_size[i] < size)
            continue; /* there is none, or the handle is initialised again */
        GTS_TRY(gts_guard_workspace(self, i, size));
        workspace->install(self);
    }
    return 0;
}

static void return_workspaces(gts_program *self, const gts_guard *guard)
{
    for (uint32_t i = 0; i < self->stub->workspace_count; ++i) {
        self->workspace[i] = (void *)guard->workspaces[i].low;
        if (guard->workspaces[i].pages != NULL && self->sdfg != NULL)
            self->stub->workspaces[i].install(self);
    }
}

/* ---- Callbacks --------------------------------------------------------------------------------------------------- */

const char *gts_guard_obstacle(const gts_program *self)
{
    if (self->stub->device != GTS_CPU)
        return "it runs on a GPU";
    for (uint32_t i = 0; i < self->stub->leaf_count; ++i) {
        if (self->stub->leaves[i].kind == GTS_CALLBACK && self->stub->leaves[i].is_parallel && self->host != NULL)
            return "several threads may call its callbacks at the same time";
    }
    return NULL;
}

/* The address in the memory of the host, if this is one in a copy. */
static void *address_at_host(const gts_guard *guard, void *data)
{
    const uintptr_t address = (uintptr_t)data;
    for (size_t i = 0; i < guard->region_count; ++i) {
        const gts_region *const region = &guard->regions[i];
        if (address >= region->copy && address - region->copy < region->high - region->low)
            return (void *)(address - region->copy + region->low);
    }
    return data;
}

/*
 * Calls a callback of a host with objects: it may get the very object that the call has, and owners of its memory. So
 * it sees the arrays of the host, as the SDFG has left them until now, and the SDFG sees what it has changed.
 */
static int call_back(gts_program *self, uint32_t leaf, const gts_callback_value *values, uint32_t arguments,
                     uint32_t results)
{
    const gts_guard *const guard = gts_checked_of(self)->guard;
    const size_t count = (size_t)arguments + results;
    gts_callback_value *const moved = gts_new(count, sizeof *moved);
    for (size_t i = 0; i < count; ++i) {
        moved[i] = values[i];
        moved[i].data = address_at_host(guard, values[i].data);
    }
    copy_back(self, guard);
    move_arrays(self, guard, false);
    const int status = guard->call_back(self, leaf, moved, arguments, results);
    move_arrays(self, guard, true);
    copy_to(guard);
    free(moved);
    return status;
}

/* ---- Arrays that share memory ------------------------------------------------------------------------------------ */

static int compare_addresses(const void *a, const void *b)
{
    const uintptr_t first = ((const gts_part *)a)->memory.low, second = ((const gts_part *)b)->memory.low;
    return (first > second) - (first < second);
}

static void find_parts(const gts_program *self, gts_guard *guard)
{
    for (uint32_t i = 0; i < self->stub->leaf_count; ++i) {
        gts_range memory;
        if (!gts_is_array(self->stub->leaves[i].kind))
            continue;
        const gts_array *const array = gts_array_of(self, i);
        if (array->device == GTS_CPU && gts_find_range(array, &memory))
            guard->parts[guard->part_count++] = (gts_part){i, *array, memory, NULL};
    }
    qsort(guard->parts, guard->part_count, sizeof *guard->parts, compare_addresses);
}

static void find_regions(gts_guard *guard)
{
    gts_region *region = NULL;
    for (size_t i = 0; i < guard->part_count; ++i) {
        gts_part *const part = &guard->parts[i];
        const size_t align = gts_dtype_size(part->array.dtype);
        if (region == NULL || part->memory.low >= region->high) {
            region = &guard->regions[guard->region_count++];
            *region = (gts_region){.low = part->memory.low, .high = part->memory.high, .align = align};
        }
        region->high = part->memory.high > region->high ? part->memory.high : region->high;
        region->align = align > region->align ? align : region->align;
        region->has_gaps = ++region->part_count > 1 || part->memory.size != part->memory.high - part->memory.low;
        part->region = region;
    }
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

/* Whether the end of arrays is next to a page that is not open in this call. */
static bool is_at_end(const gts_program *self)
{
    const gts_checked *checked = gts_checked_of(self)->checked;
    while (!checked->is_running || checked->checks->guarded == GTS_NOT_GUARDED)
        checked = checked->next;
    const gts_guarded guarded = checked->checks->guarded;
    return guarded == GTS_GUARDED_END || (guarded == GTS_GUARDED_BY_TURNS && checked->calls % 2 == 1);
}

/* Makes the copies. */
static int prepare(gts_program *self, gts_guard *guard)
{
    const size_t leaves = self->stub->leaf_count, workspaces = self->stub->workspace_count;
    guard->at_end = is_at_end(self);
    guard->parts = gts_new(leaves, sizeof *guard->parts);
    guard->regions = gts_new(leaves, sizeof *guard->regions);
    guard->workspaces = gts_new(workspaces, sizeof *guard->workspaces);
    for (size_t i = 0; i < workspaces; ++i)
        guard->workspaces[i].low = (uintptr_t)self->workspace[i];
    find_parts(self, guard);
    find_regions(guard);
    for (size_t i = 0; i < guard->region_count; ++i) {
        if (!place_copy(&guard->regions[i], guard->at_end))
            return gts_guard_refuse_memory(self);
    }
    copy_to(guard);
    return 0;
}

static int run_on_copies(gts_program *self, gts_guard *guard, gts_observers rest)
{
    gts_checked_of(self)->guard = guard;
    guard->call_back = self->call_back;
    self->call_back = call_back;
    move_arrays(self, guard, true);
    gts_pages_watch();
    const int status = guard_workspaces(self) == 0 ? gts_run_observed(self, rest) : -1;
    gts_pages_unwatch();
    return_workspaces(self, guard);
    move_arrays(self, guard, false);
    self->call_back = guard->call_back;
    gts_checked_of(self)->guard = NULL;
    return status;
}

int gts_guard_run(gts_program *self, gts_observers rest)
{
    GTS_TRY(self->stub->prepare(self));
    gts_guard guard = {.map = NULL};
    int status = prepare(self, &guard);
    if (status == 0)
        status = run_on_copies(self, &guard, rest);
    if (status == 0)
        status = gts_guard_report(self, &guard);
    if (status == 0)
        copy_back(self, &guard);
    for (uint32_t i = 0; i < self->stub->workspace_count; ++i) {
        const gts_region *const region = &guard.workspaces[i];
        if (status == 0 && region->pages != NULL)
            memcpy((void *)region->low, (void *)region->copy, region->high - region->low);
        gts_pages_release(region->pages);
    }
    for (size_t i = 0; i < guard.region_count; ++i)
        gts_pages_release(guard.regions[i].pages);
    free(guard.parts);
    free(guard.regions);
    free(guard.workspaces);
    return status;
}
