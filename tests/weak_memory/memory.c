/*
 * A model of C11's memory.
 *
 * Each atomic place keeps all values that were stored in it. A load may see any of them that is not older than one that
 * the thread knows of. What a thread knows (`knowledge`) grows with its own accesses, and when it acquires what another
 * one has released: then it knows what that one knew, and what that one has done before happens before what it does next
 * (the clocks). A relaxed load sees a value, and learns nothing else. Accesses that are not atomic are compared with all
 * others of the same bytes by these clocks.
 *
 * It shows less than C11 allows: a store is always the newest value of its place, and a load does not see what is stored
 * later. It has no fences. A seq_cst load sees the newest value: nothing else has another order on the same place.
 */
#define _GNU_SOURCE
#include "model.h"

#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { THREADS = MEMORY_THREADS, PLACES = 512, LOCKS = 64, FREED = 1024, BYTES = 1 << 17 };
enum { STEPS = 200000, STACK = 1 << 18 };

/* As gcc numbers the orders. */
enum { ACQUIRE = 2, RELEASE = 3, ACQ_REL = 4, SEQ_CST = 5 };

/* What happens before the next access of a thread, and the oldest store of each place that it may still see. */
typedef struct knowledge {
    uint32_t clock[THREADS];
    uint32_t seen[PLACES];
} knowledge;

typedef struct store {
    uint64_t value;
    bool is_plain;       /* `value` is what lies in memory */
    knowledge *released; /* NULL if it was relaxed */
} store;

typedef struct place {
    uintptr_t address;
    size_t size, count, room;
    store *stores;
} place;

typedef struct lock {
    const void *address;
    int owner; /* -1: nobody */
    knowledge released;
} lock;

typedef enum kind { READ, WRITE, ATOMIC_READ, ATOMIC_WRITE, KINDS } kind;

/* The last accesses to a byte. */
typedef struct byte {
    uintptr_t address;
    uint64_t round; /* of memory_run(), in which it was used */
    bool is_freed;
    uint32_t clock[KINDS][THREADS];
    const void *where[KINDS];
} byte;

typedef enum state { READY, RESTING, WAITING, ENDED } state;

static struct {
    state state[THREADS];
    const void *awaited[THREADS];
    int count;
    knowledge known[THREADS];
    place places[PLACES];
    lock locks[LOCKS];
    size_t lock_count, freed_count, steps;
    void *freed[FREED];
    uint64_t seed, random, round;
    uint32_t patience; /* one of so many steps is followed by that of another thread */
} run;

static byte bytes[BYTES];
static bool is_running;
static int self = -1; /* the thread whose turn it is */

/* ---- Faults ---------------------------------------------------------------------------------------------------- */

static void show(const char *what, const void *where)
{
    Dl_info found;
    char command[512];
    if (dladdr(where, &found) == 0)
        return;
    const size_t offset = (size_t)((const char *)where - (const char *)found.dli_fbase) - 1;
    (void)snprintf(command, sizeof command, "addr2line -sfpe '%s' 0x%zx", found.dli_fname, offset);
    fprintf(stderr, "  %s: ", what);
    FILE *const line = popen(command, "r");
    char text[512];
    if (line == NULL || fgets(text, sizeof text, line) == NULL)
        (void)snprintf(text, sizeof text, "0x%zx\n", offset);
    (void)fputs(text, stderr);
}

static void fail(const char *what, const char *first, const void *before, const char *second, const void *now)
{
    is_running = false;
    fprintf(stderr, "seed %llu: %s\n", (unsigned long long)run.seed, what);
    if (before != NULL)
        show(first, before);
    if (now != NULL)
        show(second, now);
    _exit(66);
}

/* ---- Whose turn it is ------------------------------------------------------------------------------------------ */

static uint32_t choose(uint32_t count)
{
    run.random = run.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(run.random >> 33) % count;
}

static int choose_next(state wanted)
{
    int found[THREADS], count = 0;
    for (int i = 0; i < run.count; ++i) {
        if (run.state[i] == wanted)
            found[count++] = i;
    }
    return count == 0 ? -1 : found[choose((uint32_t)count)];
}

/* The threads are contexts of one thread of the system: it is cheap to switch, and the same seed does the same again. */
static ucontext_t contexts[THREADS + 1];
static char stacks[THREADS][STACK];

/* The variables of the executable that each thread has for itself. The last ones are those of the caller. */
static char *locals, *saved_locals[THREADS + 1];
static size_t locals_size;

