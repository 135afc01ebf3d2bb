/* unit.c - runs the measured gateway the way systemd runs a unit with a socket. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/list.h"

enum {
    BACKLOG = 4096,   /* like runcast.socket */
    FIRST_HANDED = 3, /* SD_LISTEN_FDS_START of sd_listen_fds(3) */
    HIGH_FD = 100,    /* above the descriptors passed to a child */
};

static const int64_t PATIENCE_NS = 60000000000;

static void on_told(struct source *source, uint32_t events)
{
    struct unit *unit = container_of(source, struct unit, told);
    char text[1024];
    (void)events;
    ssize_t len = recv(source->fd, text, sizeof(text) - 1, MSG_DONTWAIT);
    if (len <= 0)
        return;
    text[len] = 0;
    if (strstr(text, "READY=1") && !unit->ready) {
        unit->ready = true;
        unit->ready_ns = now_ns();
    }
}

static void on_ended(struct source *source, uint32_t events)
{
    struct unit *unit = container_of(source, struct unit, process);
    int status = 0;
    (void)events;
    unit->ended_ns = now_ns();
    waitpid(unit->pid, &status, 0);
    poller_close(source);
    unit->pid = 0;
    unit->ready = false;
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fatal("the gateway has failed (wait status %d): see %s.log", status,
              unit->options->data);
}

static int open_listener(const struct options *options)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
    const struct sockaddr *address = (const struct sockaddr *)&options->address;
    if (fd < 0 || high < 0)
        fatal("cannot open a socket: %s", strerror(errno));
    close(fd);
    setsockopt(high, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(high, address, sizeof(options->address)) || listen(high, BACKLOG))
        fatal("cannot listen on %s: %s", options->host, strerror(errno));
    return high;
}

static int open_notify(struct unit *unit)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(unit->notify_path, sizeof(unit->notify_path), "%s.notify",
             unit->options->data);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", unit->notify_path);
    unlink(unit->notify_path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)))
        fatal("cannot bind %s: %s", unit->notify_path, strerror(errno));
    return fd;
}

void unit_open(struct unit *unit, struct poller *poller, const struct options *options)
{
    *unit = (struct unit){ .poller = poller, .options = options };
    unit->listener = open_listener(options);
    unit->told = (struct source){ .fd = open_notify(unit), .ready = on_told };
    unit->process.fd = -1;
    poller_add(poller, &unit->told, EPOLLIN);
}

/* The child: becomes the gateway, which is killed if the bench exits. */
__attribute__((noreturn)) static void run(const struct unit *unit)
{
    const struct options *options = unit->options;
    char pid[24], log[PATH_MAX];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(log, sizeof(log), "%s.log", options->data);
    int to = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_FDNAMES", "http", 1);
    setenv("NOTIFY_SOCKET", unit->notify_path, 1);
    signal(SIGPIPE, SIG_DFL);
    if (to >= 0 && dup2(to, STDERR_FILENO) >= 0 && dup2(to, STDOUT_FILENO) >= 0 &&
        dup2(unit->listener, FIRST_HANDED) == FIRST_HANDED)
        execl(options->gateway, options->gateway, "--listen", "systemd:http", "--data",
              options->data, "--log-level", "warn", (char *)NULL);
    fprintf(stderr, "runcast-bench: cannot start %s: %s\n", options->gateway,
            strerror(errno));
    _exit(1);
}

void unit_start(struct unit *unit)
{
    unit->pid = fork();
    if (unit->pid < 0)
        fatal("cannot start the gateway: %s", strerror(errno));
    if (unit->pid == 0)
        run(unit);
    int fd = (int)syscall(SYS_pidfd_open, unit->pid, 0);
    if (fd < 0)
        fatal("cannot watch the gateway: %s", strerror(errno));
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    unit->process = (struct source){ .fd = fd, .ready = on_ended };
    poller_add(unit->poller, &unit->process, EPOLLIN);
}

void unit_await(struct unit *unit)
{
    int64_t until_ns = now_ns() + PATIENCE_NS;
    while (!unit->ready && unit->pid && now_ns() < until_ns)
        poller_wait(unit->poller, until_ns);
    if (!unit->ready)
        fatal("the gateway did not become ready: see %s.log", unit->options->data);
}

void unit_stop(struct unit *unit)
{
    kill(unit->pid, SIGTERM);
}

void unit_close(struct unit *unit)
{
    poller_close(&unit->process);
    poller_close(&unit->told);
    close(unit->listener);
    unlink(unit->notify_path);
    if (unit->pid == 0)
        return;
    kill(unit->pid, SIGKILL);
    waitpid(unit->pid, NULL, 0);
}
