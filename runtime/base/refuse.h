/* Shared by the runtime and the Python host: messages about arguments. docs/refusals.md lists all messages. */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How messages begin. Their values are the path of the argument and the name of its program, the name and a
 * storage, the names of an argument and its granule, or the name of a granule and its folder. */
#define GTS_ARGUMENT "Argument '%s' of program '%s' "
#define GTS_TABLE "Connectivity '%s' of program '%s' "
#define GTS_PROGRAM "Program '%s' "
#define GTS_WORKSPACE "The workspace of program '%s' in '%s' "
#define GTS_GRANULE_ARGUMENT "Argument '%s' of granule '%s' "
#define GTS_KEPT_FILE "Granule '%s' cannot be opened: the file '%s/kept.bin' "

/* How messages end that refuse an argument because of the elements that the program accesses. */
#define GTS_BOUNDS_HINT " Set GTSTUB_BOUNDS=0 to build the program without this check."

/* Refuse the argument of a contract or a collection, or set another error of a program. `format` is the rest. Return -1. */
#define GTS_REFUSE(self, contract, kind, format, ...)                                                                  \
    gts_error_set(&(self)->error, kind, GTS_ARGUMENT format, (contract)->path, (self)->stub->name, ##__VA_ARGS__)
#define GTS_REFUSE_TABLE(self, contract, kind, format, ...)                                                            \
    gts_error_set(&(self)->error, kind, GTS_TABLE format, (contract)->path, (self)->stub->name, ##__VA_ARGS__)
#define GTS_REFUSE_PROGRAM(self, kind, format, ...)                                                                    \
    gts_error_set(&(self)->error, kind, GTS_PROGRAM format, (self)->stub->name, ##__VA_ARGS__)

/* Appends to a text that a message will contain; what does not fit into its `size` is cut off. */
__attribute__((format(printf, 3, 4))) static inline void gts_append(char *text, size_t size, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list values;
    va_start(values, format);
    vsnprintf(text + used, size - used, format, values);
    va_end(values);
}

/* Appends a name to a list of names. */
static inline void gts_append_name(char *list, size_t size, const char *name)
{
    gts_append(list, size, "%s'%s'", *list == '\0' ? "" : ", ", name);
}
