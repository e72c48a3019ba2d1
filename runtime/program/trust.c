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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gtstub/host.h"

#define MANIFEST "manifest.json" /* a directory with this file is an entry, and the one above it belongs to a cache */

/* What is wrong with a file or a directory. */
typedef enum fault { NOTHING, OWNER, GROUP_WRITES, OTHERS_WRITE } fault;

static GTS_COLD fault find_fault_slowly(const struct stat *status)
{
    const bool has_group = gts_trusted_has(GTS_TRUSTED_GROUP, status->st_gid);
    if (status->st_uid != geteuid() && status->st_uid != 0 && !has_group &&
        !gts_trusted_has(GTS_TRUSTED_USER, status->st_uid))
        return OWNER;
    if ((status->st_mode & S_IWOTH) != 0)
        return OTHERS_WRITE;
    return (status->st_mode & S_IWGRP) == 0 || gts_trusts_group(status->st_gid) ? NOTHING : GROUP_WRITES;
}

static fault find_fault(const struct stat *status)
{
    const bool is_own = status->st_uid == 0 || status->st_uid == geteuid();
    return is_own && (status->st_mode & (S_IWGRP | S_IWOTH)) == 0 ? NOTHING : find_fault_slowly(status);
}

/* ---- The way up ------------------------------------------------------------------------------------------------ */

#define UP_4 "../../../../"
#define UP_16 UP_4 UP_4 UP_4 UP_4
#define LEVELS 64

/* A directory on the way, whatever its path is. */
typedef struct level {
    dev_t device;
    ino_t inode;
    fault fault;
    bool is_sticky; /* others cannot rename in it what they do not own */
} level;

/* The way from a directory, which is level 0, to the root of the file system. */
typedef struct way {
    size_t count; /* of the levels */
    level levels[LEVELS];
    bool has_fault;
    bool is_exposed; /* others can rename one of the directories, or it is not known whether they can */
} way;

/* The path from a directory to a level. No link changes the way up. */
static const char *way_up(size_t number)
{
    static const char up[] = UP_16 UP_16 UP_16 UP_16 ".";
    return up + 3 * (LEVELS - number);
}

/* Reads the state of a level. */
static bool read_level(int directory, size_t number, struct stat *status)
{
    return fstatat(directory, way_up(number), status, 0) == 0;
}

static bool is_at_level(const level *self, const struct stat *status)
{
    return self->device == status->st_dev && self->inode == status->st_ino;
}

static void follow(way *self, int directory)
{
    struct stat status;
    while (self->count < LEVELS && read_level(directory, self->count, &status)) {
        if (self->count > 0 && is_at_level(&self->levels[self->count - 1], &status))
            return; /* the root is above itself */
        const fault fault = find_fault(&status);
        const bool is_sticky = fault != OWNER && (status.st_mode & S_ISVTX) != 0;
        self->levels[self->count++] = (level){status.st_dev, status.st_ino, fault, is_sticky};
        self->has_fault |= fault != NOTHING;
        self->is_exposed |= fault != NOTHING && !is_sticky;
    }
    self->is_exposed = true;
}

