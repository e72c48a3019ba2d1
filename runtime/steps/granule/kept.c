/*
 * The memory of kept arrays. The file kept.bin of a granule's folder begins with a head, which has the place of each
 * array. The arrays that no step writes follow, and then the values at the start of those that are written. Arrays that
 * are zero at the start have no bytes there. Each part begins at a multiple of 64 KiB, the largest size of a page.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/path.h"
#include "base/strided.h"
#include "steps/granule/private.h"

#define MAGIC "gtstub kept 1\0\0"
#define BYTE_ORDER_MARK UINT32_C(0x01020304)
#define PART UINT64_C(0x10000)

/* Where the memory of an array is: the host's, in a part of the file, or after that in memory that is zero. A temporary is
 * there, too, and its zeros mean nothing. */
enum { OF_HOST, IS_CONSTANT, IS_WRITTEN, IS_ZERO, IS_TEMPORARY };

typedef struct place {
    uint64_t part;   /* IS_CONSTANT, for example */
    uint64_t offset; /* of its first byte in the part */
} place;

/* The beginning of the file. The features that its programs need of the CPU come after the places: a text that ends. */
typedef struct head {
    char magic[16];
    uint32_t byte_order;
    uint32_t array_count;
    uint64_t head_size, constant_size, written_size, zero_size; /* in bytes; multiples of PART */
    char digest[64];                                            /* of granule.json, hexadecimal */
    place places[];                                             /* [array_count] */
} head;

/* ---- The head -------------------------------------------------------------------------------------------------- */

/* Whether a part of the file has all its bytes, and no number is too large. */
static bool is_size(uint64_t size)
{
    return size % PART == 0 && size < (uint64_t)INT64_MAX / 8;
}

static int check_head(const head *found, uint64_t size, const gts_granule_descriptor *self, const char *folder)
{
    if (size < sizeof *found || memcmp(found->magic, MAGIC, sizeof found->magic) != 0)
        return GTS_REFUSE_KEPT(self, folder, GTS_RUNTIME_ERROR,
                               "does not contain kept arrays of this version of gtstub.");
    if (found->byte_order != BYTE_ORDER_MARK)
        return GTS_REFUSE_KEPT(self, folder, GTS_RUNTIME_ERROR,
                               "was written on a machine with another order of bytes.");
    if (memcmp(found->digest, self->digest, sizeof found->digest) != 0)
        return GTS_REFUSE_KEPT(self, folder, GTS_RUNTIME_ERROR,
                               "belongs to another granule, or to another export of it: its digest is %.8s..., and "
                               "the generated code was made for %.8s....",
                               found->digest, self->digest);
    const uint64_t least = sizeof *found + (uint64_t)self->array_count * sizeof(place);
    if (found->array_count != self->array_count || !is_size(found->head_size) || !is_size(found->constant_size) ||
        !is_size(found->written_size) || !is_size(found->zero_size) || found->head_size <= least ||
        found->head_size > size || memchr((const char *)found + least, '\0', found->head_size - least) == NULL)
        return GTS_REFUSE_KEPT(self, folder, GTS_RUNTIME_ERROR, "is damaged: its head has sizes that no granule has.");
    const uint64_t expected = found->head_size + found->constant_size + found->written_size;
    if (size != expected)
        return GTS_REFUSE_KEPT(self, folder, GTS_RUNTIME_ERROR,
                               "has %" PRIu64 " bytes, not %" PRIu64 ": it is incomplete.", size, expected);
    return 0;
}

static int check_machine(const head *found, const gts_granule_descriptor *self, const char *folder)
{
    const char *lacking;
    const size_t length = gts_lacks_feature((const char *)&found->places[found->array_count], &lacking);
    if (length == 0)
        return 0;
    return GTS_REFUSE_KEPT(self, folder, GTS_RUNTIME_ERROR,
                           "comes with programs that were built for a CPU with '%.*s', which this one lacks.",
                           (int)length, lacking);
}

/* ---- Mapping --------------------------------------------------------------------------------------------------- */

