/* What happens once in a process, when it loads its first program or has something to observe before. */
#include <pthread.h>

#include "program/observe.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void start(void)
{
    gts_watch_forks();
    GTS_OBSERVE(read_environment, );
}

void gts_start_observers(void)
{
    (void)pthread_once(&once, start);
}
