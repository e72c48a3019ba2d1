/* Reads the index of a recording, line by line. An incomplete call of a process that was killed is left out. */
#define _GNU_SOURCE
#include "record/index.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/archive.h"

/* ---- Words ----------------------------------------------------------------------------------------------------- */

/* The unread rest of the file and of the current line. `is_right` becomes false at the first wrong word. */
typedef struct reader {
    char *rest;
    char *line;
    size_t number; /* of the current line */
    bool is_right;
} reader;

/* Goes to the next line, which must begin with `keyword` unless that is NULL; false if no complete line is left. */
static bool next_line(reader *in, const char *keyword)
{
    char *const end = strchr(in->rest, '\n');
    if (end == NULL)
        return false;
    *end = '\0';
    in->line = in->rest;
    in->rest = end + 1;
    ++in->number;
    if (keyword != NULL)
        in->is_right &= strcmp(strsep(&in->line, "\t"), keyword) == 0;
    return true;
}

static const char *next_word(reader *in)
{
    const char *const word = strsep(&in->line, "\t");
    in->is_right &= word != NULL && *word != '\0';
    return word == NULL ? "" : word;
}

/* A word that is part of a path: letters, digits, '_', and '-' in the names of programs. */
static const char *next_name(reader *in)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    const char *const name = next_word(in);
    in->is_right &= name[strspn(name, plain)] == '\0';
    return name;
}

static int64_t next_number(reader *in, int64_t min, int64_t max)
{
    const char *const word = next_word(in);
    char *end;
    errno = 0;
    const int64_t number = strtoll(word, &end, 10);
    in->is_right &= errno == 0 && *end == '\0' && number >= min && number <= max;
    return in->is_right ? number : min;
}

static void next_numbers(reader *in, int64_t *numbers, int32_t count, int64_t min)
{
    for (int32_t i = 0; i < count; ++i)
        numbers[i] = next_number(in, min, INT64_MAX);
}

static gts_leaf_kind next_kind(reader *in)
{
    const char *const word = next_word(in);
    for (gts_leaf_kind kind = GTS_FIELD; kind <= GTS_STATIC; ++kind) {
        if (strcmp(word, gts_kind_names[kind]) == 0)
            return kind;
    }
    in->is_right = false;
    return GTS_FIELD;
}

static gts_dtype next_dtype(reader *in)
{
    const char *const word = next_word(in);
    for (gts_dtype dtype = GTS_BOOL; dtype <= GTS_LAST_DTYPE; ++dtype) {
        if (strcmp(word, gts_dtype_name(dtype)) == 0)
            return dtype;
    }
    in->is_right = false;
    return GTS_BOOL;
}

/* ---- Lines ----------------------------------------------------------------------------------------------------- */

/* Allocates zeroed memory; when memory runs out, the file counts as wrong. */
static void *allocate(reader *in, size_t size)
{
    void *const memory = calloc(1, size);
    in->is_right &= memory != NULL;
    return memory;
}

/* Reads a program after its keyword; NULL when memory runs out, or if the file ends within the program. */
static gts_archive_program *read_program(reader *in)
{
    const char *const id = next_name(in);
    const char *const name = next_name(in);
    const char *const program_digest = next_word(in);
    const char *const sdfg_digest = next_word(in);
    const uint32_t count = (uint32_t)next_number(in, 0, INT16_MAX);
    gts_archive_program *const program = allocate(in, sizeof *program + count * sizeof *program->leaves);
    if (program == NULL)
        return NULL;
    program->id = id;
    program->name = name;
    program->program_digest = program_digest;
    program->sdfg_digest = sdfg_digest;
    program->leaf_count = count;
    for (uint32_t i = 0; i < count; ++i) {
        gts_archive_leaf *const leaf = &program->leaves[i];
        if (!next_line(in, "leaf")) {
            free(program);
            return NULL;
        }
        leaf->name = next_name(in);
        leaf->path = next_word(in);
        leaf->kind = next_kind(in);
        leaf->dtype = next_dtype(in);
        leaf->written = next_number(in, 0, 1) == 1;
        leaf->rank = (int32_t)next_number(in, 0, gts_is_array(leaf->kind) ? GTS_MAX_RANK : 0);
        for (int32_t axis = 0; axis < leaf->rank; ++axis)
            leaf->dims[axis] = next_word(in);
    }
    return program;
}

/* Measures a value; false if it does not fit its memory, or its last index is no number of 64 bits. */
static bool measure(gts_archive_value *value)
{
    int64_t high;
    for (int32_t axis = 0; axis < value->array.rank; ++axis) {
        if (__builtin_add_overflow(value->array.origin[axis], value->array.shape[axis], &high))
            return false;
    }
    return gts_measure(&value->array, &value->size, &value->extent) && value->offset + value->extent.low >= 0 &&
           !__builtin_add_overflow(value->offset, value->extent.high, &high);
}

