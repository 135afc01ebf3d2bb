/* supervise_check.h - what a supervise role is judged by before it begins: as whom it would
 * execute, and what organizations are kept apart by. */
#pragma once

#include "supervisor/supervise/supervise.h"

struct site;

/* options->tenants: whether organizations can be kept apart in this folder, on this machine.
 * cgroup: the root of groups; NULL: there is none. ERR_INVALID with what to do. */
enum err supervise_check_apart(const struct site *site, const char *cgroup,
                               struct failure *why);
