/*
 * What a client of NFS does that a local file system does not, in one process, below GTS_INJECT_BELOW. GTS_INJECT_NFS
 * lists:
 *
 *   names  a name that was once looked for and missing stays missing for this process, until it opens the directory of
 *          the name or changes something in it: clients keep such answers for up to a minute
 *   silly  a file that this process has open, or mapped, is renamed to .nfsXXXX in its directory when it is removed, and
 *          stays there until it is closed, so that the directory cannot be removed, either. A file that is mapped stays
 *          until somebody else removes it, as after a client that was switched off
 *   locks  the server has none
 *   reads  files and directories that are opened for reading, and reads, are calls that may go wrong, too
 */
#define _GNU_SOURCE
#include "inject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAMES 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *missing[NAMES];

static bool does(const char *what)
{
    const char *const all = getenv("GTS_INJECT_NFS");
    return all != NULL && strstr(all, what) != NULL;
}

bool gts_counts_reads(const char *path)
{
    return gts_is_below(path) && does("reads");
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

bool gts_is_missing(const char *path)
{
    bool is_found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < NAMES; ++i)
        is_found |= missing[i] != NULL && strcmp(missing[i], path) == 0;
    pthread_mutex_unlock(&lock);
    if (is_found)
        errno = ENOENT;
    return is_found;
}

void gts_note_missing(const char *path)
{
    if (!gts_is_below(path) || !does("names"))
        return;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < NAMES; ++i)
        if (missing[i] == NULL) {
            missing[i] = strdup(path);
            break;
        }
    pthread_mutex_unlock(&lock);
}

static bool is_in(const char *path, const char *directory, size_t length)
{
    return strncmp(path, directory, length) == 0 && path[length] == '/' && strchr(path + length + 1, '/') == NULL;
}

void gts_forget_missing(const char *directory, size_t length)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < NAMES; ++i)
        if (missing[i] != NULL && is_in(missing[i], directory, length)) {
            free(missing[i]);
            missing[i] = NULL;
        }
    pthread_mutex_unlock(&lock);
}

/* ---- silly ----------------------------------------------------------------------------------------------------- */

static bool has_descriptor(const struct stat *file)
{
    DIR *const entries = opendir("/proc/self/fd");
    bool is_found = false;
    for (const struct dirent *each; entries != NULL && (each = readdir(entries)) != NULL;) {
        struct stat open;
        is_found |= fstat(atoi(each->d_name), &open) == 0 && each->d_name[0] != '.' && open.st_dev == file->st_dev &&
                    open.st_ino == file->st_ino;
    }
    if (entries != NULL)
        (void)closedir(entries);
    return is_found;
}

static bool is_mapped(const struct stat *file)
{
    FILE *const maps = fopen("/proc/self/maps", "re");
    char line[PATH_MAX + 128];
    bool is_found = false;
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long inode = 0;
        is_found |= sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1 && inode != 0 && inode == file->st_ino;
    }
    if (maps != NULL)
        (void)fclose(maps);
    return is_found;
}

static bool is_renamed(const char *path)
{
    return strncmp(strrchr(path, '/') + 1, ".nfs", 4) == 0;
}

bool gts_is_silly(const char *path, char to[PATH_MAX])
{
    struct stat file;
    if (!gts_is_below(path) || !does("silly") || lstat(path, &file) != 0 || !S_ISREG(file.st_mode) ||
        !(has_descriptor(&file) || is_mapped(&file)))
        return false;
    if (is_renamed(path))
        to[0] = '\0';
    else
        (void)snprintf(to, PATH_MAX, "%.*s/.nfs%016lx", (int)(strrchr(path, '/') - path), path,
                       (unsigned long)file.st_ino);
    return true;
}

void gts_closed(const char *path)
{
    char to[PATH_MAX];
    if (gts_is_below(path) && is_renamed(path) && !gts_is_silly(path, to))
        (void)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

/* ---- locks ----------------------------------------------------------------------------------------------------- */

static bool has_no_locks(int fd)
{
    char path[PATH_MAX] = "";
    if (gts_is_counting() && does("locks"))
        gts_path_of(fd, path);
    if (!gts_is_below(path))
        return false;
    errno = ENOLCK;
    return true;
}

int flock(int fd, int operation)
{
    return has_no_locks(fd) ? -1 : (int)syscall(SYS_flock, fd, operation);
}

static int gts_fcntl(int fd, int command, long argument)
{
    const bool locks = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
    return locks && has_no_locks(fd) ? -1 : (int)syscall(SYS_fcntl, fd, command, argument);
}

#define FCNTL(name)                                                                                                    \
    int name(int fd, int command, ...)                                                                                 \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        va_start(arguments, command);                                                                                  \
        const long argument = va_arg(arguments, long);                                                                 \
        va_end(arguments);                                                                                             \
        return gts_fcntl(fd, command, argument);                                                                       \
    }

FCNTL(fcntl)
FCNTL(fcntl64)

int lockf(int fd, int operation, off_t length)
{
    (void)operation;
    (void)length;
    return has_no_locks(fd) ? -1 : 0;
}
