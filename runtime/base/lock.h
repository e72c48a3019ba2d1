/* Inside the runtime: locks that a forked child frees, because a thread of the parent may have held them. */
#pragma once

#include <pthread.h>

/* Defines the lock `name` of a file. It is free before what a child does after a fork: program/fork.c. */
#define GTS_LOCK(name)                                                                                                 \
    static pthread_mutex_t name = PTHREAD_MUTEX_INITIALIZER;                                                           \
    static void name##_free(void)                                                                                      \
    {                                                                                                                  \
        pthread_mutex_init(&name, NULL);                                                                               \
    }                                                                                                                  \
    __attribute__((constructor)) static void name##_watch_forks(void)                                                  \
    {                                                                                                                  \
        pthread_atfork(NULL, NULL, name##_free);                                                                       \
    }
