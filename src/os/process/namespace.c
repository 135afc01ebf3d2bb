/* namespace.c - creates PID namespaces with their own /proc and System V objects. */
#include "os/process/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/process/report.h"

const char *const namespace_temporary[] = { "/tmp", "/var/tmp", "/dev/shm", NULL };

static bool write_file(const char *path, const char *text, int len)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    bool written = file >= 0 && write(file, text, (size_t)len) == len;
    if (file >= 0)
        close(file);
    return written;
}

static bool map_id(const char *path, unsigned id)
{
    char line[48];
    int len = snprintf(line, sizeof(line), "%u %u 1\n", id, id);
    return write_file(path, line, len);
}

bool namespace_begin(void)
{
    if (geteuid() == 0)
        return unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC) == 0;
    unsigned uid = geteuid(), gid = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC))
        return false;
    /* There is no way back from here. */
    if (!write_file("/proc/self/setgroups", "deny", 4) ||
        !map_id("/proc/self/uid_map", uid) || !map_id("/proc/self/gid_map", gid))
        report_give_up("cannot map the user into a user namespace");
    return true;
}

/* Mounts here are not visible outside; unmounting outside takes effect here, too. */
bool namespace_mount_proc(void)
{
    return mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 &&
           mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0;
}

/* A machine may lack one of the folders; then there is nothing to cover. */
static bool cover(const char *path, const char *folder)
{
    return mount(folder, path, NULL, MS_BIND, NULL) == 0 ||
           (errno == ENOENT && access(path, F_OK) != 0);
}

bool namespace_cover_temporary(const char *folder)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
        return false;
    for (size_t i = 0; namespace_temporary[i]; i++)
        if (!cover(namespace_temporary[i], folder))
            return false;
    return true;
}

bool namespace_is_permitted(void)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0)
        _exit(unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC) ||
              mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL));
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
