/* Writes errors, and keeps the last error of each thread that belongs to no program. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

_Thread_local gts_error gts_own_error;

int gts_error_set(gts_error *error, gts_error_kind kind, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    error->kind = kind;
    vsnprintf(error->message, sizeof error->message, format, values);
    va_end(values);
    return -1;
}

const gts_error *gts_last_error(const gts_program *program)
{
    return program == NULL ? &gts_own_error : &program->error;
}
