/* The times of the positions of steps. */
#include "profile/steps.h"

#include <stdlib.h>
#include <string.h>

/* ---- Making ---------------------------------------------------------------------------------------------------- */

static size_t text_size(const gts_step *step)
{
    size_t size = strlen(step->name) + 1;
    for (size_t i = 0; i < step->count; ++i)
        size += strlen(gts_step_name_at(step, i)) + 1;
    return size;
}

/* Copies a text to *end, behind which the next one goes. */
static const char *copy(char **end, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *const begin = memcpy(*end, text, size);
    *end += size;
    return begin;
}

/* Allocates times of a step without calls; NULL when memory runs out. */
static GTS_COLD gts_step_times *new_times(const gts_step *step)
{
    gts_step_times *const times = calloc(1, sizeof *times + step->count * sizeof *times->position + text_size(step));
    if (times == NULL)
        return NULL;
    char *end = (char *)&times->position[step->count];
    times->id = step->id;
    times->name = copy(&end, step->name);
    times->count = step->count;
    for (size_t i = 0; i < step->count; ++i) {
        gts_position_times *const position = &times->position[i];
        position->name = copy(&end, gts_step_name_at(step, i));
        position->is_program = step->positions[i].call != NULL;
        position->time.min = UINT64_MAX;
    }
    return times;
}

/* ---- Lists ----------------------------------------------------------------------------------------------------- */

gts_step_times *gts_step_times_pop(gts_step_times **list)
{
    gts_step_times *const first = *list;
    if (first != NULL)
        *list = first->next;
    return first;
}

/* The link in a list that points to the times of a step, or the last link if there are none. */
static gts_step_times **find_link(gts_step_times **list, uint64_t id)
{
    while (*list != NULL && (*list)->id != id)
        list = &(*list)->next;
    return list;
}

static bool has_same_positions(const gts_step_times *a, const gts_step_times *b)
{
    if (a->count != b->count || strcmp(a->name, b->name) != 0)
        return false;
    for (size_t i = 0; i < a->count; ++i) {
        if (a->position[i].is_program != b->position[i].is_program ||
            strcmp(a->position[i].name, b->position[i].name) != 0)
            return false;
    }
    return true;
}

/* The times in a list to which those of the same step, or of a step like one that was freed, are added; or NULL. */
static gts_step_times *find_same(gts_step_times *list, const gts_step_times *times)
{
    gts_step_times *same = times->id == 0 ? NULL : *find_link(&list, times->id);
    for (; same == NULL && list != NULL; list = list->next) {
        if (list->id == 0 && has_same_positions(list, times))
            same = list;
    }
    return same;
}

gts_step_times *gts_step_times_keep(gts_step_times **list, gts_step_times *times)
{
    gts_step_times *const same = find_same(*list, times);
    if (same == NULL) {
        times->next = *list;
        *list = times;
        return times;
    }
    same->id = times->id;
    for (size_t i = 0; i < same->count; ++i) {
        same->position[i].count += times->position[i].count;
        gts_histogram_merge(&same->position[i].time, &times->position[i].time);
    }
    free(times);
    return same;
}

gts_step_times *gts_step_times_find(gts_step_times **list, const gts_step *step)
{
    gts_step_times *const known = *find_link(list, step->id);
    gts_step_times *const times = known != NULL ? known : new_times(step);
    return known != NULL || times == NULL ? known : gts_step_times_keep(list, times);
}

void gts_step_times_release(gts_step_times **list, uint64_t id)
{
    gts_step_times *const times = gts_step_times_pop(find_link(list, id));
    if (times == NULL)
        return;
    times->id = 0;
    (void)gts_step_times_keep(list, times);
}

void gts_step_times_forget(gts_step_times *list, uint64_t id)
{
    gts_step_times *const times = *find_link(&list, id);
    if (times != NULL)
        times->id = 0;
}
