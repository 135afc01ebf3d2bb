/* supervise_check.c - rejects options that are unsafe on this machine; names safe ones. */
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
        return explain(
            why, ERR_INVALID,
            "as root, tasks would execute as root; name a user for them, as in "
            "--runner-user runcast-runner (useradd -r runcast-runner creates it)");
    if (!is_root && names_user)
        return explain(why, ERR_INVALID,
                       "--runner-user: only root can execute tasks as another user");
    if (!is_root && !options->unsafe)
        return explain(
            why, ERR_INVALID,
            "without root, tasks execute as this user, who can read the database and its "
            "key; start as root with --runner-user, or use --execute-unsafe");
    return OK;
}

static enum err check_tenants(const struct supervise_options *options,
                              const struct user_range *users, struct failure *why)
{
    if (!options->tenants)
        return OK;
    if (!*options->runner_user || users->first == users->last)
        return explain(why, ERR_INVALID,
                       "--execute-tenants needs a uid for each organization; start as root "
                       "with a range of unused uids, as in --runner-user 700000-700999");
    if (strcmp(options->cgroup, "off") == 0)
        return explain(why, ERR_INVALID,
                       "--execute-tenants needs control groups, or one organization could "
                       "use all memory; remove --cgroup off");
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
        return explain(why, ERR_INVALID,
                       "supervise-cpu: \"%.40s\" is not a number of cores", options->cores);
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
                       "--execute-tenants needs control groups, and there are none; "
                       "delegate one in systemd (Delegate=yes), or name one that this "
                       "process owns with --cgroup PATH");
    if (!namespace_is_permitted())
        return explain(why, ERR_INVALID,
                       "--execute-tenants needs PID and mount namespaces, which this "
                       "machine does not permit");
    for (size_t i = 0; namespace_temporary[i]; i++)
        if (is_below(site_path(site), namespace_temporary[i]))
            return explain(
                why, ERR_INVALID,
                "--execute-tenants gives each organization a private %s, which would hide "
                "%s; choose another folder, as in --versions /var/lib/runcast-versions",
                namespace_temporary[i], site_path(site));
    return OK;
}
