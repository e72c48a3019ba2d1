/*
 * What happens once in a process, and what a fork does to its programs: the child may use none of the parent's, but can
 * load them again.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

#include "program/observe.h"

/*
 * Ends the threads that GNU's OpenMP keeps between parallel regions for the thread that forks. Without this, its next
 * parallel region in the child would wait for them forever. The parent's next parallel region starts new ones.
 */
static void end_openmp_threads(void)
{
    void *const openmp = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (openmp == NULL)
        return;
    int (*pause_all)(int);
    gts_library_find(openmp, "", "omp_pause_resource_all", &pause_all);
    if (pause_all != NULL)
        pause_all(2); /* omp_pause_hard */
    dlclose(openmp);
}

/* Called in each forked child, in which no other thread of the parent exists. */
static void count_fork(void)
{
    ++gts_forks;
    gts_attention = 0;
    gts_loaded_forget();
    GTS_OBSERVE(after_fork, );
}

static void start(void)
{
    pthread_atfork(end_openmp_threads, NULL, count_fork);
    GTS_OBSERVE(read_environment, );
}

void gts_start_observers(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
}
