/* GTSTUB_TRUST: users, groups and layers whose files this user runs. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/lock.h"
#include "program/trust.h"

#define VARIABLE "GTSTUB_TRUST"

#define USER_SIZE 65536                    /* bytes of what the system knows of a user, at most */
#define LEAST_ENTRY_SIZE ((size_t)1 << 10) /* the same of a user or of a group with its members */
#define MOST_ENTRY_SIZE ((size_t)16 << 20)

/* One element of the setting. */
typedef struct trusted {
    gts_trusted_kind kind;
    id_t id;          /* of a user or a group */
    const char *path; /* of a layer, in `copy` */
} trusted;

GTS_LOCK(lock)     /* of all that follows */
static char *text; /* as it was read; NULL if it is not set */
static char *copy; /* the same, cut into its elements */
static trusted *elements;
static size_t count;

/* The private group of a user, as it was found. */
static bool is_known;
static uid_t known_user;
static bool has_private_group;
static gid_t private_group;

/* ---- Users and groups ------------------------------------------------------------------------------------------ */

/* A user or a group that is looked for by its name, or by its number if the name is NULL. */
typedef struct lookup {
    const char *name;
    id_t id;
    struct passwd user;
    struct group group;
} lookup;

/* Finds a user or a group. Returns the memory of what was found, which the caller frees; NULL if there is none. */
static char *find(gts_trusted_kind kind, lookup *self)
{
    for (size_t size = LEAST_ENTRY_SIZE; size <= MOST_ENTRY_SIZE; size *= 4) {
        char *const buffer = malloc(size);
        struct passwd *user = NULL;
        struct group *group = NULL;
        int status = ENOMEM;
        if (buffer != NULL && kind == GTS_TRUSTED_USER)
            status = self->name == NULL ? getpwuid_r(self->id, &self->user, buffer, size, &user)
                                        : getpwnam_r(self->name, &self->user, buffer, size, &user);
        else if (buffer != NULL)
            status = self->name == NULL ? getgrgid_r(self->id, &self->group, buffer, size, &group)
                                        : getgrnam_r(self->name, &self->group, buffer, size, &group);
        if (user != NULL || group != NULL)
            return buffer;
        free(buffer);
        if (status != ERANGE)
            break;
    }
    return NULL;
}

void gts_trusted_name(gts_trusted_kind kind, id_t id, char name[GTS_NAME_SIZE])
{
    lookup self = {.id = id};
    char *const buffer = find(kind, &self);
    const char *const found = kind == GTS_TRUSTED_USER ? self.user.pw_name : self.group.gr_name;
    if (buffer == NULL || snprintf(name, GTS_NAME_SIZE, "%s", found) >= GTS_NAME_SIZE)
        (void)snprintf(name, GTS_NAME_SIZE, "%lu", (unsigned long)id);
    free(buffer);
}

/* Reads the next user of the system into `entry`. Returns 0, ENOENT after the last one, or another error. */
static int next_user(struct passwd *entry, char *buffer)
{
    struct passwd *found = NULL;
#ifdef __GLIBC__
    return getpwent_r(entry, buffer, USER_SIZE, &found);
#else /* musl has no getpwent_r() */
    (void)buffer;
    errno = 0;
    found = getpwent();
    if (found == NULL)
        return errno == 0 ? ENOENT : errno;
    *entry = *found;
    return 0;
#endif
}

/* Whether a group is the primary one of another user, who is not among its members then; in doubt it is. */
static bool is_of_others(gid_t group, uid_t user)
{
    char *const buffer = malloc(USER_SIZE);
    bool is_found = buffer == NULL;
    struct passwd entry;
    setpwent();
    while (!is_found) {
        const int error = next_user(&entry, buffer);
        if (error == ENOENT)
            break;
        is_found = error != 0 || (entry.pw_gid == group && entry.pw_uid != user);
    }
    endpwent();
    free(buffer);
    return is_found;
}

/* Finds the group that has the name of the user and no other member. The caller holds the lock. */
static void find_private_group(uid_t user)
{
    is_known = true;
    known_user = user;
    has_private_group = false;
    lookup self = {.id = user};
    char *const of_user = find(GTS_TRUSTED_USER, &self);
    self.id = of_user == NULL ? 0 : self.user.pw_gid;
    char *const of_group = of_user == NULL ? NULL : find(GTS_TRUSTED_GROUP, &self);
    if (of_group != NULL) {
        has_private_group = strcmp(self.group.gr_name, self.user.pw_name) == 0;
        for (char **member = self.group.gr_mem; has_private_group && *member != NULL; ++member)
            has_private_group = strcmp(*member, self.user.pw_name) == 0;
        has_private_group = has_private_group && !is_of_others(self.group.gr_gid, user);
        private_group = self.group.gr_gid;
    }
    free(of_group);
    free(of_user);
}

