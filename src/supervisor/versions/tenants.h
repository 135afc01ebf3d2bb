/* tenants.h - maps each organization to the user that it executes as on this machine.
 *
 *   tenants_find ─► known ─► its user
 *                └─ new ──► the next uid of the range ─► a line, synced ─► its user
 *
 * A range of uids gives each organization its own; a single user serves all of them. The
 * lines are in supervise.users, such as "70003 org_abc". A uid is never given to a second
 * organization, even after the first was deleted, because some of its files may remain. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"
#include "os/process/user.h"

struct tenants;

/* Opens the file of users in the supervise role's folder.
 *
 * users: copied; NULL: everything runs as this process. apart: isolate organizations from
 * each other (tenants_are_apart). Returns ERR_INVALID with the reason if the file cannot be
 * read. */
enum err tenants_open(const char *folder, const struct user_range *users, bool apart,
                      struct tenants **tenants, struct failure *why);

/* Ignores NULL. */
void tenants_close(struct tenants *tenants);

/* Finds or assigns the user of an organization; it never changes while it is in the range.
 *
 * Returns ERR_RULE if no uid is left, ERR_STORE if the line cannot be written, or
 * ERR_INVALID if there is a range and the organization is missing. */
enum err tenants_find(struct tenants *tenants, struct slice organization,
                      struct process_user *user, struct failure *why);

/* Returns true if children need their own namespaces and temporary folders. */
bool tenants_are_apart(const struct tenants *tenants);

/* Returns true if children run as other users than this process. */
bool tenants_are_others(const struct tenants *tenants);
