/* Inside the runtime: the private members of a program, its lock, and the list of all programs. */
#pragma once

#include <stddef.h>
#include <stdlib.h>

#include "program/bound.h"
#include "program/host.h"
#include "program/gpu.h"
#include "program/pool.h"

struct gts_runtime {
    gts_function exit;            /* `__dace_exit_<name>` */
    gts_gpu gpu;                  /* unused if the program runs on the CPU */
    size_t *workspace_size;       /* bytes that were lent, [stub->workspace_count] */
    _Atomic unsigned int waiters; /* threads that wait for the lock */
    bool was_called;              /* a call has succeeded */
    bool has_new_handle;          /* the SDFG's handle was initialised in this call */
    gts_bound_call *bound;        /* a list of its bound calls */
    int64_t *lower_bounds;    /* [stub->leaf_count][GTS_MAX_RANK], of the arrays of a Fortran host; NULL: all are 1 */
    gts_program *next;        /* in the list of loaded programs */
    const void *home;         /* &gts_attention of the runtime that loaded it: a process may have several runtimes */
    const gts_pool_use *pool; /* NULL if its SDFG has no memory from the pool of this runtime */
    unsigned int pins;        /* visits of gts_loaded_visit() that are running: the program must not be freed */
    _Alignas(max_align_t) char observed[]; /* what observers know of the program: gts_observed() */
};

/* Whether an environment variable is set, and is neither empty nor 0. */
static inline bool gts_is_set(const char *variable)
{
    const char *const value = getenv(variable);
    return value != NULL && *value != '\0' && strcmp(value, "0") != 0;
}

/* The first leaf that is a table. All leaves after it are tables, too. */
static inline uint32_t gts_first_table(const gts_stub *stub)
{
    return stub->leaf_count - stub->table_count;
}

/* The elements of a table that are kept in the slots of a call. */
static inline gts_samples *gts_samples_of(const gts_stub *stub, uint32_t leaf, void *slots)
{
    return (gts_samples *)((char *)slots + stub->tables) + (leaf - gts_first_table(stub));
}

/* Whether the SDFG calls functions of its host. */
static inline bool gts_has_callbacks(const gts_stub *stub)
{
    for (uint32_t i = 0; i < stub->leaf_count; ++i) {
        if (stub->leaves[i].kind == GTS_CALLBACK)
            return true;
    }
    return false;
}

/* ---- library.c ------------------------------------------------------------------------------------------------- */

/*
 * Opens the library that is in the file system now, whatever was loaded from the same path before. A path without a
 * slash is relative to the working directory. Refuses a file other than `verified`, unless that is NULL. Returns the
 * handle for dlsym(), or NULL after setting gts_own_error.
 */
void *gts_library_open(const char *path, const gts_file *verified);

/*
 * Stores the address of `<prefix><name>` in a function pointer; `function` is the address of that pointer, of any type.
 * NULL if the library, which is from dlopen(), does not export the symbol.
 */
void gts_library_find(void *library, const char *prefix, const char *name, void *function);

/* ---- linked.c -------------------------------------------------------------------------------------------------- */

/* Adds a stub that is linked statically. */
void gts_linked_add(gts_linked_stub *linked);

/* The stub that is linked statically and whose library would have the file name in `path`; NULL if there is none. */
const gts_linked_stub *gts_linked_find(const char *path);

/*
 * The first of the `*count` stubs that are linked statically and whose SDFG library is in a directory, and has the name
 * `library` unless that is NULL. Without such a stub, any one; NULL if none is linked.
 */
const gts_linked_stub *gts_linked_beside(const char *directory, size_t length, const char *library,
                                         unsigned int *count);

/*
 * gts_linked_find() for a host that loads no stubs. Returns NULL after setting gts_own_error. If the path has a file, it
 * must be a stub of the same signatures.
 */
const gts_stub *gts_linked_load(const char *path);

/* ---- bound.c --------------------------------------------------------------------------------------------------- */

/* Adds a reference to a bound call, which gts_unbind() gives back. */
gts_bound_call *gts_bound_keep(gts_bound_call *call);

/* Tells the bound calls of a program that it is being closed. */
void gts_bound_close(gts_program *self);

