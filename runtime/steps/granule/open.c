/* Opening and closing granules. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/new.h"
#include "base/path.h"
#include "steps/granule/private.h"
#include "gtstub/program.h"

static int open_program(const gts_granule_descriptor *self, const char *folder, const gts_granule_program *wanted,
                        gts_program **program)
{
    char path[PATH_MAX];
    GTS_TRY(gts_join_path(path, folder, strlen(folder), wanted->folder));
    if (gts_open(path, program) != 0) {
        const gts_error error = gts_own_error;
        gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Granule '%s' cannot be opened: %s", self->name,
                      error.message);
        gts_own_error.kind = error.kind;
        return -1;
    }
    const gts_stub *const stub = (*program)->stub;
    if (strcmp(stub->program_digest, wanted->program_digest) == 0 &&
        strcmp(stub->sdfg_digest, wanted->sdfg_digest) == 0)
        return 0;
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                         "Granule '%s' cannot be opened: '%s' is not the program '%s' that it was made of: their "
                         "signatures differ.",
                         self->name, path, stub->name);
}

static void set_layouts(gts_granule *self)
{
    for (uint32_t i = 0; i < self->descriptor->array_count; ++i) {
        const gts_granule_array_descriptor *const from = &self->descriptor->arrays[i];
        gts_array *const to = &self->arrays[i];
        *to = (gts_array){.dtype = from->dtype, .device = GTS_CPU, .rank = (int16_t)from->rank};
        memcpy(to->shape, from->shape, sizeof to->shape);
        memcpy(to->strides, from->strides, sizeof to->strides);
        memcpy(to->dims, from->dims, sizeof to->dims);
    }
}

static void set_values(gts_granule *self)
{
    const uint32_t count = self->descriptor->scalar_count;
    for (uint32_t i = 0; i < count; ++i) {
        const gts_granule_scalar *const scalar = &self->descriptor->scalars[i];
        memcpy(&self->values[i], scalar->value, gts_dtype_size(scalar->dtype));
    }
    for (uint32_t step = 0; step < self->descriptor->step_count; ++step)
        memcpy(gts_granule_used(self, step), self->values, count * sizeof *self->values);
    self->change = 1;
}

/* Closes the programs of a granule that is not bound, and frees its members. */
static void release(gts_granule *self)
{
    for (uint32_t i = 0; i < self->descriptor->program_count; ++i)
        gts_close(&self->programs[i]);
    gts_kept_unmap(&self->kept);
    free(self->programs);
    free(self->arrays);
    free(self->is_temporary);
    free(self->values);
    free(self->used);
    free(self->run_with);
    free(self->changed);
}

static gts_granule *new_granule(const gts_granule_descriptor *descriptor)
{
    gts_granule *const self = gts_new(1, sizeof *self);
    self->descriptor = descriptor;
    self->generation = gts_forks;
    self->programs = gts_new(descriptor->program_count, sizeof *self->programs);
    self->arrays = gts_new(descriptor->array_count, sizeof *self->arrays);
    self->is_temporary = gts_new(descriptor->array_count, sizeof *self->is_temporary);
    self->values = gts_new(descriptor->scalar_count, sizeof *self->values);
    self->used = gts_new((size_t)descriptor->step_count * descriptor->scalar_count, sizeof *self->used);
    self->run_with = gts_new(descriptor->step_count, sizeof *self->run_with);
    self->changed = gts_new(descriptor->scalar_count, sizeof *self->changed);
    set_layouts(self);
    set_values(self);
    return self;
}

int gts_granule_open(const gts_granule_descriptor *descriptor, const char *folder, gts_granule **granule)
{
    *granule = NULL;
    if (descriptor->abi != GTS_ABI)
        return gts_error_set(
            &gts_own_error, GTS_RUNTIME_ERROR,
            "Granule '%s' was compiled for version %u of the binary interface, and this runtime has %d: "
            "compile it again.",
            descriptor->name, descriptor->abi, GTS_ABI);
    gts_granule *const self = new_granule(descriptor);
    int status = gts_kept_map(&self->kept, descriptor, folder, self->arrays, self->is_temporary);
    for (uint32_t i = 0; i < descriptor->program_count && status == 0; ++i)
        status = open_program(descriptor, folder, &descriptor->programs[i], &self->programs[i]);
    if (status != 0) {
        const gts_error error = gts_own_error;
        release(self);
        free(self);
        gts_own_error = error;
        return -1;
    }
    *granule = self;
    return 0;
}

GTS_LOCK(lock) /* of the list of closed granules, by which leak checkers reach them */

static gts_granule *last_closed;

/* Makes the granule one that is refused: copies of its handle may still be used. */
static void keep_closed(gts_granule *self)
{
    *self = (gts_granule){.name = gts_new_text("%s", self->descriptor->name)};
    pthread_mutex_lock(&lock);
    self->older = last_closed;
    last_closed = self;
    pthread_mutex_unlock(&lock);
}

int gts_granule_close(gts_granule **granule)
{
    gts_granule *const self = *granule;
    if (gts_granule_is_open(self)) {
        GTS_TRY(gts_granule_unbind(self));
        release(self);
        keep_closed(self);
    }
    *granule = NULL;
    return 0;
}