bool gts_trusted_is_private(gid_t group)
{
    (void)pthread_mutex_lock(&lock);
    const uid_t user = geteuid();
    if (!is_known || known_user != user)
        find_private_group(user);
    const bool is_private = has_private_group && private_group == group;
    (void)pthread_mutex_unlock(&lock);
    return is_private;
}

/* ---- The setting ----------------------------------------------------------------------------------------------- */

static GTS_COLD int refuse(const char *element, const char *reason)
{
    return gts_error_set(&gts_own_error, GTS_VALUE_ERROR, "GTSTUB_TRUST: '%s' %s.", element, reason);
}

/* The text after "<prefix>=", or NULL. */
static char *after(char *element, const char *prefix)
{
    const size_t length = strlen(prefix);
    return strncmp(element, prefix, length) == 0 && element[length] == '=' ? element + length + 1 : NULL;
}

/* Whether a text is a number of a user or a group. */
static bool read_number(const char *value, id_t *id)
{
    if (!isdigit((unsigned char)*value))
        return false;
    char *end = NULL;
    errno = 0;
    const unsigned long number = strtoul(value, &end, 10);
    *id = (id_t)number;
    return errno == 0 && *end == '\0' && number < (id_t)-1;
}

static int read_element(char *element, trusted *self)
{
    const char *const user = after(element, "user"), *const group = after(element, "group");
    if (user == NULL && group == NULL) {
        const char *const path = after(element, "layer");
        *self = (trusted){.kind = GTS_TRUSTED_LAYER, .path = path};
        if (path == NULL)
            return refuse(element, "is not user=NAME, group=NAME or layer=DIRECTORY");
        return *path == '/' ? 0 : refuse(element, "is not an absolute path");
    }
    lookup lookup = {.name = user != NULL ? user : group};
    *self = (trusted){.kind = user != NULL ? GTS_TRUSTED_USER : GTS_TRUSTED_GROUP};
    if (read_number(lookup.name, &self->id))
        return 0;
    char *const buffer = find(self->kind, &lookup);
    if (buffer == NULL)
        return refuse(element, user != NULL ? "names a user that this machine does not know"
                                            : "names a group that this machine does not know");
    self->id = user != NULL ? lookup.user.pw_uid : lookup.group.gr_gid;
    free(buffer);
    return 0;
}

static void forget(void)
{
    free(text);
    free(copy);
    free(elements);
    text = copy = NULL;
    elements = NULL;
    count = 0;
}

/* Reads a setting anew. The caller holds the lock. */
static int read_setting(const char *setting)
{
    forget();
    text = strdup(setting);
    copy = strdup(setting);
    elements = calloc(strlen(setting) + 1, sizeof *elements); /* more than it can have */
    int status = 0;
    if (text == NULL || copy == NULL || elements == NULL)
        status = refuse(setting, "cannot be read: out of memory");
    char *rest = NULL;
    for (char *element = status != 0 ? NULL : strtok_r(copy, ":", &rest); element != NULL && status == 0;
         element = strtok_r(NULL, ":", &rest))
        status = read_element(element, &elements[count++]);
    if (status != 0)
        forget(); /* the next load reads it again, and is refused again */
    return status;
}

int gts_trusted_read(void)
{
    const char *const set = getenv(VARIABLE);
    const char *const setting = set == NULL ? "" : set;
    (void)pthread_mutex_lock(&lock);
    const int status = text != NULL && strcmp(text, setting) == 0 ? 0 : read_setting(setting);
    (void)pthread_mutex_unlock(&lock);
    return status;
}

bool gts_trusted_has(gts_trusted_kind kind, id_t id)
{
    (void)pthread_mutex_lock(&lock);
    bool is_found = false;
    for (size_t i = 0; i < count && !is_found; ++i)
        is_found = elements[i].kind == kind && elements[i].id == id;
    (void)pthread_mutex_unlock(&lock);
    return is_found;
}

bool gts_trusted_has_layer(const struct stat *directory)
{
    (void)pthread_mutex_lock(&lock);
    bool is_found = false;
    for (size_t i = 0; i < count && !is_found; ++i) {
        struct stat layer;
        is_found = elements[i].kind == GTS_TRUSTED_LAYER && stat(elements[i].path, &layer) == 0 &&
                   layer.st_dev == directory->st_dev && layer.st_ino == directory->st_ino;
    }
    (void)pthread_mutex_unlock(&lock);
    return is_found;
}
