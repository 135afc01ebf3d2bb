/* confinement.c - lists the files, ports and processes that a gateway's process may use.
 *
 *   data directory                                  to change
 *   folders of UNIX sockets that it listens on      to create sockets, and remove old ones
 *   folders of --config, TLS files, RUNCAST_…_FILE, credentials
 *                                                   to read: a reload reads them again, and editors
 *                                                   replace files
 *   time zones, libraries, certificates, names      to read: glibc, OpenSSL and SQLite open them by
 *                                                   themselves, some of them late
 *   ports of listen, admin-listen and peer-listen   to bind
 *   ports of database, and the files that its address names
 *                                                   to connect to, to read
 *   ports of peer-listen and peer-url               to connect to: those of the other gateways
 *   everything else                                 not at all
 *
 * A gateway opens no other TCP connections: webhooks and registries are used by the
 * supervise role and by subcommands, which are separate, unconfined processes.
 * The same is true of deployed code: it executes below the supervise role, which the
 * gateway's keeper starts (role_keeper.h), a process started before the sandbox. */
#include "server/gateway/confinement.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/client/url.h"
#include "os/process/sandbox.h"
#include "os/process/sanitized.h"
#include "server/config/config_listen.h"
#include "server/gateway/command.h"
#include "server/gateway/data_directory.h"
#include "server/gateway/gateway.h"

enum {
    PORTS_MAX = CONFIG_LISTENERS_MAX + 2,
    CONNECTS_MAX = GATEWAY_SERVERS_MAX + 2,
};

struct confinement {
    struct sandbox_path *paths; /* their texts are owned by this struct */
    size_t path_count;
    uint16_t ports[PORTS_MAX];
    size_t port_count;
    uint16_t servers[CONNECTS_MAX];
    size_t server_count;
};

/* /etc contains secrets of other programs, so only files that libraries open are listed. If
 * one is replaced while the gateway runs, the new file cannot be read. */
static const struct sandbox_path of_every_machine[] = {
    { "/usr/share/zoneinfo", SANDBOX_READ },
    { "/etc/localtime", SANDBOX_READ },
    { "/lib", SANDBOX_READ },
    { "/lib64", SANDBOX_READ },
    { "/usr/lib", SANDBOX_READ },
    { "/usr/local/lib", SANDBOX_READ },
    { "/etc/ld.so.cache", SANDBOX_READ },
    { "/etc/ssl/openssl.cnf", SANDBOX_READ },
    { "/etc/ssl/certs", SANDBOX_READ }, /* not the private keys next to it */
    { "/usr/share/ca-certificates", SANDBOX_READ },
    { "/usr/local/share/ca-certificates", SANDBOX_READ },
    { "/etc/resolv.conf", SANDBOX_READ },
    { "/run/systemd/resolve",
      SANDBOX_READ }, /* resolv.conf may link to it, and it is replaced */
    { "/etc/hosts", SANDBOX_READ },
    { "/etc/host.conf", SANDBOX_READ },
    { "/etc/gai.conf", SANDBOX_READ },
    { "/etc/nsswitch.conf", SANDBOX_READ },
    { "/etc/services", SANDBOX_READ },
    { "/proc/self", SANDBOX_READ },
    { "/proc/sys/vm/overcommit_memory", SANDBOX_READ }, /* malloc */
    { "/sys/devices/system/cpu", SANDBOX_READ },
    { "/sys/fs/cgroup", SANDBOX_READ },
    { "/dev/null", SANDBOX_USE },
    { "/dev/random", SANDBOX_READ },
    { "/dev/urandom", SANDBOX_READ },
};

/* ---- paths ---- */

static void allow(struct confinement *all, struct slice path, enum sandbox_access access)
{
    all->paths = mem_resize(all->paths, (all->path_count + 1) * sizeof(*all->paths));
    all->paths[all->path_count++] = (struct sandbox_path){ mem_text(path), access };
}

/* Allows the folder of a path. For "/x" only the file itself, which then must not be
 * replaced. */
static void allow_folder_of(struct confinement *all, const char *path,
                            enum sandbox_access access)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        allow(all, slice_of("."), access);
    else if (slash == path)
        allow(all, slice_of(path), access);
    else
        allow(all, (struct slice){ path, (size_t)(slash - path) }, access);
}

/* Allows the folder of a file, and the folder to which links lead. */
static void allow_read_file(struct confinement *all, const char *path)
{
    char real[PATH_MAX];
    if (!*path)
        return;
    allow_folder_of(all, path, SANDBOX_READ);
    if (realpath(path, real))
        allow_folder_of(all, real, SANDBOX_READ);
}

/* Paths are separated by spaces. */
static void allow_read_files(struct confinement *all, const char *list)
{
    struct slice rest = slice_of(list), word;
    while (slice_split(&rest, ' ', &word)) {
        char *path = mem_text(word);
        allow_read_file(all, path);
        free(path);
    }
}

/* Allows files named in RUNCAST_…_FILE: a reload reads them like a start. */
static void allow_variables(struct confinement *all, char **environment)
{
    static const char suffix[] = "_FILE";
    for (char **entry = environment; *entry; entry++) {
        struct slice value = slice_of(*entry), name;
        slice_split(&value, '=', &name);
        if (!value.ptr)
            continue;
        if (slice_is(name, "CREDENTIALS_DIRECTORY"))
            allow(all, value, SANDBOX_READ);
        else if (slice_starts(name, "RUNCAST_") && name.len > sizeof(suffix) &&
                 slice_is(slice_from(name, name.len - (sizeof(suffix) - 1)), suffix))
            allow_read_file(all, value.ptr);
    }
}

