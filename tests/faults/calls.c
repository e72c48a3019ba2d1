/* The calls that change files, each of which may go wrong: `inject.c` decides. */
#define _GNU_SOURCE
#include "inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
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
    gts_after(fault);                                                                                                  \
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

/* --- Calls on a descriptor ------------------------------------------------------------------------------------------ */

#define ON_DESCRIPTOR(call, fd, work)                                                                                  \
    char path[PATH_MAX];                                                                                               \
    gts_path_of(fd, path);                                                                                             \
    const enum fault fault = gts_enter(call, path, false);                                                             \
    if (gts_before(fault))                                                                                             \
        return -1;                                                                                                     \
    const int result = (work);                                                                                         \
    gts_after(fault);                                                                                                  \
    return result

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
    gts_after(fault);
    return result;
}

/* --- Calls on paths ------------------------------------------------------------------------------------------------- */

#define ON_PATH(call, directory, name, work)                                                                           \
    char path[PATH_MAX];                                                                                               \
    gts_path_at(directory, name, path);                                                                                \
    const enum fault fault = gts_enter(call, path, false);                                                             \
    if (gts_before(fault))                                                                                             \
        return -1;                                                                                                     \
    const int result = (work);                                                                                         \
    gts_after(fault);                                                                                                  \
    return result

int rename(const char *from, const char *to)
{
    REAL(rename);
    ON_PATH("rename", AT_FDCWD, to, real(from, to));
}

int renameat(int from_directory, const char *from, int directory, const char *to)
{
    REAL(renameat);
    ON_PATH("rename", directory, to, real(from_directory, from, directory, to));
}

int renameat2(int from_directory, const char *from, int directory, const char *to, unsigned int flags)
{
    REAL(renameat2);
    ON_PATH("rename", directory, to, real(from_directory, from, directory, to, flags));
}

int link(const char *from, const char *to)
{
    REAL(link);
    ON_PATH("link", AT_FDCWD, to, real(from, to));
}

int linkat(int from_directory, const char *from, int directory, const char *to, int flags)
{
    REAL(linkat);
    ON_PATH("link", directory, to, real(from_directory, from, directory, to, flags));
}

int symlink(const char *target, const char *name)
{
    REAL(symlink);
    ON_PATH("symlink", AT_FDCWD, name, real(target, name));
}

int mkdir(const char *name, mode_t mode)
{
    REAL(mkdir);
    ON_PATH("mkdir", AT_FDCWD, name, real(name, mode));
}

int mkdirat(int directory, const char *name, mode_t mode)
{
    REAL(mkdirat);
    ON_PATH("mkdir", directory, name, real(directory, name, mode));
}

int unlink(const char *name)
{
    REAL(unlink);
    ON_PATH("unlink", AT_FDCWD, name, real(name));
}

int unlinkat(int directory, const char *name, int flags)
{
    REAL(unlinkat);
    ON_PATH("unlink", directory, name, real(directory, name, flags));
}

int rmdir(const char *name)
{
    REAL(rmdir);
    ON_PATH("rmdir", AT_FDCWD, name, real(name));
}

static int gts_open_at(int directory, const char *name, int flags, mode_t mode)
{
    const long result = syscall(SYS_openat, directory, name, flags | O_LARGEFILE, mode);
    return (int)result;
}

static int gts_create_at(int directory, const char *name, int flags, mode_t mode)
{
    if ((flags & O_CREAT) == 0)
        return gts_open_at(directory, name, flags, mode);
    ON_PATH("open", directory, name, gts_open_at(directory, name, flags, mode));
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
