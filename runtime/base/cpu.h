/* Inside the runtime: what the CPU of this machine can do, under the names that Linux uses. */
#pragma once

#include <stddef.h>

/*
 * Returns the length of the first feature that this CPU lacks, of those in `needed`, which blanks separate, and sets
 * *lacking to it. Returns 0 if the CPU has all, or if its features are unknown.
 */
size_t gts_lacks_feature(const char *needed, const char **lacking);
