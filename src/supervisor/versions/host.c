/* host.c - facts about this machine, from the compiler and the kernel. */
#include "supervisor/versions/host.h"

#include <errno.h>
#include <fcntl.h>
#include <features.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"

const char *host_architecture(void)
{
#if defined(__x86_64__)
    return "x64";
#elif defined(__aarch64__)
    return "arm64";
#elif defined(__riscv) && __riscv_xlen == 64
    return "riscv64";
#else
    return "unknown";
#endif
}

const char *host_libc(void)
{
#ifdef __GLIBC__
    return "glibc";
#else
    return "musl";
#endif
}

uint64_t host_cores(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (uint64_t)cores : 1;
}

uint64_t host_memory(void)
{
    struct sysinfo found;
    return sysinfo(&found) ? 0 : (uint64_t)found.totalram * found.mem_unit;
}

/* ---- control groups ---- */

enum { GROUP_MAX = 2048 };

/* Finds this process's group of cgroup version 2: the line "0::/system.slice/x.service". */
static bool own_group(struct buf *out)
{
    char line[1024];
    bool found = false;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && !found && fgets(line, sizeof(line), file))
        found = strncmp(line, "0::/", 4) == 0;
    if (file)
        fclose(file);
    if (found)
        buf_print(out, "/sys/fs/cgroup%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    return found;
}

static bool move_aside(const char *path)
{
    char folder[GROUP_MAX], members[GROUP_MAX];
    snprintf(folder, sizeof(folder), "%s/supervise", path);
    snprintf(members, sizeof(members), "%s/supervise/cgroup.procs", path);
    bool made = mkdir(folder, 0755) == 0 || errno == EEXIST;
    int file = made ? open(members, O_WRONLY | O_CLOEXEC) : -1;
    bool moved = file >= 0 && write(file, "0", 1) == 1;
    if (file >= 0)
        close(file);
    return moved;
}

enum err host_cgroup(char **path, struct failure *why)
{
    struct buf own = { 0 };
    if (!own_group(&own))
        return explain(why, ERR_FORBIDDEN,
                       "this machine has no control groups (version 2)");
    char *text = mem_text(buf_slice(&own));
    buf_finish(&own);
    if (move_aside(text)) {
        *path = text;
        return OK;
    }
    explain(why, ERR_FORBIDDEN, "control group %s is not delegated to this process: %s",
            text, strerror(errno));
    free(text);
    return why->code;
}

/* ---- programs ---- */

/* "22" for "node-22", "" for "node"; other runtimes as they are: "bun", "bun-1.4". */
static struct slice key_of(struct slice runtime)
{
    if (slice_is(runtime, "node"))
        return SLICE("");
    return slice_starts(runtime, "node-") ? slice_from(runtime, 5) : runtime;
}

static bool next_entry(struct slice *rest, struct slice *key, struct slice *path)
{
    static const char between[] = " ,";
    while (rest->len && strchr(between, rest->ptr[0]))
        *rest = slice_from(*rest, 1);
    size_t len = 0;
    while (len < rest->len && !strchr(between, rest->ptr[len]))
        len++;
    *path = (struct slice){ rest->ptr, len };
    *rest = slice_from(*rest, len);
    return len && slice_split(path, '=', key);
}

enum err host_program(const char *programs, struct slice runtime, char **program,
                      struct failure *why)
{
    struct slice rest = slice_of(programs), key, path, wanted = key_of(runtime);
    while (next_entry(&rest, &key, &path))
        if (slice_equal(key, wanted) && path.len && path.ptr[0] == '/') {
            *program = mem_text(path);
            return OK;
        }
    if (!slice_starts(runtime, "node"))
        return explain(why, ERR_RULE,
                       "this version needs %.*s, which is not configured; name its "
                       "program, as in --node %.*s=/usr/local/bin/bun",
                       SLICE_ARG(text_clip(runtime)), SLICE_ARG(text_clip(wanted)));
    *program = mem_text(SLICE("node"));
    return OK;
}
