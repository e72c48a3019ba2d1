/*
 * Inside the runtime: the observers of programs, such as profiles, timelines, recordings and debug checks. Each is one
 * gts_observer in a folder above program/, and one line in observers.c, which is above all folders. No file of program/
 * names one.
 */
#pragma once

#include "program/private.h"

typedef struct gts_observer gts_observer;

/* Observers, the outermost first; NULL ends them. */
typedef const gts_observer *const *gts_observers;

/*
 * What an observer does, each NULL if nothing. While calls pass enter(), it adds 1 to gts_attention, so that every call is
 * entered slowly.
 */
struct gts_observer {
    /* The size of its data about a program, which is zeroed first. gts_observe() sets *offset; NULL if it has none. */
    size_t size, *offset;

    /* Begins what the environment asks for. Called once, when the first program is loaded. */
    void (*read_environment)(void);

    /* A program is being loaded, and has been entered. `library` is that of its SDFG, from dlopen(). */
    void (*load)(gts_program *, void *library);

    /* A call has been entered. It passes run() only if it has extra work: enter() sets that to observe it. */
    void (*enter)(gts_program *);

    /*
     * Wraps the SDFG. Calls gts_run_observed(self, rest) to run it, and returns its status, or -1 after an error in the
     * program. Returns -1 without running it to refuse the call.
     */
    int (*run)(gts_program *, gts_observers rest);

    /* The SDFG's new handle gets a workspace of `size` bytes, which may be exchanged for another one. */
    int (*workspace)(gts_program *, uint32_t workspace, size_t size);

    /* A program is being closed, in a child also one of the parent. It is off the list, and no visit of it runs. */
    void (*close)(gts_program *);

    /* An action of a step has succeeded. Times are in ticks: gts_ticks(). */
    void (*time_action)(const gts_step *, size_t position, uint64_t begin, uint64_t end);

    /* Something other than a call or an action has taken some time. */
    void (*span)(const char *kind, const char *name, uint64_t begin, uint64_t end);

    /* A step is being freed. */
    void (*free_step)(const gts_step *);

    /* In a forked child: forgets what belongs to the parent. gts_attention is 0. */
    void (*after_fork)(void);
};

/* Sets the observers of this process, before the first program is loaded. */
void gts_observe(gts_observers observers);

extern gts_observers gts_observing __attribute__((visibility("hidden")));

/* The size of gts_runtime.observed. */
extern size_t gts_observed_size __attribute__((visibility("hidden")));

/* Passes a time that ends now to the observers. `kind` is never freed; `name` is copied. */
GTS_COLD void gts_observe_span(const char *kind, const char *name, uint64_t begin);

/* The data about a program of the observer with this offset. */
static inline void *gts_observed(const gts_program *self, size_t offset)
{
    return self->runtime->observed + offset;
}

/* Calls a function of all observers. */
#define GTS_OBSERVE(function, ...)                                                                                     \
    do {                                                                                                               \
        for (gts_observers each_ = gts_observing; *each_ != NULL; ++each_) {                                           \
            if ((*each_)->function != NULL)                                                                            \
                (*each_)->function(__VA_ARGS__);                                                                       \
        }                                                                                                              \
    } while (false)

/* Runs the SDFG inside these observers. */
int gts_run_observed(gts_program *, gts_observers);

/* gts_observer.workspace() of all observers. */
int gts_observe_workspace(gts_program *, uint32_t workspace, size_t size);
