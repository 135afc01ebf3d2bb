/* launch.c - a child process prepares itself, forks the program and becomes its keeper. */
#include "os/process/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/process/keeper.h"
#include "os/process/launch_order.h"
#include "os/process/namespace.h"
#include "os/process/report.h"

enum { FIRST_UNKNOWN_FD = LAUNCH_REPORT_FD + 1, SIGNAL_PARENT_DIED = SIGUSR1 };

extern char **environ;

/* The order. A launcher lives as long as the run: it wipes the program's environment from
 * its memory. */
static struct buf order_bytes;

static void forget_order(void)
{
    explicit_bzero(order_bytes.ptr, order_bytes.len);
}

static bool read_order(struct launch_order *order)
{
    struct stat found;
    ssize_t got = -1;
    if (fstat(LAUNCH_ORDER_FD, &found) || !S_ISREG(found.st_mode))
        return false;
    buf_reserve(&order_bytes, (size_t)found.st_size + 1); /* so that it is not moved */
    do {
        got = read(LAUNCH_ORDER_FD, order_bytes.ptr + order_bytes.len,
                   (size_t)found.st_size - order_bytes.len);
        order_bytes.len += got > 0 ? (size_t)got : 0;
    } while (got > 0 || (got < 0 && errno == EINTR));
    close(LAUNCH_ORDER_FD);
    return got == 0 && launch_order_read(buf_slice(&order_bytes), order);
}

static void write_or_give_up(const char *path, const char *text, const char *what)
{
    int file =
        open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644); /* plain folders lack the file */
    if (file < 0 || write(file, text, strlen(text)) < 0)
        report_give_up(what);
    close(file);
}

static void set_oom_score(int score)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", score);
    if (score)
        write_or_give_up("/proc/self/oom_score_adj", text, "cannot set oom_score_adj");
}

static void join_cgroup(const char *folder)
{
    char path[4096], text[16];
    snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
    snprintf(text, sizeof(text), "%d", (int)getpid());
    if (*folder)
        write_or_give_up(path, text, "cannot enter the cgroup");
}

/* Lets the program open /dev/stderr, which reopens the pipe. */
static void give_pipes(struct process_user user)
{
    for (int fd = 0; user.uid && geteuid() == 0 && fd <= STDERR_FILENO; fd++) {
        struct stat found;
        if (fstat(fd, &found) == 0 && S_ISFIFO(found.st_mode) &&
            fchown(fd, user.uid, user.gid))
            report_give_up("cannot give the pipes to the user");
    }
}

static bool is_user(struct process_user user)
{
    return !user.uid || (user.uid == geteuid() && user.gid == getegid());
}

/* Call this before there is a user namespace, in which other users have no number. */
static void check_user(struct process_user user)
{
    errno = EPERM;
    if (geteuid() != 0 && !is_user(user))
        report_give_up("cannot become the user");
}

static void become_user(struct process_user user)
{
    if (geteuid() == 0 && setgroups(0, NULL))
        report_give_up("cannot drop the supplementary groups");
    if (is_user(user))
        return;
    if (setresgid(user.gid, user.gid, user.gid) || setresuid(user.uid, user.uid, user.uid))
        report_give_up("cannot become the user");
}

/* A user other than root cannot exceed the hard limit. */
static void set_limit(int resource, uint64_t value, const char *what)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit))
        report_give_up(what);
    if (geteuid() != 0 && value > limit.rlim_max)
        value = limit.rlim_max;
    limit.rlim_cur = limit.rlim_max = value;
    if (setrlimit((__rlimit_resource_t)resource, &limit))
        report_give_up(what);
}

static void set_limits(const struct process_limits *limits)
{
    set_limit(RLIMIT_CORE, 0, "cannot forbid core files");
    if (limits->open_files)
        set_limit(RLIMIT_NOFILE, limits->open_files, "cannot limit open files");
    if (limits->processes)
        set_limit(RLIMIT_NPROC, limits->processes, "cannot limit processes");
    if (limits->address_space)
        set_limit(RLIMIT_AS, limits->address_space, "cannot limit the address space");
}

/* Sets the death signal; the kernel resets it when the user changes. A parent that died
 * before this is not reported, so it is checked. */
