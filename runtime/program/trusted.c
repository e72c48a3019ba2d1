/* GTSTUB_TRUST: users, groups and layers whose files this user runs. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "program/trust.h"

#define VARIABLE "GTSTUB_TRUST"

#define USER_SIZE 65536 /* bytes of what the system knows of a user, at most */

typedef enum kind { USER, GROUP, LAYER } kind;

/* One element of the setting. */
typedef struct trusted {
    kind kind;
    id_t id;          /* of a user or a group */
    const char *path; /* of a layer, in `copy` */
} trusted;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static char *text;                                       /* as it was read; NULL if it is not set */
static char *copy;                                       /* the same, cut into its elements */
static trusted *elements;
static size_t count;

/* The private group of a user, as it was found. */
static bool is_known;
static uid_t known_user;
static bool has_private_group;
static gid_t private_group;

/* ---- Users and groups ------------------------------------------------------------------------------------------ */

/* Calls `find` with buffers that grow until one is large enough. Returns the buffer, which the caller frees, or NULL. */
static char *find_with_buffer(bool (*find)(void *found, char *buffer, size_t size, int *error), void *found)
{
    for (size_t size = 1024; size <= (size_t)1 << 24; size *= 4) {
        char *const buffer = malloc(size);
        int error = 0;
        if (buffer != NULL && find(found, buffer, size, &error))
            return buffer;
        free(buffer);
        if (error != ERANGE)
            break;
    }
    return NULL;
}

/* A user or a group that is looked for by its name, or by its number if the name is NULL. */
typedef struct user_lookup {
    const char *name;
    uid_t id;
    struct passwd found;
} user_lookup;

typedef struct group_lookup {
    const char *name;
    gid_t id;
    struct group found;
} group_lookup;

static bool find_user(void *lookup, char *buffer, size_t size, int *error)
{
    user_lookup *const self = lookup;
    struct passwd *found = NULL;
    *error = self->name == NULL ? getpwuid_r(self->id, &self->found, buffer, size, &found)
                                : getpwnam_r(self->name, &self->found, buffer, size, &found);
    return found != NULL;
}

static bool find_group(void *lookup, char *buffer, size_t size, int *error)
{
    group_lookup *const self = lookup;
    struct group *found = NULL;
    *error = self->name == NULL ? getgrgid_r(self->id, &self->found, buffer, size, &found)
                                : getgrnam_r(self->name, &self->found, buffer, size, &found);
    return found != NULL;
}

void gts_trusted_name_user(uid_t user, char name[GTS_NAME_SIZE])
{
    user_lookup lookup = {.id = user};
    char *const buffer = find_with_buffer(find_user, &lookup);
    if (buffer == NULL || snprintf(name, GTS_NAME_SIZE, "%s", lookup.found.pw_name) >= GTS_NAME_SIZE)
        (void)snprintf(name, GTS_NAME_SIZE, "%lu", (unsigned long)user);
    free(buffer);
}

void gts_trusted_name_group(gid_t group, char name[GTS_NAME_SIZE])
{
    group_lookup lookup = {.id = group};
    char *const buffer = find_with_buffer(find_group, &lookup);
    if (buffer == NULL || snprintf(name, GTS_NAME_SIZE, "%s", lookup.found.gr_name) >= GTS_NAME_SIZE)
        (void)snprintf(name, GTS_NAME_SIZE, "%lu", (unsigned long)group);
    free(buffer);
}

