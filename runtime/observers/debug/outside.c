/* What a call has accessed outside of its guarded copies, and how errors say it. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>

#include "base/new.h"
#include "base/refuse.h"
#include "base/strided.h"
#include "observers/debug/guard.h"

/* What was found around one region. */
typedef struct stray {
    const gts_region *region;
    const char *verb;          /* "read" */
    uintptr_t first, farthest; /* addresses */
    bool is_after, is_between;
    bool was_written;
    uint64_t order; /* of the access that was first */
} stray;

int gts_guard_refuse_memory(gts_program *self)
{
    return GTS_REFUSE_PROGRAM(self, GTS_RUNTIME_ERROR,
                              "cannot be checked: there is no memory for guarded copies of its arguments.");
}

void gts_guard_fill(void *memory, uintptr_t address, size_t size)
{
    for (size_t i = 0; i < size; i += sizeof(uint32_t)) {
        const uint64_t mixed = (uint64_t)(address + i) / sizeof(uint32_t) * UINT64_C(0x9e3779b97f4a7c15);
        const uint32_t word = UINT32_C(0x7ff40000) | (uint32_t)(mixed >> 48);
        memcpy((char *)memory + i, &word, sizeof word);
    }
}

/* The region at an index; the workspaces come last. */
static const gts_region *region_at(const gts_guard *guard, size_t index)
{
    return index < guard->region_count ? &guard->regions[index] : &guard->workspaces[index - guard->region_count];
}

/* ---- What was accessed ------------------------------------------------------------------------------------------- */

/* Finds the first access to a page around a copy, and the farthest one on the same side. */
static bool find_access(const gts_region *region, stray *found)
{
    const gts_pages *const pages = region->pages;
    const size_t count = gts_pages_count(pages);
    if (count == 0)
        return false;
    const gts_access *first = pages->noted;
    for (size_t i = 1; i < count && i < pages->most; ++i)
        first = pages->noted[i].order < first->order ? &pages->noted[i] : first;
    *found = (stray){.region = region, .first = first->address, .farthest = first->address, .order = first->order};
    found->is_after = first->address >= region->end;
    found->was_written = first->kind == GTS_WRITTEN;
    found->verb = first->kind == GTS_ACCESSED ? "accessed" : first->kind == GTS_READ ? "read" : "written";
    for (size_t i = 0; i < count && i < pages->most; ++i) {
        const uintptr_t address = pages->noted[i].address;
        if ((address >= region->end) == found->is_after &&
            (found->is_after ? address > found->farthest : address < found->farthest))
            found->farthest = address;
    }
    return true;
}

/* The first byte from `begin` to below `end`, less than a page of memory, that was written; `end` if there is none. */
static uintptr_t find_byte(uintptr_t begin, uintptr_t end)
{
    for (; begin < end; ++begin) {
        const uintptr_t word = begin / sizeof(uint32_t) * sizeof(uint32_t);
        char expected[sizeof(uint32_t)];
        gts_guard_fill(expected, word, sizeof expected);
        if (*(const char *)begin != expected[begin - word])
            break;
    }
    return begin;
}

/* The same in memory with elements, of which `expected` gets a copy in memory without others. */
static uintptr_t find_byte_between(const gts_guard *guard, const gts_region *region, char *expected)
{
    const size_t open = region->end - region->begin;
    const char *const actual = (const char *)region->begin;
    gts_guard_fill(expected, region->begin, open);
    for (size_t i = 0; i < guard->part_count; ++i) {
        if (guard->parts[i].region != region)
            continue;
        const gts_array from = gts_copy_of(&guard->parts[i], region->begin);
        const gts_array to = gts_copy_of(&guard->parts[i], (uintptr_t)expected);
        gts_copy(&from, &to);
    }
    size_t offset = memcmp(expected, actual, open) == 0 ? open : 0;
    while (offset < open && expected[offset] == actual[offset])
        ++offset;
    return region->begin + offset;
}

/* Finds a byte that was written but belongs to no element. Returns 0 if there is none, and -1 if memory runs out. */
static int find_write(const gts_guard *guard, const gts_region *region, stray *found)
{
    const uintptr_t end = region->copy + (region->high - region->low);
    uintptr_t address;
    if (region->has_gaps) {
        char *const expected = malloc(region->end - region->begin);
        if (expected == NULL)
            return -1;
        address = find_byte_between(guard, region, expected);
        free(expected);
    } else {
        address = find_byte(region->begin, region->copy);
        address = address == region->copy ? find_byte(end, region->end) : address;
    }
    if (address >= region->end)
        return 0;
    *found = (stray){.region = region, .verb = "written", .first = address, .farthest = address, .order = UINT64_MAX};
    found->is_after = address >= end;
    found->is_between = address >= region->copy && !found->is_after;
    found->was_written = true;
    return 1;
}

