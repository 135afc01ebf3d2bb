/* cgroup.h - limits for a child and all that it starts: groups of cgroup v2 below a root.
 *
 *   root/             prepared once: memory, cpu and pids for those below
 *     NAME/           one child: memory.max, cpu.weight or cpu.max, pids.max
 *
 * The root is a path: the folder that was delegated to us, or in tests any folder. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct cgroup_limits {
    uint64_t memory;         /* bytes; 0: none */
    unsigned cpu_weight;     /* 1 to 10000, 100 is usual; 0: not set */
    unsigned cpu_thousandth; /* of a core, a hard limit; 0: none */
    unsigned pids;           /* processes and threads; 0: CGROUP_PIDS */
};

enum { CGROUP_PIDS = 256, CGROUP_PATH_MAX = 1024 };

/* ERR_FORBIDDEN with the reason: there can be no limits below this root. */
enum err cgroup_prepare(const char *root, struct failure *why);

/* Makes the group, or sets the limits of one that is there. The name is ours: no slash. */
enum err cgroup_make(const char *root, const char *name, const struct cgroup_limits *limits,
                     char path[CGROUP_PATH_MAX], struct failure *why);

/* ERR_BUSY: a process of it is not quite gone, try again. That there is none is fine. */
enum err cgroup_remove(const char *path, struct failure *why);

/* How often something in the group was killed because its memory was full. */
enum err cgroup_oom_kills(const char *path, uint64_t *count);

/* Kills all that is in it, where the kernel can do that (5.14). */
void cgroup_kill(const char *path);
