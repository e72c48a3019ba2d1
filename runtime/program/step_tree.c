/*
 * All that a step and the steps inside it contain, and changing it: everything is checked before anything changes. What a
 * change is, its host says.
 */
#include <stdlib.h>

#include "base/error.h"
#include "gtstub/bound.h"

/* ---- Collecting ------------------------------------------------------------------------------------------------ */

static GTS_COLD int refuse_memory(void)
{
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Out of memory.");
}

static GTS_COLD int refuse_other_host(const gts_step *outer, const gts_step *inner)
{
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                         "Step '%s' cannot be changed: step '%s' inside it was handed over, and must be changed by "
                         "itself.",
                         outer->name, inner->name);
}

/* Makes room for one more element of an array, whose room is a power of two; NULL when memory runs out. */
static void *grow(void *array, size_t count, size_t size)
{
    return (count & (count - 1)) == 0 ? realloc(array, (count == 0 ? 1 : 2 * count) * size) : array;
}

static int add_place(gts_step_tree *self, const gts_step *step, size_t position, size_t size)
{
    const gts_bound_call *const call = step->positions[position].call;
    for (size_t i = 0; call != NULL && i < self->place_count; ++i) {
        if (gts_position_of(&self->places[i])->call == call)
            return 0;
    }
    gts_place *const places = grow(self->places, self->place_count, sizeof *places);
    if (places == NULL)
        return refuse_memory();
    self->places = places;
    places[self->place_count] = (gts_place){step, position, calloc(1, size)};
    return places[self->place_count++].changed != NULL ? 0 : refuse_memory();
}

/* Enters a step, and adds it. */
static int add_step(gts_step_tree *self, gts_step *step)
{
    for (size_t i = 0; i < self->step_count; ++i) {
        if (self->steps[i] == step)
            return 0;
    }
    gts_step **const steps = grow(self->steps, self->step_count, sizeof *steps);
    if (steps == NULL)
        return refuse_memory();
    self->steps = steps;
    if (self->step_count > 0 && (step->owner != NULL) != (steps[0]->owner != NULL))
        return refuse_other_host(steps[0], step);
    if (gts_step_enter(step) != 0)
        return -1;
    steps[self->step_count++] = step;
    return 0;
}

int gts_step_tree_begin(gts_step_tree *self, gts_step *step, size_t size)
{
    *self = (gts_step_tree){0};
    int status = add_step(self, step);
    for (size_t i = 0; i < self->step_count; ++i) {
        const gts_step *const outer = self->steps[i];
        for (size_t position = 0; position < outer->count && status == 0; ++position) {
            const gts_position *const at = &outer->positions[position];
            if (at->role->step != NULL)
                status = add_step(self, at->role->step);
            else if (at->call != NULL || at->role->array_function != NULL)
                status = add_place(self, outer, position, size);
        }
    }
    return status;
}

void gts_step_tree_end(gts_step_tree *self, void (*release)(gts_place *))
{
    for (size_t i = 0; i < self->step_count; ++i)
        gts_step_leave(self->steps[i]);
    for (size_t i = 0; i < self->place_count; ++i) {
        if (self->places[i].changed != NULL)
            release(&self->places[i]);
        free(self->places[i].changed);
    }
    free(self->places);
    free(self->steps);
}

/* ---- Changing -------------------------------------------------------------------------------------------------- */

int gts_step_tree_change(const gts_step_tree *self, int (*check)(gts_place *, const void *what),
                         void (*change)(gts_place *), const void *what)
{
    for (size_t i = 0; i < self->place_count; ++i) {
        if (check(&self->places[i], what) != 0)
            return -1;
    }
    for (size_t i = 0; i < self->place_count; ++i)
        change(&self->places[i]);
    return 0;
}
