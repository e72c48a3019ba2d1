/*
 * Whose files are loaded. A library runs when it is loaded. So it, its directory, and all directories from the root of
 * the cache down to it must belong to this user or to root, and nobody else may be able to write them.
 * docs/trust.md lists the rules.
 */
#define _GNU_SOURCE
#include "program/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program/host.h"

#define MANIFEST "manifest.json" /* a directory with this file is an entry, and the one above it belongs to a cache */
#define MARKER ".gtstub-cache"   /* the root of a cache has this file: generator/gtstub/entries/trust.py */

/* What is wrong with a file or a directory. */
typedef enum fault { NOTHING, OWNER, GROUP_WRITES, OTHERS_WRITE } fault;

static fault find_fault(const struct stat *status)
{
    if (status->st_uid != geteuid() && status->st_uid != 0 && !gts_trusted_has(GTS_TRUSTED_GROUP, status->st_gid) &&
        !gts_trusted_has(GTS_TRUSTED_USER, status->st_uid))
        return OWNER;
    if ((status->st_mode & S_IWOTH) != 0)
        return OTHERS_WRITE;
    return (status->st_mode & S_IWGRP) == 0 || gts_trusts_group(status->st_gid) ? NOTHING : GROUP_WRITES;
}

/* ---- The way up ------------------------------------------------------------------------------------------------ */

/* The way from a directory, which is level 0, to the root of the file system. */
typedef struct way {
    fault fault;   /* of the lowest level that has one; the next three are those of this level */
    size_t number; /* how many levels it is above the directory */
    struct stat status;
    char path[PATH_MAX];
    bool is_in_cache; /* this level, or one above it, has a marker */
    bool is_exposed;  /* others can rename one of all levels, or it is not known whether they can */
} way;

/* Whether others can rename what they do not own in a directory that has a fault: not in /tmp. */
static bool is_open(fault fault, const struct stat *status)
{
    return fault == OWNER || (status->st_mode & S_ISVTX) == 0;
}

/* Writes the path of an open directory, or else the given one. */
static GTS_COLD void find_path(int directory, const char *given, char path[PATH_MAX])
{
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    snprintf(path, PATH_MAX, "%s", given);
    const ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length > 0)
        path[length] = '\0';
}

/* Adds a level with a fault, or one above such a level. A marker below all faults does not matter. */
static GTS_COLD void add(way *self, fault fault, size_t number, int level, const struct stat *status, const char *given)
{
    struct stat marker;
    if (self->fault == NOTHING) {
        self->fault = fault;
        self->number = number;
        self->status = *status;
        find_path(level, given, self->path);
    }
    self->is_in_cache |= fstatat(level, MARKER, &marker, AT_SYMLINK_NOFOLLOW) == 0 && find_fault(&marker) != OWNER;
    self->is_exposed |= fault != NOTHING && is_open(fault, status);
}

/*
 * Follows the way up. It ends at a level that this user may not search, that a server has removed, or that is a file.
 * Other failures are refused, because an unknown level above must not count as a good one.
 */
static int follow(way *self, int directory, const char *path)
{
    struct stat status, below = {0};
    size_t number = 0;
    int level = directory;
    for (; level >= 0 && fstat(level, &status) == 0; ++number) {
        if (status.st_dev == below.st_dev && status.st_ino == below.st_ino) {
            close(level);
            return 0; /* the root is above itself */
        }
        const fault fault = find_fault(&status);
        if (fault != NOTHING || self->fault != NOTHING)
            add(self, fault, number, level, &status, path);
        below = status;
        const int above = openat(level, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (level != directory)
            close(level);
        level = above;
    }
    const int error = errno;
    if (level >= 0 && level != directory)
        close(level);
    self->is_exposed = true;
    if (number > 0 && (error == EACCES || error == ESTALE || error == ENOTDIR))
        return 0;
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Directory '%s' cannot be read: %s.", path,
                         strerror(error));
}

/* Whether the level with the fault is one of those that must be trusted. */
static GTS_COLD bool counts(const way *self, int directory)
{
    if (self->number == 0 || self->is_in_cache)
        return true;
    return self->number == 1 && is_open(self->fault, &self->status) && faccessat(directory, MANIFEST, F_OK, 0) == 0;
}

/* ---- Refusing -------------------------------------------------------------------------------------------------- */

static GTS_COLD int refuse(fault fault, const struct stat *status, const char *kind, const char *path)
{
    char user[GTS_NAME_SIZE], group[GTS_NAME_SIZE];
    gts_trusted_name(GTS_TRUSTED_USER, status->st_uid, user);
    gts_trusted_name(GTS_TRUSTED_GROUP, status->st_gid, group);
    const unsigned int mode = status->st_mode & 07777;
    if (fault == OWNER)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                             "%s '%s' belongs to user '%s', and what it holds would run as this user. Build the "
                             "program in a cache of your own (GTSTUB_CACHE_DIR), or trust the owner: "
                             "GTSTUB_TRUST=user=%s.",
                             kind, path, user, user);
    if (fault == GROUP_WRITES)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                             "%s '%s' of user '%s' can be written by group '%s' (mode %04o), and what it holds would "
                             "run as this user. Correct this with 'chmod g-w', or trust the group: "
                             "GTSTUB_TRUST=group=%s.",
                             kind, path, user, group, mode, group);
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                         "%s '%s' of user '%s' can be written by everyone (mode %04o), and what it holds would run as "
                         "this user. Correct this with 'chmod o-w', or build the program in a cache of your own "
                         "(GTSTUB_CACHE_DIR).",
                         kind, path, user, mode);
}

/* ---- Checking -------------------------------------------------------------------------------------------------- */

int gts_trust_directory(int directory, const char *path, bool *is_exposed)
{
    way way;
    way.fault = NOTHING;
    way.is_in_cache = way.is_exposed = false;
    if (gts_trusted_read() != 0 || follow(&way, directory, path) != 0)
        return -1;
    *is_exposed = way.is_exposed;
    return way.fault == NOTHING || !counts(&way, directory) ? 0 : refuse(way.fault, &way.status, "Directory", way.path);
}

bool gts_trusts_group(unsigned int group)
{
    return (gts_trusted_read() == 0 && gts_trusted_has(GTS_TRUSTED_GROUP, group)) || gts_trusted_is_private(group);
}

int gts_trust_file(int file, const char *path)
{
    struct stat status;
    if (fstat(file, &status) != 0)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "File '%s' cannot be read: %s.", path, strerror(errno));
    if (gts_trusted_read() != 0)
        return -1;
    const fault fault = find_fault(&status);
    return fault == NOTHING ? 0 : refuse(fault, &status, "File", path);
}
