/* host.h - facts about this machine, such as its architecture, memory and programs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

/* As node names it: "x64", "arm64"; "unknown" for others. */
const char *host_architecture(void);

/* "glibc" or "musl". */
const char *host_libc(void);

uint64_t host_cores(void);
uint64_t host_memory(void); /* bytes */

/* Finds the control group of this process, and prepares it for groups of its children.
 *
 * The process itself moves into a child group "supervise". *path is the caller's to free.
 * Returns ERR_FORBIDDEN with the reason if there is no group, or it was not delegated to
 * us. */
enum err host_cgroup(char **path, struct failure *why);

/* Finds the program that executes a version.
 *
 * programs: "22=/opt/node22/bin/node bun=/opt/bun …", separated by spaces or commas.
 * runtime: as in the version, "node", "node-22", "bun", …. A node runtime without an entry
 * gets "node", the one in PATH. *program is the caller's to free. Returns ERR_RULE with the
 * reason if there is none. */
enum err host_program(const char *programs, struct slice runtime, char **program,
                      struct failure *why);
