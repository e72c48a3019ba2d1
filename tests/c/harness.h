/* What the C tests share: checks that say where they failed, and a view of the library that tests/recording.py makes. */
#ifndef GTSTUB_TESTS_HARNESS_H
#define GTSTUB_TESTS_HARNESS_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gtstub/gtstub.h"

#define CHECK(condition) check(condition, #condition, __FILE__, __LINE__)
#define CHECK_TEXT(found, expected) check_text(found, expected, __FILE__, __LINE__)
#define CHECK_ERROR(error, kind, text) check_error(error, kind, text, __FILE__, __LINE__)

/* The end of each message about bounds. */
#define HINT " Set GTSTUB_BOUNDS=0 to build the program without this check."

static inline void check(bool holds, const char *condition, const char *file, int line)
{
    if (holds)
        return;
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    exit(1);
}

/* Of an expected text that begins with "...", only the end is compared: another test has the whole. */
static inline void check_text(const char *found, const char *expected, const char *file, int line)
{
    if (strcmp(found, expected) == 0)
        return;
    if (strncmp(expected, "...", 3) == 0) {
        const size_t length = strlen(found), end = strlen(expected + 3);
        if (length >= end && strcmp(found + length - end, expected + 3) == 0)
            return;
    }
    fprintf(stderr, "%s:%d:\n  found    %s\n  expected %s\n", file, line, found, expected);
    exit(1);
}

static inline void check_error(const gts_error *error, gts_error_kind kind, const char *text, const char *file,
                               int line)
{
    check_text(error->message, text, file, line);
    check(error->kind == kind, "the error is of the expected kind", file, line);
}

enum { PROGRAM, INIT, EXIT, WORKSPACE_BYTES, WORKSPACE_INSTALL };

struct record {
    int function;
    int storage;
    void *handle;
    void *memory;
    const uint64_t *values;
};

struct behaviour {
    bool init_fails;
    int exit_status;
    int gpu_error;
    unsigned int delay;
    size_t workspace_bytes;
    unsigned int overlaps;
};

struct recorder {
    size_t (*count)(void);
    struct record (*at)(size_t);
    void (*clear)(void);
    struct behaviour *behaviour;
};

static inline struct recorder open_recorder(const char *path)
{
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    struct recorder recorder;
    *(void **)&recorder.count = dlsym(library, "record_count");
    *(void **)&recorder.at = dlsym(library, "record_at");
    *(void **)&recorder.clear = dlsym(library, "record_clear");
    recorder.behaviour = dlsym(library, "record_behaviour");
    CHECK(recorder.count != NULL && recorder.at != NULL && recorder.clear != NULL && recorder.behaviour != NULL);
    return recorder;
}

static inline struct record last_record(const struct recorder *recorder)
{
    CHECK(recorder->count() > 0);
    return recorder->at(recorder->count() - 1);
}

static inline gts_program *load(const char *stub, const char *library)
{
    gts_program *program = NULL;
    if (gts_load(stub, library, &program) != 0) {
        fprintf(stderr, "%s\n", gts_last_error(NULL)->message);
        exit(1);
    }
    return program;
}

/* A table of neighbors, one row behind the other. */
static inline gts_array packed_table(void *data, gts_dtype dtype, int64_t rows, int64_t columns)
{
    return (gts_array){
        .data = data, .dtype = dtype, .device = GTS_CPU, .rank = 2, .shape = {rows, columns}, .strides = {columns, 1}};
}

#endif
