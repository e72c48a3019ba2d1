/* What the CPU of this machine can do, under the names that Linux uses. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "granule/private.h"

/* The line of the first processor in /proc/cpuinfo that lists its features, which the caller frees; NULL if none does. */
static char *read_features(void)
{
    FILE *const file = fopen("/proc/cpuinfo", "re");
    char *line = NULL;
    size_t room = 0;
    bool is_found = false;
    while (file != NULL && !is_found && getline(&line, &room, file) > 0)
        is_found = strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0;
    if (file != NULL)
        (void)fclose(file);
    if (!is_found) {
        free(line);
        return NULL;
    }
    return line;
}

static bool has_word(const char *text, const char *word, size_t length)
{
    for (const char *at = strchr(text, ' '); at != NULL; at = strchr(at + 1, ' ')) {
        if (strncmp(at + 1, word, length) == 0 && strchr(" \n", at[1 + length]) != NULL)
            return true;
    }
    return false;
}

size_t gts_lacks_feature(const char *needed, const char **lacking)
{
    char *const features = *needed == '\0' ? NULL : read_features();
    size_t found = 0;
    for (const char *at = needed; features != NULL && found == 0 && *at != '\0';) {
        at += strspn(at, " ");
        const size_t length = strcspn(at, " ");
        if (length > 0 && !has_word(features, at, length)) {
            *lacking = at;
            found = length;
        }
        at += length;
    }
    free(features);
    return found;
}
