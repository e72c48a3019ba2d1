/* Inside the runtime: the files of a recording. docs/record.md describes them. */
#ifndef GTSTUB_RECORD_ARCHIVE_H
#define GTSTUB_RECORD_ARCHIVE_H

#include "gtstub/program.h"

/* The text file of a recording, and its first line. */
#define GTS_ARCHIVE_INDEX "recording.txt"
#define GTS_ARCHIVE_SCHEMA "gtstub/recording/1"

/* The file beside the archives with the names of all programs that were loaded, where only some are recorded. */
#define GTS_ARCHIVE_PROGRAMS "programs.txt"

/* gts_leaf_kind, as the index names it. */
extern const char *const gts_kind_names[GTS_STATIC + 1] __attribute__((visibility("hidden")));

/* The file that holds all values of one argument which have the same shape, one after the other. */
typedef struct gts_store {
    struct gts_store *next;
    uint32_t leaf;
    unsigned int number; /* among the stores of this argument, from 1 */
    int64_t shape[GTS_MAX_RANK];
    int64_t end;
    int64_t last; /* where the last value begins; -1 where there is none */
} gts_store;

/* The name of the file of a store, beside the index. */
int gts_store_path(char *path, size_t size, const char *program, const char *leaf, unsigned int number);

/* The directory that recordings go to, made if need be; false with errno. Once. */
bool gts_archive_choose(const char *directory);

/* Says that a program was loaded, for who asked for another one; nothing hangs on it, so a failure is not told. */
void gts_archive_note_program(const char *program);

/* Makes the archive of this process and its index, if it has none yet; false with errno. */
bool gts_archive_make(void);
bool gts_archive_make_program(const char *program);

/* Writes a value to the end of a store, unless the last one has the same bytes. Where it lies; -1 with errno. */
int64_t gts_archive_put(gts_store *store, const char *program, const char *leaf, const void *value, size_t size);

/* Writes whole lines to the index, all of them or none; false with errno. */
bool gts_archive_append(const char *lines, size_t size);

/* Marks the archive as one that lacks calls, in its name. */
void gts_archive_give_up(void);

/* Where the archive is, for messages. */
const char *gts_archive_path(void);

/* In a forked child: the archive is the parent's, another one can be made. */
void gts_archive_forget(void);

#endif
