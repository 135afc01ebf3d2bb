/* tenants.c - appends lines to supervise.users, and finds them by organization and uid. */
#include "supervisor/versions/tenants.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/text.h"

enum { FILE_MAX = 16 << 20, ORGANIZATION_MAX = 96 };

static const char users_name[] = "supervise.users";

/* One line of the file. */
struct tenant {
    uid_t uid;
    char organization[ORGANIZATION_MAX];
    struct list link; // tenants::all
};

struct tenants {
    struct user_range users;
    bool others, apart;
    int folder, file; /* descriptors; -1: no range */
    off_t bytes;      /* length of all complete lines in the file */
    struct list all;  // tenant::link
    struct table by_organization, by_uid;
    uint64_t next; /* the first uid that may be free */
};

static struct slice organization_of(const void *value)
{
    return slice_of(((const struct tenant *)value)->organization);
}

static struct slice uid_of(const void *value)
{
    const struct tenant *tenant = value;
    return (struct slice){ (const char *)&tenant->uid, sizeof(tenant->uid) };
}

static bool is_in_range(const struct tenants *tenants, uint64_t uid)
{
    return uid >= tenants->users.first && uid <= tenants->users.last;
}

/* An organization's last line counts: its earlier uid is no longer in the range. */
static void add(struct tenants *tenants, uid_t uid, struct slice organization)
{
    struct tenant *tenant = mem_new(struct tenant);
    *tenant = (struct tenant){ .uid = uid };
    memcpy(tenant->organization, organization.ptr, organization.len);
    list_append(&tenants->all, &tenant->link);
    table_remove(&tenants->by_organization, organization);
    table_insert(&tenants->by_organization, tenant);
    if (!table_find(&tenants->by_uid, uid_of(tenant)))
        table_insert(&tenants->by_uid, tenant);
}

/* ---- the file ---- */

static bool read_line(struct tenants *tenants, struct slice line)
{
    struct slice number;
    uint64_t uid;
    slice_split(&line, ' ', &number);
    if (text_to_u64(number, &uid) || !uid || uid >= UINT32_MAX || !line.len ||
        line.len >= ORGANIZATION_MAX || memchr(line.ptr, '\0', line.len))
        return false;
    add(tenants, (uid_t)uid, line);
    return true;
}

/* Ignores an incomplete last line: it was not synced, so its uid was never used. */
static enum err read_lines(struct tenants *tenants, const char *folder, struct slice text,
                           struct failure *why)
{
    struct slice line;
    unsigned number = 1;
    const char *end = text.len ? memrchr(text.ptr, '\n', text.len) : NULL;
    text.len = end ? (size_t)(end - text.ptr) + 1 : 0;
    tenants->bytes = (off_t)text.len;
    for (; text.len && slice_split(&text, '\n', &line); number++)
        if (!read_line(tenants, line))
            return explain(why, ERR_INVALID,
                           "%s/%s, line %u: not a uid and an organization; restore the "
                           "file from a copy, because it maps organizations to uids",
                           folder, users_name, number);
    return OK;
}

static enum err read_file(struct tenants *tenants, const char *folder, struct failure *why)
{
    struct buf text = { 0 };
    ssize_t got = 0;
    do {
        text.len += (size_t)got;
        got = read(tenants->file, buf_reserve(&text, 65536), 65536);
    } while (got > 0 && text.len < FILE_MAX);
    enum err refused = got ? explain(why, ERR_INVALID, "%s/%s: %s", folder, users_name,
                                     got < 0 ? strerror(errno) : "too large")
                           : read_lines(tenants, folder, buf_slice(&text), why);
    buf_finish(&text);
    return refused;
}

