/* What the memory of two arrays costs, from the pool and from malloc(): callgrind counts the instructions. */
#include "embedded/memory.h"
#include "harness.h"

enum { ROUNDS = 1000, SIZE = 100000 };

__attribute__((noinline)) static void time_pool(gts_sdfg_memory *memory)
{
    for (int i = 0; i < ROUNDS; ++i) {
        void *const one = memory->take(memory, SIZE), *const other = memory->take(memory, SIZE / 2);
        memory->give(memory, one);
        memory->give(memory, other);
    }
}

__attribute__((noinline)) static void time_malloc(void)
{
    for (int i = 0; i < ROUNDS; ++i) {
        void *const one = aligned_alloc(64, SIZE / 64 * 64), *const other = aligned_alloc(64, SIZE / 128 * 64);
        __asm__ volatile("" : : "r"(one), "r"(other) : "memory");
        free(one);
        free(other);
    }
}

int main(void)
{
    gts_program *program = load("./whole_stub.so", "./libwhole.so");
    void *const library = dlopen("./libwhole.so", RTLD_NOW | RTLD_LOCAL);
    gts_sdfg_memory **const memory = dlsym(library, "__gtstub_memory_whole");
    time_pool(*memory);
    time_malloc();
    gts_close(&program);
    return 0;
}
