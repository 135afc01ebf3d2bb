/* supervise_role.c - `runcast supervise`: settings, signals and exit status.
 *
 *   1st signal: waits for its runs    2nd: kills and reports them    3rd: exits at once */
#include "server/role/supervise_role.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/client/lookup.h"
#include "os/archive/bundle.h"
#include "os/process/user.h"

extern char **environ;

enum { SIGNALS_MAX = 3 };

struct supervise_process {
    uv_loop_t loop;
    uv_signal_t term, interrupt;
    struct supervise *supervise;
    unsigned signals;
    int status;
};

/* ---- settings ---- */

static char *joined(const char *first, const char *second)
{
    struct buf text = { 0 };
    buf_print(&text, "%s%s", first, second);
    char *both = mem_text(buf_slice(&text));
    buf_finish(&text);
    return both;
}

/* Returns "DIR-versions", next to the data directory, which only its owner may enter. */
static char *sibling_folder(const char *data)
{
    char *path = mem_text(slice_of(data));
    for (size_t len = strlen(path); len > 1 && path[len - 1] == '/'; len--)
        path[len - 1] = '\0';
    char *folder = joined(path, "-versions");
    free(path);
    return folder;
}

/* Finds an address of the gateway on this machine. It must not expect a PROXY header or
 * speak TLS, because the certificate may be for a name that this machine does not have. */
static enum err find_url(const struct config *config, char **url, struct failure *why)
{
    struct config_listener listeners[CONFIG_LISTENERS_MAX];
    struct buf text = { 0 };
    size_t count, at = 0;
    enum err refused = config_listeners(config, listeners, &count, why);
    if (refused)
        return refused;
    while (at < count && (!listeners[at].host[0] || listeners[at].proxied ||
                          listeners[at].secure || !listeners[at].port))
        at++;
    if (at == count)
        return explain(
            why, ERR_INVALID,
            config->execute
                ? "execute: the supervise role needs an address of the gateway with a port "
                  "and without TLS; add one to listen, or start the role separately, as "
                  "runcast-supervise.service does"
                : "the supervise role needs an address of the gateway with a port and "
                  "without TLS; add one to listen, or name it with --url");
    const char *host = listeners[at].host;
    bool any4 = strcmp(host, "0.0.0.0") == 0, any6 = strcmp(host, "::") == 0;
    bool six = strchr(host, ':') != NULL;
    buf_print(&text, "http://%s%s%s:%d", six ? "[" : "",
              any4   ? "127.0.0.1"
              : any6 ? "::1"
                     : host,
              six ? "]" : "", listeners[at].port);
    *url = mem_text(buf_slice(&text));
    buf_finish(&text);
    return OK;
}

static enum err check_credential(const struct config *config, struct failure *why)
{
    if (!*config->url || *config->worker_token)
        return OK;
    return explain(
        why, ERR_INVALID,
        "--url needs a worker token of that gateway (runcast worker-token create); set "
        "RUNCAST_WORKER_TOKEN, or RUNCAST_WORKER_TOKEN_FILE to the path of a file with it");
}

/* Refuses to execute tasks as the owner of the data, who can read the database and the keys
 * next to it. */
static enum err check_owner(const struct config *config, struct failure *why)
{
    struct user_range users;
    struct stat found;
    enum err refused = OK;
    if (!*config->runner_user || stat(config->data, &found))
        return OK;
    refused = user_resolve(config->runner_user, &users, why);
    if (!refused && found.st_uid >= users.first && found.st_uid <= users.last)
        refused = explain(why, ERR_INVALID,
                          "--runner-user %s: this user owns the gateway's data (%s), so "
                          "tasks could read them; choose another user",
                          config->runner_user, config->data);
    return refused;
}

