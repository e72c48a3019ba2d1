/* The names of what is timed, each once, because they outlive the steps that they are of. */
#include <string.h>

#include "base/lock.h"
#include "base/new.h"
#include "observers/times/times.h"

/* After this many names, further ones share OTHERS, so that memory stays bounded. */
#define MOST 65536
#define OTHERS "(other names)"

typedef struct name {
    struct name *next; /* with the same hash */
    uint32_t number;
    char text[];
} name;

GTS_LOCK(lock)
static name *table[1024];
static uint32_t count;

static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *text != '\0'; ++text)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

/* Finds a text, or adds it; NULL if there are too many. */
static const name *find_name(const char *text)
{
    name **link = &table[hash_of(text) % (sizeof table / sizeof *table)];
    pthread_mutex_lock(&lock);
    while (*link != NULL && strcmp((*link)->text, text) != 0)
        link = &(*link)->next;
    if (*link == NULL && count < MOST) {
        const size_t size = strlen(text) + 1;
        *link = gts_new(1, sizeof **link + size);
        (*link)->number = count++;
        memcpy((*link)->text, text, size);
    }
    const name *const found = *link;
    pthread_mutex_unlock(&lock);
    return found;
}

const char *gts_lasting_name(const char *text)
{
    const name *const found = find_name(text);
    return found == NULL ? OTHERS : found->text;
}

uint32_t gts_named_track(const char *text)
{
    const name *const found = find_name(text);
    return GTS_FIRST_NAMED + (found == NULL ? MOST : found->number);
}

const char *gts_track_name(uint32_t track)
{
    const char *text = OTHERS;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
        for (const name *each = table[i]; each != NULL; each = each->next)
            text = GTS_FIRST_NAMED + each->number == track ? each->text : text;
    }
    pthread_mutex_unlock(&lock);
    return text;
}
