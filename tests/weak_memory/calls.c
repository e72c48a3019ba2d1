/*
 * What gcc calls for -fsanitize=thread in place of accesses to memory, and what the linker calls (--wrap) in place of
 * functions of the C library. Outside memory_run() they do what the names say.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model.h"

/* ---- What gcc calls -------------------------------------------------------------------------------------------- */

#define HERE __builtin_return_address(0)

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}

static void read_here(const void *memory, size_t size, const void *where)
{
    if (memory_is_modelled())
        memory_read(memory, size, where);
}

static void write_here(const void *memory, size_t size, const void *where)
{
    if (memory_is_modelled())
        memory_write(memory, size, where);
}

#define DEFINE(name, size)                                                                                             \
    void __tsan_##name##read##size(void *memory);                                                                      \
    void __tsan_##name##read##size(void *memory)                                                                       \
    {                                                                                                                  \
        read_here(memory, size, HERE);                                                                                 \
    }                                                                                                                  \
    void __tsan_##name##write##size(void *memory);                                                                     \
    void __tsan_##name##write##size(void *memory)                                                                      \
    {                                                                                                                  \
        write_here(memory, size, HERE);                                                                                \
    }
DEFINE(, 1)
DEFINE(, 2)
DEFINE(, 4)
DEFINE(, 8)
DEFINE(, 16)
DEFINE(unaligned_, 2)
DEFINE(unaligned_, 4)
DEFINE(unaligned_, 8)
DEFINE(unaligned_, 16)
#undef DEFINE

void __tsan_read_range(void *memory, size_t size);
void __tsan_read_range(void *memory, size_t size)
{
    read_here(memory, size, HERE);
}

void __tsan_write_range(void *memory, size_t size);
void __tsan_write_range(void *memory, size_t size)
{
    write_here(memory, size, HERE);
}

#define UPDATE(bits, type, name, operation, real)                                                                      \
    type __tsan_atomic##bits##_##name(volatile type *memory, type value, int order);                                   \
    type __tsan_atomic##bits##_##name(volatile type *memory, type value, int order)                                    \
    {                                                                                                                  \
        return memory_is_modelled() ? (type)memory_update(memory, sizeof *memory, operation, value, order, HERE)       \
                                    : real(memory, value, __ATOMIC_RELAXED);                                           \
    }

#define DEFINE(bits, type)                                                                                             \
    type __tsan_atomic##bits##_load(const volatile type *memory, int order);                                           \
    type __tsan_atomic##bits##_load(const volatile type *memory, int order)                                            \
    {                                                                                                                  \
        return memory_is_modelled() ? (type)memory_load((void *)memory, sizeof *memory, order, HERE) : *memory;        \
    }                                                                                                                  \
    void __tsan_atomic##bits##_store(volatile type *memory, type value, int order);                                    \
    void __tsan_atomic##bits##_store(volatile type *memory, type value, int order)                                     \
    {                                                                                                                  \
        if (memory_is_modelled())                                                                                      \
            memory_store(memory, sizeof *memory, value, order, HERE);                                                  \
        else                                                                                                           \
            *memory = value;                                                                                           \
    }                                                                                                                  \
    UPDATE(bits, type, exchange, MEMORY_EXCHANGE, __atomic_exchange_n)                                                 \
    UPDATE(bits, type, fetch_add, MEMORY_ADD, __atomic_fetch_add)                                                      \
    UPDATE(bits, type, fetch_sub, MEMORY_SUBTRACT, __atomic_fetch_sub)                                                 \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *memory, type *expected, type value, int order,    \
                                                      int failed);                                                     \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *memory, type *expected, type value, int order,    \
                                                      int failed)                                                      \
    {                                                                                                                  \
        if (!memory_is_modelled())                                                                                     \
            return __atomic_compare_exchange_n(memory, expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);    \
        uint64_t found = *expected;                                                                                    \
        const bool is_done = memory_compare(memory, sizeof *memory, &found, value, (const int[]){order, failed},       \
                                            HERE);                                                                     \
        *expected = (type)found;                                                                                       \
        return is_done;                                                                                                \
    }
DEFINE(8, uint8_t)
DEFINE(16, uint16_t)
DEFINE(32, uint32_t)
DEFINE(64, uint64_t)
#undef DEFINE
#undef UPDATE

/* ---- What the linker calls ------------------------------------------------------------------------------------- */

/* This file is in a library of its own, in which the names without __wrap_ are those of the C library. */
#define WRAP(result, name, ...)                                                                                        \
    result __wrap_##name(__VA_ARGS__);                                                                                 \
    result __wrap_##name(__VA_ARGS__)

WRAP(int, pthread_mutex_lock, pthread_mutex_t *mutex)
{
    if (!memory_is_modelled())
        return pthread_mutex_lock(mutex);
    memory_lock(mutex);
    return 0;
}

WRAP(int, pthread_mutex_unlock, pthread_mutex_t *mutex)
{
    if (!memory_is_modelled())
        return pthread_mutex_unlock(mutex);
    memory_unlock(mutex);
    return 0;
}

WRAP(int, nanosleep, const struct timespec *time, struct timespec *rest)
{
    if (!memory_is_modelled())
        return nanosleep(time, rest);
    memory_rest();
    return 0;
}

WRAP(void *, memcpy, void *to, const void *from, size_t size)
{
    read_here(from, size, HERE);
    write_here(to, size, HERE);
    return memcpy(to, from, size);
}

WRAP(void *, memset, void *memory, int value, size_t size)
{
    write_here(memory, size, HERE);
    return memset(memory, value, size);
}

WRAP(void, free, void *memory)
{
    if (memory_is_modelled() && memory != NULL)
        memory_free(memory, HERE);
    else
        free(memory);
}
