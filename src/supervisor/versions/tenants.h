/* tenants.h - the user of each organization: as whom all that it executes on this machine runs.
 *
 *   tenants_find ─► known ─► its user
 *                └─ new ──► the next uid of the range ─► a line, synced ─► its user
 *
 * Only a range of uids tells organizations apart; a single user serves all of them. The lines
 * are in supervise.users, "70003 org_abc": a uid that one organization had is never given to
 * another, also when that one is long deleted, because files may have stayed. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"
#include "os/process/user.h"

struct tenants;

/* users: copied; NULL: everything runs as this process. folder: that of the supervise role.
 * apart: organizations share nothing that can be kept from them (tenants_are_apart).
 * ERR_INVALID with the reason: what is noted cannot be read. */
enum err tenants_open(const char *folder, const struct user_range *users, bool apart,
                      struct tenants **tenants, struct failure *why);

/* NULL is fine. */
void tenants_close(struct tenants *tenants);

/* The user of that organization, for ever. ERR_RULE: the range has none left; ERR_STORE: it
 * cannot be noted; ERR_INVALID: there is a range, and no organization is named. */
enum err tenants_find(struct tenants *tenants, struct slice organization,
                      struct process_user *user, struct failure *why);

/* Whether children need namespaces, with folders for temporary files of their own. */
bool tenants_are_apart(const struct tenants *tenants);

/* False: they run as this process. */
bool tenants_are_others(const struct tenants *tenants);
