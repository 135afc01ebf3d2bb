/* user.h - as whom children run: a user by name, a uid, or a range of uids. Never root. */
#pragma once

#include "os/process/process.h"

/* Those of a name or a single number are one. */
struct user_range {
    uid_t first, last;
    gid_t gid; /* of all of them; 0: each has the gid of its own number */
};

/* "runcast-runner", "990" or "70000-70999". Asks the system's users, which may take a moment:
 * meant for the start. ERR_INVALID with the reason. */
enum err user_resolve(const char *text, struct user_range *range, struct failure *why);

/* The user of a uid of the range. */
struct process_user user_of(const struct user_range *range, uid_t uid);
