/* Inside the runtime: what the CPU of this machine can do, under the names that Linux uses. */
#pragma once

#include <stddef.h>

/* The first feature of a list, separated by blanks, that this CPU lacks; of length 0 if it has all or they are not known. */
size_t gts_lacks_feature(const char *needed, const char **lacking);
