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

#define USERS "/etc/passwd"

#define LEAST_ENTRY_SIZE ((size_t)1 << 10) /* bytes of what the system knows of a user or a group with its members */
#define MOST_ENTRY_SIZE ((size_t)16 << 20)

/* One element of the setting. */
typedef struct trusted {
    gts_trusted_kind kind;
    id_t id;          /* of a user or a group */
    const char *path; /* of a layer, in `copy` */
} trusted;

typedef struct setting {
    char *text; /* as it was read; NULL while nothing of it is known */
    char *copy; /* the same, cut into its elements */
    trusted *elements;
    size_t count;
} setting;

GTS_LOCK(lock) /* of all that follows */
static setting known;

/* The private group of a user, as it was found. */
static bool is_known;
static uid_t known_user;
static bool has_private_group;
static gid_t private_group;

/*
 * Keeps the order of what comes before and after. A thread may fork while another one changes what the lock protects; the
 * child takes the lock then, and must find nothing that is half changed.
 */
static void end_change(void)
{
    __asm__ volatile("" ::: "memory");
}

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

/* Reads the numbers of a user and of the primary group in a line of USERS. */
static bool read_user(const char *line, unsigned long *user, unsigned long *group)
{
    const char *const password = strchr(line, ':');
    const char *const number = password == NULL ? NULL : strchr(password + 1, ':');
    return number != NULL && sscanf(number, ":%lu:%lu:", user, group) == 2;
}

/*
 * Whether a group may be the primary one of another user, who is not among its members then. The machine's own users are
 * read from their file. Those of a directory service cannot be listed quickly, or at all: such a service gives the group
 * of a user alone the number of the user.
 */
static bool is_of_others(gid_t group, uid_t user)
{
    FILE *const file = fopen(USERS, "re");
    if (file == NULL && errno != ENOENT)
        return true;
    bool is_found = false, is_own = group == user;
    char *line = NULL;
    size_t size = 0;
    while (file != NULL && getline(&line, &size, file) > 0) {
        unsigned long its_user, its_group;
        if (!read_user(line, &its_user, &its_group) || its_group != group)
            continue;
        is_own |= its_user == user;
        is_found |= its_user != user;
    }
    free(line);
    if (file != NULL)
        (void)fclose(file);
    return is_found || !is_own;
}

/* Finds the group that has the name of the user and no other member. The caller holds the lock. */
static void find_private_group(uid_t user)
{
    is_known = false;
    end_change();
    bool is_found = false;
    lookup self = {.id = user};
    char *const of_user = find(GTS_TRUSTED_USER, &self);
    self.id = of_user == NULL ? 0 : self.user.pw_gid;
    char *const of_group = of_user == NULL ? NULL : find(GTS_TRUSTED_GROUP, &self);
    if (of_group != NULL) {
        is_found = strcmp(self.group.gr_name, self.user.pw_name) == 0;
        for (char **member = self.group.gr_mem; is_found && *member != NULL; ++member)
            is_found = strcmp(*member, self.user.pw_name) == 0;
        is_found = is_found && !is_of_others(self.group.gr_gid, user);
        private_group = self.group.gr_gid;
    }
    free(of_group);
    free(of_user);
    has_private_group = is_found;
    known_user = user;
    end_change();
    is_known = true;
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

static void release(setting *self)
{
    free(self->text);
    free(self->copy);
    free(self->elements);
}

/* Reads a text into an empty setting. */
static int read_text(setting *self, const char *given)
{
    self->text = strdup(given);
    self->copy = strdup(given);
    self->elements = calloc(strlen(given) + 1, sizeof *self->elements); /* more than it can have */
    if (self->text == NULL || self->copy == NULL || self->elements == NULL)
        return refuse(given, "cannot be read: out of memory");
    int status = 0;
    char *rest = NULL;
    for (char *element = strtok_r(self->copy, ":", &rest); element != NULL && status == 0;
         element = strtok_r(NULL, ":", &rest))
        status = read_element(element, &self->elements[self->count++]);
    return status;
}

/* Reads the setting anew. If it is refused, the next load reads it again. The caller holds the lock. */
static int read_setting(const char *given)
{
    setting old = known, new = {0};
    known.text = NULL; /* a process that is forked from here on reads the setting again */
    end_change();
    known = new;
    end_change();
    release(&old);
    const int status = read_text(&new, given);
    if (status != 0) {
        release(&new);
        return status;
    }
    known.copy = new.copy;
    known.elements = new.elements;
    known.count = new.count;
    end_change();
    known.text = new.text;
    return 0;
}

int gts_trusted_read(void)
{
    const char *const set = getenv(VARIABLE);
    const char *const given = set == NULL ? "" : set;
    (void)pthread_mutex_lock(&lock);
    const int status = known.text != NULL && strcmp(known.text, given) == 0 ? 0 : read_setting(given);
    (void)pthread_mutex_unlock(&lock);
    return status;
}

bool gts_trusted_has(gts_trusted_kind kind, id_t id)
{
    (void)pthread_mutex_lock(&lock);
    bool is_found = false;
    for (size_t i = 0; i < known.count && !is_found; ++i)
        is_found = known.elements[i].kind == kind && known.elements[i].id == id;
    (void)pthread_mutex_unlock(&lock);
    return is_found;
}

bool gts_trusted_has_layer(const struct stat *directory)
{
    (void)pthread_mutex_lock(&lock);
    bool is_found = false;
    for (size_t i = 0; i < known.count && !is_found; ++i) {
        struct stat layer;
        is_found = known.elements[i].kind == GTS_TRUSTED_LAYER && stat(known.elements[i].path, &layer) == 0 &&
                   layer.st_dev == directory->st_dev && layer.st_ino == directory->st_ino;
    }
    (void)pthread_mutex_unlock(&lock);
    return is_found;
}
