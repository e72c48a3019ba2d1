/*
 * Guarded memory for the judge of bounds: that of check 'bounds' (runtime/observers/debug/pages.h), in which any rows can be open.
 * One call thus tells all pages that it accesses beyond those that it was given.
 */
#include "observers/debug/pages.h"

#include <sys/mman.h>

/* Reserves memory without access, in which at most `most` accesses can be noted. NULL after an error. */
gts_pages *guard_reserve(size_t size, size_t most)
{
    return gts_pages_reserve(size, most);
}

uintptr_t guard_address(const gts_pages *pages)
{
    return pages->begin;
}

void guard_release(gts_pages *pages)
{
    gts_pages_release(pages);
}

/* Takes access to the pages of this memory away. */
static bool close_pages(uintptr_t memory, size_t size)
{
    const uintptr_t first = memory & ~((uintptr_t)gts_page_size() - 1);
    return mprotect((void *)first, memory + size - first, PROT_NONE) == 0;
}

/* Takes access to all of `memory` away, and gives access to `count` rows of `row` bytes that begin at `rows`. */
bool guard_open(uintptr_t memory, size_t size, const uintptr_t *rows, size_t count, size_t row)
{
    bool is_done = close_pages(memory, size);
    for (size_t i = 0; i < count && row != 0; ++i)
        is_done = is_done && gts_pages_open(rows[i], rows[i] + row);
    return is_done;
}

/* Begins to note accesses. */
void guard_begin(gts_pages *pages)
{
    pages->count = 0;
    gts_pages_watch();
}

/* Stops it, and takes the pages away again. Stores the addresses of the accesses, and returns how many there are. */
size_t guard_end(const gts_pages *pages, uintptr_t *noted)
{
    gts_pages_unwatch();
    const size_t count = gts_pages_count(pages);
    for (size_t i = 0; i < count && i < pages->most; ++i) {
        noted[i] = pages->noted[i].address;
        close_pages(noted[i], 1);
    }
    return count;
}
