/* shim_disk.c - a disk with little free space, or none for some files.
 *
 *   LD_PRELOAD=shim_disk.so  SHIM_DISK=file  gateway
 *
 * The file is read at each call: "low" (512 MiB are free), "full TEXT" (writes to a file
 * whose path contains that text fail with ENOSPC), or "hold" (the answer about free space
 * waits until the file says otherwise). A missing file means the real disk. Children with an environment of their own use the real one. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "reach.h"

enum { ORDER_MAX = 256, PATH_ROOM = 4096, FREE_MIB = 512, MIB = 1 << 20, HELD_US = 10000 };

/* dlsym gives objects; POSIX promises that the pointer fits. */
#define REAL(name) (*(void **)&real_##name = dlsym(RTLD_NEXT, #name))

static void read_order(char order[ORDER_MAX])
{
    const char *path = getenv("SHIM_DISK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t len = fd < 0 ? 0 : read(fd, order, ORDER_MAX - 1);
    if (fd >= 0)
        close(fd);
    order[len > 0 ? len : 0] = '\0';
}

static bool is_full(int fd)
{
    static const char full[] = "full ";
    char order[ORDER_MAX], link[64], path[PATH_ROOM];
    read_order(order);
    if (strncmp(order, full, sizeof(full) - 1) != 0)
        return false;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof(path) - 1);
    path[len > 0 ? len : 0] = '\0';
    bool refused = path[0] == '/' && strstr(path, order + sizeof(full) - 1);
    if (refused)
        errno = ENOSPC;
    return refused;
}

ssize_t write(int fd, const void *from, size_t len)
{
    static ssize_t (*real_write)(int, const void *, size_t);
    REAL(write);
    return is_full(fd) ? -1 : real_write(fd, from, len);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    static ssize_t (*real_writev)(int, const struct iovec *, int);
    REAL(writev);
    return is_full(fd) ? -1 : real_writev(fd, parts, count);
}

ssize_t pwrite64(int fd, const void *from, size_t len, off64_t offset)
{
    static ssize_t (*real_pwrite64)(int, const void *, size_t, off64_t);
    REAL(pwrite64);
    return is_full(fd) ? -1 : real_pwrite64(fd, from, len, offset);
}

int fstatvfs(int fd, struct statvfs *found)
{
    static int (*real_fstatvfs)(int, struct statvfs *);
    char order[ORDER_MAX];
    REAL(fstatvfs);
    int result = real_fstatvfs(fd, found);
    for (read_order(order); strncmp(order, "hold", 4) == 0; read_order(order))
        usleep(HELD_US);
    if (!result && strncmp(order, "low", 3) == 0)
        found->f_bavail = (fsblkcnt_t)FREE_MIB * MIB / found->f_frsize;
    return result;
}
