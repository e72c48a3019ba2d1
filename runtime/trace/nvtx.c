/*
 * NVTX ranges around the runs of SDFGs, by which NVIDIA's profilers show programs by name. A profiler that is attached
 * names a library in NVTX_INJECTION64_PATH. This file does what the headers of NVTX 3 do with it, as far as ranges of the
 * default domain need it: it hands the library tables of function pointers, which that sets.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#include "trace/trace.h"

typedef void (*function)(void);

/* The modules, and the number of functions of each, with an unused one at the beginning. Names are those of NVTX. */
enum { CORE = 1, CUDA, OPENCL, CUDART, CORE2, SYNC, MODULES };
enum { CORE_SIZE = 16, CUDA_SIZE = 9, OPENCL_SIZE = 15, CUDART_SIZE = 7, CORE2_SIZE = 16, SYNC_SIZE = 7, MOST = 16 };
enum { RANGE_PUSH_A = 9, RANGE_POP = 11 }; /* of CORE */

static const unsigned int sizes[MODULES] = {0, CORE_SIZE, CUDA_SIZE, OPENCL_SIZE, CUDART_SIZE, CORE2_SIZE, SYNC_SIZE};

/* What the library sets, and where it finds that: pointers to the functions, between two that are NULL. */
static function functions[MODULES][MOST];
static function *tables[MODULES][MOST + 1];

static int get_table(int module, function ***table, unsigned int *size)
{
    if (module < CORE || module >= MODULES)
        return 0;
    for (unsigned int i = 1; i < sizes[module]; ++i)
        tables[module][i] = &functions[module][i];
    if (table != NULL)
        *table = tables[module];
    if (size != NULL)
        *size = sizes[module];
    return 1;
}

static void set_version(uint32_t version)
{
    (void)version;
}

static const struct {
    size_t size;
    int (*get_table)(int module, function ***table, unsigned int *size);
} callbacks = {sizeof callbacks, get_table};

static const struct {
    size_t size;
    uint32_t version, reserved;
    void (*set_version)(uint32_t version);
} version_info = {sizeof version_info, 3, 0, set_version};

static const void *get_export_table(uint32_t number)
{
    return number == 1 ? (const void *)&callbacks : number == 3 ? (const void *)&version_info : NULL;
}

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

static int (*push)(const char *name);
static int (*pop)(void);
static bool is_on;

static void read_environment(void)
{
    const char *const path = getenv("NVTX_INJECTION64_PATH");
    void *const library = path == NULL || *path == '\0' ? NULL : dlopen(path, RTLD_LAZY);
    int (*initialize)(const void *(*)(uint32_t)) = NULL;
    if (library != NULL)
        *(void **)&initialize = dlsym(library, "InitializeInjectionNvtx2");
    if (initialize == NULL || initialize(get_export_table) == 0)
        return;
    push = (int (*)(const char *))functions[CORE][RANGE_PUSH_A];
    pop = (int (*)(void))functions[CORE][RANGE_POP];
    is_on = push != NULL && pop != NULL;
    if (is_on)
        (void)__atomic_fetch_add(&gts_attention, 1, __ATOMIC_RELAXED);
}

static void enter(gts_program *self)
{
    self->has_extra_work |= is_on;
}

static int run(gts_program *self, gts_observers rest)
{
    if (!is_on)
        return gts_run_observed(self, rest);
    (void)push(self->stub->name);
    const int status = gts_run_observed(self, rest);
    (void)pop();
    return status;
}

/* In a forked child, in which the profiler may not work. */
static void forget(void)
{
    is_on = false;
}

const gts_observer gts_nvtx_observer = {
    .read_environment = read_environment,
    .enter = enter,
    .run = run,
    .after_fork = forget,
};