/* Whether a group is the primary one of another user, who is not among its members then; in doubt it is. */
static bool is_of_others(gid_t group, uid_t user)
{
    char *const buffer = malloc(USER_SIZE);
    bool is_found = buffer == NULL;
    struct passwd entry, *found = &entry;
    setpwent();
    while (!is_found) {
        const int error = getpwent_r(&entry, buffer, USER_SIZE, &found);
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
    user_lookup self = {.id = user};
    char *const of_user = find_with_buffer(find_user, &self);
    group_lookup own = {.id = of_user == NULL ? 0 : self.found.pw_gid};
    char *const of_group = of_user == NULL ? NULL : find_with_buffer(find_group, &own);
    if (of_group != NULL) {
        has_private_group = strcmp(own.found.gr_name, self.found.pw_name) == 0;
        for (char **member = own.found.gr_mem; has_private_group && *member != NULL; ++member)
            has_private_group = strcmp(*member, self.found.pw_name) == 0;
        has_private_group = has_private_group && !is_of_others(own.found.gr_gid, user);
        private_group = own.found.gr_gid;
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

void gts_trusted_forget(void)
{
    (void)pthread_mutex_init(&lock, NULL);
}

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

static int read_user(const char *element, const char *name, trusted *self)
{
    *self = (trusted){.kind = USER};
    if (read_number(name, &self->id))
        return 0;
    user_lookup lookup = {.name = name};
    char *const buffer = find_with_buffer(find_user, &lookup);
    self->id = buffer == NULL ? 0 : lookup.found.pw_uid;
    free(buffer);
    return buffer == NULL ? refuse(element, "names a user that this machine does not know") : 0;
}

static int read_group(const char *element, const char *name, trusted *self)
{
    *self = (trusted){.kind = GROUP};
    if (read_number(name, &self->id))
        return 0;
    group_lookup lookup = {.name = name};
    char *const buffer = find_with_buffer(find_group, &lookup);
    self->id = buffer == NULL ? 0 : lookup.found.gr_gid;
    free(buffer);
    return buffer == NULL ? refuse(element, "names a group that this machine does not know") : 0;
}

static int read_element(char *element, trusted *self)
{
    const char *value = after(element, "user");
    if (value != NULL)
        return read_user(element, value, self);
    if ((value = after(element, "group")) != NULL)
        return read_group(element, value, self);
    if ((value = after(element, "layer")) == NULL)
        return refuse(element, "is not user=NAME, group=NAME or layer=DIRECTORY");
    *self = (trusted){.kind = LAYER, .path = value};
    return *value == '/' ? 0 : refuse(element, "is not an absolute path");
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
    copy = strdup(setting);
    elements = calloc(strlen(setting) + 1, sizeof *elements); /* more than it can have */
    char *const whole = strdup(setting);
    int status = 0;
    if (copy == NULL || elements == NULL || whole == NULL)
        status = refuse(setting, "cannot be read: out of memory");
    char *rest = NULL;
    for (char *element = status != 0 ? NULL : strtok_r(copy, ":", &rest); element != NULL && status == 0;
         element = strtok_r(NULL, ":", &rest))
        status = read_element(element, &elements[count++]);
    if (status == 0) {
        text = whole;
        return 0;
    }
    free(whole);
    forget(); /* the next load reads it again, and is refused again */
    return -1;
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

static bool has_id(kind wanted, id_t id)
{
    (void)pthread_mutex_lock(&lock);
    bool is_found = false;
    for (size_t i = 0; i < count && !is_found; ++i)
        is_found = elements[i].kind == wanted && elements[i].id == id;
    (void)pthread_mutex_unlock(&lock);
    return is_found;
}

bool gts_trusted_has_user(uid_t user)
{
    return has_id(USER, user);
}

bool gts_trusted_has_group(gid_t group)
{
    return has_id(GROUP, group);
}

bool gts_trusted_has_layer(const struct stat *directory)
{
    (void)pthread_mutex_lock(&lock);
    bool is_found = false;
    for (size_t i = 0; i < count && !is_found; ++i) {
        struct stat layer;
        is_found = elements[i].kind == LAYER && stat(elements[i].path, &layer) == 0 &&
                   layer.st_dev == directory->st_dev && layer.st_ino == directory->st_ino;
    }
    (void)pthread_mutex_unlock(&lock);
    return is_found;
}