/* The highest level that is `<directory>/<inner>`, or 0; the first text ends after `length` bytes. */
static size_t find_level(const way *self, const char *directory, size_t length, const char *inner)
{
    char path[PATH_MAX];
    struct stat status;
    if (length == 0 || length >= PATH_MAX)
        return 0;
    const int written = snprintf(path, sizeof path, "%.*s/%s", (int)length, directory, inner);
    if (written >= PATH_MAX || stat(path, &status) != 0)
        return 0;
    size_t number = self->count;
    while (number > 0 && !is_at_level(&self->levels[--number], &status))
        ;
    return number;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The highest level that is a layer of the cache, as the environment names it and settings.py reads it; or 0. */
static GTS_COLD size_t find_layer(const way *self)
{
    static const struct {
        const char *variable, *inner;
    } roots[] = {
        {"GTSTUB_CACHE_DIR", ""},
        {"GT_CACHE_ROOT", ".gtstub_cache"},
        {"GT4PY_BUILD_CACHE_DIR", ".gt4py_cache/gtstub"},
        {"XDG_CACHE_HOME", "gtstub"},
        {"HOME", ".cache/gtstub"},
    };
    size_t highest = 0;
    for (size_t i = 0; i < sizeof roots / sizeof *roots; ++i) {
        const char *const directory = getenv(roots[i].variable);
        if (directory != NULL)
            highest = larger(highest, find_level(self, directory, strlen(directory), roots[i].inner));
    }
    const char *rest = getenv("GTSTUB_SHARED_CACHE_DIR");
    while (rest != NULL) {
        const char *const end = strchrnul(rest, ':');
        highest = larger(highest, find_level(self, rest, (size_t)(end - rest), ""));
        rest = *end == '\0' ? NULL : end + 1;
    }
    return highest;
}

/* The lowest level with a fault, of those that must be trusted; count if there is none. */
static GTS_COLD size_t find_faulty(const way *self, bool is_entry)
{
    const size_t layer = find_layer(self);
    const size_t highest = larger(layer, is_entry ? 1 : 0);
    for (size_t i = 0; i <= highest && i < self->count; ++i) {
        const bool is_above_entry = i == 1 && layer == 0;
        if (self->levels[i].fault != NOTHING && !(is_above_entry && self->levels[i].is_sticky)) /* as in /tmp */
            return i;
    }
    return self->count;
}

/* Whether a directory is in a layer that GTSTUB_TRUST names. */
static GTS_COLD bool is_in_trusted_layer(int directory)
{
    struct stat status;
    for (size_t i = 0; i < LEVELS && read_level(directory, i, &status); ++i) {
        if (gts_trusted_has_layer(&status))
            return true;
    }
    return false;
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
                         "this user. Correct this with 'chmod o-w', or trust everyone who can write to a layer of the "
                         "cache: GTSTUB_TRUST=layer=DIRECTORY.",
                         kind, path, user, mode);
}

/* ---- Checking -------------------------------------------------------------------------------------------------- */

static GTS_COLD int refuse_level(const way *self, size_t number, int directory, const char *path)
{
    struct stat status;
    if (!read_level(directory, number, &status))
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "Directory '%s' cannot be read: %s.", path,
                             strerror(errno));
    char above[PATH_MAX], found[PATH_MAX];
    const int length = snprintf(above, sizeof above, "%s/%s", path, way_up(number));
    const bool is_found = length < PATH_MAX && realpath(above, found) != NULL; /* or it no longer exists */
    return refuse(self->levels[number].fault, &status, "Directory", is_found ? found : path);
}

int gts_trust_place(int directory, const char *path, bool *is_exposed)
{
    if (gts_trusted_read() != 0)
        return -1;
    way way;
    way.count = 0;
    way.has_fault = way.is_exposed = false;
    follow(&way, directory);
    *is_exposed = way.is_exposed;
    if (!way.has_fault)
        return 0;
    const size_t faulty = find_faulty(&way, faccessat(directory, MANIFEST, F_OK, 0) == 0);
    return faulty == way.count || is_in_trusted_layer(directory) ? 0 : refuse_level(&way, faulty, directory, path);
}

int gts_trust_directory(int directory, const char *path)
{
    bool is_exposed;
    return gts_trust_place(directory, path, &is_exposed);
}

bool gts_trusts_group(unsigned int group)
{
    return (gts_trusted_read() == 0 && gts_trusted_has(GTS_TRUSTED_GROUP, group)) || gts_trusted_is_private(group);
}

int gts_trust_file(int file, int directory, const char *path)
{
    struct stat status;
    if (fstat(file, &status) != 0)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR, "File '%s' cannot be read: %s.", path, strerror(errno));
    if (gts_trusted_read() != 0)
        return -1;
    const fault fault = find_fault(&status);
    return fault == NOTHING || is_in_trusted_layer(directory) ? 0 : refuse(fault, &status, "File", path);
}
