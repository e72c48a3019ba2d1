/*
 * Runs threads as a processor with weak memory may run them, one step at a time and reproducibly: memory.c. Code that is
 * to run so is compiled with -fsanitize=thread, and linked with memory.c in place of the library of ThreadSanitizer.
 */
#ifndef GTSTUB_TESTS_MEMORY_H
#define GTSTUB_TESTS_MEMORY_H

#include <stdint.h>

enum { MEMORY_THREADS = 4 };

/*
 * Runs up to MEMORY_THREADS threads to their end. `seed` determines whose turn it is at each step, and which of the values
 * that it may see a load sees. The process ends with a message when a thread does what C11 leaves undefined: two accesses
 * to one place, one of them a write that is not atomic, of which none happens before the other; or an access to memory
 * that was freed.
 */
void memory_run(uint64_t seed, int count, void (*const *threads)(void));

/* Lets other threads go on before this one. */
void memory_rest(void);

#endif
