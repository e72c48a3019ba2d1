/* The two texts that a test reads: what was called, and what has run. */
#include "fake.h"

typedef struct text {
    char *begin;
    size_t length, size;
} text;

static text calls, ran;
static FILE *file;

__attribute__((constructor)) static void open_file(void)
{
    const char *const path = getenv("FAKE_CUDA_LOG");
    file = path == NULL ? NULL : fopen(path, "ae"); /* 'e': not for the programs that a process starts */
}

static void make_room(text *self, size_t size)
{
    if (self->length + size < self->size)
        return;
    self->size = 2 * (self->size + size);
    self->begin = realloc(self->begin, self->size);
    if (self->begin == NULL)
        fake_abort("out of memory");
}

__attribute__((format(printf, 2, 0))) static void append(text *self, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    make_room(self, (size_t)length + 1);
    (void)vsnprintf(self->begin + self->length, (size_t)length + 1, format, arguments);
    self->length += (size_t)length;
}

__attribute__((format(printf, 2, 3))) static void append_text(text *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append(self, format, arguments);
    va_end(arguments);
}

void fake_log_call(const char *format, va_list arguments, cudaError_t error)
{
    const size_t begin = calls.length;
    append(&calls, format, arguments);
    if (error != cudaSuccess)
        append_text(&calls, " -> %d", (int)error);
    append_text(&calls, "\n");
    if (file != NULL) {
        (void)fputs(calls.begin + begin, file);
        (void)fflush(file);
    }
}

void fake_log_ran(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append(&ran, format, arguments);
    va_end(arguments);
    append_text(&ran, "\n");
}

const char *fake_cuda_log(void)
{
    return calls.begin == NULL ? "" : calls.begin;
}

const char *fake_cuda_ran(void)
{
    return ran.begin == NULL ? "" : ran.begin;
}

void fake_cuda_clear(void)
{
    calls.length = ran.length = 0;
    append_text(&calls, "%s", "");
    append_text(&ran, "%s", "");
}
