/* gtstub: how a host that has its own objects, such as the Python host, converts them for a stub. */
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
    /** Makes leaf->current the conversion of `object`, which it has checked against the leaf's contract. */
    int (*field)(gts_program *, uint32_t leaf, void *object);
    /** Reads the one element of a zero-dimensional field into *value, which has the leaf's dtype. */
    int (*zero_dim_field)(gts_program *, uint32_t leaf, void *object, void *value);
    /** Reads a scalar into *value, which has the leaf's dtype. */
    int (*scalar)(gts_program *, uint32_t leaf, void *object, void *value);
    /** Checks that a scalar equals contract->value, and makes leaf->current what recognises the object. */
    int (*static_scalar)(gts_program *, uint32_t leaf, void *object);
    /** Keeps the object of a callback until the call ends, and sets the function in its slot to NULL. */
    int (*callback)(gts_program *, uint32_t leaf, void *object);
    /** The elements of a tuple, which must have `length` of them; NULL after an error. The tuple owns them. */
    void *const *(*tuple)(gts_program *, const char *path, void *object, uint32_t length);
    /** The elements of stub->collections[collection]; NULL after an error. They live until the call ends. */
    void *const *(*collection)(gts_program *, uint32_t collection, void *object);
    /** The object that the offset provider has under the name contract->path; NULL after an error. */
    void *(*connectivity)(gts_program *, uint32_t leaf, void *offset_provider);
    /** The address that replaces the address of an object that has died; Python: None. This object is always new. */
    const void *none_object;
};

/** Whether `object` is another one than in the last call. */
static inline bool gts_is_new(const gts_host *host, const gts_leaf *leaf, const void *object)
{
    return GTS_UNLIKELY(*leaf->current->object != object) || GTS_UNLIKELY(object == host->none_object);
}

/** For stub->convert(): makes leaf->current the conversion of a field's object, unless it is known. */
static inline int gts_convert_field(gts_program *self, const gts_host *host, uint32_t leaf, void *object)
{
    return gts_is_new(host, &self->leaf[leaf], object) ? host->field(self, leaf, object) : 0;
}

/** For stub->convert(): checks the object of a static argument, unless it is known. */
static inline int gts_convert_static(gts_program *self, const gts_host *host, uint32_t leaf, void *object)
{
    return gts_is_new(host, &self->leaf[leaf], object) ? host->static_scalar(self, leaf, object) : 0;
}

#ifdef __cplusplus
}
#endif

#endif
