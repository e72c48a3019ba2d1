/*
 * Shared by the runtime and the Python host: how a host loads files that it has verified, and what it adds to the
 * timeline.
 */
#pragma once

#include "gtstub/stub.h"

/** A file and its state, as stat() returns them. A file that was written to or replaced differs. */
typedef struct gts_file {
    unsigned long long device, inode;
    long long bytes;
    long long modified; /**< ns since 1970 */
} gts_file;

/**
 * Does the same as gts_load(), but refuses, before it opens them, files other than those that the caller has verified.
 * The dynamic loader is not safe against damaged libraries.
 *
 * A file that is written to in place, which gtstub never does, can change at any time.
 *
 * @param files  stub and library, as stat() returned them before the caller read the contents
 */
GTS_EXPORT int gts_load_verified(const char *stub_path, const char *library_path, const gts_file files[2],
                                 gts_program **program);

/**
 * Refuses a directory of libraries that others could have written: it, and if it is a cache entry all directories from
 * the root of the cache down to it, must belong to this user or to root, and must be writable by nobody else, except
 * for those whom GTSTUB_TRUST names. gts_load() and gts_open() do this themselves.
 *
 * @param directory   a descriptor of the directory
 * @param path        its path, for the message
 * @param is_exposed  whether others can rename it or a directory above it, so that its path may lead elsewhere later
 * @return 0, or -1 with the error in gts_last_error(NULL)
 */
GTS_EXPORT int gts_trust_directory(int directory, const char *path, bool *is_exposed);

/** Does the same for a file alone: takes its descriptor and its path. */
GTS_EXPORT int gts_trust_file(int file, const char *path);

/** Whether what a group can write is trusted: GTSTUB_TRUST names it, or this user is its only member. */
GTS_EXPORT bool gts_trusts_group(unsigned int group);

/**
 * Adds a time to the timeline of this process, if it has one (docs/trace.md): that of a build, for example.
 *
 * @param kind   what has taken the time, such as "wait"; copied
 * @param name   of the program, or of what else it was for; copied
 * @param track  a line of the timeline; NULL: that of this thread
 * @param begin  in ns of CLOCK_MONOTONIC
 * @param end    the same
 */
GTS_EXPORT void gts_add_span(const char *kind, const char *name, const char *track, uint64_t begin, uint64_t end);
