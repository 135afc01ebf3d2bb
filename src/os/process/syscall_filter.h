/* syscall_filter.h - refuses system calls that this program never makes (seccomp(2)). */
#pragma once

#include <stdbool.h>

/* In every thread of the process, also those that run already, and whatever they begin. 0, or errno:
 * the kernel has no filters, or none for this machine. PR_SET_NO_NEW_PRIVS has been set. */
int syscall_filter_begin(void);
