/*
 * Guarded memory: a call that accesses a page that was taken away gets the page back and continues, and the address is
 * noted. Thus one call tells all pages that it accesses beyond those that it was given.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((uintptr_t)4096)

static struct {
    uintptr_t begin, end;        /* the guarded memory */
    uintptr_t *noted;            /* addresses of accesses */
    volatile size_t count, most; /* of `noted` */
    struct sigaction before;
} guard;

static void give_back(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    const uintptr_t address = (uintptr_t)info->si_addr;
    if (address < guard.begin || address >= guard.end || guard.count == guard.most ||
        mprotect((void *)(address & ~(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE) != 0) {
        sigaction(SIGSEGV, &guard.before, NULL); /* the access is repeated, and ends the process */
        return;
    }
    guard.noted[guard.count++] = address;
}

/* Reserves memory without access. NULL after an error. */
void *guard_reserve(size_t size)
{
    void *const memory = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void guard_release(void *memory, size_t size)
{
    munmap(memory, size);
}

/* Takes access to all of `memory` away, and gives access to `count` rows of `row` bytes that begin at `rows`. */
bool guard_open(void *memory, size_t size, const uintptr_t *rows, size_t count, size_t row)
{
    bool is_done = mprotect(memory, size, PROT_NONE) == 0;
    for (size_t i = 0; i < count && row != 0; ++i) {
        const uintptr_t first = rows[i] & ~(PAGE - 1), last = (rows[i] + row - 1) & ~(PAGE - 1);
        is_done = is_done && mprotect((void *)first, last - first + PAGE, PROT_READ | PROT_WRITE) == 0;
    }
    return is_done;
}

/* Begins to note accesses. Their addresses go to `noted`, which has space for `most`. */
bool guard_begin(void *memory, size_t size, uintptr_t *noted, size_t most)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = give_back;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    guard.begin = (uintptr_t)memory;
    guard.end = guard.begin + size;
    guard.noted = noted;
    guard.count = 0;
    guard.most = most;
    return sigaction(SIGSEGV, &action, &guard.before) == 0;
}

/* Stops it, and takes the pages away again. Returns how many addresses there are. */
size_t guard_end(void)
{
    sigaction(SIGSEGV, &guard.before, NULL);
    for (size_t i = 0; i < guard.count; ++i)
        mprotect((void *)(guard.noted[i] & ~(PAGE - 1)), PAGE, PROT_NONE);
    return guard.count;
}
