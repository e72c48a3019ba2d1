/*
 * Opens libraries. dlopen() compares paths as texts first, so it would return the old library after chdir(), or when
 * another file has taken a path. Here each file is opened under a name of its own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/new.h"
#include "program/private.h"
#include "program/trust.h"

/* A library that was opened. It is never closed, because OpenMP threads of an SDFG may still execute its code. */
typedef struct library {
    struct library *next;
    void *handle;
    gts_file file; /* when it was opened */
    char *path;    /* absolute, without links */
} library;

GTS_LOCK(lock) /* of the list */
static library *libraries;

static const char replaced[] = "the file was replaced while it was being loaded";

static GTS_COLD void *refuse(const char *path, const char *reason)
{
    gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Cannot load library '%s': %s.", path, reason);
    return NULL;
}

static gts_file state_of(const struct stat *status)
{
    return (gts_file){status->st_dev, status->st_ino, status->st_size,
                      status->st_mtim.tv_sec * INT64_C(1000000000) + status->st_mtim.tv_nsec};
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
    char *const name = gts_new(1, length + 2 * count + 1);
    memcpy(name, path, directory);
    for (size_t i = 0; i < count; ++i)
        memcpy(name + directory + 2 * i, "./", 2);
    memcpy(name + directory + 2 * count, path + directory, length - directory + 1);
    return name;
}

/*
 * dlopen() of an open file, under a new name. If its path may lead elsewhere by now, or has a text that dlopen() would
 * substitute ($ORIGIN, $LIB, $PLATFORM), the library is opened by its descriptor. *descriptor is then -1: it stays open,
 * so that no other file gets its number, which dlopen() knows the library by.
 */
static void *open_file(const char *path, bool is_exposed, int *descriptor)
{
    if (!is_exposed && strchr(path, '$') == NULL) {
        char *const name = new_name(path);
        void *const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        free(name);
        return handle;
    }
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", *descriptor);
    void *const handle = dlopen(link, RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL)
        *descriptor = -1;
    return handle;
}

/* Whether a file is what a directory has under a name. */
static bool is_in(int directory, const char *name, const gts_file *file)
{
    struct stat status;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    const gts_file found = state_of(&status);
    return is_unchanged(&found, file);
}

typedef ElfW(Ehdr) elf_header;

/* The machine that a library was built for if it is another one than that of the runtime, else NULL. */
static GTS_COLD const char *other_machine(int descriptor)
{
    elf_header file;
    Dl_info runtime;
    if (pread(descriptor, &file, sizeof file, 0) != (ssize_t)sizeof file || dladdr(&libraries, &runtime) == 0)
        return NULL;
    const elf_header *const own = runtime.dli_fbase;
    if (memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || memcmp(own->e_ident, ELFMAG, SELFMAG) != 0 ||
        file.e_machine == own->e_machine)
        return NULL;
    return file.e_machine == EM_X86_64    ? "it was built for x86_64, and not for this machine"
           : file.e_machine == EM_AARCH64 ? "it was built for aarch64, and not for this machine"
                                          : "it was built for another machine";
}

/*
 * Why dlopen() has failed. Of a file system that is mounted noexec it only says that an operation is not permitted, and of a
 * library for another machine that there is no such file.
 */
static GTS_COLD const char *reason_of(int descriptor)
{
    const char *const machine = other_machine(descriptor);
    if (machine != NULL)
        return machine;
    struct statvfs system;
    if (fstatvfs(descriptor, &system) == 0 && (system.f_flag & ST_NOEXEC) != 0)
        return "its file system is mounted with the option noexec, so no library can be loaded from there; name a "
               "directory on another file system in GTSTUB_CACHE_DIR, or copy the directory of the library to one";
    return dlerror();
}

/* Opens the library at a path without links, unless others could have written it. */
static void *open_trusted(const char *given, const char *path, const gts_file *file, int *descriptor)
{
    const char *const name = strrchr(path, '/') + 1;
    char *const parent = gts_new_text("%.*s", (int)(name - path), path);
    const int directory = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    void *handle = NULL;
    bool is_exposed = false;
    if (directory < 0)
        refuse(given, strerror(errno));
    else if (!is_in(directory, name, file))
        refuse(given, replaced);
    else if (gts_trust_directory(directory, parent, &is_exposed) == 0 && gts_trust_file(*descriptor, path) == 0) {
        handle = open_file(path, is_exposed, descriptor);
        if (handle == NULL)
            refuse(given, reason_of(*descriptor));
    }
    if (directory >= 0)
        close(directory);
    free(parent);
    return handle;
}

/* Opens a library that is not in the list, and adds it. */
static void *open_new(const char *given, const gts_file *file, int *descriptor)
{
    char *const path = realpath(given, NULL);
    if (path == NULL)
        return refuse(given, strerror(errno));
    void *const handle = open_trusted(given, path, file, descriptor);
    if (handle == NULL) {
        free(path);
        return NULL;
    }
    library *const self = gts_new(1, sizeof *self);
    *self = (library){.next = libraries, .handle = handle, .file = *file, .path = path};
    libraries = self;
    if (*descriptor < 0 || is_in(AT_FDCWD, path, file))
        return handle;
    self->file = (gts_file){0}; /* this user has replaced it, and it may be either file: it is not found again */
    return refuse(given, replaced);
}

static void *find_or_open(const char *path, const gts_file *verified, int *descriptor)
{
    struct stat status;
    if (*descriptor < 0 || fstat(*descriptor, &status) != 0)
        return refuse(path, strerror(errno));
    const gts_file file = state_of(&status);
    if (verified != NULL && !is_unchanged(&file, verified))
        return refuse(path, "the file was replaced or written to after it was verified");
    for (const library *each = libraries; each != NULL; each = each->next) {
        if (!is_same_file(&each->file, &file))
            continue;
        if (is_unchanged(&each->file, &file))
            return each->handle;
        return refuse(path, "the file was written to after this process loaded it; load it in a new process");
    }
    return open_new(path, &file, descriptor);
}

void *gts_library_open(const char *path, const gts_file *verified)
{
    pthread_mutex_lock(&lock);
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a FIFO would block */
    void *const handle = find_or_open(path, verified, &descriptor);
    if (descriptor >= 0)
        close(descriptor);
    pthread_mutex_unlock(&lock);
    return handle;
}

void gts_library_find(void *library, const char *prefix, const char *name, void *function)
{
    char symbol[512];
    const int length = snprintf(symbol, sizeof symbol, "%s%s", prefix, name);
    void *const address = length < 0 || (size_t)length >= sizeof symbol ? NULL : dlsym(library, symbol);
    memcpy(function, &address, sizeof address); /* C does not convert an object pointer to a function pointer */
}
