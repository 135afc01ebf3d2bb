/* landlock.h - Linux's Landlock (landlock(7)), as far as a sandbox uses it. */
#pragma once

#include "os/process/sandbox.h"

/* The ABI of the kernel; below 0: it has none, and -errno says why. */
int landlock_abi(void);

/* From here on this thread, and what it begins, reaches only what the options name, as far as that
 * ABI knows how; since LANDLOCK_ALL_THREADS so do threads that run already. PR_SET_NO_NEW_PRIVS
 * has been set. */
enum err landlock_begin(int abi, const struct sandbox_options *options,
                        struct failure *why);

enum {
    LANDLOCK_LEAST = 2, /* ABI 1 lets nobody give a file a name in another folder */
    LANDLOCK_ALL_THREADS = 8,
};
