/* Inside the runtime: paths of files. */
#pragma once

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "gtstub/contract.h"

/* The modes of what the runtime makes: nobody else can write it, whatever the umask is. */
#define GTS_FILE_MODE 0644
#define GTS_DIRECTORY_MODE 0755

/* Opens a file to write it anew. Returns NULL with errno if it cannot. */
FILE *gts_create_file(const char *path);

/* Writes "directory/name" to `path`; `length` is that of the directory. Returns 0, or -1 with gts_own_error. */
int gts_join_path(char path[PATH_MAX], const char *directory, size_t length, const char *name);

/* Refuses a path of more than PATH_MAX bytes. */
GTS_COLD int gts_refuse_long_path(const char *path);

/* What follows the last slash of a path. */
static inline const char *gts_file_name(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}
