/* Loads and closes a program: finds the functions of its two libraries, and allocates and frees its memory. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/new.h"
#include "base/table_copy.h"
#include "program/bound.h"
#include "program/observe.h"

#ifdef GTS_STATIC_RUNTIME

/* A stub in a file would run on a runtime of its own, which knows neither the programs nor the profiles of this one. */
static const gts_stub *find_stub(const char *path, const gts_file *verified)
{
    (void)verified;
    return gts_linked_load(path);
}

#else

/* Refuses a stub whose program was built for another CPU: an instruction that is missing would end the process. */
static int check_cpu(void *library, const char *path)
{
    const char *const needed = dlsym(library, "gts_needed_cpu"), *lacking;
    const size_t length = needed == NULL ? 0 : gts_lacks_feature(needed, &lacking);
    if (length == 0)
        return 0;
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                         "Stub '%s' belongs to a program that was built for a CPU with '%.*s', which this one lacks; "
                         "build the program on this machine.",
                         path, (int)length, lacking);
}

static const gts_stub *find_stub(const char *path, const gts_file *verified)
{
    void *const library = gts_library_open(path, verified);
    if (library == NULL || check_cpu(library, path) != 0)
        return NULL;
    const gts_stub *const stub = dlsym(library, "gts_descriptor");
    if (stub == NULL)
        gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Library '%s' is not a gtstub call stub.", path);
    else if (stub->abi == GTS_ABI && dlsym(library, "gts_load") == NULL) /* it has libgtstub.a, which hides this */
        gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                      "Stub '%s' is not linked with libgtstub.so.%d, as a stub in a file must be; link it again.", path,
                      GTS_ABI);
    else
        return stub;
    return NULL;
}

#endif

const gts_stub *gts_load_stub(const char *path, const gts_file *verified)
{
    gts_start_observers();
    const gts_stub *const stub = find_stub(path, verified);
    if (GTS_LIKELY(stub == NULL || stub->abi == GTS_ABI))
        return stub;
    gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                  "Stub '%s' was generated for ABI %u of gtstub, but this is ABI %d; generate it again.", path,
                  stub->abi, GTS_ABI);
    return NULL;
}

static int find_gpu(gts_program *self, void *library, const char *path)
{
    gts_gpu *const gpu = &self->runtime->gpu;
    if (self->stub->device == GTS_CPU)
        return 0;
    gts_library_find(library, "__dace_gpu_", "last_error", &gpu->last_error);
    gts_library_find(library, "__dace_gpu_", "set_all_streams", &gpu->set_all_streams);
    const char *missing;
    gpu->cuda = gpu->set_all_streams == NULL ? NULL : gts_cuda_find(library, self->stub->device, &missing);
    if (gpu->set_all_streams != NULL && gpu->cuda == NULL)
        return gts_error_set(&self->error, GTS_RUNTIME_ERROR,
                             "Library '%s' must be linked with the shared library of %s or later: it has no '%s%s'.",
                             path, self->stub->device == GTS_CUDA ? "CUDA 11.4" : "ROCm 6",
                             self->stub->device == GTS_CUDA ? "cuda" : "hip", missing);
    gpu->stream = gts_stream(NULL);
    gpu->synchronizes = gts_is_set("GTSTUB_GPU_SYNC");
    return 0;
}

static int find_sdfg(gts_program *self, void *library, const char *path)
{
    const gts_stub *const stub = self->stub;
    gts_library_find(library, "__program_", stub->name, &self->program);
    gts_library_find(library, "__dace_init_", stub->name, &self->init);
    gts_library_find(library, "__dace_exit_", stub->name, &self->runtime->exit);
    if (self->program == NULL || self->init == NULL || self->runtime->exit == NULL)
        return gts_error_set(&self->error, GTS_RUNTIME_ERROR,
                             "Library '%s' is not the SDFG of program '%s': it does not export '%s%s'.", path,
                             stub->name,
                             self->program == NULL ? "__program_"
                             : self->init == NULL  ? "__dace_init_"
                                                   : "__dace_exit_",
                             stub->name);
    const char *interface; /* NULL if gtstub has not built the library */
    gts_library_find(library, "__gtstub_interface_", stub->name, &interface);
    if (interface != NULL && strcmp(interface, stub->interface_digest) != 0)
        return gts_error_set(
            &self->error, GTS_RUNTIME_ERROR,
            "Library '%s' was built from other signatures than the stub of program '%s': it takes other "
            "arguments, or has other values compiled in. Generate the stub from the signatures that "
            "the library was built with.",
            path, stub->name);
    for (uint32_t i = 0; i < stub->workspace_count; ++i) {
        const char *const storage = stub->workspaces[i].storage;
        gts_library_find(library, "__dace_get_external_memory_size_", storage, &self->bytes[i]);
        gts_library_find(library, "__dace_set_external_memory_", storage, &self->install[i]);
        if (self->bytes[i] == NULL || self->install[i] == NULL)
            return gts_error_set(&self->error, GTS_RUNTIME_ERROR,
                                 "Library '%s' is not the SDFG of program '%s': it has no workspace in '%s'.", path,
                                 stub->name, storage);
    }
    self->runtime->pool = gts_pool_lend(library, stub->name);
    return find_gpu(self, library, path);
}

