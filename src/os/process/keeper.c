/* keeper.c - passes signals to a program, and kills its orphans when it has ended. */
#include "os/process/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/process/launch.h"
#include "os/process/report.h"

enum { VALUE_NUMBER = 0xff, VALUE_ALONE = 0x100 };

int keeper_value(int signal, bool alone)
{
    return signal | (alone ? VALUE_ALONE : 0);
}

/* Waits for any signal; all are blocked. */
static siginfo_t next_signal(void)
{
    sigset_t all;
    siginfo_t info;
    sigfillset(&all);
    while (sigwaitinfo(&all, &info) < 0)
        ;
    return info;
}

static int value_of(const siginfo_t *info)
{
    bool queued = info->si_signo == SIGTERM && info->si_code == SI_QUEUE;
    return queued ? info->si_value.sival_int : info->si_signo;
}

/* Closes the program's pipes and everything else, so that the spawner sees their end. */
static void close_all_but(int kept)
{
    if (kept > 0)
        close_range(0, (unsigned)kept - 1, 0);
    close_range((unsigned)kept + 1, ~0u, 0);
}

/* The group does not exist before the program has created its session. */
static void kill_group(pid_t program, int signal)
{
    if (kill(-program, signal) && errno == ESRCH)
        kill(program, signal);
}

static void kill_children(void)
{
    char path[64], word[32];
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)gettid());
    FILE *children = fopen(path, "re");
    while (children && fscanf(children, "%31s", word) == 1)
        kill((pid_t)strtol(word, NULL, 10), SIGKILL);
    if (children)
        fclose(children);
}

/* Kills the group and all children until none is left, then exits. Children of a killed
 * process become children of the keeper. */
static _Noreturn void sweep(pid_t program)
{
    kill_group(program, SIGKILL);
    do
        kill_children();
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
    _exit(0);
}

static bool has_ended(pid_t wanted, int *status)
{
    int found;
    for (pid_t pid; (pid = waitpid(-1, &found, WNOHANG)) > 0;)
        if (pid == wanted) {
            *status = found;
            return true;
        }
    return false;
}

_Noreturn void keeper_guard_group(pid_t program, pid_t spawner)
{
    close_all_but(LAUNCH_REPORT_FD);
    report_line("program", "%d", (int)program);
    for (;;) {
        int status;
        if (getppid() != spawner)
            sweep(program);
        siginfo_t info = next_signal();
        int value = value_of(&info);
        if (info.si_signo == SIGCHLD) {
            if (!has_ended(program, &status))
                continue;
            report_end(status);
            sweep(program);
        }
        if (value & VALUE_ALONE)
            kill(program, value & VALUE_NUMBER);
        else if (getppid() == spawner)
            kill_group(program, value);
    }
}

_Noreturn void keeper_guard_namespace(pid_t init, int outcome)
{
    close_range(STDIN_FILENO, STDERR_FILENO, 0);
    for (;;) {
        int status, program_status;
        siginfo_t info = next_signal();
        int value = value_of(&info);
        if (info.si_signo == SIGCHLD) {
            if (!has_ended(init, &status))
                continue;
            bool has_status = read(outcome, &program_status, sizeof(int)) == sizeof(int);
            report_end(has_status ? program_status : status);
            _exit(0);
        }
        if (value == SIGKILL)
            kill(init, SIGKILL);
        else
            sigqueue(init, SIGTERM, (union sigval){ .sival_int = value });
    }
}

_Noreturn void keeper_be_init(pid_t program, int outcome)
{
    close_all_but(outcome);
    for (;;) {
        int status;
        siginfo_t info = next_signal();
        int value = value_of(&info);
        if (info.si_signo == SIGCHLD) {
            if (!has_ended(program, &status))
                continue;
            _exit(write(outcome, &status, sizeof(status)) < 0);
        }
        kill(value & VALUE_ALONE ? program : -1, value & VALUE_NUMBER);
    }
}
