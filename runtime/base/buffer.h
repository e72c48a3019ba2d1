/* Inside the runtime: memory on the host that grows. */
#pragma once

#include <stdbool.h>
#include <stdlib.h>

/* Its owner frees `bytes`. */
typedef struct gts_buffer {
    char *bytes;
    size_t size;
} gts_buffer;

/* Makes room for `size` bytes; false with errno. The contents are lost. */
static inline bool gts_buffer_reserve(gts_buffer *buffer, size_t size)
{
    if (size <= buffer->size)
        return true;
    free(buffer->bytes);
    buffer->bytes = malloc(size);
    buffer->size = buffer->bytes == NULL ? 0 : size;
    return buffer->bytes != NULL;
}