static void free_program(gts_program *self)
{
    for (uint32_t i = 0; i < self->stub->leaf_count; ++i) {
        gts_table_copy_release(self->leaf[i].table[0].copy);
        gts_table_copy_release(self->leaf[i].table[1].copy);
    }
    free(self->leaf);
    free(self->slots);
    free(self->descriptors);
    free(self->args);
    free(self->other.slots);
    free(self->other.descriptors);
    free(self->other.args);
    free(self->bytes);
    free(self->install);
    free(self->workspace);
    free(self->runtime->workspace_size);
    free(self->runtime->lower_bounds);
    free(self->memory_symbol);
    free(self);
}

/* The length of gts_program.descriptors: an address for each array, and two words for each of its axes. */
static size_t descriptor_words(const gts_stub *stub)
{
    size_t words = 0;
    for (uint32_t i = 0; i < stub->leaf_count; ++i)
        words += gts_is_array(stub->leaves[i].kind) ? 1 + 2 * (size_t)stub->leaves[i].rank : 0;
    return words;
}

_Static_assert(offsetof(gts_program, stub) == GTS_CACHE_LINE,
               "the members for calls with known arrays must fill one cache line");

static gts_program *new_program(const gts_stub *stub)
{
    const size_t known = offsetof(gts_program, known) + (stub->leaf_count + 1) * sizeof(void *);
    const size_t runtime = gts_in_cache_lines(known);
    char *const memory = gts_new_lines(runtime + sizeof(gts_runtime) + gts_observed_size);
    gts_program *const self = (gts_program *)memory;
    self->runtime = (gts_runtime *)(memory + runtime);
    self->runtime->home = &gts_attention;
    self->stub = self->linked = stub;
    self->leaf = gts_new(stub->leaf_count, sizeof *self->leaf);
    self->slots = gts_new(1, stub->slots_size);
    self->args = gts_new(1, stub->args_size);
    self->descriptors = gts_new(descriptor_words(stub), sizeof *self->descriptors);
    self->other.slots = gts_new(1, stub->slots_size);
    self->other.args = gts_new(1, stub->args_size);
    self->other.descriptors = gts_new(descriptor_words(stub), sizeof *self->descriptors);
    self->bytes = gts_new(stub->workspace_count, sizeof *self->bytes);
    self->install = gts_new(stub->workspace_count, sizeof *self->install);
    self->workspace = gts_new(stub->workspace_count, sizeof *self->workspace);
    self->runtime->workspace_size = gts_new(stub->workspace_count, sizeof *self->runtime->workspace_size);
    self->memory_symbol = gts_new(stub->memory_symbol_count, sizeof *self->memory_symbol);
    for (uint32_t i = 0; i < stub->leaf_count; ++i) {
        self->leaf[i].current = &self->leaf[i].remembered[0];
        self->leaf[i].index_base = GTS_NO_INDEX_BASE;
    }
    self->debug = gts_is_set("GTSTUB_DEBUG");
    self->has_extra_work = true; /* the first call */
    gts_forget_arrays(self);
    gts_forget_objects(self); /* version 1: no version is 0 */
    self->generation = gts_forks;
    gts_loaded_add(self);
    return self;
}

int gts_load_sdfg(const gts_stub *stub, const char *library_path, const gts_file *verified, gts_program **program)
{
    const uint64_t begin = gts_ticks();
    void *const library = gts_library_open(library_path, verified);
    if (library == NULL)
        return -1;
    gts_program *self = new_program(stub);
    gts_lock(self, GTS_FOREVER); /* another thread may be setting the stream of all programs */
    GTS_OBSERVE(load, self, library);
    const bool is_ready = find_sdfg(self, library, library_path) == 0 &&
                          (!stub->init_at_load || stub->workspace_count > 0 || gts_handle_init(self, NULL) == 0);
    gts_leave(self);
    if (!is_ready) {
        gts_own_error = self->error;
        gts_close(&self);
        return -1;
    }
    gts_observe_span("load", stub->name, begin);
    *program = self;
    return 0;
}

int gts_load(const char *stub_path, const char *library_path, gts_program **program)
{
    return gts_load_verified(stub_path, library_path, NULL, program);
}

int gts_load_verified(const char *stub_path, const char *library_path, const gts_file files[2], gts_program **program)
{
    *program = NULL;
    const gts_stub *const stub = gts_load_stub(stub_path, files);
    return stub == NULL ? -1 : gts_load_sdfg(stub, library_path, files == NULL ? NULL : &files[1], program);
}

void gts_close(gts_program **program)
{
    gts_program *const self = *program;
    *program = NULL;
    if (self == NULL)
        return;
    gts_loaded_remove(self);
    gts_bound_close(self);
    if (!gts_belongs_to_parent(self))
        gts_handle_end(self);
    free_program(self);
}
