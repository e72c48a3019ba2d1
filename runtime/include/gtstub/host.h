/*
 * gtstub: how a host that has its own objects, such as the Python host, converts them for a stub, and how a host loads
 * files that it has verified.
 */
#ifndef GTSTUB_HOST_H
#define GTSTUB_HOST_H

#include "gtstub/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The functions that a stub calls to convert the objects of a call. Those that return int return 0 for success, and -1
 * after they have written a refusal to the program's error or have set an exception of the host's language.
 */
struct gts_host {
    /**
     * Makes leaf->current the conversion of `object`, which it has checked against the leaf's contract, and sets the
     * leaf's element of gts_program.known.
     */
    int (*field)(gts_program *, uint32_t leaf, void *object);
    /** Reads the one element of a zero-dimensional field into *value, which has the leaf's dtype. */
    int (*zero_dim_field)(gts_program *, uint32_t leaf, void *object, void *value);
    /**
     * Reads a scalar into *value, which is its slot and has the leaf's dtype. It sets the leaf's element of
     * gts_program.known if the object cannot change.
     */
    int (*scalar)(gts_program *, uint32_t leaf, void *object, void *value);
    /** Checks that a scalar equals contract->value, and sets the leaf's element of gts_program.known. */
    int (*static_scalar)(gts_program *, uint32_t leaf, void *object);
    /** Keeps the object of a callback until the call ends, and sets the function in its slot to NULL. */
    int (*callback)(gts_program *, uint32_t leaf, void *object);
    /** The elements of a tuple, which must have `length` of them; NULL after an error. The tuple owns them. */
    void *const *(*tuple)(gts_program *, const char *path, void *object, uint32_t length);
    /** The elements of stub->collections[collection]; NULL after an error. They live until the call ends. */
    void *const *(*collection)(gts_program *, uint32_t collection, void *object);
    /** The object that the offset provider has under the name contract->path; NULL after an error. */
    void *(*connectivity)(gts_program *, uint32_t leaf, void *offset_provider);
    /** After all connectivities were converted: sets the last element of gts_program.known, or leaves it NULL. */
    int (*remember_provider)(gts_program *, void *offset_provider);
};

/** A file and its state, as stat() returns them. A file that was written to or replaced differs. */
typedef struct gts_file {
    unsigned long long device, inode;
    long long bytes;
    long long modified; /**< ns since 1970 */
} gts_file;

/**
 * Does the same as gts_load(), but refuses, before it opens them, files other than those that the caller has verified.
 * The dynamic loader is not safe against damaged libraries.
 *
 * A file that is written to in place, which gtstub never does, can change at any time.
 *
 * @param files  stub and library, as stat() returned them before the caller read the contents
 */
GTS_EXPORT int gts_load_verified(const char *stub_path, const char *library_path, const gts_file files[2],
                                 gts_program **program);

/**
 * Refuses a directory of libraries that others could have written: it, and if it is a cache entry all directories from
 * the root of the cache down to it, must belong to this user or to root, and must be writable by nobody else, except
 * for those whom GTSTUB_TRUST names. gts_load() and gts_open() do this themselves.
 *
 * @param directory   a descriptor of the directory
 * @param path        its path, for the message
 * @param is_exposed  whether others can rename it or a directory above it, so that its path may lead elsewhere later
 * @return 0, or -1 with the error in gts_last_error(NULL)
 */
GTS_EXPORT int gts_trust_directory(int directory, const char *path, bool *is_exposed);

/** Does the same for a file alone: takes its descriptor and its path. */
GTS_EXPORT int gts_trust_file(int file, const char *path);

/** Whether what a group can write is trusted: GTSTUB_TRUST names it, or this user is its only member. */
GTS_EXPORT bool gts_trusts_group(unsigned int group);

/**
 * Adds a time to the timeline of this process, if it has one (docs/trace.md): that of a build, for example.
 *
 * @param kind   what has taken the time, such as "wait"; copied
 * @param name   of the program, or of what else it was for; copied
 * @param track  a line of the timeline; NULL: that of this thread
 * @param begin  in ns of CLOCK_MONOTONIC
 * @param end    the same
 */
GTS_EXPORT void gts_add_span(const char *kind, const char *name, const char *track, uint64_t begin, uint64_t end);

/** The object that leaf->current was converted from, if a call may pass it again unread; NULL if there is none. */
static inline const void *gts_known_object(const gts_program *self, uint32_t leaf)
{
    return self->known[leaf];
}

/** Sets the object that gts_known_object() returns; NULL forgets it. `leaf` is leaf_count for the offset provider. */
static inline void gts_know_object(gts_program *self, uint32_t leaf, const void *object)
{
    self->known[leaf] = object;
    ++self->known_version;
}

/** For stub->convert(): makes leaf->current the conversion of a field's object, unless it is known. */
static inline int gts_convert_field(gts_program *self, const gts_host *host, uint32_t leaf, void *object)
{
    return GTS_LIKELY(gts_known_object(self, leaf) == object) ? 0 : host->field(self, leaf, object);
}

/** For stub->convert(): reads a scalar into its slot `value`, which has its value already if the object is known. */
static inline int gts_convert_scalar(gts_program *self, const gts_host *host, uint32_t leaf, void *object, void *value)
{
    return GTS_LIKELY(gts_known_object(self, leaf) == object) ? 0 : host->scalar(self, leaf, object, value);
}

/** For stub->convert(): makes leaf->current the conversion of a connectivity. */
static inline int gts_convert_table(gts_program *self, const gts_host *host, uint32_t leaf, void *offset_provider)
{
    void *const object = host->connectivity(self, leaf, offset_provider);
    return GTS_LIKELY(object != NULL) ? gts_convert_field(self, host, leaf, object) : -1;
}

/** Whether the offset provider has the connectivities that are known. */
static inline bool gts_is_known_provider(const gts_program *self, uint32_t leaf_count, const void *offset_provider)
{
    return GTS_LIKELY(gts_known_object(self, leaf_count) == offset_provider);
}

/** For stub->convert(): checks the object of a static argument, unless it is known. */
static inline int gts_convert_static(gts_program *self, const gts_host *host, uint32_t leaf, void *object)
{
    return GTS_LIKELY(gts_known_object(self, leaf) == object) ? 0 : host->static_scalar(self, leaf, object);
}

#ifdef __cplusplus
}
#endif

#endif
