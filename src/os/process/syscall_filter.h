/* syscall_filter.h - forbids system calls that this program never makes (seccomp(2)). */
#pragma once

#include <stdbool.h>

/* Applies to every thread of the process, including running ones, and to their children.
 * Returns 0, or an errno: the kernel lacks filters, or there is none for this architecture.
 * PR_SET_NO_NEW_PRIVS must be set. */
int syscall_filter_begin(void);
