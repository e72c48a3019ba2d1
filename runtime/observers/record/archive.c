/*
 * Writes the files of a recording: an index, which is text and grows by whole calls, and a file of values for each
 * argument, in the layout of serialbox. A value is in its file before the index mentions it. So every call in the index
 * is complete, even if the process is killed.
 */
#define _GNU_SOURCE
#include "observers/record/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"

static struct {
    char directory[PATH_MAX]; /* that contains all recordings */
    char path[PATH_MAX];      /* of the archive of this process; empty if there is none */
    int index;                /* a file descriptor */
    off_t end;                /* size of the index */
    bool is_incomplete;       /* the path says so */
} archive = {.index = -1};

const char *const gts_kind_names[] = {[GTS_FIELD] = "field",
                                      [GTS_ZERO_DIM_FIELD] = "zero_dim_field",
                                      [GTS_SCALAR] = "scalar",
                                      [GTS_CONNECTIVITY] = "connectivity",
                                      [GTS_STATIC] = "static"};

static bool fits(int length, size_t size)
{
    if (length >= 0 && (size_t)length < size)
        return true;
    errno = ENAMETOOLONG;
    return false;
}

static bool write_at(int file, const char *bytes, size_t size, off_t place)
{
    while (size > 0) {
        const ssize_t written = pwrite(file, bytes, size, place);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes += written;
        place += written;
        size -= (size_t)written;
    }
    return true;
}

/* ---- Directories ----------------------------------------------------------------------------------------------- */

bool gts_archive_choose(const char *directory)
{
    return (mkdir(directory, GTS_DIRECTORY_MODE) == 0 || errno == EEXIST) &&
           realpath(directory, archive.directory) != NULL;
}

void gts_archive_note_program(const char *program)
{
    char path[PATH_MAX], line[PATH_MAX];
    const int length = snprintf(line, sizeof line, "%s\n", program);
    if (length >= (int)sizeof line ||
        snprintf(path, sizeof path, "%s/%s", archive.directory, GTS_ARCHIVE_PROGRAMS) >= (int)sizeof path)
        return;
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, GTS_FILE_MODE);
    if (file < 0)
        return;
    (void)!write(file, line, (size_t)length); /* one call, because other processes append to the file, too */
    close(file);
}

/* Creates a new directory. Its name has a number if need be, because process ids repeat. */
static bool make_own_directory(void)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    const int length = snprintf(archive.path, sizeof archive.path, "%s/%s-%ld", archive.directory, host,
                                (long)getpid());
    bool is_made = fits(length, sizeof archive.path) && mkdir(archive.path, GTS_DIRECTORY_MODE) == 0;
    for (int i = 2; !is_made && errno == EEXIST; ++i) {
        const size_t rest = sizeof archive.path - (size_t)length;
        is_made = fits(snprintf(archive.path + length, rest, "-%d", i), rest) &&
                  mkdir(archive.path, GTS_DIRECTORY_MODE) == 0;
    }
    return is_made;
}

bool gts_archive_make(void)
{
    if (archive.index >= 0)
        return true;
    char path[PATH_MAX];
    if (!make_own_directory()) {
        archive.path[0] = '\0';
        return false;
    }
    if (!fits(snprintf(path, sizeof path, "%s/%s", archive.path, GTS_ARCHIVE_INDEX), sizeof path))
        return false;
    archive.index = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, GTS_FILE_MODE);
    archive.end = 0;
    static const char first[] = GTS_ARCHIVE_SCHEMA "\n";
    return archive.index >= 0 && gts_archive_append(first, sizeof first - 1);
}

bool gts_archive_make_program(const char *program)
{
    char path[PATH_MAX];
    return fits(snprintf(path, sizeof path, "%s/%s", archive.path, program), sizeof path) &&
           mkdir(path, GTS_DIRECTORY_MODE) == 0;
}

const char *gts_archive_path(void)
{
    return archive.path[0] != '\0' ? archive.path : archive.directory;
}

void gts_archive_give_up(void)
{
    char path[PATH_MAX];
    if (archive.path[0] == '\0' || archive.is_incomplete ||
        !fits(snprintf(path, sizeof path, "%s.incomplete", archive.path), sizeof path) ||
        rename(archive.path, path) != 0)
        return;
    memcpy(archive.path, path, sizeof path);
    archive.is_incomplete = true;
}

void gts_archive_forget(void)
{
    if (archive.index >= 0)
        close(archive.index);
    archive.index = -1;
    archive.path[0] = '\0';
    archive.is_incomplete = false;
}

/* ---- Values ---------------------------------------------------------------------------------------------------- */

/* Whether a file contains these bytes at offset `place`. */
static bool has(int file, const char *bytes, size_t size, off_t place)
{
    char found[1 << 16];
    while (size > 0) {
        const size_t wanted = size < sizeof found ? size : sizeof found;
        const ssize_t got = pread(file, found, wanted, place);
        if (got <= 0 || memcmp(found, bytes, (size_t)got) != 0)
            return false;
        bytes += got;
        place += got;
        size -= (size_t)got;
    }
    return true;
}

int64_t gts_archive_put(gts_store *store, const char *program, const char *leaf, const void *value, size_t size)
{
    char number[16] = "", path[PATH_MAX];
    if (store->number > 1)
        snprintf(number, sizeof number, "@%u", store->number);
    if (!fits(snprintf(path, sizeof path, "%s/%s/%s_%s%s.dat", archive.path, program, program, leaf, number),
              sizeof path))
        return -1;
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, GTS_FILE_MODE);
    if (file < 0)
        return -1;
    bool is_there = store->last >= 0 && has(file, value, size, store->last);
    if (!is_there && write_at(file, value, size, store->end)) {
        is_there = true;
        store->last = store->end;
        store->end += (int64_t)size;
    }
    const int reason = errno;
    const bool is_closed = close(file) == 0;
    if (!is_there)
        errno = reason;
    return is_there && is_closed ? store->last : -1;
}

bool gts_archive_append(const char *lines, size_t size)
{
    if (!write_at(archive.index, lines, size, archive.end)) {
        const int reason = errno;
        (void)!ftruncate(archive.index, archive.end);
        errno = reason;
        return false;
    }
    archive.end += (off_t)size;
    return true;
}
