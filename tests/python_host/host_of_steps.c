/* A host that finds a step of Python and runs it in a thread that Python does not know. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gtstub/step.h"

/* What a thread does, and how it has ended. */
typedef struct run {
    const char *name;
    int times; /* to run the step; < 0: until it is refused */
    int done;
    gts_error error; /* the kind is GTS_NO_ERROR if there was none */
} run;

static void *find_and_run(void *data)
{
    run *const self = data;
    gts_step *step;
    int status = gts_step_find(self->name, &step);
    while (status == 0 && __atomic_load_n(&self->done, __ATOMIC_RELAXED) != self->times) {
        status = gts_step_run(step);
        if (status == 0)
            (void)__atomic_add_fetch(&self->done, 1, __ATOMIC_RELAXED);
    }
    gts_step_free(&step);
    memset(&self->error, 0, sizeof self->error);
    if (status != 0)
        self->error = *gts_last_error(NULL);
    return NULL;
}

/* Runs a step in a new thread. Returns 0, the kind of the error, whose text it copies, or -1 after 20 s. */
int run_in_thread(const char *name, int times, char text[1024])
{
    run *const self = calloc(1, sizeof *self);
    pthread_t thread;
    *self = (run){.name = name, .times = times};
    if (pthread_create(&thread, NULL, find_and_run, self) != 0)
        return -1;
    struct timespec end;
    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    if (pthread_timedjoin_np(thread, NULL, &end) != 0)
        return -1;
    const int kind = (int)self->error.kind;
    (void)strcpy(text, self->error.message);
    free(self);
    return kind;
}

static run endless;
static pthread_t endless_thread;

/* Runs a step again and again, until it is refused. */
int start_endless(const char *name)
{
    endless = (run){.name = strdup(name), .times = -1};
    if (pthread_create(&endless_thread, NULL, find_and_run, &endless) != 0)
        return -1;
    while (__atomic_load_n(&endless.done, __ATOMIC_RELAXED) < 3)
        (void)sched_yield();
    return 0;
}

void join_endless(char text[1024])
{
    (void)pthread_join(endless_thread, NULL);
    (void)strcpy(text, endless.error.message);
}

/* ---- After Python ---------------------------------------------------------------------------------------------- */

static gts_step *left;
static bool is_endless;

static void use_after_python(void)
{
    double factor = 2;
    if (is_endless) {
        (void)pthread_join(endless_thread, NULL);
        puts(endless.error.message);
    }
    printf("%d %s\n", gts_step_run(left), gts_last_error(NULL)->message);
    printf("%d %s\n", gts_step_set_scalar(left, "factor", GTS_FLOAT64, &factor), gts_last_error(NULL)->message);
    gts_step_free(&left);
    printf("%d %s\n", gts_step_find("dynamics", &left), gts_last_error(NULL)->message);
}

/* Has a step used after Python has ended. */
int use_at_exit(const char *name)
{
    return gts_step_find(name, &left) != 0 || atexit(use_after_python) != 0 ? -1 : 0;
}

int use_at_exit_too(const char *name)
{
    is_endless = true;
    return start_endless(name) != 0 ? -1 : use_at_exit(name);
}