static int find_locals(struct dl_phdr_info *executable, size_t size, void *unused)
{
    (void)size, (void)unused;
    for (int i = 0; i < executable->dlpi_phnum; ++i) {
        if (executable->dlpi_phdr[i].p_type == PT_TLS)
            locals_size = executable->dlpi_phdr[i].p_memsz;
    }
    locals = executable->dlpi_tls_data;
    for (int i = 0; i <= THREADS; ++i)
        saved_locals[i] = malloc(locals_size);
    return 1; /* it is the first one, and no other is looked at */
}

static void switch_to(int next)
{
    const int me = self < 0 ? THREADS : self, other = next < 0 ? THREADS : next;
    memcpy(saved_locals[me], locals, locals_size);
    memcpy(locals, saved_locals[other], locals_size);
    self = next;
    (void)swapcontext(&contexts[me], &contexts[other]);
}

/* Lets the next thread go on, which may be this one. */
static void pass(void)
{
    if (++run.steps > STEPS)
        fail("no thread comes to its end", NULL, NULL, NULL, NULL);
    if (run.state[self] == READY && choose(run.patience) != 0)
        return;
    int next = choose_next(READY);
    if (next < 0 || choose(16) == 0) {
        const int resting = choose_next(RESTING);
        next = resting >= 0 ? resting : next;
    }
    if (next < 0 && choose_next(WAITING) >= 0)
        fail("all threads wait for each other", NULL, NULL, NULL, NULL);
    if (next >= 0)
        run.state[next] = READY;
    if (next != self)
        switch_to(next);
}

void memory_rest(void)
{
    run.state[self] = RESTING;
    pass();
}

bool memory_is_modelled(void)
{
    return is_running && self >= 0;
}

/* ---- Knowledge ------------------------------------------------------------------------------------------------- */

static void learn(const knowledge *other)
{
    knowledge *const own = &run.known[self];
    if (other == NULL)
        return;
    for (int i = 0; i < THREADS; ++i)
        own->clock[i] = other->clock[i] > own->clock[i] ? other->clock[i] : own->clock[i];
    for (int i = 0; i < PLACES; ++i)
        own->seen[i] = other->seen[i] > own->seen[i] ? other->seen[i] : own->seen[i];
}

/* What this thread knows, for those that learn it. What it does from now on is not part of it. */
static knowledge *release(const knowledge *also)
{
    knowledge *const told = malloc(sizeof *told);
    const knowledge own = run.known[self];
    learn(also);
    *told = run.known[self];
    run.known[self] = own;
    ++run.known[self].clock[self];
    return told;
}

/* ---- Accesses to bytes ----------------------------------------------------------------------------------------- */

/* What is known of a byte; NULL if it is not made and nothing is known. */
static byte *find_byte(uintptr_t address, bool makes)
{
    size_t at = (size_t)(address * UINT64_C(0x9E3779B97F4A7C15) >> 40) % BYTES;
    for (size_t tried = 0; tried < BYTES; ++tried, at = (at + 1) % BYTES) {
        byte *const found = &bytes[at];
        if (found->round != run.round) {
            if (makes)
                *found = (byte){.address = address, .round = run.round};
            return makes ? found : NULL;
        }
        if (found->address == address)
            return found;
    }
    fail("the model has no room for so many bytes", NULL, NULL, NULL, NULL);
    return NULL;
}

static const char *const NAMES[KINDS] = {"read", "written", "read atomically", "written atomically"};

/* Which kinds of accesses conflict: all but two reads and two atomic ones. */
static bool conflict(kind a, kind b)
{
    const bool is_write = a == WRITE || b == WRITE || a == ATOMIC_WRITE || b == ATOMIC_WRITE;
    return is_write && (a < ATOMIC_READ || b < ATOMIC_READ);
}

/* Whether memory is that of variables which each thread has for itself: contexts have it in the same place. */
static bool is_local(const volatile void *memory)
{
    return (uintptr_t)memory - (uintptr_t)__builtin_thread_pointer() + 8192 < 2 * 8192;
}

/* Of what is freed, only bytes that were used are noted. */
static void access_bytes(kind kind, const volatile void *memory, size_t size, const void *where, bool is_free)
{
    const knowledge *const own = &run.known[self];
    for (size_t i = 0; i < size && !is_local(memory); ++i) {
        byte *const at = find_byte((uintptr_t)memory + i, !is_free);
        if (at == NULL)
            continue;
        if (at->is_freed)
            fail("memory is used after it was freed", "freed", at->where[WRITE], NAMES[kind], where);
        for (int other = 0; other < KINDS; ++other) {
            for (int thread = 0; conflict(kind, (enum kind)other) && thread < run.count; ++thread) {
                if (thread != self && at->clock[other][thread] > own->clock[thread])
                    fail("two threads use memory without an order", NAMES[other], at->where[other], NAMES[kind], where);
            }
        }
        at->clock[kind][self] = own->clock[self];
        at->where[kind] = where;
        at->is_freed = is_free;
    }
}

