/* Names and sizes of element types, and names of devices. */
#include "gtstub/gtstub.h"

static const struct {
    const char *name;
    size_t size;
} DTYPES[] = {
    [GTS_BOOL] = {"bool", 1},           [GTS_INT8] = {"int8", 1},
    [GTS_UINT8] = {"uint8", 1},         [GTS_INT16] = {"int16", 2},
    [GTS_UINT16] = {"uint16", 2},       [GTS_INT32] = {"int32", 4},
    [GTS_UINT32] = {"uint32", 4},       [GTS_INT64] = {"int64", 8},
    [GTS_UINT64] = {"uint64", 8},       [GTS_FLOAT32] = {"float32", 4},
    [GTS_FLOAT64] = {"float64", 8},     [GTS_FLOAT16] = {"float16", 2},
    [GTS_COMPLEX64] = {"complex64", 8}, [GTS_COMPLEX128] = {"complex128", 16},
};

const char *gts_dtype_name(gts_dtype dtype)
{
    return dtype >= GTS_BOOL && dtype <= GTS_LAST_DTYPE ? DTYPES[dtype].name : "unknown dtype";
}

size_t gts_dtype_size(gts_dtype dtype)
{
    return dtype >= GTS_BOOL && dtype <= GTS_LAST_DTYPE ? DTYPES[dtype].size : 0;
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
