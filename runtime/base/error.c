/* The one error slot of a program, that of a thread, and the names that messages use. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

_Thread_local gts_error gts_own_error;

int gts_error_write(gts_error *error, gts_error_kind kind, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    error->kind = kind;
    (void)vsnprintf(error->message, sizeof error->message, format, values);
    va_end(values);
    return -1;
}

int gts_error_set(gts_program *self, gts_error_kind kind, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    self->error.kind = kind;
    (void)vsnprintf(self->error.message, sizeof self->error.message, format, values);
    va_end(values);
    return -1;
}

const gts_error *gts_last_error(const gts_program *program)
{
    return program == NULL ? &gts_own_error : &program->error;
}

static const struct {
    const char *name;
    size_t size;
} DTYPES[] = {
    [GTS_BOOL] = {"bool", 1},       [GTS_INT8] = {"int8", 1},       [GTS_UINT8] = {"uint8", 1},
    [GTS_INT16] = {"int16", 2},     [GTS_UINT16] = {"uint16", 2},   [GTS_INT32] = {"int32", 4},
    [GTS_UINT32] = {"uint32", 4},   [GTS_INT64] = {"int64", 8},     [GTS_UINT64] = {"uint64", 8},
    [GTS_FLOAT32] = {"float32", 4}, [GTS_FLOAT64] = {"float64", 8},
};

const char *gts_dtype_name(gts_dtype dtype)
{
    return dtype >= GTS_BOOL && dtype <= GTS_FLOAT64 ? DTYPES[dtype].name : "unknown dtype";
}

size_t gts_dtype_size(gts_dtype dtype)
{
    return dtype >= GTS_BOOL && dtype <= GTS_FLOAT64 ? DTYPES[dtype].size : 0;
}

const char *gts_device_name(gts_device device)
{
    switch (device) {
    case GTS_CPU:
        return "cpu";
    case GTS_CUDA:
        return "cuda";
    case GTS_ROCM:
        return "rocm";
    }
    return "unknown device";
}
