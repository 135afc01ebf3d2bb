/* sandbox.c - starts Landlock, then the filter of system calls, for this process. */
#include "os/process/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "os/process/landlock.h"
#include "os/process/syscall_filter.h"

/* Returns 0 if the kernel does not report it. */
static unsigned count_threads(void)
{
    unsigned count = 0;
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *entry; threads && (entry = readdir(threads));)
        count += entry->d_name[0] != '.';
    if (threads)
        closedir(threads);
    return count;
}

static enum err keep_files(const struct sandbox_options *options, struct sandbox *sandbox,
                           struct failure *why)
{
    int abi = landlock_abi();
    if (abi < LANDLOCK_LEAST) {
        sandbox->no_landlock = abi < 0 ? strerror(-abi) : "its ABI 1 is too old";
        return OK;
    }
    unsigned threads = abi < LANDLOCK_ALL_THREADS ? count_threads() : 1;
    enum err refused = landlock_begin(abi, options, why);
    if (refused)
        return refused;
    sandbox->landlock = abi;
    sandbox->threads_outside = threads ? threads - 1 : 0;
    return OK;
}

enum err sandbox_begin(const struct sandbox_options *options, struct sandbox *sandbox,
                       struct failure *why)
{
    struct sandbox begun = { 0 };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return explain(why, ERR_STORE, "cannot forbid new privileges: %s", strerror(errno));
    enum err refused = keep_files(options, &begun, why);
    if (refused)
        return refused;
    int error = syscall_filter_begin();
    begun.filter = !error;
    begun.no_filter = error ? strerror(error) : NULL;
    *sandbox = begun;
    return OK;
}
