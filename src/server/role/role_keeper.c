/* role_keeper.c - checks twice a second whether the supervise role runs, and starts it. */
#include "server/role/role_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "server/role/supervise_role.h"
#include "supervisor/versions/site.h"

enum {
    LOOK_MS = 500,
    END_LOOK_MS = 50,
    LONG_LIFE_MS = 10 * 1000,
    PAUSE_MS = 1000, /* after a short life; doubles with each further one */
    PAUSE_MAX_MS = 30 * 1000,
    SLACK_MS = 15 * 1000, /* added to the role's own timeout */
};

/* Times are of the monotonic clock, in ms. */
struct role_keeper {
    const struct role_keeper_options *options;
    pid_t child;    /* 0: none of ours */
    pid_t signaled; /* who was sent SIGTERM; 0: none yet */
    int64_t begun, begin_at;
    int64_t pause_ms;
    char order; /* enum role_keeper_order; 0: keep the role running */
    int64_t give_up;
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- the role ---- */

static int spawn(const struct role_keeper_options *options, pid_t *pid)
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
                             options->arguments, options->environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static void role_keeper_begin(struct role_keeper *keeper)
{
    pid_t pid = 0;
    int failed = spawn(keeper->options, &pid);
    keeper->begun = now_ms();
    if (failed) {
        log_error("cannot start the supervise role", "reason", strerror(failed), NULL);
        keeper->begin_at = keeper->begun + PAUSE_MAX_MS;
        return;
    }
    keeper->child = pid;
    log_info("supervise role started", "pid", log_number(pid), NULL);
}

static void on_child_ended(struct role_keeper *keeper, int status)
{
    int64_t now = now_ms();
    bool was_long = now - keeper->begun >= LONG_LIFE_MS;
    bool taken = WIFEXITED(status) && WEXITSTATUS(status) == SUPERVISE_ROLE_TAKEN;
    keeper->child = 0;
    if (keeper->order)
        return;
    keeper->pause_ms = was_long ? PAUSE_MS : 2 * keeper->pause_ms;
    if (keeper->pause_ms > PAUSE_MAX_MS)
        keeper->pause_ms = PAUSE_MAX_MS;
    keeper->begin_at = now + keeper->pause_ms;
    if (!taken)
        log_warn("supervise role ended; restarting", "status", log_number(status), NULL);
}

static void reap(struct role_keeper *keeper)
{
    int status;
    if (keeper->child && waitpid(keeper->child, &status, WNOHANG) == keeper->child)
        on_child_ended(keeper, status);
}

/* Returns the process that must exit; 0: none is left. */
static pid_t who_is_left(const struct role_keeper *keeper)
{
    if (keeper->child)
        return keeper->child;
    return keeper->order == ROLE_KEEPER_END_OWN ? 0 : site_holder(keeper->options->folder);
}

/* Returns false if there is nothing more to wait for. */
static bool look_for_end(struct role_keeper *keeper)
{
    pid_t left = who_is_left(keeper);
    bool late = now_ms() >= keeper->give_up;
    if (left && left != keeper->signaled) {
        keeper->signaled = left;
        kill(left, SIGTERM);
    }
    if (left && late)
        log_warn("supervise role did not end in time", "pid", log_number(left), NULL);
    return left && !late;
}

/* ---- the process ---- */

/* Returns false if the gateway has exited. */
static bool take_order(struct role_keeper *keeper)
{
    char order;
    ssize_t len = read(keeper->options->orders, &order, 1);
    if (len == 1 && !keeper->order) {
        keeper->order = order;
        keeper->give_up = now_ms() + keeper->options->drain_ms + SLACK_MS;
    }
    return len > 0 || (len < 0 && errno == EINTR);
}

/* Returns false if the keeper has nothing more to do. */
static bool look(struct role_keeper *keeper)
{
    reap(keeper);
    if (keeper->order)
        return look_for_end(keeper);
    if (!keeper->child && now_ms() >= keeper->begin_at &&
        !site_holder(keeper->options->folder))
        role_keeper_begin(keeper);
    return true;
}

/* Ignores signals that a terminal or service manager sends to all processes of the gateway:
 * the gateway sends its own order. Closes all other sockets, because other processes would
 * wait for them. */
static void stand_aside(int orders)
{
    static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        signal(ignored[i], SIG_IGN);
    prctl(PR_SET_NAME, "runcast-keeper");
    close_range(STDERR_FILENO + 1, (unsigned)orders - 1, 0);
    close_range((unsigned)orders + 1, ~0u, 0);
}

_Noreturn void role_keeper_run(const struct role_keeper_options *options)
{
    struct role_keeper keeper = { .options = options, .pause_ms = PAUSE_MS };
    struct pollfd orders = { .fd = options->orders, .events = POLLIN };
    stand_aside(options->orders);
    while (look(&keeper)) {
        int ready = poll(&orders, 1, keeper.order ? END_LOOK_MS : LOOK_MS);
        if (ready > 0 && !take_order(&keeper))
            break;
    }
    _exit(0); /* buffered output belongs to the gateway */
}
