/* For LD_PRELOAD: a machine whose pages have 64 KiB, as some of Arm do. Its kernel refuses what begins within a page. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 65536 };

long sysconf(int name)
{
    extern long __sysconf(int);
    return name == _SC_PAGESIZE ? PAGE : __sysconf(name);
}

static size_t round_up(size_t size)
{
    return (size + PAGE - 1) / PAGE * PAGE;
}

int mprotect(void *memory, size_t size, int access)
{
    if ((uintptr_t)memory % PAGE == 0)
        return (int)syscall(SYS_mprotect, memory, round_up(size), access);
    errno = EINVAL;
    return -1;
}

void *mmap(void *wanted, size_t size, int access, int flags, int file, off_t offset)
{
    if (wanted != NULL || size == 0)
        return (void *)syscall(SYS_mmap, wanted, size, access, flags, file, offset);
    const long found = syscall(SYS_mmap, NULL, round_up(size) + PAGE, access, flags, file, offset);
    return found == -1 ? MAP_FAILED : (void *)round_up((size_t)found);
}
