/* Opens a program whose two libraries are in the same directory. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/path.h"
#include "program/private.h"

#define SUFFIX "_stub.so"

/* The directory in a path, "." if it names none, and the length of this text without the slash. */
static const char *directory_of(const char *path, size_t *length)
{
    const char *const slash = strrchr(path, '/');
    *length = slash == NULL ? 1 : (size_t)(slash - path);
    return slash == NULL ? "." : path;
}

/*
 * Writes the path that a stub which is linked statically would have beside its SDFG library. `path` is a directory that
 * has the library, whose name is then NULL, or the library. Returns 1 if this is about none of the linked stubs.
 */
static int find_linked(const char *path, const char *library, char stub[PATH_MAX])
{
    size_t length = strlen(path);
    const char *const directory = library == NULL ? path : directory_of(path, &length);
    unsigned int count;
    const gts_linked_stub *const linked = gts_linked_beside(directory, length, library, &count);
    if (linked == NULL || (library != NULL && count == 0))
        return 1;
    GTS_TRY(gts_join_path(stub, directory, length, linked->file));
    if (count == 1)
        return 0;
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                         "Path '%s' belongs to %u stubs of this host, not to one; name the stub, as '%s'.", path, count,
                         stub);
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
        const size_t length = strlen(entry->d_name), suffix = sizeof SUFFIX - 1;
        if (length > suffix && strcmp(entry->d_name + length - suffix, SUFFIX) == 0 && count++ == 0)
            status = gts_join_path(stub, directory, strlen(directory), entry->d_name);
    }
    closedir(entries);
    if (status == 0 && count == 0)
        status = find_linked(directory, NULL, stub);
    if (status > 0 || (status == 0 && count > 1))
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                             "Directory '%s' holds %u call stubs (*_stub.so), not one; name the file.", directory,
                             count);
    return status;
}

/* Writes a path to `to`, with the directory of the executable in place of "$ORIGIN" at its beginning. */
static int expand(const char *path, char to[PATH_MAX])
{
    static const char origin[] = "$ORIGIN";
    const size_t length = sizeof origin - 1;
    const bool is_relative = strncmp(path, origin, length) == 0 && (path[length] == '/' || path[length] == '\0');
    const char *const rest = is_relative ? path + length : path;
    size_t before = 0;
    if (is_relative) {
        const ssize_t read = readlink("/proc/self/exe", to, PATH_MAX - 1);
        if (read < 0)
            return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Cannot find the directory of the executable: %s.",
                                 strerror(errno));
        to[read] = '\0';
        before = (size_t)(strrchr(to, '/') - to);
    }
    if (before + strlen(rest) >= PATH_MAX)
        return gts_refuse_long_path(path);
    memcpy(to + before, rest, strlen(rest) + 1);
    return 0;
}

/* Writes the path of the stub that a path names: its own, or that of its directory or of its SDFG library. */
static int find_stub(const char *path, char stub[PATH_MAX])
{
    char found[PATH_MAX];
    struct stat status;
    GTS_TRY(expand(path, found));
    const bool exists = stat(found, &status) == 0;
    if (!exists && gts_linked_find(found) == NULL)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Cannot open '%s': %s.", found, strerror(errno));
    if (exists && S_ISDIR(status.st_mode))
        return find_in(found, stub);
    const int result = find_linked(found, gts_file_name(found), stub);
    if (result > 0)
        memcpy(stub, found, sizeof found);
    return result < 0 ? -1 : 0;
}

int gts_open(const char *path, gts_program **program)
{
    *program = NULL;
    char stub[PATH_MAX], library[PATH_MAX];
    GTS_TRY(find_stub(path, stub));
    const gts_stub *const descriptor = gts_load_stub(stub, NULL);
    if (descriptor == NULL)
        return -1;
    size_t length; /* the SDFG library is in the directory of the stub */
    const char *const directory = directory_of(stub, &length);
    GTS_TRY(gts_join_path(library, directory, length, descriptor->library));
    return gts_load_sdfg(descriptor, library, NULL, program);
}
