/* descriptors.c - counts the open descriptors of the process in /proc/self/fd. */
#include "api/ops/descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_AT_ONCE = 4096 /* bytes; about 150 entries */ };

static const char folder[] = "/proc/self/fd";

static void end(struct descriptors *descriptors)
{
    close(descriptors->folder);
    descriptors->folder = -1;
    descriptors->count--; /* the one of this folder */
}

void descriptors_begin(struct descriptors *descriptors)
{
    struct stat found;
    *descriptors = (struct descriptors){ .folder = -1 };
    if (!stat(folder, &found) && found.st_size) {
        descriptors->count = found.st_size;
        return;
    }
    descriptors->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptors->folder < 0 && errno == EMFILE)
        descriptors->count = descriptors_limit(); /* the folder did not fit: all are open */
}

static int count_entries(const char *entries, ssize_t len)
{
    int count = 0;
    for (ssize_t at = 0; at < len;) {
        const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
        count += entry->d_name[0] != '.';
        at += entry->d_reclen;
    }
    return count;
}

bool descriptors_count_some(struct descriptors *descriptors, struct timeslice *timeslice)
{
    _Alignas(struct dirent64) char entries[READ_AT_ONCE];
    while (descriptors->folder >= 0 && timeslice_left(timeslice)) {
        ssize_t len = getdents64(descriptors->folder, entries, sizeof(entries));
        if (len > 0)
            descriptors->count += count_entries(entries, len);
        else
            end(descriptors);
    }
    return descriptors->folder < 0;
}

int64_t descriptors_limit(void)
{
    struct rlimit limit;
    bool is_limited = !getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur != RLIM_INFINITY;
    return is_limited ? (int64_t)limit.rlim_cur : INT64_MAX;
}
