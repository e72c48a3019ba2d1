/* Inside the runtime: writes the files of a recording, which docs/record.md describes. */
#pragma once

#include "gtstub/program.h"

/* The text file of a recording, and its first line. */
#define GTS_ARCHIVE_INDEX "recording.txt"
#define GTS_ARCHIVE_SCHEMA "gtstub/recording/1"

/* The file beside the archives that lists all programs that were loaded; written if only some are recorded. */
#define GTS_ARCHIVE_PROGRAMS "programs.txt"

/* The names of gts_leaf_kind in the index. */
extern const char *const gts_kind_names[GTS_STATIC + 1] __attribute__((visibility("hidden")));

/* A file that contains all values of one argument that have the same shape, one after the other. */
typedef struct gts_store {
    struct gts_store *next;
    uint32_t leaf;
    unsigned int number; /* among the stores of this argument, counted from 1 */
    int64_t shape[GTS_MAX_RANK];
    int64_t end;
    int64_t last; /* offset of the last value in bytes; -1 if there is none */
} gts_store;

/* Sets the directory of all recordings and creates it if need be; false with errno. Called once. */
bool gts_archive_choose(const char *directory);

/* Adds the name of a loaded program to GTS_ARCHIVE_PROGRAMS. A failure is ignored: the list only informs users. */
void gts_archive_note_program(const char *program);

/* Create the archive of this process, if there is none, and the directory of a program in it; false with errno. */
bool gts_archive_make(void);
bool gts_archive_make_program(const char *program);

/* Appends a value to a store, unless the last value has the same bytes. Returns its offset in bytes; -1 with errno. */
int64_t gts_archive_put(gts_store *store, const char *program, const char *leaf, const void *value, size_t size);

/* Appends complete lines to the index: all of them, or none; false with errno. */
bool gts_archive_append(const char *lines, size_t size);

/* Renames the archive, once, to show that it is incomplete. More can be written to it. */
void gts_archive_give_up(void);

/* The path of the archive, for messages. */
const char *gts_archive_path(void);

/* Closes the parent's archive in a forked child, which can create its own. */
void gts_archive_forget(void);
