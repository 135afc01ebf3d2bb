/* landlock.h - Linux's Landlock (landlock(7)), as far as a sandbox uses it. */
#pragma once

#include "os/process/sandbox.h"

/* Returns the kernel's ABI. Below 0: Landlock is missing; -errno is the reason. */
int landlock_abi(void);

/* Restricts this thread, and whatever it starts, to what the options name, as far as that
 * ABI allows. From LANDLOCK_ALL_THREADS on, it also restricts threads that are already
 * running. PR_SET_NO_NEW_PRIVS must be set. */
enum err landlock_begin(int abi, const struct sandbox_options *options,
                        struct failure *why);

enum {
    LANDLOCK_LEAST = 2, /* with ABI 1, no file can be linked or renamed into another
                         * folder */
    LANDLOCK_ALL_THREADS = 8,
};
