/* cgroup.h - limits for a child and everything that it starts: groups of cgroup v2.
 *
 *   root/             prepared once: memory, cpu and pids for its groups
 *     NAME/           one child: memory.max, cpu.weight or cpu.max, pids.max
 *
 * The root is a path: the folder delegated to us, or any folder in tests. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct cgroup_limits {
    uint64_t memory;         /* bytes; 0: no limit */
    unsigned cpu_weight;     /* 1 to 10000, 100 is the default; 0: not set */
    unsigned cpu_thousandth; /* of a core, a hard limit; 0: no limit */
    unsigned pids;           /* processes and threads; 0: CGROUP_PIDS */
};

enum { CGROUP_PIDS = 256, CGROUP_PATH_MAX = 1024 };

/* ERR_FORBIDDEN, with the reason: limits are impossible below this root. */
enum err cgroup_prepare(const char *root, struct failure *why);

/* Creates the group, or sets the limits of an existing one. The name must have no slash. */
enum err cgroup_make(const char *root, const char *name, const struct cgroup_limits *limits,
                     char path[CGROUP_PATH_MAX], struct failure *why);

/* ERR_BUSY: a process is still ending, try again. OK if there is no such group. */
enum err cgroup_remove(const char *path, struct failure *why);

/* Returns how often a process in the group was killed because its memory was full. */
enum err cgroup_oom_kills(const char *path, uint64_t *count);

/* Kills all processes of the group, if the kernel supports that (5.14). */
void cgroup_kill(const char *path);
