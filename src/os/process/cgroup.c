/* cgroup.c - reads and writes the control files of cgroup v2. */
#include "os/process/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

enum { CPU_PERIOD_US = 100000 };

static const char *const written[] = { "memory.max", "cpu.weight", "cpu.max", "pids.max",
                                       "cgroup.procs" };

/* Writes a file. In the cgroup file system, the files exist and none can be created. */
static enum err write_file(const char *folder, const char *name, const char *text,
                           struct failure *why)
{
    char path[CGROUP_PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    ssize_t len = (ssize_t)strlen(text);
    bool done = file >= 0 && write(file, text, (size_t)len) == len;
    int reason = errno;
    if (file >= 0)
        close(file);
    if (done)
        return OK;
    return explain(why, ERR_FORBIDDEN, "%s: cannot write \"%s\": %s", path, text,
                   strerror(reason));
}

enum err cgroup_prepare(const char *root, struct failure *why)
{
    static const char *const controllers[] = { "+memory", "+cpu", "+pids" };
    struct stat found;
    if (stat(root, &found) || !S_ISDIR(found.st_mode))
        return explain(why, ERR_FORBIDDEN, "%s: folder not found", root);
    for (size_t i = 0; i < sizeof(controllers) / sizeof(*controllers); i++) {
        enum err err = write_file(root, "cgroup.subtree_control", controllers[i], why);
        if (err)
            return err;
    }
    return OK;
}

static enum err write_limits(const char *path, const struct cgroup_limits *limits,
                             struct failure *why)
{
    char text[64];
    enum err err = OK;
    if (limits->memory) {
        snprintf(text, sizeof(text), "%llu", (unsigned long long)limits->memory);
        err = write_file(path, "memory.max", text, why);
    }
    if (!err && limits->cpu_weight) {
        snprintf(text, sizeof(text), "%u", limits->cpu_weight);
        err = write_file(path, "cpu.weight", text, why);
    }
    if (!err && limits->cpu_thousandth) {
        snprintf(text, sizeof(text), "%llu %d",
                 (unsigned long long)limits->cpu_thousandth * CPU_PERIOD_US / 1000,
                 CPU_PERIOD_US);
        err = write_file(path, "cpu.max", text, why);
    }
    snprintf(text, sizeof(text), "%u", limits->pids ? limits->pids : CGROUP_PIDS);
    return err ? err : write_file(path, "pids.max", text, why);
}

enum err cgroup_make(const char *root, const char *name, const struct cgroup_limits *limits,
                     char path[CGROUP_PATH_MAX], struct failure *why)
{
    char group[CGROUP_PATH_MAX];
    int len = snprintf(group, sizeof(group), "%s/%s", root, name);
    if (len < 0 || (size_t)len >= sizeof(group))
        return explain(why, ERR_INVALID, "%s: path too long", root);
    if (mkdir(group, 0755) && errno != EEXIST)
        return explain(why, ERR_FORBIDDEN, "%s: cannot create the group: %s", group,
                       strerror(errno));
    enum err err = write_limits(group, limits, why);
    if (err) {
        struct failure ignored;
        cgroup_remove(group, &ignored);
        return err;
    }
    memcpy(path, group, (size_t)len + 1);
    return OK;
}

/* Removes files that were written into a plain folder. */
static void remove_files(const char *path)
{
    char file[CGROUP_PATH_MAX + 64];
    for (size_t i = 0; i < sizeof(written) / sizeof(*written); i++) {
        snprintf(file, sizeof(file), "%s/%s", path, written[i]);
        unlink(file);
    }
}

enum err cgroup_remove(const char *path, struct failure *why)
{
    bool removed = rmdir(path) == 0;
    if (!removed && errno == ENOTEMPTY) {
        remove_files(path);
        removed = rmdir(path) == 0;
    }
    if (removed || errno == ENOENT)
        return OK;
    return explain(why, errno == EBUSY ? ERR_BUSY : ERR_FORBIDDEN,
                   "%s: cannot remove the group: %s", path, strerror(errno));
}

enum err cgroup_oom_kills(const char *path, uint64_t *count)
{
    char name[CGROUP_PATH_MAX + 64], text[1024];
    snprintf(name, sizeof(name), "%s/memory.events", path);
    int file = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t len = file >= 0 ? read(file, text, sizeof(text)) : -1;
    if (file >= 0)
        close(file);
    struct slice rest = { text, len > 0 ? (size_t)len : 0 }, line, word;
    while (slice_split(&rest, '\n', &line))
        if (slice_split(&line, ' ', &word) && slice_is(word, "oom_kill") && line.ptr)
            return text_to_u64(line, count);
    return ERR_NOT_FOUND;
}

void cgroup_kill(const char *path)
{
    char name[CGROUP_PATH_MAX + 64];
    snprintf(name, sizeof(name), "%s/cgroup.kill", path);
    int file = open(name, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return;
    if (write(file, "1", 1) < 0)
        (void)errno; /* the group is gone, and so are its processes */
    close(file);
}
