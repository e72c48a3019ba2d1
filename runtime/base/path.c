/* Paths of files. */
#define _POSIX_C_SOURCE 200809L
#include "base/path.h"

#include <stdio.h>

#include "base/error.h"

int gts_refuse_long_path(const char *path)
{
    return gts_error_set(&gts_own_error, GTS_VALUE_ERROR, "Path '%s' is too long.", path);
}

int gts_join_path(char path[PATH_MAX], const char *directory, size_t length, const char *name)
{
    const int written = snprintf(path, PATH_MAX, "%.*s/%s", (int)length, directory, name);
    return written >= 0 && written < PATH_MAX ? 0 : gts_refuse_long_path(directory);
}