/* ---- Atomic places --------------------------------------------------------------------------------------------- */

static place *find_place(uintptr_t address, bool makes)
{
    size_t at = (size_t)(address * UINT64_C(0x9E3779B97F4A7C15) >> 40) % PLACES;
    for (size_t tried = 0; tried < PLACES; ++tried, at = (at + 1) % PLACES) {
        place *const found = &run.places[at];
        if (found->address == address)
            return found;
        if (found->address == 0)
            return makes ? found : NULL;
    }
    fail("the model has no room for so many atomic places", NULL, NULL, NULL, NULL);
    return NULL;
}

static uint64_t value_in_memory(const place *at)
{
    uint64_t value = 0;
    memcpy(&value, (const void *)at->address, at->size);
    return value;
}

/* Adds the newest store of a place, which this thread knows. */
static void add(place *at, uint64_t value, bool is_plain, knowledge *released)
{
    if (at->count == at->room) {
        at->room = at->room == 0 ? 8 : 2 * at->room;
        at->stores = realloc(at->stores, at->room * sizeof *at->stores);
    }
    at->stores[at->count] = (store){value, is_plain, released};
    run.known[self].seen[at - run.places] = (uint32_t)at->count++;
    if (released != NULL)
        released->seen[at - run.places] = (uint32_t)at->count - 1;
    if (!is_plain)
        memcpy((void *)at->address, &value, at->size);
}

/* Notes what was stored without an atomic operation, now that it lies in memory. */
static void settle(place *at)
{
    store *const last = &at->stores[at->count - 1];
    if (last->is_plain)
        *last = (store){value_in_memory(at), false, last->released};
}

static place *open_place(volatile void *memory, size_t size)
{
    place *const at = find_place((uintptr_t)memory, true);
    if (at->address == 0) {
        *at = (place){.address = (uintptr_t)memory, .size = size};
        const uint32_t seen = run.known[self].seen[at - run.places];
        add(at, value_in_memory(at), false, NULL);
        run.known[self].seen[at - run.places] = seen;
    }
    settle(at);
    return at;
}

void memory_read(const volatile void *memory, size_t size, const void *where)
{
    access_bytes(READ, memory, size, where, false);
}

void memory_write(const volatile void *memory, size_t size, const void *where)
{
    access_bytes(WRITE, memory, size, where, false);
    for (size_t i = 0; i < size; ++i) {
        place *const at = find_place((uintptr_t)memory + i, false);
        if (at == NULL)
            continue;
        settle(at);
        add(at, 0, true, NULL);
    }
}

static bool acquires(int order)
{
    return order == ACQUIRE || order >= ACQ_REL;
}

static bool releases(int order)
{
    return order == RELEASE || order >= ACQ_REL;
}

/* Sees a store: one that is as new as what the thread knows, and whose value is not `but`. */
static uint64_t see(place *at, int order, const uint64_t *but)
{
    const size_t number = (size_t)(at - run.places);
    const uint32_t oldest = run.known[self].seen[number];
    uint32_t seen = (uint32_t)at->count - 1;
    if (order != SEQ_CST && choose(2) == 0)
        seen = oldest + choose((uint32_t)at->count - oldest);
    while (but != NULL && at->stores[seen].value == *but) {
        if (seen == oldest)
            return *but;
        --seen;
    }
    run.known[self].seen[number] = seen;
    if (acquires(order))
        learn(at->stores[seen].released);
    return at->stores[seen].value;
}

uint64_t memory_load(volatile void *memory, size_t size, int order, const void *where)
{
    pass();
    access_bytes(ATOMIC_READ, memory, size, where, false);
    return see(open_place(memory, size), order, NULL);
}

void memory_store(volatile void *memory, size_t size, uint64_t value, int order, const void *where)
{
    pass();
    access_bytes(ATOMIC_WRITE, memory, size, where, false);
    place *const at = open_place(memory, size);
    add(at, value, false, releases(order) ? release(NULL) : NULL);
}