static void read_value(reader *in, const gts_archive_program *program, uint32_t index, gts_archive_value *value)
{
    const gts_archive_leaf *const leaf = &program->leaves[index];
    value->store = (unsigned int)next_number(in, 1, INT_MAX);
    value->before = next_number(in, 0, INT64_MAX);
    value->after = next_number(in, -1, INT64_MAX);
    value->memory = (uint32_t)next_number(in, 0, program->leaf_count - 1);
    value->offset = next_number(in, 0, INT64_MAX);
    value->array = (gts_array){.dtype = leaf->dtype, .device = GTS_CPU, .rank = (int16_t)leaf->rank};
    next_numbers(in, value->array.shape, leaf->rank, 0);
    next_numbers(in, value->array.origin, leaf->rank, INT64_MIN);
    next_numbers(in, value->array.strides, leaf->rank, INT64_MIN);
    (void)memcpy(value->array.dims, leaf->dims, sizeof value->array.dims);
    in->is_right = in->is_right && measure(value);
}

static gts_archive_program *find_program(const gts_archive_index *index, const char *id)
{
    gts_archive_program *program = index->programs;
    while (program != NULL && strcmp(program->id, id) != 0)
        program = program->next;
    return program;
}

/* Reads a call after its keyword; NULL when memory runs out, or if the file ends within the call. */
static gts_archive_call *read_call(const gts_archive_index *index, reader *in)
{
    gts_archive_program *const program = find_program(index, next_word(in));
    if (program == NULL) {
        in->is_right = false;
        return NULL;
    }
    gts_archive_call *const call = allocate(in, sizeof *call + program->leaf_count * sizeof *call->values);
    if (call == NULL)
        return NULL;
    call->program = program;
    call->number = (uint64_t)next_number(in, 1, INT64_MAX);
    for (uint32_t i = 0; i < program->leaf_count; ++i) {
        if (!next_line(in, "value")) {
            free(call);
            return NULL;
        }
        read_value(in, program, i, &call->values[i]);
    }
    return call;
}

static bool add_call(gts_archive_index *index, gts_archive_call *call)
{
    const size_t count = index->call_count;
    if ((count & (count - 1)) == 0) { /* grow at each power of two */
        gts_archive_call **const larger = realloc(index->calls, (count == 0 ? 1 : 2 * count) * sizeof *larger);
        if (larger == NULL) {
            free(call);
            return false;
        }
        index->calls = larger;
    }
    index->calls[index->call_count++] = call;
    return true;
}

/* Reads a program or a call; false at the end of the file, or if it is wrong. */
static bool read_block(gts_archive_index *index, reader *in)
{
    if (!next_line(in, NULL))
        return false;
    const char *const keyword = strsep(&in->line, "\t");
    if (strcmp(keyword, "program") == 0) {
        gts_archive_program *const program = read_program(in);
        if (program == NULL)
            return false;
        program->next = index->programs;
        index->programs = program;
    } else if (strcmp(keyword, "call") == 0) {
        gts_archive_call *const call = read_call(index, in);
        if (call == NULL || !add_call(index, call))
            return false;
    } else {
        in->is_right = false;
    }
    return in->is_right;
}

/* ---- Files ----------------------------------------------------------------------------------------------------- */

FILE *gts_archive_open(const char *path)
{
    struct stat status;
    const int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    FILE *const file = descriptor >= 0 && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)
                           ? fdopen(descriptor, "r")
                           : NULL;
    if (file == NULL && descriptor >= 0)
        (void)close(descriptor);
    return file;
}

/* The contents of a file as a string, to be freed with free(); NULL if it cannot be read. */
static char *read_text(const char *path)
{
    FILE *const file = gts_archive_open(path);
    if (file == NULL)
        return NULL;
    struct stat status;
    char *text = NULL;
    if (fstat(fileno(file), &status) == 0 && (text = malloc((size_t)status.st_size + 1)) != NULL) {
        const size_t size = fread(text, 1, (size_t)status.st_size, file);
        text[size] = '\0';
    }
    (void)fclose(file);
    return text;
}

int gts_archive_index_read(gts_archive_index *index, const char *path, gts_error *error)
{
    char file[PATH_MAX];
    *index = (gts_archive_index){0};
    const int length = snprintf(file, sizeof file, "%s/%s", path, GTS_ARCHIVE_INDEX);
    index->text = length < (int)sizeof file ? read_text(file) : NULL;
    if (index->text == NULL)
        return gts_error_set(error, GTS_RUNTIME_ERROR,
                             "There is no recording at '%s': '%s' cannot be read. A recording is the directory of one "
                             "process, as 'recording/host-1234'.",
                             path, GTS_ARCHIVE_INDEX);
    reader in = {.rest = index->text, .is_right = true};
    (void)next_line(&in, GTS_ARCHIVE_SCHEMA);
    while (in.is_right && read_block(index, &in))
        ;
    if (!in.is_right)
        return gts_error_set(error, GTS_VALUE_ERROR, "The recording '%s' is malformed in line %zu of '%s'.", path,
                             in.number, GTS_ARCHIVE_INDEX);
    return 0;
}

void gts_archive_index_free(gts_archive_index *index)
{
    for (size_t i = 0; i < index->call_count; ++i)
        free(index->calls[i]);
    free(index->calls);
    while (index->programs != NULL) {
        gts_archive_program *const program = index->programs;
        index->programs = program->next;
        free(program);
    }
    free(index->text);
}
