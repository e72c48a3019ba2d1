/*
 * The pool: memory that SDFGs have freed, and that the process keeps for their next arrays.
 *
 * glibc gives large arrays back to the system when they are freed. The next call then asks for them again, and the
 * system clears each page when it is first touched.
 *
 * The pool reserves a range of addresses and divides it into arenas. An arena is used from its beginning; its blocks lie
 * one behind the other, each behind a head. A block that is freed is joined with free blocks beside it. A request gets
 * the block that was freed last among those of its size class, because that is still in the caches of the CPU, or the
 * first one of the next class that has any. What it does not need of the block becomes a free block.
 *
 * Programs that run one after the other use one arena, so it grows to what the largest of them needs. A program that
 * runs while another one has arrays in an arena uses an arena of its own.
 */
#define _GNU_SOURCE
#include "program/pool.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/new.h"
#include "program/observe.h"

#define ARENAS 16
#define SMALLEST_ARENA (UINT64_C(64) << 20) /* bytes; with less, there is no pool */
#define STEP (UINT64_C(2) << 20)            /* bytes by which the accessible part of an arena grows: a huge page */

/* The head of a block. Its memory follows. */
typedef struct block {
    _Alignas(GTS_POOLED_ALIGNMENT) size_t size; /* bytes, with the head; a multiple of the alignment */
    struct block *before;                       /* the block that ends where this one begins; NULL: the first one */
    struct block *next, **link;                 /* of the list of free blocks; link is NULL in use */
    bool is_clean;                              /* free, and trimmed since it became free */
} block;

_Static_assert(sizeof(block) == GTS_POOLED_ALIGNMENT, "memory behind a head must be aligned");

/* Size classes: eight between a power of two and the next one. A rest that is smaller stays with its block. */
#define SMALLEST_LOG 12
#define LARGEST_LOG 48
#define CLASSES ((LARGEST_LOG - SMALLEST_LOG) * 8)
#define WORDS ((CLASSES + 63) / 64)

typedef struct arena {
    char *begin;       /* of the first block */
    char *top;         /* end of the last block, which is in use */
    char *reached;     /* the farthest end since the arena was trimmed */
    char *accessible;  /* end of the part that may be accessed; what follows has no memory */
    block *last;       /* NULL if there is none */
    size_t used;       /* bytes of the blocks in use */
    const void *owner; /* the gts_sdfg_memory whose blocks are in use; of the last one if none are */
    uint64_t has[WORDS];
    block *free[CLASSES];
} arena;

/* Of one SDFG library. */
typedef struct memory {
    gts_sdfg_memory base; /* first */
    arena *arena;
    gts_pool_use use;
} memory;

GTS_LOCK(lock) /* of all that follows */
static arena arenas[ARENAS];
static size_t arena_size;                   /* bytes; 0 before the first library is loaded, and if there is no pool */
static size_t limit = SIZE_MAX, accessible; /* bytes of all arenas */

static _Thread_local bool is_paused;

/* ---- Blocks ---------------------------------------------------------------------------------------------------- */

static unsigned int class_of(size_t size)
{
    const unsigned int log = 63U - (unsigned int)__builtin_clzl(size);
    return (log - SMALLEST_LOG) * 8 + (unsigned int)(size >> (log - 3) & 7);
}

static block *after(const block *self)
{
    return (block *)((char *)(uintptr_t)self + self->size);
}

static void add_free(arena *in, block *self)
{
    const unsigned int class = class_of(self->size);
    self->next = in->free[class];
    self->link = &in->free[class];
    if (self->next != NULL)
        self->next->link = &self->next;
    in->free[class] = self;
    in->has[class / 64] |= UINT64_C(1) << class % 64;
}

static void remove_free(arena *in, block *self)
{
    *self->link = self->next;
    if (self->next != NULL)
        self->next->link = self->link;
    self->link = NULL;
    const unsigned int class = class_of(self->size);
    if (in->free[class] == NULL)
        in->has[class / 64] &= ~(UINT64_C(1) << class % 64);
}

static block *find_free(const arena *in, size_t size)
{
    const unsigned int own = class_of(size), next = own + 1;
    block *found = in->free[own]; /* some are smaller */
    for (unsigned int tries = 0; found != NULL && tries < 8; ++tries, found = found->next)
        if (found->size >= size)
            return found;
    uint64_t wanted = ~UINT64_C(0) << next % 64;
    for (unsigned int word = next / 64; word < WORDS; ++word, wanted = ~UINT64_C(0)) {
        const uint64_t has = in->has[word] & wanted;
        if (has != 0)
            return in->free[word * 64 + (unsigned int)__builtin_ctzl(has)];
    }
    return NULL;
}

/* The first `size` bytes of a block that is in no list; the rest becomes free, unless it is too small. */
static void split(arena *in, block *self, size_t size)
{
    const size_t rest = self->size - size;
    if (rest < UINT64_C(1) << SMALLEST_LOG)
        return;
    self->size = size;
    block *const second = after(self);
    second->size = rest;
    second->before = self;
    second->is_clean = self->is_clean;
    after(second)->before = second; /* there is one: no free block is the last one */
    add_free(in, second);
}

