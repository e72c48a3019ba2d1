/* The list of the programs that this process has loaded. */

#include "base/lock.h"
#include "program/observe.h"

GTS_LOCK(lock) /* of the list, and of `pins` of all programs */
static pthread_cond_t unpinned = PTHREAD_COND_INITIALIZER;
static gts_program *programs;

void gts_loaded_add(gts_program *self)
{
    (void)pthread_mutex_lock(&lock);
    self->runtime->next = programs;
    programs = self;
    (void)pthread_mutex_unlock(&lock);
}

void gts_loaded_remove(gts_program *self)
{
    if (gts_belongs_to_parent(self)) { /* then it is on the parent's list */
        GTS_OBSERVE(close, self);
        return;
    }
    (void)pthread_mutex_lock(&lock);
    while (self->runtime->pins > 0)
        (void)pthread_cond_wait(&unpinned, &lock);
    gts_program **link = &programs;
    while (*link != NULL && *link != self)
        link = &(*link)->runtime->next;
    if (*link != NULL)
        *link = self->runtime->next;
    GTS_OBSERVE(close, self); /* under the lock: no visit finds the program any more */
    (void)pthread_mutex_unlock(&lock);
}

void gts_loaded_visit(void (*visit)(gts_program *, void *), void *context)
{
    (void)pthread_mutex_lock(&lock);
    for (gts_program *program = programs; program != NULL; program = program->runtime->next) {
        ++program->runtime->pins;
        (void)pthread_mutex_unlock(&lock);
        visit(program, context);
        (void)pthread_mutex_lock(&lock);
        if (--program->runtime->pins == 0)
            (void)pthread_cond_broadcast(&unpinned);
    }
    (void)pthread_mutex_unlock(&lock);
}

void gts_loaded_forget(void)
{
    programs = NULL;
    (void)pthread_cond_init(&unpinned, NULL);
}