/* Replaces the newest value, and passes on what was released with it. */
static void replace(place *at, uint64_t value, int order)
{
    const store last = at->stores[at->count - 1];
    knowledge *released = NULL;
    if (acquires(order))
        learn(last.released);
    if (releases(order)) {
        released = release(last.released);
    } else if (last.released != NULL) {
        released = malloc(sizeof *released);
        *released = *last.released;
    }
    add(at, value, false, released);
}

uint64_t memory_update(volatile void *memory, size_t size, memory_change change, uint64_t value, int order,
                       const void *where)
{
    pass();
    access_bytes(ATOMIC_WRITE, memory, size, where, false);
    place *const at = open_place(memory, size);
    const uint64_t before = at->stores[at->count - 1].value;
    const uint64_t after = change == MEMORY_EXCHANGE ? value : change == MEMORY_ADD ? before + value : before - value;
    replace(at, size == 8 ? after : after & ((UINT64_C(1) << 8 * size) - 1), order);
    return before;
}

bool memory_compare(volatile void *memory, size_t size, uint64_t *expected, uint64_t value, const int *orders,
                    const void *where)
{
    pass();
    access_bytes(ATOMIC_WRITE, memory, size, where, false);
    place *const at = open_place(memory, size);
    const uint64_t found = see(at, orders[1], choose(2) == 0 ? expected : NULL);
    if (found != *expected) {
        *expected = found;
        return false;
    }
    const uint64_t newest = at->stores[at->count - 1].value;
    if (newest != *expected) {
        run.known[self].seen[at - run.places] = (uint32_t)at->count - 1;
        *expected = newest;
        return false;
    }
    replace(at, value, orders[0]);
    return true;
}

/* ---- Locks, and memory that is freed ---------------------------------------------------------------------------- */

static lock *find_lock(const void *address)
{
    size_t i = 0;
    while (i < run.lock_count && run.locks[i].address != address)
        ++i;
    if (i == LOCKS)
        fail("the model has no room for so many locks", NULL, NULL, NULL, NULL);
    if (i == run.lock_count)
        run.locks[run.lock_count++] = (lock){.address = address, .owner = -1};
    return &run.locks[i];
}

void memory_lock(const void *mutex)
{
    pass();
    lock *const found = find_lock(mutex);
    while (found->owner >= 0) {
        run.state[self] = WAITING;
        run.awaited[self] = mutex;
        pass();
    }
    found->owner = self;
    learn(&found->released);
}

void memory_unlock(const void *mutex)
{
    lock *const found = find_lock(mutex);
    found->owner = -1;
    found->released = run.known[self];
    ++run.known[self].clock[self];
    for (int i = 0; i < run.count; ++i) {
        if (run.state[i] == WAITING && run.awaited[i] == mutex)
            run.state[i] = READY;
    }
    pass();
}

void memory_free(void *memory, const void *where)
{
    access_bytes(WRITE, memory, malloc_usable_size(memory), where, true);
    if (run.freed_count == FREED)
        fail("the model has no room for so much freed memory", NULL, NULL, NULL, NULL);
    run.freed[run.freed_count++] = memory;
}

/* ---- Running --------------------------------------------------------------------------------------------------- */

static void run_thread(int number, void (*body)(void))
{
    body();
    run.state[number] = ENDED;
    pass();
}

static void clean_up(void)
{
    for (size_t i = 0; i < PLACES; ++i) {
        for (size_t j = 0; j < run.places[i].count; ++j)
            free(run.places[i].stores[j].released);
        free(run.places[i].stores);
    }
    for (size_t i = 0; i < run.freed_count; ++i)
        free(run.freed[i]);
}

static bool has_ended(void)
{
    for (int i = 0; i < run.count; ++i) {
        if (run.state[i] != ENDED)
            return false;
    }
    return true;
}

void memory_run(uint64_t seed, int count, void (*const *threads)(void))
{
    const uint64_t round = run.round + 1;
    (void)memset(&run, 0, sizeof run);
    run.round = round;
    run.seed = seed;
    run.random = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    run.count = count;
    run.patience = 1 + choose(6);
    if (locals == NULL)
        (void)dl_iterate_phdr(find_locals, NULL);
    for (int i = 0; i < count; ++i) {
        run.known[i].clock[i] = 1;
        (void)memset(saved_locals[i], 0, locals_size);
        (void)getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = STACK;
        contexts[i].uc_link = NULL;
        makecontext(&contexts[i], (void (*)(void))run_thread, 2, i, threads[i]);
    }
    is_running = true;
    switch_to((int)choose((uint32_t)count));
    is_running = false;
    if (!has_ended())
        fail("a thread has gone astray", NULL, NULL, NULL, NULL);
    clean_up();
}
