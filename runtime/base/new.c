/* Memory that is there. */
#define _GNU_SOURCE
#include "base/new.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gtstub/contract.h"

static GTS_COLD __attribute__((noreturn)) void end_without_memory(void)
{
    fputs("gtstub: the process ends, because the system has no memory.\n", stderr);
    abort();
}

void *gts_new(size_t count, size_t size)
{
    void *const memory = calloc(count == 0 ? 1 : count, size);
    if (memory == NULL)
        end_without_memory();
    return memory;
}

void *gts_renew(void *memory, size_t size)
{
    void *const renewed = realloc(memory, size);
    if (renewed == NULL)
        end_without_memory();
    return renewed;
}

void *gts_new_lines(size_t size)
{
    const size_t rounded = gts_in_cache_lines(size);
    void *const memory = aligned_alloc(GTS_CACHE_LINE, rounded);
    if (memory == NULL)
        end_without_memory();
    return memset(memory, 0, rounded);
}

char *gts_new_text(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    char *text;
    if (vasprintf(&text, format, values) < 0)
        end_without_memory();
    va_end(values);
    return text;
}