static int map_file(gts_kept *kept, int file, const gts_granule_descriptor *self, const char *folder)
{
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
        return GTS_REFUSE_KEPT(self, folder, GTS_RUNTIME_ERROR, "is no file with kept arrays.");
    const size_t size = (size_t)status.st_size;
    void *const memory = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        return GTS_REFUSE_KEPT(self, folder, GTS_RUNTIME_ERROR, "cannot be mapped: %s.", strerror(errno));
    kept->file = memory;
    kept->file_size = size;
    return check_head(memory, size, self, folder);
}

/* Maps the arrays that are written, so that writing changes memory of this process alone. */
static int map_written(gts_kept *kept, int file, const gts_granule_descriptor *self, const char *folder)
{
    const head *const found = kept->file;
    const uint64_t size = found->written_size + found->zero_size;
    if (size == 0)
        return 0;
    void *const memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return GTS_REFUSE_KEPT(self, folder, GTS_RUNTIME_ERROR, "needs %" PRIu64 " bytes of memory: %s.", size,
                               strerror(errno));
    kept->written = memory;
    kept->written_size = size;
    if (found->written_size > 0 && mmap(memory, found->written_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                                        file, (off_t)(found->head_size + found->constant_size)) == MAP_FAILED)
        return GTS_REFUSE_KEPT(self, folder, GTS_RUNTIME_ERROR, "cannot be mapped: %s.", strerror(errno));
    return 0;
}

/* Finds the address of a place, and the bytes from there to the end of its part; false if there is no such place. */
static bool find_place(const gts_kept *kept, const place *at, char **address, uint64_t *size)
{
    const head *const found = kept->file;
    char *const file = (char *)kept->file + found->head_size;
    const uint64_t sizes[] = {0, found->constant_size, found->written_size, found->zero_size, found->zero_size};
    char *const zeros = (char *)kept->written + found->written_size;
    char *const parts[] = {NULL, file, kept->written, zeros, zeros};
    if (at->part == OF_HOST || at->part > IS_TEMPORARY || at->offset > sizes[at->part])
        return false;
    *size = sizes[at->part] - at->offset;
    *address = parts[at->part] + at->offset;
    return true;
}

static int set_addresses(const gts_kept *kept, const gts_granule_descriptor *self, const char *folder,
                         gts_array *arrays, bool *is_temporary)
{
    const head *const found = kept->file;
    for (uint32_t i = 0; i < self->array_count; ++i) {
        if (self->arrays[i].is_argument)
            continue;
        gts_range memory;
        uint64_t room;
        char *first;
        const bool is_constant = found->places[i].part == IS_CONSTANT;
        if (!find_place(kept, &found->places[i], &first, &room) || !gts_find_range(&arrays[i], &memory) ||
            memory.high - memory.low > room || (is_constant && self->arrays[i].written))
            return GTS_REFUSE_KEPT(self, folder, GTS_RUNTIME_ERROR, "is damaged: array '%s' has no place in it.",
                                   self->arrays[i].name);
        arrays[i].data = first + memory.lead;
        arrays[i].readonly = is_constant;
        is_temporary[i] = found->places[i].part == IS_TEMPORARY;
    }
    return 0;
}

int gts_kept_map(gts_kept *kept, const gts_granule_descriptor *self, const char *folder, gts_array *arrays,
                 bool *is_temporary)
{
    *kept = (gts_kept){0};
    char path[PATH_MAX];
    GTS_TRY(gts_join_path(path, folder, strlen(folder), "kept.bin"));
    const int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a FIFO would block */
    if (file < 0)
        return GTS_REFUSE_KEPT(self, folder, GTS_RUNTIME_ERROR, "cannot be opened: %s.", strerror(errno));
    int status = map_file(kept, file, self, folder);
    if (status == 0)
        status = check_machine(kept->file, self, folder);
    if (status == 0)
        status = map_written(kept, file, self, folder);
    if (status == 0)
        status = set_addresses(kept, self, folder, arrays, is_temporary);
    close(file);
    if (status != 0)
        gts_kept_unmap(kept);
    return status;
}

void gts_kept_unmap(gts_kept *kept)
{
    if (kept->file != NULL)
        munmap(kept->file, kept->file_size);
    if (kept->written != NULL)
        munmap(kept->written, kept->written_size);
    *kept = (gts_kept){0};
}
