/* supervise_check.h - checks whether this machine can isolate organizations.
 *
 * supervise.h declares supervise_check, the check of the options alone. */
#pragma once

#include "supervisor/supervise/supervise.h"

struct site;

/* Checks the conditions of options->tenants for this folder and machine.
 *
 * cgroup: the root of control groups; NULL: none. Returns ERR_INVALID with what to do. */
enum err supervise_check_apart(const struct site *site, const char *cgroup,
                               struct failure *why);