/* Makes an arena accessible up to `end`; false if that would exceed the limit, or the system has no memory. */
static GTS_COLD bool extend(arena *in, const char *end)
{
    const size_t bytes = ((size_t)(end - in->accessible) + STEP - 1) / STEP * STEP;
    if (bytes > limit - accessible || mprotect(in->accessible, bytes, PROT_READ | PROT_WRITE) != 0)
        return false;
    madvise(in->accessible, bytes, MADV_HUGEPAGE); /* fails where the system has none */
    in->accessible += bytes;
    accessible += bytes;
    return true;
}

/* A new block behind the last one, or NULL. */
static block *append(arena *in, size_t size)
{
    if (size > arena_size - (size_t)(in->top - in->begin))
        return NULL;
    if (GTS_UNLIKELY(in->top + size > in->accessible) && !extend(in, in->top + size))
        return NULL;
    block *const self = (block *)in->top;
    self->size = size;
    self->before = in->last;
    self->link = NULL;
    in->last = self;
    in->top += size;
    if (in->top > in->reached)
        in->reached = in->top;
    return self;
}

static void release(arena *in, block *self)
{
    in->used -= self->size;
    block *const before = self->before;
    if (before != NULL && before->link != NULL) {
        remove_free(in, before);
        before->size += self->size;
        self = before;
    }
    if ((char *)after(self) < in->top && after(self)->link != NULL) {
        block *const next = after(self);
        remove_free(in, next);
        self->size += next->size;
    }
    if ((char *)after(self) == in->top) {
        in->top = (char *)self;
        in->last = self->before;
    } else {
        after(self)->before = self;
        self->is_clean = false;
        add_free(in, self);
    }
}

/* ---- Arrays of SDFGs ------------------------------------------------------------------------------------------- */

/* An arena in which no other program has arrays, or NULL: the one that was used last, or else the first one. */
static arena *arena_for(memory *self)
{
    if (GTS_LIKELY(self->arena != NULL && (self->arena->owner == self || self->arena->used == 0))) {
        self->arena->owner = self;
        return self->arena;
    }
    for (arena *each = arenas; each < arenas + ARENAS; ++each)
        if (each->used == 0) {
            each->owner = self;
            return self->arena = each;
        }
    return NULL;
}

static void *take_from(memory *self, size_t size)
{
    arena *const in = arena_for(self);
    if (in == NULL)
        return NULL;
    block *found = find_free(in, size);
    if (found != NULL) {
        remove_free(in, found);
        split(in, found, size);
    } else if ((found = append(in, size)) == NULL) {
        return NULL;
    }
    in->used += found->size;
    return found + 1;
}

/* The time now if something observes calls, else 0. */
static uint64_t start_clock(void)
{
    return __atomic_load_n(&gts_attention, __ATOMIC_RELAXED) == 0 ? 0 : gts_clock_ns();
}

static void *take_block(gts_sdfg_memory *base, size_t bytes)
{
    memory *const self = (memory *)base;
    if (GTS_UNLIKELY(is_paused) || bytes >= arena_size)
        return NULL;
    const uint64_t begin = start_clock();
    pthread_mutex_lock(&lock);
    void *const taken = take_from(self, (bytes + 2 * sizeof(block) - 1) / sizeof(block) * sizeof(block));
    if (taken != NULL) {
        ++self->use.arrays;
        self->use.bytes += bytes;
        self->use.ns += begin == 0 ? 0 : gts_clock_ns() - begin;
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

static void give(gts_sdfg_memory *base, void *data)
{
    memory *const self = (memory *)base;
    const uint64_t begin = start_clock();
    pthread_mutex_lock(&lock);
    release(&arenas[((uintptr_t)data - base->begin) / arena_size], (block *)data - 1);
    self->use.ns += begin == 0 ? 0 : gts_clock_ns() - begin;
    pthread_mutex_unlock(&lock);
}

/* ---- Its beginning --------------------------------------------------------------------------------------------- */

/* The bytes of GTSTUB_POOL, as "8GiB"; 0 if it says "off". Without the variable, the pool has no limit. */
static size_t read_limit(bool *is_set)
{
    const char *const text = getenv("GTSTUB_POOL");
    *is_set = text != NULL && *text != '\0';
    if (!*is_set)
        return SIZE_MAX;
    if (strcmp(text, "off") == 0)
        return 0;
    static const char prefixes[] = "KMGT";
    char *end = NULL;
    const double number = *text >= '0' && *text <= '9' ? strtod(text, &end) : 0;
    const char *const prefix = end == NULL || *end == '\0' ? NULL : strchr(prefixes, toupper((unsigned char)*end));
    const char *const unit = prefix == NULL ? end : end + 1;
    if (unit != NULL && (*unit == '\0' || strcasecmp(unit, "B") == 0 || strcasecmp(unit, "iB") == 0)) {
        double bytes = number;
        for (const char *each = prefixes; prefix != NULL && each <= prefix; ++each)
            bytes *= strcasecmp(unit, "B") == 0 ? 1000 : 1024;
        return bytes < (double)(SIZE_MAX / 2) ? (size_t)bytes : SIZE_MAX;
    }
    fprintf(stderr, "GTSTUB_POOL must be 'off' or a size such as '8GiB', but is '%s': the pool has no limit.\n", text);
    return SIZE_MAX;
}

/* Whether the process runs under a tool that must see each array when it is allocated and freed. */
static bool is_watched(void)
{
    const char *const preloaded = getenv("LD_PRELOAD"); /* valgrind adds its library */
    return dlsym(RTLD_DEFAULT, "__asan_init") != NULL || dlsym(RTLD_DEFAULT, "__tsan_init") != NULL ||
           (preloaded != NULL && strstr(preloaded, "vgpreload") != NULL);
}

/* While a process forks, no thread changes the blocks: the child gets whole lists. */
static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void) /* in the parent; GTS_LOCK() frees the lock of the child */
{
    pthread_mutex_unlock(&lock);
}

/*
 * Keeps the library that contains this runtime: a host may close a plugin, but libraries of SDFGs stay, and call these
 * functions.
 */
static void stay_loaded(void)
{
    Dl_info here;
    if (dladdr(&lock, &here) != 0)
        dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE); /* fails for an executable */
}

