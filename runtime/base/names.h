/* Inside the runtime: lists of names in environment variables. */
#pragma once

#include <stdbool.h>
#include <string.h>

/* Whether a list, which may be NULL, has a name. Commas, blanks and tabs separate the names of a list. */
static inline bool gts_has_name(const char *list, const char *name)
{
    static const char separators[] = ", \t";
    const size_t wanted = strlen(name);
    while (list != NULL && *list != '\0') {
        const size_t length = strcspn(list, separators);
        if (length > 0 && length == wanted && strncmp(list, name, length) == 0)
            return true;
        list += length + strspn(list + length, separators);
    }
    return false;
}
