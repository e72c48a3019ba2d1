/* Opens a program whose two libraries are in the same directory. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/error.h"
#include "program/private.h"

#define SUFFIX "_stub.so"

static bool is_stub(const char *name)
{
    const size_t length = strlen(name), suffix = sizeof SUFFIX - 1;
    return length > suffix && strcmp(name + length - suffix, SUFFIX) == 0;
}

static GTS_COLD int refuse_long_path(const char *path)
{
    return gts_error_set(&gts_own_error, GTS_VALUE_ERROR, "Path '%s' is too long.", path);
}

/* Writes "directory/name" to `path`. */
static int join(char path[PATH_MAX], const char *directory, size_t length, const char *name)
{
    const int written = snprintf(path, PATH_MAX, "%.*s/%s", (int)length, directory, name);
    return written >= 0 && written < PATH_MAX ? 0 : refuse_long_path(directory);
}

/* Writes the path of the only stub in a directory to `stub`. */
static int find_in(const char *directory, char stub[PATH_MAX])
{
    DIR *const entries = opendir(directory);
    if (entries == NULL)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Cannot open directory '%s': %s.", directory,
                             strerror(errno));
    unsigned int count = 0;
    int status = 0;
    for (const struct dirent *entry = readdir(entries); entry != NULL && status == 0; entry = readdir(entries)) {
        if (is_stub(entry->d_name) && count++ == 0)
            status = join(stub, directory, strlen(directory), entry->d_name);
    }
    (void)closedir(entries);
    if (status == 0 && count != 1)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                             "Directory '%s' holds %u call stubs (*_stub.so), not one; name the file.", directory,
                             count);
    return status;
}

int gts_open(const char *path, gts_program **program)
{
    *program = NULL;
    char stub[PATH_MAX], library[PATH_MAX];
    struct stat status;
    if (stat(path, &status) != 0)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Cannot open '%s': %s.", path, strerror(errno));
    if (S_ISDIR(status.st_mode)) {
        if (find_in(path, stub) != 0)
            return -1;
    } else if (snprintf(stub, sizeof stub, "%s", path) >= (int)sizeof stub) {
        return refuse_long_path(path);
    }
    const gts_stub *const descriptor = gts_load_stub(stub, NULL);
    if (descriptor == NULL)
        return -1;
    const char *const slash = strrchr(stub, '/'); /* the SDFG library is in the directory of the stub */
    const size_t length = slash == NULL ? 1 : (size_t)(slash - stub);
    GTS_TRY(join(library, slash == NULL ? "." : stub, length, descriptor->library));
    return gts_load_sdfg(descriptor, library, NULL, program);
}
