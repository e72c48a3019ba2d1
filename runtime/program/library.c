/*
 * Opens libraries. dlopen() compares paths as texts first, so it would return the old library after chdir(), or when
 * another file has taken a path. Here each file is opened under a name of its own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/error.h"
#include "program/private.h"

/* A library that was opened. It is never closed, because OpenMP threads of an SDFG may still execute its code. */
typedef struct library {
    struct library *next;
    void *handle;
    gts_file file; /* when it was opened */
    char *path;    /* absolute, without links */
} library;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static library *libraries;

static GTS_COLD void *refuse(const char *path, const char *reason)
{
    gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Cannot load library '%s': %s.", path, reason);
    return NULL;
}

/* Stores what a path names now; false, with errno set, if that is nothing. */
static bool find_file(const char *path, gts_file *file)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return false;
    *file = (gts_file){status.st_dev, status.st_ino, status.st_size,
                       status.st_mtim.tv_sec * INT64_C(1000000000) + status.st_mtim.tv_nsec};
    return true;
}

static bool is_same_file(const gts_file *a, const gts_file *b)
{
    return a->device == b->device && a->inode == b->inode;
}

static bool is_unchanged(const gts_file *a, const gts_file *b)
{
    return is_same_file(a, b) && a->bytes == b->bytes && a->modified == b->modified;
}

/* "/a/b/lib.so" as "/a/b/./lib.so", with one "./" more for each library that was loaded from this path before. */
static char *new_name(const char *path)
{
    size_t count = 1;
    for (const library *each = libraries; each != NULL; each = each->next)
        count += strcmp(each->path, path) == 0;
    const size_t directory = (size_t)(strrchr(path, '/') + 1 - path);
    const size_t length = strlen(path);
    char *const name = malloc(length + 2 * count + 1);
    if (name == NULL)
        return NULL;
    memcpy(name, path, directory);
    for (size_t i = 0; i < count; ++i)
        memcpy(name + directory + 2 * i, "./", 2);
    memcpy(name + directory + 2 * count, path + directory, length - directory + 1);
    return name;
}

/* dlopen(), without its substitution of $ORIGIN, $LIB and $PLATFORM in paths. */
static void *open_name(const char *name)
{
    if (GTS_LIKELY(strchr(name, '$') == NULL))
        return dlopen(name, RTLD_NOW | RTLD_LOCAL);
    const int descriptor = open(name, O_RDONLY | O_CLOEXEC); /* stays open, so that no other file gets its number */
    char link[32];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    return dlopen(link, RTLD_NOW | RTLD_LOCAL);
}

/* Whether a path still names this file. */
static bool names_still(const char *path, const gts_file *file)
{
    gts_file now;
    return find_file(path, &now) && is_unchanged(&now, file);
}

/* Opens a library that is not in the list, and adds it. */
static void *open_new(const char *given, const gts_file *file)
{
    static const char replaced[] = "the file was replaced while it was being loaded";
    char *const path = realpath(given, NULL);
    char *const name = path == NULL ? NULL : new_name(path);
    library *const self = name == NULL ? NULL : malloc(sizeof *self);
    void *handle = NULL;
    if (self == NULL)
        (void)refuse(given, strerror(errno));
    else if (!names_still(path, file))
        (void)refuse(given, replaced);
    else if ((handle = open_name(name)) == NULL)
        (void)refuse(given, dlerror());
    free(name);
    if (handle == NULL) {
        free(self);
        free(path);
        return NULL;
    }
    *self = (library){.next = libraries, .handle = handle, .file = *file, .path = path};
    libraries = self;
    if (names_still(path, file))
        return handle;
    self->file = (gts_file){0}; /* it may be either file, so that it is not found again */
    return refuse(given, replaced);
}

static void *find_or_open(const char *path, const gts_file *verified)
{
    gts_file file;
    if (!find_file(path, &file))
        return refuse(path, strerror(errno));
    if (verified != NULL && !is_unchanged(&file, verified))
        return refuse(path, "the file was replaced or written to after it was verified");
    for (const library *each = libraries; each != NULL; each = each->next) {
        if (!is_same_file(&each->file, &file))
            continue;
        if (is_unchanged(&each->file, &file))
            return each->handle;
        return refuse(path, "the file was written to after this process loaded it; load it in a new process");
    }
    return open_new(path, &file);
}

void *gts_library_open(const char *path, const gts_file *verified)
{
    (void)pthread_mutex_lock(&lock);
    void *const handle = find_or_open(path, verified);
    (void)pthread_mutex_unlock(&lock);
    return handle;
}

void gts_library_find(void *library, const char *prefix, const char *name, void *function)
{
    char symbol[512];
    const int length = snprintf(symbol, sizeof symbol, "%s%s", prefix, name);
    void *const address = length < 0 || (size_t)length >= sizeof symbol ? NULL : dlsym(library, symbol);
    memcpy(function, &address, sizeof address); /* C does not convert an object pointer to a function pointer */
}

void gts_library_forget(void)
{
    (void)pthread_mutex_init(&lock, NULL);
}