static void allow_database_file(void *owner, const char *path)
{
    allow_read_file(owner, path);
}

static enum err allow_listeners(struct confinement *all, const struct config *config,
                                struct failure *why)
{
    struct config_listener listeners[CONFIG_LISTENERS_MAX + 1];
    size_t count;
    enum err refused = config_listeners(config, listeners, &count, why);
    if (!refused)
        refused = config_admin_listener(config, &listeners[count], why);
    for (size_t i = 0; !refused && i <= count; i++) {
        const struct config_listener *listener = &listeners[i];
        if (listener->handed[0])
            continue; /* already bound */
        if (listener->host[0])
            all->ports[all->port_count++] = (uint16_t)listener->port;
        else
            allow_folder_of(all, listener->path, SANDBOX_SOCKETS);
    }
    return refused;
}

/* The other gateways are reached at the same port as this one: that of peer-url if it is set,
 * otherwise that of peer-listen. */
static enum err allow_peers(struct confinement *all, const struct config *config,
                            struct failure *why)
{
    struct config_listener listener;
    struct url url;
    enum err refused = config_peer_listener(config, &listener, why);
    if (refused || !listener.host[0])
        return refused;
    all->ports[all->port_count++] = (uint16_t)listener.port;
    all->servers[all->server_count++] = (uint16_t)listener.port;
    allow_read_files(all, config->ca_file);
    if (*config->peer_url && !url_read(slice_of(config->peer_url), &url, why))
        all->servers[all->server_count++] = url.port;
    return OK;
}

static enum err allow_all(struct confinement *all, const struct config *config,
                          char **environment, struct failure *why)
{
    for (size_t i = 0; i < sizeof(of_every_machine) / sizeof(of_every_machine[0]); i++)
        allow(all, slice_of(of_every_machine[i].path), of_every_machine[i].access);
    allow(all, slice_of(config->data), SANDBOX_CHANGE);
    if (config->file)
        allow_read_file(all, config->file);
    allow_read_files(all, config->tls_cert);
    allow_read_files(all, config->tls_key);
    if (PROCESS_IS_SANITIZED) /* whose reports name functions */
        allow(all, slice_of("/proc/self/exe"), SANDBOX_READ);
    allow_variables(all, environment);
    enum err refused = gateway_database_reach(config, all->servers, &all->server_count,
                                              allow_database_file, all, why);
    if (!refused)
        refused = allow_listeners(all, config, why);
    return refused ? refused : allow_peers(all, config, why);
}

static void confinement_finish(struct confinement *all)
{
    for (size_t i = 0; i < all->path_count; i++)
        free((char *)all->paths[i].path);
    free(all->paths);
}

/* ---- the sandbox ---- */

/* Some service managers have an abstract notification socket. */
static bool tells_abstract_socket(void)
{
    const char *socket = getenv("NOTIFY_SOCKET");
    return socket && *socket == '@';
}

static void tell(const struct sandbox *sandbox)
{
    char abi[32] = "off";
    if (sandbox->landlock)
        snprintf(abi, sizeof(abi), "ABI %d", sandbox->landlock);
    if (sandbox->landlock || sandbox->filter)
        log_info("the gateway is confined", "landlock", abi, "seccomp",
                 sandbox->filter ? "on" : "off", NULL);
    if (!sandbox->landlock)
        log_warn("file access is not confined: the kernel has no usable Landlock", "reason",
                 sandbox->no_landlock, NULL);
    if (!sandbox->filter)
        log_warn("system calls are not confined: the kernel has no seccomp filters",
                 "reason", sandbox->no_filter, NULL);
    if (sandbox->threads_outside)
        log_warn("threads of a preloaded library started too early: their file access is "
                 "not confined",
                 "threads", log_number(sandbox->threads_outside), NULL);
}

static enum err confinement_begin_sandbox(const struct config *config, char **environment,
                                          struct failure *why)
{
    struct confinement all = { 0 };
    struct sandbox sandbox;
    enum err refused = allow_all(&all, config, environment, why);
    struct sandbox_options options = { .paths = all.paths,
                                       .path_count = all.path_count,
                                       .ports = all.ports,
                                       .port_count = all.port_count,
                                       .servers = all.servers,
                                       .server_count = all.server_count,
                                       .abstract_sockets = tells_abstract_socket() };
    if (!refused)
        refused = sandbox_begin(&options, &sandbox, why);
    confinement_finish(&all);
    if (!refused)
        tell(&sandbox);
    return refused;
}

enum err confinement_begin(const struct config *config, char **environment,
                           struct failure *why)
{
    struct failure reason = { 0 };
    if (strcmp(config->sandbox, "off") == 0)
        return OK;
    enum err refused = gateway_check(config, why);
    if (!refused)
        refused = gateway_directory_open(config->data, true, why);
    if (refused || !(refused = confinement_begin_sandbox(config, environment, &reason)))
        return refused;
    return explain(why, refused,
                   "cannot confine the gateway: %.200s; --sandbox off starts it unconfined",
                   reason.text);
}
