/* Copies arguments of replayed calls between the host and a GPU. */
#include "record/transfer.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/layout.h"
#include "base/refuse.h"
#include "record/snapshot.h"

/* ---- Of calls -------------------------------------------------------------------------------------------------- */

static int report(gts_program *program, const gts_cuda *cuda, int error)
{
    if (error == 0)
        return 0;
    return GTS_REFUSE_PROGRAM(program, GTS_RUNTIME_ERROR,
                              "cannot be replayed: the GPU reported %s when arguments were copied.",
                              gts_cuda_describe(cuda, error).text);
}

int gts_transfer_put(gts_program *program, const gts_contract *leaf, const void *memory, size_t size, void **copy)
{
    const gts_cuda *const cuda = gts_gpu_functions(program);
    *copy = NULL;
    if (cuda == NULL)
        return GTS_REFUSE(program, leaf, GTS_VALUE_ERROR,
                          "must be on device '%s', but no program has been loaded whose kernels run there.",
                          gts_device_name(leaf->device));
    int error = cuda->malloc(copy, size + 1);
    if (error != 0) {
        *copy = NULL;
        (void)cuda->get_last_error();
    } else {
        error = gts_cuda_copy(cuda, gts_stream(program), *copy, memory, size, false);
    }
    return report(program, cuda, error);
}

int gts_transfer_get(gts_program *program, void *memory, const void *copy, size_t size)
{
    const gts_cuda *const cuda = gts_gpu_functions(program);
    return report(program, cuda, gts_cuda_copy(cuda, gts_stream(program), memory, copy, size, true));
}

void gts_transfer_free(const gts_program *program, void *copy)
{
    const gts_cuda *const cuda = copy == NULL ? NULL : gts_gpu_functions(program);
    if (cuda != NULL && cuda->free(copy) != 0)
        (void)cuda->get_last_error();
}

/* ---- Of hosts -------------------------------------------------------------------------------------------------- */

int gts_transfer_array(const char *program, const char *argument, gts_array *array, char **memory)
{
    const gts_cuda *const cuda = gts_cuda_loaded();
    size_t size;
    gts_extent extent;
    *memory = NULL;
    if (cuda == NULL || !gts_measure(array, &size, &extent))
        return gts_error_set(&gts_own_error, GTS_VALUE_ERROR,
                             GTS_ARGUMENT "must be in host memory to be compared, not on device '%s'.", argument,
                             program, gts_device_name(array->device));
    const size_t bytes = (size_t)(extent.high - extent.low);
    *memory = malloc(bytes + 1);
    if (*memory == NULL)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Out of memory while replaying program '%s'.", program);
    const int error = gts_cuda_copy(cuda, gts_stream(NULL), *memory, (char *)array->data + extent.low, bytes, true);
    array->data = *memory - extent.low;
    array->device = GTS_CPU;
    if (error == 0)
        return 0;
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, GTS_ARGUMENT "cannot be copied from the GPU: %s.", argument,
                         program, gts_cuda_describe(cuda, error).text);
}
