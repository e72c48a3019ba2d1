/*
 * Inside the runtime: whose files are loaded. What is loaded runs, so nobody may have been able to write it but this
 * user, root, and those whom GTSTUB_TRUST names.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* Reads GTSTUB_TRUST if it has changed. Returns 0, or -1 after setting gts_own_error if it is malformed. */
int gts_trusted_read(void);

/* What an element of GTSTUB_TRUST names. */
typedef enum gts_trusted_kind { GTS_TRUSTED_USER, GTS_TRUSTED_GROUP } gts_trusted_kind;

/* Whether GTSTUB_TRUST names a user or a group. */
bool gts_trusted_has(gts_trusted_kind kind, id_t id);

/* Whether a group is the one of this user alone: it has the user's name, and no other member. */
bool gts_trusted_is_private(gid_t group);

/* The name of a user or a group, or else the number. */
#define GTS_NAME_SIZE 64
void gts_trusted_name(gts_trusted_kind kind, id_t id, char name[GTS_NAME_SIZE]);
