/* user.h - the users that children run as: a name, a uid or a range of uids, never root. */
#pragma once

#include "os/process/process.h"

/* A name or a single uid is a range of one. */
struct user_range {
    uid_t first, last;
    gid_t gid; /* of all of them; 0: each has the gid that equals its uid */
};

/* Resolves "runcast-runner", "990" or "70000-70999". ERR_INVALID with the reason. It
 * queries the system's users, which may take a moment, so call it at start. */
enum err user_resolve(const char *text, struct user_range *range, struct failure *why);

/* Returns the user with that uid of the range. */
struct process_user user_of(const struct user_range *range, uid_t uid);
