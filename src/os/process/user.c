/* user.c - reads user names, uids and ranges of uids. */
#include "os/process/user.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>

#include "base/text.h"

enum { ENTRY_MAX = 16384 };

static enum err check(const char *text, uint64_t uid, struct failure *why)
{
    if (uid == 0)
        return explain(why, ERR_INVALID, "%s: children never run as root", text);
    if (uid >= UINT32_MAX)
        return explain(why, ERR_INVALID, "%s: %llu is not a uid", text,
                       (unsigned long long)uid);
    return OK;
}

static enum err take_entry(const char *text, const struct passwd *user,
                           struct user_range *range, struct failure *why)
{
    enum err err = check(text, user->pw_uid, why);
    if (err)
        return err;
    if (user->pw_gid == 0)
        return explain(why, ERR_INVALID, "%s: the group of this user is root's", text);
    *range = (struct user_range){ user->pw_uid, user->pw_uid, user->pw_gid };
    return OK;
}

static enum err resolve_name(const char *text, struct user_range *range,
                             struct failure *why)
{
    char memory[ENTRY_MAX];
    struct passwd entry, *found = NULL;
    int failed = getpwnam_r(text, &entry, memory, sizeof(memory), &found);
    if (found)
        return take_entry(text, found, range, why);
    return explain(why, ERR_INVALID, "%s: %s", text,
                   failed ? strerror(failed) : "user not found");
}

/* A uid without an entry is valid, too. */
static enum err resolve_number(const char *text, uint64_t uid, struct user_range *range,
                               struct failure *why)
{
    char memory[ENTRY_MAX];
    struct passwd entry, *found = NULL;
    enum err err = check(text, uid, why);
    if (err)
        return err;
    getpwuid_r((uid_t)uid, &entry, memory, sizeof(memory), &found);
    if (found)
        return take_entry(text, found, range, why);
    *range = (struct user_range){ (uid_t)uid, (uid_t)uid, 0 };
    return OK;
}

/* Rejects a range that contains a user of the machine, because the range's tasks could do
 * what that user may do. */
static enum err check_nobody(const char *text, const struct user_range *range,
                             struct failure *why)
{
    enum err err = OK;
    setpwent();
    for (struct passwd *user; !err && (user = getpwent());)
        if (user->pw_uid >= range->first && user->pw_uid <= range->last)
            err = explain(why, ERR_INVALID,
                          "%s: %u is the uid of the user %s; choose unused uids", text,
                          (unsigned)user->pw_uid, user->pw_name);
    endpwent();
    return err;
}

static enum err resolve_range(const char *text, uint64_t first, uint64_t last,
                              struct user_range *range, struct failure *why)
{
    enum err err = check(text, first, why);
    err = err ? err : check(text, last, why);
    if (!err && last < first)
        err =
            explain(why, ERR_INVALID, "%s: invalid range: it ends before it begins", text);
    if (err)
        return err;
    *range = (struct user_range){ (uid_t)first, (uid_t)last, 0 };
    return check_nobody(text, range, why);
}

enum err user_resolve(const char *text, struct user_range *range, struct failure *why)
{
    struct slice rest = slice_of(text), begin;
    uint64_t first, last;
    if (!*text)
        return explain(why, ERR_INVALID, "user missing");
    slice_split(&rest, '-', &begin);
    if (text_to_u64(begin, &first))
        return resolve_name(text, range, why);
    if (!rest.ptr)
        return resolve_number(text, first, range, why);
    if (text_to_u64(rest, &last))
        return resolve_name(text, range, why);
    return resolve_range(text, first, last, range, why);
}

struct process_user user_of(const struct user_range *range, uid_t uid)
{
    return (struct process_user){ uid, range->gid ? range->gid : uid };
}
