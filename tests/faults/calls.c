/* The calls that change files, each of which may go wrong: `inject.c` decides. */
#define _GNU_SOURCE
#include "inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* `real` is the function of the C library that this one stands before. */
#define REAL(name)                                                                                                     \
    static __typeof__(&name) real;                                                                                     \
    do {                                                                                                               \
        if (real == NULL)                                                                                              \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                                                 \
    } while (0)

/* --- Calls that write bytes: `write` does so with the count it is given -------------------------------------------- */

static size_t gts_bytes(enum fault fault, size_t count)
{
    return (fault == FAULT_SHORT || fault == FAULT_TORN) && count > 1 ? count / 2 : count;
}

#define WRITE(call, fd, count, write)                                                                                  \
    char path[PATH_MAX];                                                                                               \
    gts_path_of(fd, path);                                                                                             \
    const enum fault fault = gts_enter(call, path, true);                                                              \
    if (fault != FAULT_TORN && gts_before(fault))                                                                      \
        return -1;                                                                                                     \
    const size_t bytes = gts_bytes(fault, count);                                                                      \
    const ssize_t written = (write);                                                                                   \
    if (written > 0 && gts_is_below(path))                                                                             \
        gts_written(fd);                                                                                               \
    if (fault == FAULT_TORN)                                                                                           \
        gts_die();                                                                                                     \
    (void)gts_after(fault, 0, 0);                                                                                      \
    return written

ssize_t write(int fd, const void *data, size_t count)
{
    REAL(write);
    WRITE("write", fd, count, real(fd, data, bytes));
}

ssize_t pwrite(int fd, const void *data, size_t count, off_t offset)
{
    REAL(pwrite);
    WRITE("pwrite", fd, count, real(fd, data, bytes, offset));
}

ssize_t pwrite64(int fd, const void *data, size_t count, off64_t offset)
{
    REAL(pwrite64);
    WRITE("pwrite", fd, count, real(fd, data, bytes, offset));
}

/* A short write of several parts writes half of the first one. */
ssize_t writev(int fd, const struct iovec *parts, int part_count)
{
    REAL(writev);
    const size_t first = part_count > 0 ? parts[0].iov_len : 0;
    WRITE("writev", fd, first, bytes == first ? real(fd, parts, part_count) : write(fd, parts[0].iov_base, bytes));
}

ssize_t sendfile(int fd, int from, off_t *offset, size_t count)
{
    REAL(sendfile);
    struct stat status;
    const size_t there = fstat(from, &status) == 0 && status.st_size > 0 ? (size_t)status.st_size : 1;
    WRITE("sendfile", fd, count < there ? count : there, real(fd, from, offset, bytes));
}

ssize_t sendfile64(int fd, int from, off64_t *offset, size_t count)
{
    REAL(sendfile64);
    struct stat status;
    const size_t there = fstat(from, &status) == 0 && status.st_size > 0 ? (size_t)status.st_size : 1;
    WRITE("sendfile", fd, count < there ? count : there, real(fd, from, offset, bytes));
}

ssize_t copy_file_range(int from, off64_t *from_offset, int fd, off64_t *offset, size_t count, unsigned int flags)
{
    REAL(copy_file_range);
    WRITE("copy_file_range", fd, count, real(from, from_offset, fd, offset, bytes, flags));
}

ssize_t read(int fd, void *data, size_t count)
{
    REAL(read);
    char path[PATH_MAX] = "";
    if (gts_is_counting())
        gts_path_of(fd, path);
    if (gts_counts_reads(path) && gts_before(gts_enter("read", path, false)))
        return -1;
    return real(fd, data, count);
}

/* --- Calls on a descriptor ------------------------------------------------------------------------------------------ */

#define ON_DESCRIPTOR(call, fd, work)                                                                                  \
    char path[PATH_MAX];                                                                                               \
    gts_path_of(fd, path);                                                                                             \
    const enum fault fault = gts_enter(call, path, false);                                                             \
    if (gts_before(fault))                                                                                             \
        return -1;                                                                                                     \
    const int result = (work);                                                                                         \
    return gts_after(fault, result, 0)

static int gts_sync(int fd, int (*real)(int))
{
    const int result = real(fd);
    if (result == 0)
        gts_synced(fd);
    return result;
}

int fsync(int fd)
{
    REAL(fsync);
    ON_DESCRIPTOR("fsync", fd, gts_sync(fd, real));
}

int fdatasync(int fd)
{
    REAL(fdatasync);
    ON_DESCRIPTOR("fdatasync", fd, gts_sync(fd, real));
}

int ftruncate(int fd, off_t length)
{
    REAL(ftruncate);
    ON_DESCRIPTOR("ftruncate", fd, real(fd, length));
}

int ftruncate64(int fd, off64_t length)
{
    REAL(ftruncate64);
    ON_DESCRIPTOR("ftruncate", fd, real(fd, length));
}

/* A close that fails has closed all the same, as on Linux. Files that were only read are not counted. */
int close(int fd)
{
    REAL(close);
    const int mode = gts_is_counting() ? fcntl(fd, F_GETFL) : -1;
    if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY)
        return real(fd);
    char path[PATH_MAX];
    gts_path_of(fd, path);
    const enum fault fault = gts_enter("close", path, false);
    if (gts_before(fault)) {
        const int error = errno;
        (void)real(fd);
        errno = error;
        return -1;
    }
    const int result = real(fd);
    gts_closed(path);
    return gts_after(fault, result, 0);
}

