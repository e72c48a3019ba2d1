/* What `inject.c` decides for each of the calls in `calls.c`. */
#ifndef GTS_TESTS_INJECT_H
#define GTS_TESTS_INJECT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The runtime has functions of such names too, and must find its own. */
#pragma GCC visibility push(hidden)

enum fault {
    FAULT_NONE,
    FAULT_ENOSPC,
    FAULT_EIO,
    FAULT_SHORT,
    FAULT_TORN,
    FAULT_BEFORE,
    FAULT_AFTER,
    FAULT_POWER,
    FAULT_STOP,
    FAULT_ESTALE,
    FAULT_LOST,
    FAULT_COUNT,
};

/* False in a process that injects nothing. */
bool gts_is_counting(void);

/* The path of a descriptor; empty where it has none. */
void gts_path_of(int fd, char path[PATH_MAX]);

/* The path of a name in a directory, which may be AT_FDCWD. */
void gts_path_at(int directory, const char *name, char path[PATH_MAX]);

bool gts_is_below(const char *path);

/* Counts a call, and returns what is to happen to it. */
enum fault gts_enter(const char *call, const char *path, bool has_bytes);

/* Does what happens before a call: true where it has failed, with errno. */
bool gts_before(enum fault fault);

/* Does what happens after a call that has returned `result`. `again` is the error of the same call once more. */
int gts_after(enum fault fault, int result, int again);

_Noreturn void gts_die(void);

/* Remember that a file was written, was fsynced. */
void gts_written(int fd);
void gts_synced(int fd);

/* nfs.c: whether reads of a file are calls that may go wrong. */
bool gts_counts_reads(const char *path);

/* Whether a name is known to be missing: true with errno. */
bool gts_is_missing(const char *path);
void gts_note_missing(const char *path);

/* Forgets the missing names of a directory, whose path has this length. */
void gts_forget_missing(const char *directory, size_t length);

/* Whether a file that is to be removed is open, and its new path; an empty one if it has been renamed before. */
bool gts_is_silly(const char *path, char to[PATH_MAX]);

/* Does what follows when a file that was removed is no longer open. */
void gts_closed(const char *path);

#pragma GCC visibility pop

#endif
