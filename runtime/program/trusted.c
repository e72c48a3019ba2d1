/* GTSTUB_TRUST: users and groups whose files this user runs. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/new.h"
#include "program/trust.h"

#define USERS "/etc/passwd"

#define LEAST_ENTRY_SIZE ((size_t)1 << 10) /* bytes of what the system knows of a user or a group with its members */
#define MOST_ENTRY_SIZE ((size_t)16 << 20)

/* One element of the setting. */
typedef struct trusted {
    gts_trusted_kind kind;
    id_t id;
} trusted;

/* A setting that was read. It is never freed, and is added by one store: a thread may fork while another one adds it. */
typedef struct setting {
    const struct setting *next;
    const char *text;
    size_t count;
    trusted elements[];
} setting;

GTS_LOCK(lock) /* of all that follows */
static const setting *settings;

/* A user, and in the lower half the private group, or NONE: in one word, because a thread may fork at any time. */
#define NONE UINT32_MAX
static uint64_t known_group = UINT64_MAX;

/* ---- Users and groups ------------------------------------------------------------------------------------------ */

/* A user or a group that is looked for by its name, or by its number if the name is NULL. */
typedef struct lookup {
    const char *name;
    id_t id;
    struct passwd user;
    struct group group;
} lookup;

/* Finds a user or a group. Returns the memory of what was found, which the caller frees; NULL if there is none. */
static char *look_up(gts_trusted_kind kind, lookup *self)
{
    for (size_t size = LEAST_ENTRY_SIZE; size <= MOST_ENTRY_SIZE; size *= 4) {
        char *const buffer = gts_new(1, size);
        struct passwd *user = NULL;
        struct group *group = NULL;
        int status;
        if (kind == GTS_TRUSTED_USER)
            status = self->name == NULL ? getpwuid_r(self->id, &self->user, buffer, size, &user)
                                        : getpwnam_r(self->name, &self->user, buffer, size, &user);
        else
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
    char *const buffer = look_up(kind, &self);
    const char *const found = kind == GTS_TRUSTED_USER ? self.user.pw_name : self.group.gr_name;
    if (buffer == NULL || snprintf(name, GTS_NAME_SIZE, "%s", found) >= GTS_NAME_SIZE)
        snprintf(name, GTS_NAME_SIZE, "%lu", (unsigned long)id);
    free(buffer);
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
        unsigned long its_user, its_group; /* its primary group */
        const char *const password = strchr(line, ':');
        const char *const number = password == NULL ? NULL : strchr(password + 1, ':');
        if (number == NULL || sscanf(number, ":%lu:%lu:", &its_user, &its_group) != 2 || its_group != group)
            continue;
        is_own |= its_user == user;
        is_found |= its_user != user;
    }
    free(line);
    if (file != NULL)
        fclose(file);
    return is_found || !is_own;
}

/* The group that has the name of the user and no other member, or NONE. */
static gid_t find_private_group(uid_t user)
{
    lookup self = {.id = user};
    gid_t found = NONE;
    char *const of_user = look_up(GTS_TRUSTED_USER, &self);
    self.id = of_user == NULL ? 0 : self.user.pw_gid;
    char *const of_group = of_user == NULL ? NULL : look_up(GTS_TRUSTED_GROUP, &self);
    if (of_group != NULL) {
        bool is_alone = strcmp(self.group.gr_name, self.user.pw_name) == 0;
        for (char **member = self.group.gr_mem; is_alone && *member != NULL; ++member)
            is_alone = strcmp(*member, self.user.pw_name) == 0;
        if (is_alone && !is_of_others(self.group.gr_gid, user))
            found = self.group.gr_gid;
    }
    free(of_group);
    free(of_user);
    return found;
}

bool gts_trusted_is_private(gid_t group)
{
    pthread_mutex_lock(&lock);
    const uid_t user = geteuid();
    if (known_group >> 32 != user)
        known_group = (uint64_t)user << 32 | find_private_group(user);
    const bool is_private = (gid_t)known_group == group && group != NONE;
    pthread_mutex_unlock(&lock);
    return is_private;
}

/* ---- The setting ----------------------------------------------------------------------------------------------- */

static GTS_COLD int refuse(const char *element, const char *reason)
{
    return gts_error_set(&gts_own_error, GTS_VALUE_ERROR, "GTSTUB_TRUST: '%s' %s.", element, reason);
}

/* The text after "<prefix>=", or NULL. */
static const char *after(const char *element, const char *prefix)
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

static int read_element(const char *element, trusted *self)
{
    const char *const user = after(element, "user");
    lookup lookup = {.name = user != NULL ? user : after(element, "group")};
    if (lookup.name == NULL)
        return refuse(element, "is not user=NAME or group=NAME");
    *self = (trusted){.kind = user != NULL ? GTS_TRUSTED_USER : GTS_TRUSTED_GROUP};
    if (read_number(lookup.name, &self->id))
        return 0;
    char *const buffer = look_up(self->kind, &lookup);
    if (buffer == NULL)
        return refuse(element, user != NULL ? "names a user that this machine does not know"
                                            : "names a group that this machine does not know");
    self->id = user != NULL ? lookup.user.pw_uid : lookup.group.gr_gid;
    free(buffer);
    return 0;
}

/* Reads a setting, and adds it. If it is refused, the next load reads it again. The caller holds the lock. */
static int read_setting(const char *given)
{
    setting *const self = gts_new(1, sizeof *self + strlen(given) * sizeof *self->elements); /* more than it can have */
    char *const copy = gts_new_text("%s", given), *rest = NULL;
    int status = 0;
    for (char *each = strtok_r(copy, ":", &rest); each != NULL && status == 0; each = strtok_r(NULL, ":", &rest))
        status = read_element(each, &self->elements[self->count++]);
    free(copy);
    if (status != 0) {
        free(self);
        return status;
    }
    self->text = gts_new_text("%s", given);
    self->next = settings;
    settings = self;
    return 0;
}

static const char *given_setting(void)
{
    const char *const set = getenv("GTSTUB_TRUST");
    return set == NULL ? "" : set;
}

/* The caller holds the lock. */
static const setting *find_setting(const char *given)
{
    const setting *self = settings;
    while (self != NULL && strcmp(self->text, given) != 0)
        self = self->next;
    return self;
}

int gts_trusted_read(void)
{
    const char *const given = given_setting();
    pthread_mutex_lock(&lock);
    const int status = find_setting(given) != NULL ? 0 : read_setting(given);
    pthread_mutex_unlock(&lock);
    return status;
}

bool gts_trusted_has(gts_trusted_kind kind, id_t id)
{
    pthread_mutex_lock(&lock);
    const setting *const self = find_setting(given_setting());
    bool is_found = false;
    for (size_t i = 0; self != NULL && i < self->count && !is_found; ++i)
        is_found = self->elements[i].kind == kind && self->elements[i].id == id;
    pthread_mutex_unlock(&lock);
    return is_found;
}