/* --- Calls on paths ------------------------------------------------------------------------------------------------- */

/* `again` is the error of the same call once more. */
#define ON_PATH(call, directory, name, again, work)                                                                    \
    char path[PATH_MAX];                                                                                               \
    gts_path_at(directory, name, path);                                                                                \
    const enum fault fault = gts_enter(call, path, false);                                                             \
    if (gts_before(fault))                                                                                             \
        return -1;                                                                                                     \
    const int result = (work);                                                                                         \
    if (result >= 0)                                                                                                   \
        gts_forget_missing(path, (size_t)(strrchr(path, '/') - path));                                                 \
    return gts_after(fault, result, again)

int rename(const char *from, const char *to)
{
    REAL(rename);
    ON_PATH("rename", AT_FDCWD, to, ENOENT, real(from, to));
}

int renameat(int from_directory, const char *from, int directory, const char *to)
{
    REAL(renameat);
    ON_PATH("rename", directory, to, ENOENT, real(from_directory, from, directory, to));
}

int renameat2(int from_directory, const char *from, int directory, const char *to, unsigned int flags)
{
    REAL(renameat2);
    ON_PATH("rename", directory, to, ENOENT, real(from_directory, from, directory, to, flags));
}

int link(const char *from, const char *to)
{
    REAL(link);
    ON_PATH("link", AT_FDCWD, to, EEXIST, real(from, to));
}

int linkat(int from_directory, const char *from, int directory, const char *to, int flags)
{
    REAL(linkat);
    ON_PATH("link", directory, to, EEXIST, real(from_directory, from, directory, to, flags));
}

int symlink(const char *target, const char *name)
{
    REAL(symlink);
    ON_PATH("symlink", AT_FDCWD, name, EEXIST, real(target, name));
}

int mkdir(const char *name, mode_t mode)
{
    REAL(mkdir);
    ON_PATH("mkdir", AT_FDCWD, name, EEXIST, real(name, mode));
}

int mkdirat(int directory, const char *name, mode_t mode)
{
    REAL(mkdirat);
    ON_PATH("mkdir", directory, name, EEXIST, real(directory, name, mode));
}

static int gts_unlink_at(int directory, const char *name, int flags)
{
    char from[PATH_MAX], to[PATH_MAX];
    gts_path_at(directory, name, from);
    if ((flags & AT_REMOVEDIR) != 0 || !gts_is_silly(from, to))
        return (int)syscall(SYS_unlinkat, directory, name, flags);
    if (to[0] != '\0')
        return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    errno = EBUSY;
    return -1;
}

int unlink(const char *name)
{
    ON_PATH("unlink", AT_FDCWD, name, ENOENT, gts_unlink_at(AT_FDCWD, name, 0));
}

int unlinkat(int directory, const char *name, int flags)
{
    ON_PATH("unlink", directory, name, ENOENT, gts_unlink_at(directory, name, flags));
}

int rmdir(const char *name)
{
    REAL(rmdir);
    ON_PATH("rmdir", AT_FDCWD, name, ENOENT, real(name));
}

static int gts_open_at(int directory, const char *name, int flags, mode_t mode)
{
    const long result = syscall(SYS_openat, directory, name, flags | O_LARGEFILE, mode);
    return (int)result;
}

/* A directory that is opened is read anew. */
static int gts_look_at(int directory, const char *name, int flags, mode_t mode)
{
    char path[PATH_MAX];
    struct stat status;
    gts_path_at(directory, name, path);
    if (gts_is_missing(path) || (gts_counts_reads(path) && gts_before(gts_enter("look", path, false))))
        return -1;
    const int result = gts_open_at(directory, name, flags, mode);
    if (result < 0 && errno == ENOENT)
        gts_note_missing(path);
    else if (result >= 0 && fstat(result, &status) == 0 && S_ISDIR(status.st_mode))
        gts_forget_missing(path, strlen(path));
    return result;
}

static int gts_create_at(int directory, const char *name, int flags, mode_t mode)
{
    if ((flags & O_CREAT) == 0)
        return gts_is_counting() ? gts_look_at(directory, name, flags, mode)
                                 : gts_open_at(directory, name, flags, mode);
    ON_PATH("open", directory, name, 0, gts_open_at(directory, name, flags, mode));
}

/* Also the mode of a temporary file, O_TMPFILE, is the last argument. */
#define MODE_OF(flags, mode)                                                                                           \
    mode_t mode = 0;                                                                                                   \
    if (((flags) & O_CREAT) != 0 || ((flags) & O_TMPFILE) == O_TMPFILE) {                                              \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        mode = va_arg(arguments, mode_t);                                                                              \
        va_end(arguments);                                                                                             \
    }

int open(const char *name, int flags, ...)
{
    MODE_OF(flags, mode)
    return gts_create_at(AT_FDCWD, name, flags, mode);
}

int open64(const char *name, int flags, ...)
{
    MODE_OF(flags, mode)
    return gts_create_at(AT_FDCWD, name, flags, mode);
}

int openat(int directory, const char *name, int flags, ...)
{
    MODE_OF(flags, mode)
    return gts_create_at(directory, name, flags, mode);
}

int openat64(int directory, const char *name, int flags, ...)
{
    MODE_OF(flags, mode)
    return gts_create_at(directory, name, flags, mode);
}
