/* execute.c - looks twice a second whether somebody supervises. */
#include "gateway/execute.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "accounts/bootstrap.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/config_value.h"
#include "gateway/supervise_role.h"
#include "supervise/site.h"

extern char **environ;

enum {
    LOOK_MS = 500,
    END_LOOK_MS = 50,
    LONG_LIFE_MS = 10 * 1000,
    PAUSE_MS = 1000, /* behind a short life; then twice as long */
    PAUSE_MAX_MS = 30 * 1000,
    SLACK_MS = 15 * 1000, /* beyond its own timeout */
};

struct execute {
    uv_timer_t timer;
    struct supervise_role role;
    char **arguments, **environment; /* borrowed texts; ended by NULL */
    pid_t child;                     /* 0: none of ours */
    pid_t told;                      /* that was sent the signal; 0: none yet */
    uint64_t begun_ms, begin_at_ms;
    uint64_t pause_ms;
    enum execute_whose whose;
    uint64_t give_up_ms;
    void (*ended)(void *owner); /* NULL: it goes on */
    void *owner;
};

/* ---- what it gets ---- */

static bool is_variable_of(struct slice name, enum config_setting which)
{
    char variable[CONFIG_NAME_MAX];
    config_variable_of(which, variable);
    return slice_starts(name, variable) &&
           (name.len == strlen(variable) ||
            slice_is(slice_from(name, strlen(variable)), "_FILE"));
}

/* What the service manager has said to the gateway. */
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

/* Keys and tokens are the gateway's alone. */
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

/* The last command counts. */
static char **with_command(int argc, char **argv)
{
    static char command[] = "supervise";
    char **all = mem_new_array(char *, (size_t)argc + 2);
    for (int i = 0; i < argc; i++)
        all[i] = argv[i];
    all[argc] = command;
    return all;
}

/* ---- the process ---- */

static int spawn(struct execute *execute, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    int failed = posix_spawn(pid, "/proc/self/exe", &actions, &attributes,
                             execute->arguments, execute->environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static void begin(struct execute *execute)
{
    pid_t pid = 0;
    int failed = spawn(execute, &pid);
    execute->begun_ms = uv_now(execute->timer.loop);
    if (failed) {
        log_error("the supervise role cannot be started", "reason", strerror(failed), NULL);
        execute->begin_at_ms = execute->begun_ms + PAUSE_MAX_MS;
        return;
    }
    execute->child = pid;
    log_info("the supervise role was started", "pid", log_number(pid), NULL);
}

static void on_child_ended(struct execute *execute, int status)
{
    uint64_t now = uv_now(execute->timer.loop);
    bool was_long = now - execute->begun_ms >= LONG_LIFE_MS;
    bool taken = WIFEXITED(status) && WEXITSTATUS(status) == SUPERVISE_ROLE_TAKEN;
    execute->child = 0;
    if (execute->ended)
        return;
    execute->pause_ms = was_long ? PAUSE_MS : 2 * execute->pause_ms;
    if (execute->pause_ms > PAUSE_MAX_MS)
        execute->pause_ms = PAUSE_MAX_MS;
    execute->begin_at_ms = now + execute->pause_ms;
    if (!taken)
        log_warn("the supervise role ended: another one is started", "status",
                 log_number(status), NULL);
}

static void reap(struct execute *execute)
{
    int status;
    if (execute->child && waitpid(execute->child, &status, WNOHANG) == execute->child)
        on_child_ended(execute, status);
}

/* Who is to end; 0: nobody is left. */
static pid_t who_is_left(const struct execute *execute)
{
    if (execute->child)
        return execute->child;
    return execute->whose == EXECUTE_OWN ? 0 : site_holder(execute->role.options.folder);
}

static void look_for_end(struct execute *execute)
{
    pid_t left = who_is_left(execute);
    bool late = uv_now(execute->timer.loop) >= execute->give_up_ms;
    if (left && left != execute->told) {
        execute->told = left;
        kill(left, SIGTERM);
    }
    if (left && !late)
        return;
    if (left)
        log_warn("the supervise role has not ended in time", "pid", log_number(left), NULL);
    uv_timer_stop(&execute->timer);
    execute->ended(execute->owner);
}

static void on_look(uv_timer_t *timer)
{
    struct execute *execute = container_of(timer, struct execute, timer);
    reap(execute);
    if (execute->ended)
        look_for_end(execute);
    else if (!execute->child && uv_now(timer->loop) >= execute->begin_at_ms &&
             !site_holder(execute->role.options.folder))
        begin(execute);
}

/* ---- all of it ---- */

static enum err prepare(struct supervise_role *role, const struct config *config,
                        struct failure *why)
{
    if (*config->url)
        return explain(why, ERR_INVALID,
                       "execute is for this gateway, and url for a supervise role of "
                       "another one: say one of them");
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

enum err execute_start(struct uv_loop_s *uv, const struct config *config, int argc,
                       char **argv, struct execute **out, struct failure *why)
{
    struct supervise_role role;
    enum err refused = prepare(&role, config, why);
    if (refused)
        return refused;
    struct execute *execute = mem_new(struct execute);
    *execute = (struct execute){ .role = role,
                                 .arguments = with_command(argc, argv),
                                 .environment = without_secrets(environ),
                                 .pause_ms = PAUSE_MS };
    uv_timer_init(uv, &execute->timer);
    uv_timer_start(&execute->timer, on_look, LOOK_MS, LOOK_MS);
    uv_unref((uv_handle_t *)&execute->timer);
    if (!site_holder(role.options.folder))
        begin(execute);
    *out = execute;
    return OK;
}

void execute_end(struct execute *execute, enum execute_whose whose,
                 void (*ended)(void *owner), void *owner)
{
    uint64_t timeout = (uint64_t)execute->role.options.drain_ms + SLACK_MS;
    execute->whose = whose;
    execute->ended = ended;
    execute->owner = owner;
    execute->give_up_ms = uv_now(execute->timer.loop) + timeout;
    uv_ref((uv_handle_t *)&execute->timer);
    uv_timer_start(&execute->timer, on_look, 0, END_LOOK_MS);
}

static void on_closed(uv_handle_t *handle)
{
    free(container_of((uv_timer_t *)handle, struct execute, timer));
}

void execute_destroy(struct execute *execute)
{
    if (!execute)
        return;
    supervise_role_finish(&execute->role);
    free(execute->arguments);
    free(execute->environment);
    uv_close((uv_handle_t *)&execute->timer, on_closed);
}