/*
 * Reserves addresses: for each arena as many as the machine has memory, or less if the process may not have so many.
 * What is reserved takes no memory, and is not accessible.
 */
static void reserve(void)
{
    bool is_wanted;
    limit = read_limit(&is_wanted);
    if (limit == 0 || (is_watched() && !is_wanted))
        return;
    size_t size = SMALLEST_ARENA;
    const size_t machine = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    while (size < machine)
        size *= 2;
    struct rlimit addresses;
    const bool is_limited = getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY;
    while (is_limited && size * ARENAS > addresses.rlim_cur / 4)
        size /= 2; /* the rest is for others */
    char *begin = MAP_FAILED;
    for (; begin == MAP_FAILED && size >= SMALLEST_ARENA; size /= 2)
        begin = mmap(NULL, size * ARENAS + STEP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED)
        return;
    size *= 2;
    begin += -(uintptr_t)begin % STEP;
    for (unsigned int i = 0; i < ARENAS; ++i)
        arenas[i].begin = arenas[i].top = arenas[i].reached = arenas[i].accessible = begin + i * size;
    arena_size = size;
    pthread_atfork(before_fork, after_fork, NULL);
    stay_loaded();
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

const gts_pool_use *gts_pool_lend(void *library, const char *name)
{
    gts_sdfg_memory *_Atomic *variable; /* NULL if gtstub has not built the library */
    gts_library_find(library, "__gtstub_memory_", name, &variable);
    if (variable == NULL)
        return NULL;
    pthread_once(&once, reserve);
    if (arena_size == 0)
        return NULL;
    gts_sdfg_memory *lent = *variable; /* maybe by another runtime */
    if (lent == NULL) {
        memory *const made = gts_new(1, sizeof *made);
        made->base = (gts_sdfg_memory){take_block, give, (uintptr_t)arenas[0].begin, arena_size * ARENAS};
        if (atomic_compare_exchange_strong(variable, &lent, &made->base))
            lent = &made->base;
        else
            free(made);
    }
    return lent->take == take_block ? &((const memory *)lent)->use : NULL;
}

gts_pool_use gts_pool_taken(const gts_pool_use *use, const gts_pool_use *before)
{
    pthread_mutex_lock(&lock);
    const gts_pool_use now = *use;
    pthread_mutex_unlock(&lock);
    return (gts_pool_use){now.arrays - before->arrays, now.bytes - before->bytes, now.ns - before->ns};
}

void gts_pool_pause(bool pause)
{
    is_paused = pause;
}

/* ---- Its end --------------------------------------------------------------------------------------------------- */

/* Gives the whole pages in [begin, end) back to the system. */
static void give_back(char *begin, char *end)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    begin += -(uintptr_t)begin % page;
    end -= (uintptr_t)end % page;
    if (begin < end)
        madvise(begin, (size_t)(end - begin), MADV_DONTNEED);
}

/* Returns how many bytes the arena has kept. */
static size_t trim(arena *in)
{
    size_t kept = (size_t)(in->reached - in->top);
    for (unsigned int class = 0; class < CLASSES; ++class)
        for (block *each = in->free[class]; each != NULL; each = each->next) {
            kept += each->is_clean ? 0 : each->size;
            each->is_clean = true;
            give_back((char *)(each + 1), (char *)after(each));
        }
    char *const end = in->top + -(uintptr_t)in->top % STEP;
    give_back(in->top, end);
    in->reached = in->top;
    const size_t bytes = (size_t)(in->accessible - end);
    /* Mapped anew, the addresses have no memory, and are not accessible. */
    if (bytes > 0 &&
        mmap(end, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED) {
        in->accessible = end;
        accessible -= bytes;
    }
    return kept;
}

size_t gts_pool_trim(void)
{
    size_t kept = 0;
    pthread_mutex_lock(&lock);
    for (arena *each = arenas; each < arenas + ARENAS; ++each)
        kept += trim(each);
    pthread_mutex_unlock(&lock);
    return kept;
}