/* The array of a region that a stray access is about; NULL for a workspace. Of several, it is one that is accessed so. */
static const gts_part *find_part(const gts_program *self, const gts_guard *guard, const stray *found)
{
    const gts_part *best = NULL;
    const gts_region *const region = found->region;
    const uintptr_t address = found->first - region->copy + region->low;
    int best_rank = -1;
    for (size_t i = 0; i < guard->part_count; ++i) {
        const gts_part *const part = &guard->parts[i];
        const gts_range *const memory = &part->memory;
        const bool is_there = found->is_between ? address >= memory->low && address < memory->high
                              : found->is_after ? memory->high == region->high
                                                : memory->low == region->low;
        const bool is_alike = self->stub->leaves[part->leaf].written == found->was_written;
        const int rank = is_there ? 1 + is_alike : 0;
        if (part->region != region || rank <= best_rank)
            continue;
        best = part;
        best_rank = rank;
    }
    return best;
}

/* The distance of an address from the elements of a copy, counted in elements of `size` bytes. */
static uint64_t distance(const stray *found, uintptr_t address, size_t size)
{
    const gts_region *const region = found->region;
    if (found->is_between)
        return (address - region->copy) / size;
    return found->is_after ? (address - region->copy - (region->high - region->low)) / size + 1
                           : (region->copy - address - 1) / size + 1;
}

/* Writes "1 element", "3 to 900 bytes". */
static void describe_distance(const stray *found, size_t size, const char *unit, char *text, size_t text_size)
{
    const uint64_t first = distance(found, found->first, size), last = distance(found, found->farthest, size);
    if (last > first)
        snprintf(text, text_size, "%" PRIu64 " to %" PRIu64 " %ss", first, last, unit);
    else
        snprintf(text, text_size, "%" PRIu64 " %s%s", first, unit, first == 1 ? "" : "s");
}

/* `part` is the array that was found, or NULL. */
static void describe(const gts_program *self, const gts_guard *guard, const gts_part *part, const stray *found,
                     const char *what, gts_error *error)
{
    const char *const place = found->is_between ? "after its first one, where it has none,"
                              : found->is_after ? "after its end"
                                                : "before its start";
    const char *const others = found->region->part_count > 1 ? ", or an argument in the same memory" : "";
    char text[64];
    describe_distance(found, part == NULL ? 1 : gts_dtype_size(part->array.dtype), part == NULL ? "byte" : "element",
                      text, sizeof text);
    if (part == NULL) {
        gts_error_set(error, GTS_RUNTIME_ERROR, GTS_WORKSPACE "is %s %s %s by %s; check 'bounds' refuses this.",
                      self->stub->name, self->stub->workspaces[found->region - guard->workspaces].storage, found->verb,
                      text, place, what);
        return;
    }
    const gts_contract *const contract = &self->stub->leaves[part->leaf];
    if (contract->kind == GTS_CONNECTIVITY)
        gts_error_set(error, GTS_RUNTIME_ERROR, GTS_TABLE "is %s %s %s by %s%s; check 'bounds' refuses this.",
                      contract->path, self->stub->name, found->verb, text, place, what, others);
    else
        gts_error_set(error, GTS_RUNTIME_ERROR, GTS_ARGUMENT "is %s %s %s by %s%s; check 'bounds' refuses this.",
                      contract->path, self->stub->name, found->verb, text, place, what, others);
}

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

/* Prints what was found for the checks that warn, and fails for others. */
static int report_finding(gts_program *self, const gts_guard *guard, const stray *found, const char *what)
{
    const gts_part *const part = find_part(self, guard, found);
    gts_error error;
    describe(self, guard, part, found, what, &error);
    const char *const name = part == NULL ? "" : self->stub->leaves[part->leaf].path;
    for (gts_checked *checked = gts_checked_of(self)->checked; checked != NULL; checked = checked->next) {
        if (checked->is_running && checked->checks->guarded != GTS_NOT_GUARDED)
            GTS_TRY(gts_checked_refuse(self, checked, name, NULL, &error));
    }
    return 0;
}

static int compare_orders(const void *a, const void *b)
{
    const uint64_t first = ((const stray *)a)->order, second = ((const stray *)b)->order;
    return (first > second) - (first < second);
}

/* Fails for the first access outside of the arrays. */
int gts_guard_report(gts_program *self, const gts_guard *guard)
{
    const size_t count = guard->region_count + self->stub->workspace_count;
    stray *const found = gts_new(count, sizeof *found);
    size_t found_count = 0;
    int status = 0;
    for (size_t i = 0; i < count; ++i) {
        const gts_region *const region = region_at(guard, i);
        if (region->pages == NULL)
            continue;
        const int is_found = find_access(region, &found[found_count]) ? 1
                                                                      : find_write(guard, region, &found[found_count]);
        found_count += is_found > 0;
        if (is_found < 0)
            status = gts_guard_refuse_memory(self);
    }
    qsort(found, found_count, sizeof *found, compare_orders);
    for (size_t i = 0; i < found_count && status == 0; ++i)
        status = report_finding(self, guard, &found[i], i == 0 && guard->map != NULL ? guard->map : "the call");
    free(found);
    return status;
}

void gts_guard_after_map(const gts_program *self, const char *map)
{
    gts_guard *const guard = gts_checked_of(self)->guard;
    for (size_t i = 0; i < guard->region_count + self->stub->workspace_count && guard->map == NULL; ++i) {
        const gts_region *const region = region_at(guard, i);
        if (region->pages != NULL && gts_pages_count(region->pages) > 0)
            guard->map = map;
    }
}
