/* host.h - what this machine is: architecture, libc, cores, memory, and its programs that run
 * a version. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

/* As node names them: "x64", "arm64"; another one as the system does. */
const char *host_architecture(void);

/* "glibc" or "musl". */
const char *host_libc(void);

uint64_t host_cores(void);
uint64_t host_memory(void); /* bytes */

/* The control group that this process was given, for groups of its children below it; the
 * process itself moves aside, into a group "supervise" there. ERR_FORBIDDEN with the reason:
 * there is none, or it is not ours. path is the caller's. */
enum err host_cgroup(char **path, struct failure *why);

/* The program that executes a version. programs: "22=/opt/node22/bin/node bun=/opt/bun …",
 * with spaces or commas between; runtime: "node", "node-22", "bun", … as the version names it.
 * "node" stands for the one in PATH, which serves every node. ERR_RULE with the reason: there
 * is none. program is the caller's. */
enum err host_program(const char *programs, struct slice runtime, char **program,
                      struct failure *why);
