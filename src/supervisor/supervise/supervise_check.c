/* supervise_check.c - rejects unsafe options of the supervise role, and names safe ones. */
#include "supervisor/supervise/supervise_check.h"

#include <unistd.h>

#include "base/json/scan.h"
#include "net/client/url.h"
#include "os/process/namespace.h"
#include "os/process/user.h"
#include "supervisor/versions/site.h"

static enum err check_user(const struct supervise_options *options, struct failure *why)
{
    bool is_root = geteuid() == 0, names_user = *options->runner_user;
    if (is_root && !names_user)
        return explain(why, ERR_INVALID,
                       "as root tasks would execute as root: name a user for them, as in "
                       "--runner-user runcast-runner (useradd -r runcast-runner makes it)");
    if (!is_root && names_user)
        return explain(why, ERR_INVALID,
                       "--runner-user: only root can execute tasks as another user");
    if (!is_root && !options->unsafe)
        return explain(why, ERR_INVALID,
                       "without root tasks execute as this user, who can read the database "
                       "and its key: start as root with --runner-user, or say "
                       "--execute-unsafe");
    return OK;
}

static enum err check_tenants(const struct supervise_options *options,
                              const struct user_range *users, struct failure *why)
{
    if (!options->tenants)
        return OK;
    if (!*options->runner_user || users->first == users->last)
        return explain(why, ERR_INVALID,
                       "--execute-tenants gives each organization a uid of its own: start "
                       "as root with a range of uids that nobody else has, as in "
                       "--runner-user 700000-700999");
    if (strcmp(options->cgroup, "off") == 0)
        return explain(why, ERR_INVALID,
                       "--execute-tenants limits each run by a control group: --cgroup off "
                       "would leave one organization the memory of all");
    return OK;
}

enum err supervise_check(const struct supervise_options *options, struct failure *why)
{
    struct user_range users = { 0 };
    struct url url;
    double cores;
    enum err refused = check_user(options, why);
    if (!refused && *options->runner_user)
        refused = user_resolve(options->runner_user, &users, why);
    if (!refused)
        refused = check_tenants(options, &users, why);
    if (refused)
        return refused;
    if (*options->cores &&
        (!scan_number(slice_of(options->cores), &cores) || !(cores > 0 && cores <= 4096)))
        return explain(why, ERR_INVALID, "supervise-cpu: '%.40s' is no number of cores",
                       options->cores);
    return url_read_named("url", options->url, &url, why);
}

/* Returns true for the folder itself too. Programs in a folder that is mounted over could
 * not be executed. */
static bool is_below(const char *path, const char *folder)
{
    size_t len = strlen(folder);
    return strncmp(path, folder, len) == 0 && (path[len] == '/' || !path[len]);
}

enum err supervise_check_apart(const struct site *site, const char *cgroup,
                               struct failure *why)
{
    if (!cgroup)
        return explain(why, ERR_INVALID,
                       "--execute-tenants limits each run by a control group, and there is "
                       "none: let systemd delegate one (Delegate=yes), or name one that is "
                       "this process's with --cgroup PATH");
    if (!namespace_is_permitted())
        return explain(why, ERR_INVALID,
                       "--execute-tenants needs namespaces for processes and mounts, which "
                       "this machine does not permit here");
    for (size_t i = 0; namespace_temporary[i]; i++)
        if (is_below(site_path(site), namespace_temporary[i]))
            return explain(
                why, ERR_INVALID,
                "--execute-tenants gives each organization a %s of its own, in which %s "
                "could not be found: name another folder, as in --versions "
                "/var/lib/runcast-versions",
                namespace_temporary[i], site_path(site));
    return OK;
}
