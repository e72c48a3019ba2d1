/*
 * The stubs that are linked into the same executable or shared library as the runtime. Each is found by the file name
 * that its library would have.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/new.h"
#include "base/path.h"
#include "program/private.h"

GTS_LOCK(lock)                        /* of the list, to which a shared library adds its stubs while it is loaded */
static gts_linked_stub *linked_stubs; /* the last one that was added; each stays as long as the process */

void gts_linked_add(gts_linked_stub *linked)
{
    pthread_mutex_lock(&lock);
    linked->next = linked_stubs;
    linked_stubs = linked;
    pthread_mutex_unlock(&lock);
}

/* The stub that was added last. Those before it do not change, so the lock is needed for no other. */
static const gts_linked_stub *last_stub(void)
{
    pthread_mutex_lock(&lock);
    const gts_linked_stub *const last = linked_stubs;
    pthread_mutex_unlock(&lock);
    return last;
}

const gts_linked_stub *gts_linked_find(const char *path)
{
    const char *const name = gts_file_name(path);
    const gts_linked_stub *each = last_stub();
    while (each != NULL && strcmp(each->file, name) != 0)
        each = each->next;
    return each;
}

const gts_linked_stub *gts_linked_beside(const char *directory, size_t length, const char *library, unsigned int *count)
{
    const gts_linked_stub *const last = last_stub(), *found = last;
    *count = 0;
    for (const gts_linked_stub *each = last; each != NULL; each = each->next) {
        if (library != NULL && strcmp(library, each->stub->library) != 0)
            continue;
        char *const path = gts_new_text("%.*s/%s", (int)length, directory, each->stub->library);
        if (access(path, F_OK) == 0 && (*count)++ == 0)
            found = each;
        free(path);
    }
    return found;
}

/* Whether a stub in a file comes from the same signatures, whose digests its descriptor contains. */
static bool has_digests(FILE *file, const gts_stub *stub)
{
    char *text = NULL;
    size_t size = 0;
    FILE *const copy = open_memstream(&text, &size);
    if (copy == NULL)
        return false;
    char block[4096];
    for (size_t bytes; (bytes = fread(block, 1, sizeof block, file)) > 0;)
        fwrite(block, 1, bytes, copy);
    const bool is_whole = fclose(copy) == 0 && ferror(file) == 0;
    const bool has = is_whole && memmem(text, size, stub->program_digest, strlen(stub->program_digest)) != NULL &&
                     memmem(text, size, stub->sdfg_digest, strlen(stub->sdfg_digest)) != NULL;
    free(text);
    return has;
}

const gts_stub *gts_linked_load(const char *path)
{
    const gts_linked_stub *const linked = gts_linked_find(path);
    if (linked == NULL) {
        gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                      "Stub '%s' is not linked into this host, which is linked with libgtstub.a and loads no stubs.",
                      path);
        return NULL;
    }
    FILE *const file = fopen(path, "re"); /* as in a cache entry; usually there is none */
    const bool is_same = file == NULL || has_digests(file, linked->stub);
    if (file != NULL)
        fclose(file);
    if (is_same)
        return linked->stub;
    gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                  "Stub '%s' differs from the one that is linked into this host; "
                  "generate and build both from the same signatures.",
                  path);
    return NULL;
}
