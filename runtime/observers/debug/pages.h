/*
 * Inside the runtime: guarded memory. While it is watched, an access to a page that is not open is noted, and opens the
 * page, so that the access succeeds and the thread goes on. Thus no function is left half done: locks are released, and
 * the threads of OpenMP meet. The page has zeros.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an access did; GTS_ACCESSED where the machine does not say it. */
typedef enum gts_access_kind { GTS_ACCESSED, GTS_READ, GTS_WRITTEN } gts_access_kind;

/* The first access to a page. */
typedef struct gts_access {
    uintptr_t address;
    uint64_t order; /* that of all accesses in this process */
    gts_access_kind kind;
} gts_access;

/* Guarded memory from `begin` to below `end`. It is never freed, because a thread may be reading it in its handler. */
typedef struct gts_pages {
    _Atomic uintptr_t begin, end; /* whole pages; `end` is 0 if the memory was released */
    _Atomic size_t count;         /* accesses; those after the first `most` are not in `noted` */
    size_t most;                  /* length of `noted` */
    gts_access *noted;            /* [most] */
    struct gts_pages *next;       /* in the list of all */
} gts_pages;

/* The size of a page, in bytes. */
size_t gts_page_size(void);

/* Reserves memory of which no page is open. After `most` accesses all pages are opened. NULL if there is no memory. */
gts_pages *gts_pages_reserve(size_t size, size_t most);

void gts_pages_release(gts_pages *self);

/* Opens the pages of the memory from `begin` to below `end`; false if the system refuses. */
bool gts_pages_open(uintptr_t begin, uintptr_t end);

/*
 * Begin and end to note the accesses of this process to all guarded memory; they may be nested. Faults of other
 * addresses go to the handler that was there before.
 */
void gts_pages_watch(void);
void gts_pages_unwatch(void);

/* The number of accesses until now, of which `noted` has the first `most`. */
size_t gts_pages_count(const gts_pages *self);
