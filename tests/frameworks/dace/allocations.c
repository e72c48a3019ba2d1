// Logs what is allocated and freed between two marks, and by which library. Preloaded in place of glibc's functions.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

struct event {
    void *memory;
    size_t size; // 0 if the memory is freed
    void *caller;
};

enum { MOST_EVENTS = 1 << 16 };

struct event allocation_events[MOST_EVENTS];
size_t allocation_count;
static int is_logging;

void allocation_log_begin(void)
{
    allocation_count = 0;
    is_logging = 1;
}

void allocation_log_end(void)
{
    is_logging = 0;
}

// The path of the library that contains an address.
const char *allocation_library(void *address)
{
    Dl_info info;
    return dladdr(address, &info) != 0 && info.dli_fname != NULL ? info.dli_fname : "";
}

static void *logged(void *memory, size_t size, void *caller)
{
    if (!is_logging || memory == NULL)
        return memory;
    if (allocation_count == MOST_EVENTS)
        abort();
    allocation_events[allocation_count++] = (struct event){memory, size, caller};
    return memory;
}

void *malloc(size_t size)
{
    return logged(__libc_malloc(size), size, __builtin_return_address(0));
}

void *calloc(size_t count, size_t size)
{
    return logged(__libc_calloc(count, size), count * size, __builtin_return_address(0));
}

void *realloc(void *old, size_t size)
{
    logged(old, 0, __builtin_return_address(0));
    return logged(__libc_realloc(old, size), size, __builtin_return_address(0));
}

void *memalign(size_t alignment, size_t size)
{
    return logged(__libc_memalign(alignment, size), size, __builtin_return_address(0));
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return logged(__libc_memalign(alignment, size), size, __builtin_return_address(0));
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    *memory = logged(__libc_memalign(alignment, size), size, __builtin_return_address(0));
    return *memory == NULL ? ENOMEM : 0;
}

void free(void *memory)
{
    logged(memory, 0, __builtin_return_address(0));
    __libc_free(memory);
}
