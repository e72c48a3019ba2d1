/* All that steps and the steps inside them contain, and changing it: everything is checked before anything changes. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/new.h"
#include "program/private.h"
#include "steps/steps.h"

/* ---- Collecting ------------------------------------------------------------------------------------------------ */

/* Makes room for one more element of an array, whose room is a power of two. */
static void *grow(void *array, const void *first, size_t room, size_t count, size_t size)
{
    if (count < room || (count & (count - 1)) != 0)
        return array;
    void *const grown = memcpy(gts_new(2 * count, size), array, count * size);
    if (array != first)
        free(array);
    return grown;
}

#define GROW(self, name)                                                                                               \
    grow((self)->name##s, (self)->first_##name##s, sizeof(self)->first_##name##s / sizeof *(self)->first_##name##s,    \
         (self)->name##_count, sizeof *(self)->name##s)

static void add_place(gts_step_tree *self, const gts_step *step, size_t position)
{
    const gts_position *const at = &step->positions[position];
    for (size_t i = 0; i < self->place_count; ++i) {
        const gts_position *const other = gts_position_of(&self->places[i]);
        if ((at->call != NULL && other->call == at->call) ||
            (at->role->held != NULL && other->role->held == at->role->held))
            return;
    }
    self->places = GROW(self, place);
    self->places[self->place_count++] = (gts_place){step, position, at->role->held, NULL};
}

/* ---- One change at a time -------------------------------------------------------------------------------------- */

/* NULL for a function without arrays. */
static _Atomic bool *is_changing(const gts_place *place)
{
    gts_bound_call *const call = gts_position_of(place)->call;
    gts_held *const held = gts_position_of(place)->role->held;
    return call != NULL ? &call->is_changing : held != NULL ? &held->is_changing : NULL;
}

static int begin_changes(gts_step_tree *self)
{
    for (; self->begun < self->place_count; ++self->begun) {
        _Atomic bool *const is_begun = is_changing(&self->places[self->begun]);
        if (is_begun != NULL && atomic_exchange(is_begun, true))
            break;
    }
    if (self->begun == self->place_count)
        return 0;
    const gts_place *const place = &self->places[self->begun];
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                         "Step '%s' cannot be changed: %s '%s' is being changed, in another thread or through another "
                         "step.",
                         place->step->name, gts_position_of(place)->role->kind,
                         gts_step_name_at(place->step, place->position));
}

static void end_changes(const gts_step_tree *self)
{
    for (size_t i = 0; i < self->begun; ++i) {
        const gts_place *const place = &self->places[i];
        for (size_t array = 0; place->held != NULL && array < place->held->count; ++array)
            place->held->array[array].by = NULL;
        if (is_changing(place) != NULL)
            *is_changing(place) = false;
    }
}

/* ---- Beginning and ending -------------------------------------------------------------------------------------- */

/* Enters a step, and adds it. */
static int add_step(gts_step_tree *self, gts_step *step)
{
    for (size_t i = 0; i < self->step_count; ++i) {
        if (self->steps[i] == step)
            return 0;
    }
    self->steps = GROW(self, step);
    if (self->step_count > 0 && (step->owner != NULL) != (self->steps[0]->owner != NULL))
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                             "Step '%s' cannot be changed: step '%s' inside it was handed over, and must be changed by "
                             "itself.",
                             self->steps[0]->name, step->name);
    GTS_TRY(gts_step_enter(step));
    self->steps[self->step_count++] = step;
    return 0;
}

int gts_step_tree_begin(gts_step_tree *self, gts_step *const *steps, size_t count, gts_waiting wait)
{
    self->steps = self->first_steps;
    self->places = self->first_places;
    self->step_count = self->place_count = self->begun = 0;
    self->wait = wait;
    int status = 0;
    for (size_t i = 0; i < count && status == 0; ++i) {
        status = add_step(self, steps[i]);
        if (status == 0 && wait == NULL && steps[i]->host != NULL) /* C and Fortran: what a step borrows may be gone */
            status = gts_step_check_access(steps[i]);
    }
    for (size_t i = 0; i < self->step_count; ++i) {
        const gts_step *const outer = self->steps[i];
        for (size_t position = 0; position < outer->count && status == 0; ++position) {
            const gts_position *const at = &outer->positions[position];
            if (at->role->step != NULL)
                status = add_step(self, at->role->step);
            else if (at->call != NULL || at->role->array_function != NULL)
                add_place(self, outer, position);
        }
    }
    return status == 0 ? begin_changes(self) : status;
}

void gts_step_tree_end(gts_step_tree *self)
{
    end_changes(self);
    for (size_t i = 0; i < self->place_count; ++i)
        gts_unbind(&self->places[i].changed);
    for (size_t i = 0; i < self->step_count; ++i)
        gts_step_leave(self->steps[i]);
    if (self->places != self->first_places)
        free(self->places);
    if (self->steps != self->first_steps)
        free(self->steps);
}

void gts_step_tree_commit(gts_step_tree *self)
{
    for (size_t i = 0; i < self->place_count; ++i) {
        gts_place *const place = &self->places[i];
        if (place->changed != NULL)
            gts_bound_replace(gts_position_of(place)->call, place->changed, self->wait);
    }
}
