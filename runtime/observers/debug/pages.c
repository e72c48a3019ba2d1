/* Guarded memory, and the handler of SIGSEGV that notes accesses to it. It knows nothing about programs. */
#define _GNU_SOURCE
#include "observers/debug/pages.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/new.h"

/* Handlers read the list without the lock. An element stays in it for good, and is reused. */
static gts_pages *_Atomic all;
GTS_LOCK(lock)

static _Atomic uint64_t accesses; /* that were noted in this process */

size_t gts_page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- The handler: only what a handler of a signal may call -------------------------------------------------------- */

_Static_assert(ATOMIC_POINTER_LOCK_FREE == 2 && ATOMIC_LONG_LOCK_FREE == 2,
               "the handler takes no lock of an atomic word");

static unsigned int watchers;
static struct sigaction before; /* what was done with SIGSEGV before there were watchers */

/* Whether memory has an address. It is not enough that both ends fit: they may be of the memory before and after. */
static bool has(const gts_pages *pages, uintptr_t address)
{
    const uintptr_t end = pages->end;
    const uintptr_t begin = pages->begin;
    return address >= begin && address < end && pages->end == end;
}

static gts_pages *find_pages(uintptr_t address)
{
    gts_pages *pages = all;
    while (pages != NULL && !has(pages, address))
        pages = pages->next;
    return pages;
}

static gts_access_kind kind_of(const ucontext_t *context)
{
#if defined __x86_64__
    return (context->uc_mcontext.gregs[REG_ERR] & 2) != 0 ? GTS_WRITTEN : GTS_READ;
#else
    (void)context;
    return GTS_ACCESSED;
#endif
}

static bool note(gts_pages *pages, uintptr_t address, gts_access_kind kind)
{
    const size_t index = pages->count++;
    if (index >= pages->most)
        return gts_pages_open(pages->begin, pages->end);
    pages->noted[index] = (gts_access){address, accesses++, kind};
    return gts_pages_open(address, address + 1);
}

/* Does what would have been done without this handler. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    const bool is_sent = info->si_code <= 0; /* by kill(), which does not repeat it */
    if ((before.sa_flags & SA_SIGINFO) != 0) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else if (before.sa_handler == SIG_DFL || !is_sent) {
        signal(number, SIG_DFL); /* the access is repeated, and ends the process */
        if (is_sent)
            raise(number);
    }
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    const int error = errno;
    const uintptr_t address = (uintptr_t)info->si_addr;
    gts_pages *const pages = info->si_code > 0 ? find_pages(address) : NULL;
    if (pages == NULL || !note(pages, address, kind_of(context)))
        pass_on(number, info, context);
    errno = error;
}

static bool is_ours(void)
{
    struct sigaction now;
    return sigaction(SIGSEGV, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault;
}

void gts_pages_watch(void)
{
    pthread_mutex_lock(&lock);
    if (watchers++ == 0 && !is_ours()) {
        struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
        action.sa_sigaction = on_fault;
        sigemptyset(&action.sa_mask);
        sigaction(SIGSEGV, NULL, &before);
        sigaction(SIGSEGV, &action, NULL);
    }
    pthread_mutex_unlock(&lock);
}

void gts_pages_unwatch(void)
{
    pthread_mutex_lock(&lock);
    if (--watchers == 0 && is_ours()) /* otherwise somebody has replaced it meanwhile */
        sigaction(SIGSEGV, &before, NULL);
    pthread_mutex_unlock(&lock);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* An element of the list that has no memory, with space for `most` accesses. The lock is held. */
static gts_pages *take_pages(size_t most)
{
    gts_pages *pages = all;
    while (pages != NULL && (pages->end != 0 || pages->most != most))
        pages = pages->next;
    if (pages != NULL)
        return pages;
    pages = gts_new(1, sizeof *pages);
    pages->most = most;
    pages->noted = gts_new(most, sizeof *pages->noted);
    pages->next = all;
    all = pages;
    return pages;
}

gts_pages *gts_pages_reserve(size_t size, size_t most)
{
    void *const memory = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    pthread_mutex_lock(&lock);
    gts_pages *const self = take_pages(most);
    self->count = 0;
    self->begin = (uintptr_t)memory; /* while `end` is 0 */
    self->end = (uintptr_t)memory + size;
    pthread_mutex_unlock(&lock);
    return self;
}

void gts_pages_release(gts_pages *self)
{
    if (self == NULL)
        return;
    pthread_mutex_lock(&lock);
    const uintptr_t begin = self->begin, end = self->end;
    self->end = 0; /* no address is below it */
    munmap((void *)begin, end - begin);
    pthread_mutex_unlock(&lock);
}

bool gts_pages_open(uintptr_t begin, uintptr_t end)
{
    const uintptr_t first = begin & ~((uintptr_t)gts_page_size() - 1);
    return begin == end || mprotect((void *)first, end - first, PROT_READ | PROT_WRITE) == 0;
}

size_t gts_pages_count(const gts_pages *self)
{
    return self->count;
}