enum err supervise_role_init(struct supervise_role *role, const struct config *config,
                             struct failure *why)
{
    *role = (struct supervise_role){ 0 };
    enum err refused = check_credential(config, why);
    if (!refused && *config->url)
        role->url = mem_text(slice_of(config->url));
    else if (!refused)
        refused = find_url(config, &role->url, why);
    role->folder = *config->versions ? mem_text(slice_of(config->versions))
                                     : sibling_folder(config->data);
    role->token_file = joined(config->data, "/supervise.token");
    role->figures = mem_new(struct config_listener);
    if (!refused)
        refused = config_supervise_listener(config, role->folder, role->figures, why);
    role->options = (struct supervise_options){
        .url = role->url,
        .ca_file = config->ca_file,
        .token = *config->url ? config->worker_token : "",
        .token_file = role->token_file,
        .folder = role->folder,
        .instance = config->instance,
        .programs = config->node,
        .runner_user = config->runner_user,
        .unsafe = config->execute_unsafe,
        .tenants = config->execute_tenants,
        .cgroup = config->cgroup,
        .cores = config->supervise_cpu,
        .memory = config->supervise_memory,
        .runs = (unsigned)config->supervise_runs,
        .waiting = (unsigned)config->supervise_waiting,
        .strict = strcmp(config->machines, "strict") == 0,
        .warm = (unsigned)config->warm,
        .drain_ms = config->supervise_drain_ms,
        .versions = { .builds = config->builders > 0,
                      .passed = config->builder_env,
                      .image = { .packages = config->deploy_packages,
                                 .ignore_image = config->deploy_ignore_image },
                      .no_scripts = strcmp(config->deploy_scripts, "off") == 0,
                      .limits = { .files_max = (uint32_t)config->deploy_files,
                                  .unpacked_max = (uint64_t)config->deploy_unpacked,
                                  .ratio_max = bundle_limits_default.ratio_max } },
        .figures = config_listener_address(role->figures, true),
        .environment = environ,
    };
    if (!refused)
        refused = supervise_check(&role->options, why);
    if (!refused)
        refused = check_owner(config, why);
    if (refused)
        supervise_role_finish(role);
    return refused;
}

void supervise_role_finish(struct supervise_role *role)
{
    free(role->url);
    free(role->folder);
    free(role->token_file);
    free(role->figures);
    *role = (struct supervise_role){ 0 };
}

/* ---- the process ---- */

static void on_signal(uv_signal_t *handle, int number)
{
    struct supervise_process *process = handle->data;
    (void)number;
    if (++process->signals == SIGNALS_MAX)
        _Exit(1);
    supervise_drain(process->supervise);
}

static void watch(struct supervise_process *process, uv_signal_t *handle, int number)
{
    uv_signal_init(&process->loop, handle);
    handle->data = process;
    uv_signal_start(handle, on_signal, number);
}

static void on_stopped(void *owner, const struct failure *reason)
{
    struct supervise_process *process = owner;
    process->status = reason->code ? 1 : 0;
    uv_close((uv_handle_t *)&process->term, NULL);
    uv_close((uv_handle_t *)&process->interrupt, NULL);
    uv_stop(&process->loop);
}

static void log_end(const char *reason)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "runcast: %s\n", reason);
    else
        log_error("stopped", "reason", reason, NULL);
}

static int run(struct supervise_process *process, const struct supervise_options *options)
{
    struct supervise_events events = { .on_stopped = on_stopped, .owner = process };
    struct failure why = { 0 };
    enum err refused =
        supervise_start(&process->loop, options, &events, &process->supervise, &why);
    if (refused) {
        log_end(why.text);
        process->status = refused == ERR_CONFLICT  ? SUPERVISE_ROLE_TAKEN
                          : refused == ERR_INVALID ? 2
                                                   : 1;
    } else {
        watch(process, &process->term, SIGTERM);
        watch(process, &process->interrupt, SIGINT);
    }
    uv_run(&process->loop, UV_RUN_DEFAULT);
    lookup_run_others(&process->loop);
    uv_loop_close(&process->loop);
    return process->status;
}

int supervise_role_run(struct config *config)
{
    struct supervise_process process = { 0 };
    struct supervise_role role;
    struct failure why = { 0 };
    if (supervise_role_init(&role, config, &why)) {
        fprintf(stderr, "runcast: %s\n", why.text);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    prctl(PR_SET_DUMPABLE, 0); /* no secrets in core files */
    if (uv_loop_init(&process.loop)) {
        fprintf(stderr, "runcast: cannot start an event loop\n");
        supervise_role_finish(&role);
        return 1;
    }
    if (!config_listener_is_local(role.figures))
        log_warn("supervise-listen is not a loopback address: anyone who can connect to it "
                 "can read the metrics",
                 "address", config->supervise_listen, NULL);
    int status = run(&process, &role.options);
    bytes_forget_shared();
    supervise_role_finish(&role);
    lookup_shut_down(status);
    return status;
}