static void die_with_parent(int signal, pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, signal))
        report_give_up("cannot request the death signal");
    if (getppid() != parent)
        _exit(1);
}

static void set_signals(bool blocked)
{
    sigset_t set;
    if (blocked)
        sigfillset(&set);
    else
        sigemptyset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
}

static _Noreturn void execute(const struct process_options *options, pid_t parent)
{
    if (setsid() < 0)
        report_give_up("cannot begin a session");
    set_limits(&options->limits);
    become_user(options->user);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        report_give_up("cannot forbid new privileges");
    die_with_parent(SIGKILL, parent);
    set_signals(false);
    if (chdir(options->directory))
        report_give_up(options->directory);
    environ = (char **)options->environment;
    execvp(options->program, (char **)options->arguments);
    report_give_up(options->program);
}

static pid_t fork_or_give_up(void)
{
    pid_t child = fork();
    if (child < 0)
        report_give_up("cannot fork");
    return child;
}

/* Begins a namespace. Its parent is outside, where getppid cannot see it. If the parent is
 * gone, no process reads outcome. */
static _Noreturn void begin_namespace(const struct process_options *options, int outcome)
{
    if (!namespace_mount_proc())
        report_line("note", "/proc shows the processes outside: %s", strerror(errno));
    if (*options->temporary && !namespace_cover_temporary(options->temporary))
        report_give_up("cannot mount its own folder over those for temporary files");
    pid_t program = fork_or_give_up();
    if (!program)
        execute(options, 1);
    become_user(options->user);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL))
        report_give_up("cannot request the death signal");
    forget_order();
    struct pollfd reader = { .fd = outcome };
    if (poll(&reader, 1, 0) == 1 && reader.revents & POLLERR)
        _exit(1);
    keeper_be_init(program, outcome);
}

static _Noreturn void guard_namespace(const struct launch_order *order)
{
    int outcome[2];
    if (pipe2(outcome, O_CLOEXEC))
        report_give_up("cannot make a pipe");
    pid_t init = fork_or_give_up();
    if (!init) {
        close(outcome[0]);
        begin_namespace(&order->options, outcome[1]);
    }
    close(outcome[1]);
    become_user(order->options.user);
    die_with_parent(SIGKILL, order->spawner);
    forget_order();
    keeper_guard_namespace(init, outcome[0]);
}

/* Guards the program without a namespace. It becomes the parent of orphans before the
 * program exists. keeper_guard_group detects a spawner that died before the death signal
 * was set. */
static _Noreturn void guard_group(const struct launch_order *order)
{
    pid_t keeper = getpid();
    if (prctl(PR_SET_CHILD_SUBREAPER, 1))
        report_give_up("cannot keep orphans");
    pid_t program = fork_or_give_up();
    if (!program)
        execute(&order->options, keeper);
    become_user(order->options.user);
    if (prctl(PR_SET_PDEATHSIG, SIGNAL_PARENT_DIED))
        report_give_up("cannot request the death signal");
    forget_order();
    keeper_guard_group(program, order->spawner);
}

static bool wants_namespace(const struct process_options *options)
{
    if (options->namespaces == PROCESS_NAMESPACES_OFF)
        return false;
    if (namespace_begin())
        return true;
    if (options->namespaces == PROCESS_NAMESPACES_ON)
        report_give_up("no PID namespace");
    report_line("note", "children have no PID namespace: %s", strerror(errno));
    return false;
}

static void prepare(const struct launch_order *order)
{
    const struct process_options *options = &order->options;
    fcntl(LAUNCH_REPORT_FD, F_SETFD, FD_CLOEXEC);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    set_signals(true);
    if (close_range(FIRST_UNKNOWN_FD, ~0u, 0))
        report_give_up("cannot close descriptors");
    if (setsid() < 0)
        report_give_up("cannot begin a session");
    umask(027);
    check_user(options->user);
    set_oom_score(options->oom_score_adj);
    join_cgroup(options->cgroup);
    give_pipes(options->user);
}

int launch_run(void)
{
    struct launch_order order = { 0 };
    if (!read_order(&order)) {
        fprintf(stderr, "runcast: " LAUNCH_ROLE " is for runcast itself\n");
        return 2;
    }
    prepare(&order);
    if (wants_namespace(&order.options))
        guard_namespace(&order);
    guard_group(&order);
}