static enum err open_file(struct tenants *tenants, const char *folder, struct failure *why)
{
    tenants->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tenants->file = openat(tenants->folder, users_name,
                           O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (tenants->file < 0 || fsync(tenants->folder))
        return explain(why, ERR_INVALID, "%s/%s: %s", folder, users_name, strerror(errno));
    return read_file(tenants, folder, why);
}

static enum err note(struct tenants *tenants, uid_t uid, struct slice organization,
                     struct failure *why)
{
    struct buf line = { 0 };
    buf_print(&line, "%u %.*s\n", (unsigned)uid, SLICE_ARG(organization));
    bool written = ftruncate(tenants->file, tenants->bytes) == 0 &&
                   write(tenants->file, line.ptr, line.len) == (ssize_t)line.len &&
                   fdatasync(tenants->file) == 0;
    if (written)
        tenants->bytes += (off_t)line.len;
    else
        explain(why, ERR_STORE, "cannot record the uid of an organization in %s: %s",
                users_name, strerror(errno));
    buf_finish(&line);
    return written ? OK : ERR_STORE;
}

/* ---- interface ---- */

enum err tenants_open(const char *folder, const struct user_range *users, bool apart,
                      struct tenants **out, struct failure *why)
{
    struct tenants *tenants = mem_new(struct tenants);
    *tenants = (struct tenants){ .apart = apart, .folder = -1, .file = -1 };
    list_init(&tenants->all);
    table_init(&tenants->by_organization, organization_of);
    table_init(&tenants->by_uid, uid_of);
    if (users) {
        tenants->others = true;
        tenants->users = *users;
        tenants->next = users->first;
    }
    enum err refused =
        users && users->first != users->last ? open_file(tenants, folder, why) : OK;
    if (refused) {
        tenants_close(tenants);
        return refused;
    }
    *out = tenants;
    return OK;
}

void tenants_close(struct tenants *tenants)
{
    if (!tenants)
        return;
    table_finish(&tenants->by_organization);
    table_finish(&tenants->by_uid);
    while (!list_empty(&tenants->all))
        free(container_of(list_take(&tenants->all), struct tenant, link));
    if (tenants->file >= 0)
        close(tenants->file);
    if (tenants->folder >= 0)
        close(tenants->folder);
    free(tenants);
}

static bool is_taken(const struct tenants *tenants, uint64_t uid)
{
    struct tenant wanted = { .uid = (uid_t)uid };
    return table_find(&tenants->by_uid, uid_of(&wanted)) != NULL;
}

static enum err give(struct tenants *tenants, struct slice organization,
                     struct process_user *user, struct failure *why)
{
    while (is_in_range(tenants, tenants->next) && is_taken(tenants, tenants->next))
        tenants->next++;
    if (!is_in_range(tenants, tenants->next))
        return explain(why, ERR_RULE,
                       "--runner-user %u-%u: no uid is left for another organization; "
                       "extend the range",
                       (unsigned)tenants->users.first, (unsigned)tenants->users.last);
    uid_t uid = (uid_t)tenants->next;
    enum err refused = note(tenants, uid, organization, why);
    if (refused)
        return refused;
    add(tenants, uid, organization);
    log_info("uid assigned to an organization", "organization", log_slice(organization),
             "uid", log_number((int64_t)uid), NULL);
    *user = user_of(&tenants->users, uid);
    return OK;
}

enum err tenants_find(struct tenants *tenants, struct slice organization,
                      struct process_user *user, struct failure *why)
{
    *user = (struct process_user){ 0 };
    if (!tenants->others)
        return OK;
    *user = user_of(&tenants->users, tenants->users.first);
    if (tenants->users.first == tenants->users.last)
        return OK;
    if (!organization.len || organization.len >= ORGANIZATION_MAX)
        return explain(why, ERR_INVALID,
                       "organization missing in the message, so no uid can be chosen; "
                       "update the gateway");
    const struct tenant *tenant = table_find(&tenants->by_organization, organization);
    if (!tenant || !is_in_range(tenants, tenant->uid))
        return give(tenants, organization, user, why);
    *user = user_of(&tenants->users, tenant->uid);
    return OK;
}

bool tenants_are_apart(const struct tenants *tenants)
{
    return tenants->apart;
}

bool tenants_are_others(const struct tenants *tenants)
{
    return tenants->others;
}
