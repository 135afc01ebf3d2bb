/* execute.c - starts the keeper process of the supervise role, and stops it. */
#include "server/role/execute.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "accounts/bootstrap.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/config/config_value.h"
#include "server/role/role_keeper.h"
#include "server/role/supervise_role.h"

extern char **environ;

struct execute {
    uv_poll_t handle; /* readable: the keeper has exited */
    int orders;
    pid_t keeper;               /* 0: reaped */
    void (*ended)(void *owner); /* NULL: execute_end was not called */
    void *owner;
};

/* ---- arguments and environment of the role ---- */

static bool is_variable_of(struct slice name, enum config_setting which)
{
    char variable[CONFIG_NAME_MAX];
    config_variable_of(which, variable);
    return slice_starts(name, variable) &&
           (name.len == strlen(variable) ||
            slice_is(slice_from(name, strlen(variable)), "_FILE"));
}

/* Returns true for variables that the service manager sets for the gateway. */
static bool is_of_service(struct slice name)
{
    static const char *const all[] = {
        "CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET", "LISTEN_PID",   "LISTEN_FDS",
        "LISTEN_FDNAMES",        "WATCHDOG_PID",  "WATCHDOG_USEC"
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (slice_is(name, all[i]))
            return true;
    return false;
}

/* Returns true for keys and tokens, which the role must not have. */
static bool is_secret(const char *entry)
{
    struct slice rest = slice_of(entry), name;
    slice_split(&rest, '=', &name);
    if (bootstrap_reads(name) || is_of_service(name))
        return true;
    for (int i = 0; i < SETTING_COUNT; i++)
        if (config_settings[i].type == SETTING_IS_SECRET &&
            is_variable_of(name, (enum config_setting)i))
            return true;
    return false;
}

static char **without_secrets(char **environment)
{
    size_t count = 0, kept = 0;
    while (environment[count])
        count++;
    char **all = mem_new_array(char *, count + 1);
    for (size_t i = 0; i < count; i++)
        if (!is_secret(environment[i]))
            all[kept++] = environment[i];
    return all;
}

/* Returns the arguments with the command supervise; serve is left out if it was given. */
static char **with_command(const struct config *config)
{
    static char command[] = "supervise";
    const char *serve = config->word_count ? config->words[0] : NULL;
    size_t count = 0;
    char **all = mem_new_array(char *, (size_t)config->argc + 2);
    for (int i = 0; i < config->argc; i++)
        if (config->argv[i] != serve)
            all[count++] = config->argv[i];
    all[count] = command;
    return all;
}

/* ---- the keeper ---- */

static enum err prepare(struct supervise_role *role, const struct config *config,
                        struct failure *why)
{
    if (*config->url)
        return explain(why, ERR_INVALID,
                       "execute and url are both set; keep execute to execute runs of this "
                       "gateway, or url for runcast supervise on another machine");
    return supervise_role_init(role, config, why);
}

enum err execute_check(const struct config *config, struct failure *why)
{
    struct supervise_role role;
    enum err refused = prepare(&role, config, why);
    if (!refused)
        supervise_role_finish(&role);
    return refused;
}

/* Forks. Does not return in the child. */
static pid_t fork_keeper(const struct supervise_role *role, const struct config *config,
                         int orders)
{
    pid_t keeper = fork();
    if (keeper)
        return keeper;
    struct role_keeper_options options = { .folder = role->options.folder,
                                           .arguments = with_command(config),
                                           .environment = without_secrets(environ),
                                           .drain_ms = role->options.drain_ms,
                                           .orders = orders };
    role_keeper_run(&options);
}

enum err execute_start(const struct config *config, struct execute **out,
                       struct failure *why)
{
    struct supervise_role role;
    int ends[2];
    enum err refused = prepare(&role, config, why);
    if (refused)
        return refused;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        supervise_role_finish(&role);
        return explain(why, ERR_STORE, "cannot make a socket: %s", strerror(errno));
    }
    pid_t keeper = fork_keeper(&role, config, ends[1]);
    int error = errno;
    supervise_role_finish(&role);
    close(ends[1]);
    if (keeper < 0) {
        close(ends[0]);
        return explain(why, ERR_STORE, "cannot start the keeper of the supervise role: %s",
                       strerror(error));
    }
    *out = mem_new(struct execute);
    **out = (struct execute){ .orders = ends[0], .keeper = keeper };
    return OK;
}

static void on_gone(uv_poll_t *handle, int status, int events)
{
    struct execute *execute = container_of(handle, struct execute, handle);
    (void)status;
    (void)events;
    uv_poll_stop(handle);
    if (execute->keeper)
        waitpid(execute->keeper, NULL, 0); /* it closes its end when it exits */
    execute->keeper = 0;
    if (execute->ended)
        execute->ended(execute->owner);
    else
        log_error("the keeper of the supervise role was killed: the role cannot be "
                  "restarted; restart the gateway",
                  NULL);
}

void execute_watch(struct execute *execute, struct uv_loop_s *uv)
{
    uv_poll_init(uv, &execute->handle, execute->orders);
    uv_unref((uv_handle_t *)&execute->handle);
    uv_poll_start(&execute->handle, UV_READABLE, on_gone);
}

void execute_end(struct execute *execute, enum execute_whose whose,
                 void (*ended)(void *owner), void *owner)
{
    char order = whose == EXECUTE_OWN ? ROLE_KEEPER_END_OWN : ROLE_KEEPER_END_ANY;
    execute->ended = ended;
    execute->owner = owner;
    send(execute->orders, &order, 1, MSG_NOSIGNAL); /* if it has exited: readable */
    uv_ref((uv_handle_t *)&execute->handle);
    uv_poll_start(&execute->handle, UV_READABLE, on_gone);
}

static void on_closed(uv_handle_t *handle)
{
    struct execute *execute = container_of((uv_poll_t *)handle, struct execute, handle);
    close(execute->orders);
    free(execute);
}

void execute_destroy(struct execute *execute)
{
    if (execute)
        uv_close((uv_handle_t *)&execute->handle, on_closed);
}