/* Enters the program of a bound call for a change, so that no start uses the arguments meanwhile; false if none can. */
bool gts_bound_enter(gts_program *program, gts_waiting wait);

/* Gives a bound call the arguments of another one of the same program, which can only be freed after this. */
void gts_bound_replace(gts_bound_call *call, gts_bound_call *by, gts_waiting wait);

/* Finds the arrays of a call, and the slots that have their addresses. -1 with an error as after gts_start(). */
int gts_bound_hold(gts_bound_call *call);

/*
 * Changes a struct of arguments of a program. Returns 1, 0 if the program has nothing to change, or -1 after a refusal
 * in the error of the program.
 */
typedef int (*gts_bound_changer)(gts_program *program, void *args, const void *what);

/*
 * Binds a call anew, with changed arguments. Returns what the changer returns, or -1. *changed is
 * NULL unless this is 1. The error of a closed program is gts_own_error.
 */
int gts_bound_change(const gts_bound_call *call, gts_bound_changer change, const void *what, gts_bound_call **changed);

/* Some scalars. */
typedef struct gts_scalars {
    const gts_scalar *scalars;
    size_t count;
} gts_scalars;

/* A gts_bound_changer, of gts_scalars: changes those that the program has. */
int gts_bound_change_scalars(gts_program *program, void *args, const void *scalars);

/* Refuses a bound call that is NULL, or whose program was closed. Returns -1. */
GTS_COLD int gts_bound_refuse_closed(const gts_bound_call *call);

/* ---- handle.c -------------------------------------------------------------------------------------------------- */

/* Ends the SDFG's handle, if there is one. */
int gts_handle_end(gts_program *self);

/* ---- load.c ---------------------------------------------------------------------------------------------------- */

/*
 * The two steps of gts_load() and gts_load_verified(); `verified` may be NULL. After an error they return NULL and -1,
 * and leave *program as it is.
 */
const gts_stub *gts_load_stub(const char *path, const gts_file *verified);
int gts_load_sdfg(const gts_stub *stub, const char *library_path, const gts_file *verified, gts_program **program);

/* ---- fork.c ---------------------------------------------------------------------------------------------------- */

/* Has the observers begin what the environment asks for, before the first program is loaded. Later calls do nothing. */
void gts_start_observers(void);

/* ---- enter.c --------------------------------------------------------------------------------------------------- */

/* Counts one more reason, or one less, why every call is entered slowly. */
static inline void gts_add_attention(int more)
{
    (void)__atomic_fetch_add(&gts_attention, (unsigned int)more, __ATOMIC_RELAXED);
}

/* Refuses a call that would wait for the call whose callback makes it. Returns -1. */
GTS_COLD int gts_refuse_own_callback(gts_program *self);

/* Whether this thread runs for a callback of `self`, so that a call of `self` would wait for itself. */
bool gts_calls_back(const gts_program *self);

#define GTS_FOREVER UINT64_MAX

/* Waits at most `patience` ns for the lock of a program; false if a call still holds it. gts_leave() releases it. */
bool gts_lock(gts_program *self, uint64_t patience);

/* gts_enter(), waiting. The program may be NULL because it was closed: then the error is gts_last_error(NULL). */
int gts_enter_open(gts_program *self);

/* Whether a parent process loaded the program. Threads, locks and device contexts of an SDFG do not survive a fork. */
static inline bool gts_belongs_to_parent(const gts_program *self)
{
    return self->generation != gts_forks;
}

/* ---- loaded.c -------------------------------------------------------------------------------------------------- */

void gts_loaded_add(gts_program *self);

/* Whether this process has loaded a program, which may have been freed. */
bool gts_loaded_has(const gts_program *self);

/* Waits for the visits that are running, tells the observers, and removes the program from the list, if it is there. */
void gts_loaded_remove(gts_program *self);

/* Calls `visit` for each program. No lock is held meanwhile, so other programs may be loaded and closed. */
void gts_loaded_visit(void (*visit)(gts_program *, void *context), void *context);

/* Empties the list in a forked child, because the programs belong to the parent. */
void gts_loaded_forget(void);
