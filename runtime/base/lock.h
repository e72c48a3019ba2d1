/* Inside the runtime: locks that a forked child frees, because a thread of the parent may have held them. */
#ifndef GTSTUB_BASE_LOCK_H
#define GTSTUB_BASE_LOCK_H

#include <pthread.h>

/* Defines the lock `name` of a file. The linker collects the addresses of all of them, for program/fork.c. */
#define GTS_LOCK(name)                                                                                                 \
    static pthread_mutex_t name = PTHREAD_MUTEX_INITIALIZER;                                                           \
    static pthread_mutex_t *name##_address __attribute__((used, section("gts_locks"))) = &name

#endif
