/* The memory that SDFGs free and take again: no two arrays share a byte, and nothing grows without end. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "embedded/memory.h"
#include "harness.h"

#define KIB ((size_t)1024)

enum { ARRAYS = 24, CALLS = 2000 };

static gts_sdfg_memory *memory_of(const char *path, const char *variable)
{
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    gts_sdfg_memory **const found = dlsym(library, variable);
    CHECK(found != NULL && *found != NULL);
    return *found;
}

typedef struct array {
    uint64_t *data;
    size_t count;
    uint64_t mark;
} array;

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static array take(gts_sdfg_memory *memory, size_t bytes, uint64_t mark)
{
    const array taken = {memory->take(memory, bytes), bytes / sizeof(uint64_t), mark};
    CHECK(taken.data != NULL);
    CHECK((uintptr_t)taken.data % GTS_POOLED_ALIGNMENT == 0);
    CHECK((uintptr_t)taken.data - memory->begin < memory->size);
    for (size_t i = 0; i < taken.count; i += 64)
        taken.data[i] = mark;
    taken.data[taken.count - 1] = mark;
    return taken;
}

static void give(gts_sdfg_memory *memory, array *taken)
{
    for (size_t i = 0; i < taken->count; i += 64)
        CHECK(taken->data[i] == taken->mark);
    CHECK(taken->data[taken->count - 1] == taken->mark);
    memory->give(memory, taken->data);
    *taken = (array){0};
}

/* ---- One program after the other ------------------------------------------------------------------------------- */

static void test_what_was_freed_is_taken_again(gts_sdfg_memory *one, gts_sdfg_memory *other)
{
    array first = take(one, 400 * KIB, 1), second = take(one, 300 * KIB, 2);
    uint64_t *const begin = first.data, *const last = second.data;
    give(one, &first);
    first = take(one, 400 * KIB, 3); /* just the same */
    CHECK(first.data == begin);
    give(one, &first);
    first = take(one, 100 * KIB, 4); /* a part, and another one of the rest */
    array third = take(one, 200 * KIB, 5);
    CHECK(first.data == begin && third.data > begin && third.data < last);
    give(one, &first);
    give(one, &third);
    first = take(one, 400 * KIB, 6); /* joined */
    CHECK(first.data == begin);
    third = take(other, 100 * KIB, 7); /* two programs have arrays at once: each in an arena of its own */
    CHECK((uintptr_t)third.data - (uintptr_t)begin > 1024 * KIB);
    give(other, &third);
    give(one, &second);
    give(one, &first);
    CHECK(gts_pool_trim() > 0);
    CHECK(gts_pool_trim() == 0);
    first = take(one, 400 * KIB, 8);
    CHECK(first.data == begin && first.data[1] == 0); /* new pages */
    give(one, &first);
}

static void test_trim_beside_arrays(gts_sdfg_memory *one)
{
    array low = take(one, 5000 * KIB, 1), hole = take(one, 5000 * KIB, 2), high = take(one, 5000 * KIB, 3);
    uint64_t *const begin = hole.data;
    give(one, &hole);
    CHECK(gts_pool_trim() >= 5000 * KIB);
    hole = take(one, 5000 * KIB, 4);
    CHECK(hole.data == begin);
    give(one, &high);
    (void)gts_pool_trim();
    high = take(one, 9000 * KIB, 5);
    give(one, &low);
    give(one, &hole);
    give(one, &high);
}

/* ---- Many sizes ------------------------------------------------------------------------------------------------ */

/* Calls that free in another order than they take, with sizes that change; the largest call has 64 MiB. */
static void test_growth(gts_sdfg_memory *memory)
{
    (void)gts_pool_trim();
    uint64_t state = 88172645463325252U;
    size_t largest = 0;
    for (int call = 0; call < CALLS; ++call) {
        array arrays[ARRAYS] = {{0}};
        size_t live = 0, most = 0;
        for (int turn = 0; turn < 3 * ARRAYS; ++turn) {
            array *const at = &arrays[next(&state) % ARRAYS];
            live -= at->count * sizeof(uint64_t);
            if (at->data != NULL)
                give(memory, at);
            const size_t bytes = (32 * KIB << next(&state) % 7) + next(&state) % (32 * KIB);
            *at = take(memory, bytes, next(&state));
            live += at->count * sizeof(uint64_t);
            most = live > most ? live : most;
        }
        for (int i = 0; i < ARRAYS; ++i)
            if (arrays[i].data != NULL)
                give(memory, &arrays[i]);
        largest = most > largest ? most : largest;
    }
    const size_t kept = gts_pool_trim();
    fprintf(stderr, "kept %zu KiB for %zu KiB\n", kept / KIB, largest / KIB);
    CHECK(kept <= largest + largest / 4);
}

/* ---- Threads --------------------------------------------------------------------------------------------------- */

typedef struct worker {
    gts_sdfg_memory *memory;
    uint64_t seed, bytes;
} worker;

static void *churn(void *argument)
{
    worker *const self = argument;
    array arrays[ARRAYS] = {{0}};
    uint64_t state = self->seed;
    while (self->bytes < UINT64_C(1) << 28) {
        array *const at = &arrays[next(&state) % ARRAYS];
        if (at->data != NULL)
            give(self->memory, at);
        const size_t bytes = 32 * KIB + next(&state) % (512 * KIB);
        *at = take(self->memory, bytes, next(&state));
        self->bytes += bytes;
    }
    for (int i = 0; i < ARRAYS; ++i)
        if (arrays[i].data != NULL)
            give(self->memory, &arrays[i]);
    return NULL;
}

static void test_threads(gts_sdfg_memory *one, gts_sdfg_memory *other)
{
    worker workers[4];
    pthread_t threads[4];
    for (unsigned int i = 0; i < 4; ++i) {
        workers[i] = (worker){i % 2 == 0 ? one : other, i + 1, 0};
        CHECK(pthread_create(&threads[i], NULL, churn, &workers[i]) == 0);
    }
    for (unsigned int i = 0; i < 4; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* ---- Forks ----------------------------------------------------------------------------------------------------- */

/* Another thread takes and gives memory while this one forks: the child has whole lists. */
static void test_forks(gts_sdfg_memory *one, gts_sdfg_memory *other)
{
    worker busy = {one, 7, 0};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, churn, &busy) == 0);
    for (int i = 0; i < 20; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            worker own = {other, (uint64_t)i + 1, (UINT64_C(1) << 28) - (UINT64_C(1) << 24)};
            (void)churn(&own);
            _exit(0);
        }
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv)
{
    (void)argv;
    gts_program *whole = load("./whole_stub.so", "./libwhole.so"), *prog = load("./prog_stub.so", "./libprog.so");
    gts_sdfg_memory *const one = memory_of("./libwhole.so", "__gtstub_memory_whole");
    gts_sdfg_memory *const other = memory_of("./libprog.so", "__gtstub_memory_prog");
    CHECK(one != other);
    test_what_was_freed_is_taken_again(one, other);
    test_trim_beside_arrays(one);
    test_growth(one);
    test_threads(one, other);
    if (argc > 5) /* ThreadSanitizer cannot follow it */
        test_forks(one, other);
    gts_close(&whole);
    gts_close(&prog);
    return 0;
}
