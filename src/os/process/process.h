/* process.h - child processes: the interface.
 *
 *   process_spawn ─► program, in a session (and if possible, a PID namespace) of its own
 *                      ├─► on_output …   as it writes; nothing while its pipe is paused
 *                      └─► on_ended      once, after the last output: nothing of it is left
 *
 * A child inherits nothing: its environment is exactly what is given, its descriptors are
 * 0, 1 and 2. It dies with its spawner, and everything that it started dies with it.
 *
 * There are two drivers: children.h with real processes, and a fake for tests. If
 * process_spawn returns an error, on_ended is not called. Otherwise on_ended receives the
 * outcome, even if the program could not be executed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/slice.h"

struct child;
struct process;

enum process_pipe { PROCESS_STDOUT, PROCESS_STDERR };

enum process_namespaces {
    PROCESS_NAMESPACES_AUTO, /* where permitted; otherwise without, which is logged once */
    PROCESS_NAMESPACES_ON,   /* an error where they are not permitted */
    PROCESS_NAMESPACES_OFF,
};

/* uid 0: the spawner's user. */
struct process_user {
    uid_t uid;
    gid_t gid;
};

/* 0: the spawner's limit. Core files are always off. */
struct process_limits {
    uint64_t open_files;
    uint64_t processes;     /* of the user, on the whole machine */
    uint64_t address_space; /* bytes */
};

/* Everything is borrowed for the call. */
struct process_options {
    const char *program;            /* with a slash, or searched in the child's PATH */
    const char *const *arguments;   /* ended by NULL; the first is the program's name */
    const char *const *environment; /* "NAME=value", ended by NULL; NULL: empty */
    const char *directory;          /* NULL: the root folder */
    struct slice input;             /* standard input; { 0 }: none */
    int input_file; /* a descriptor of a file as standard input; 0: use input */
    struct process_user user;
    struct process_limits limits;
    enum process_namespaces namespaces;
    /* Absolute path of the child's /tmp, /var/tmp and /dev/shm; NULL: the machine's.
     * Requires namespaces. */
    const char *temporary;
    const char *cgroup;  /* folder of a group (cgroup.h); NULL: the spawner's */
    int oom_score_adj;   /* 0 to 1000: what to kill first when memory runs out */
    int64_t deadline_ms; /* from now, then it is killed; 0: none */
};

enum process_cause {
    PROCESS_EXITED,
    PROCESS_SIGNALED,
    PROCESS_NOT_STARTED, /* why: what failed before the program started */
};

struct process_end {
    enum process_cause cause;
    int status;    /* the exit code, or the signal */
    bool oom;      /* its group ran out of memory, and a process in it was killed */
    bool overdue;  /* it was killed at its deadline */
    char why[256]; /* in words, for every cause */
};

struct process_events {
    /* The text is borrowed for the call. NULL: output is read and discarded. */
    void (*on_output)(struct process *process, enum process_pipe pipe, struct slice text);
    /* The process belongs to its owner again, to free or to spawn again. end is
     * borrowed. */
    void (*on_ended)(struct process *process, const struct process_end *end);
};

/* Embedded in the owner's struct, which is found by container_of. */
struct process {
    struct processes *processes;
    const struct process_events *events; /* borrowed until on_ended */
    struct child *child;                 /* the driver's; NULL: there is none */
};

/* Every driver's struct begins with it. */
struct processes {
    enum err (*spawn)(struct processes *processes, struct process *process,
                      const struct process_options *options, struct failure *why);
    void (*send)(struct process *process, int signal, bool alone);
    void (*set_paused)(struct process *process, enum process_pipe pipe, bool paused);
    pid_t (*pid)(const struct process *process);
};

static inline enum err process_spawn(struct processes *processes, struct process *process,
                                     const struct process_options *options,
                                     const struct process_events *events,
                                     struct failure *why)
{
    *process = (struct process){ .processes = processes, .events = events };
    return processes->spawn(processes, process, options, why);
}

/* Sends the signal to everything that the program started: its group, or all of its
 * namespace. Does nothing if the process has ended. */
static inline void process_kill(struct process *process, int signal)
{
    if (process->child)
        process->processes->send(process, signal, false);
}

/* Sends the signal to the program alone, which may pass it on. */
static inline void process_signal(struct process *process, int signal)
{
    if (process->child)
        process->processes->send(process, signal, true);
}

/* Stops reading a pipe; the program blocks once it is full. A process with a paused pipe is
 * not reported as ended, either. */
static inline void process_pause(struct process *process, enum process_pipe pipe)
{
    if (process->child)
        process->processes->set_paused(process, pipe, true);
}

static inline void process_resume(struct process *process, enum process_pipe pipe)
{
    if (process->child)
        process->processes->set_paused(process, pipe, false);
}

/* Returns the keeper's pid, or whatever a driver has instead; 0: it has ended. */
static inline pid_t process_pid(const struct process *process)
{
    return process->child ? process->processes->pid(process) : 0;
}
