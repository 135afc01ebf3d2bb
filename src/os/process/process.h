/* process.h - child processes, by one small contract.
 *
 *   process_spawn ──► program, in a session (and where it may, a PID namespace) of its own
 *                        ├─► on_output …   as it writes; nothing while its pipe is paused
 *                        └─► on_ended      once, behind the last output: nothing is left of it
 *
 * A child inherits nothing: its environment is complete, its descriptors are 0, 1 and 2. It
 * dies with who spawned it, and with it whatever it started.
 *
 * The contract has two drivers: children.h, of real processes, and the fake of the tests.
 * Refusal is what process_spawn returns, and then on_ended does not come; outcome is on_ended,
 * also when the program could not be executed. */
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
    PROCESS_NAMESPACES_AUTO, /* where permitted; else without, which is said once in the log */
    PROCESS_NAMESPACES_ON, /* refused where they are not permitted */
    PROCESS_NAMESPACES_OFF,
};

/* uid 0: as the spawner. */
struct process_user {
    uid_t uid;
    gid_t gid;
};

/* 0: as the spawner. There is never a core file. */
struct process_limits {
    uint64_t open_files;
    uint64_t processes;     /* of the user, in all of the machine */
    uint64_t address_space; /* bytes */
};

/* Everything is borrowed for the call. */
struct process_options {
    const char *program;            /* with a slash, or looked for in its own PATH */
    const char *const *arguments;   /* ended by NULL; the first is its own name */
    const char *const *environment; /* "NAME=value", ended by NULL; NULL: empty */
    const char *directory;          /* NULL: the root */
    struct slice input;             /* at standard input; { 0 }: there is none */
    int input_file; /* a descriptor of a file, at standard input instead; 0: input is */
    struct process_user user;
    struct process_limits limits;
    enum process_namespaces namespaces;
    /* Absolute: what the child finds as /tmp, /var/tmp and /dev/shm. It needs namespaces; NULL:
     * the machine's. */
    const char *temporary;
    const char *cgroup;  /* the folder of a group (cgroup.h); NULL: the spawner's */
    int oom_score_adj;   /* 0 to 1000: who is killed first when memory ends */
    int64_t deadline_ms; /* from now, then it is killed; 0: none */
};

enum process_cause {
    PROCESS_EXITED,
    PROCESS_SIGNALED,
    PROCESS_NOT_STARTED, /* why says what failed before the program began */
};

struct process_end {
    enum process_cause cause;
    int status;   /* the exit code, or the signal */
    bool oom;     /* its group ran out of memory, and something in it was killed for that */
    bool overdue; /* it was killed at its deadline */
    char why[256]; /* in words, whatever the cause is */
};

struct process_events {
    /* The text is borrowed for the call. NULL: output is read and dropped. */
    void (*on_output)(struct process *process, enum process_pipe pipe, struct slice text);
    /* The process is its owner's again, to free or to spawn anew. end is borrowed. */
    void (*on_ended)(struct process *process, const struct process_end *end);
};

/* Embedded by whoever owns the child, who finds itself by container_of. */
struct process {
    struct processes *processes;
    const struct process_events *events; /* borrowed until on_ended */
    struct child *child;                 /* the driver's; NULL: there is none */
};

/* A driver's struct begins with it. */
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

/* Everything that the program started gets the signal, too: its group, or all of its
 * namespace. Of one that ended: nothing happens. */
static inline void process_kill(struct process *process, int signal)
{
    if (process->child)
        process->processes->send(process, signal, false);
}

/* The program alone gets the signal, which it passes on as it likes. */
static inline void process_signal(struct process *process, int signal)
{
    if (process->child)
        process->processes->send(process, signal, true);
}

/* The pipe is not read until it is resumed: the program waits when it is full. A process with
 * a paused pipe does not end, either. */
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

/* Of the process that stands for it here (children.h); 0: it ended. */
static inline pid_t process_pid(const struct process *process)
{
    return process->child ? process->processes->pid(process) : 0;
}
