/* Paths of files. */
#define _POSIX_C_SOURCE 200809L
#include "base/path.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"

FILE *gts_create_file(const char *path)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, GTS_FILE_MODE);
    FILE *const stream = file < 0 ? NULL : fdopen(file, "w");
    if (file >= 0 && stream == NULL)
        close(file);
    return stream;
}

int gts_refuse_long_path(const char *path)
{
    return gts_error_set(&gts_own_error, GTS_VALUE_ERROR, "Path '%s' is too long.", path);
}

int gts_join_path(char path[PATH_MAX], const char *directory, size_t length, const char *name)
{
    const int written = snprintf(path, PATH_MAX, "%.*s/%s", (int)length, directory, name);
    return written >= 0 && written < PATH_MAX ? 0 : gts_refuse_long_path(directory);
}
