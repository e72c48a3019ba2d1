/* The list of the programs that this process has loaded. */

#include "base/lock.h"
#include "program/observe.h"

GTS_LOCK(lock) /* of the list, and of `pins` of all programs */
static pthread_cond_t unpinned = PTHREAD_COND_INITIALIZER;
static gts_program *programs;

void gts_loaded_add(gts_program *self)
{
    pthread_mutex_lock(&lock);
    self->runtime->next = programs;
    programs = self;
    pthread_mutex_unlock(&lock);
}

bool gts_loaded_has(const gts_program *self)
{
    pthread_mutex_lock(&lock);
    const gts_program *program = programs;
    while (program != NULL && program != self)
        program = program->runtime->next;
    pthread_mutex_unlock(&lock);
    return program != NULL;
}

void gts_loaded_remove(gts_program *self)
{
    if (gts_belongs_to_parent(self)) { /* then it is on the parent's list */
        GTS_OBSERVE(close, self);
        return;
    }
    pthread_mutex_lock(&lock);
    while (self->runtime->pins > 0)
        pthread_cond_wait(&unpinned, &lock);
    gts_program **link = &programs;
    while (*link != NULL && *link != self)
        link = &(*link)->runtime->next;
    if (*link != NULL)
        *link = self->runtime->next;
    GTS_OBSERVE(close, self); /* under the lock: no visit finds the program any more */
    pthread_mutex_unlock(&lock);
}

void gts_loaded_visit(void (*visit)(gts_program *, void *), void *context)
{
    pthread_mutex_lock(&lock);
    for (gts_program *program = programs; program != NULL; program = program->runtime->next) {
        ++program->runtime->pins;
        pthread_mutex_unlock(&lock);
        visit(program, context);
        pthread_mutex_lock(&lock);
        if (--program->runtime->pins == 0)
            pthread_cond_broadcast(&unpinned);
    }
    pthread_mutex_unlock(&lock);
}

void gts_loaded_forget(void)
{
    programs = NULL;
    pthread_cond_init(&unpinned, NULL);
}
