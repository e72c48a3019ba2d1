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

void gts_add_span(const char *kind, const char *name, const char *track, uint64_t begin, uint64_t end)
{
    gts_start_observers();
    GTS_OBSERVE(span, kind, name, track, begin, end);
}
