/* escapes.h - system calls that an attacker in the gateway would try, and needed ones.
 *
 * The sandbox must refuse the former, and allow the latter, which the gateway itself makes.
 * Each attempt is one system call or a few, without memory or locks, so that a signal
 * handler can make it in any thread. A harmful call is made in a way that the kernel
 * refuses anyway, but not with EPERM: the filter must refuse it first. */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Both folders end without a slash. outside has a file called victim. */
struct escape_place {
    const char *data, *outside;
    char names[32]; /* in data, used by this attempt only */
};

struct escape {
    const char *name;
    int (*attempt)(const struct escape_place *place); /* returns errno; 0: it succeeded */
    int expected;
    int least_abi;  /* of Landlock; 0: Landlock is not what refuses */
    bool sanitizer; /* a sanitizer needs this call itself */
};

static int escape_error(long result)
{
    return result < 0 ? errno : 0;
}

static int escape_close(long fd)
{
    int error = escape_error(fd);
    if (fd >= 0)
        close((int)fd);
    return error;
}

static const char *escape_path(char path[512], const char *folder, const char *name)
{
    snprintf(path, 512, "%.400s/%.100s", folder, name);
    return path;
}

/* ---- files outside ---- */

static int escape_read(const struct escape_place *place)
{
    char path[512];
    return escape_close(open(escape_path(path, place->outside, "victim"), O_RDONLY));
}

static int escape_write(const struct escape_place *place)
{
    char path[512];
    return escape_close(open(escape_path(path, place->outside, "victim"), O_WRONLY));
}

static int escape_make(const struct escape_place *place)
{
    char path[512];
    escape_path(path, place->outside, "new");
    int error = escape_close(open(path, O_WRONLY | O_CREAT, 0600));
    if (!error)
        unlink(path);
    return error;
}

static int escape_list(const struct escape_place *place)
{
    return escape_close(open(place->outside, O_RDONLY | O_DIRECTORY));
}

static int escape_truncate(const struct escape_place *place)
{
    char path[512];
    return escape_error(truncate(escape_path(path, place->outside, "victim"), 1));
}

static int escape_remove(const struct escape_place *place)
{
    char path[512];
    return escape_error(unlink(escape_path(path, place->outside, "victim")));
}

/* Landlock reports EXDEV instead of EACCES for operations on two folders. */
static int escape_link(const struct escape_place *place)
{
    char from[512], to[512];
    escape_path(from, place->outside, "victim");
    int error = escape_error(link(from, escape_path(to, place->data, place->names)));
    return error == EXDEV ? EACCES : error;
}

static int escape_zone(const struct escape_place *place)
{
    (void)place;
    return escape_close(open("/usr/share/zoneinfo/Europe/Berlin", O_WRONLY));
}

static int escape_shadow(const struct escape_place *place)
{
    (void)place;
    return escape_close(open("/etc/shadow", O_RDONLY));
}

static int escape_parent(const struct escape_place *place)
{
    char path[64];
    (void)place;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)getppid());
    return escape_close(open(path, O_RDONLY));
}

/* A link in the data directory leads to its target for any process that opens it. */
static int escape_symlink(const struct escape_place *place)
{
    char path[512];
    return escape_error(
        symlink("/etc/shadow", escape_path(path, place->data, place->names)));
}

static int escape_device(const struct escape_place *place)
{
    char path[512];
    return escape_error(
        mknod(escape_path(path, place->data, place->names), S_IFIFO | 0600, 0));
}

/* ---- sockets ---- */

static int escape_socket(int (*call)(int, const struct sockaddr *, socklen_t), int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int error = escape_error(call(fd, (struct sockaddr *)&address, sizeof(address)));
    close(fd);
    return error;
}

static int escape_bind(const struct escape_place *place)
{
    (void)place;
    return escape_socket(bind, 0);
}

static int escape_connect(const struct escape_place *place)
{
    (void)place;
    return escape_socket(connect, 9);
}

/* Connects by a send with MSG_FASTOPEN. EPIPE and the like: the socket refused, not the
 * filter. */
static int escape_fast_open(const struct escape_place *place)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(9),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct iovec bytes = { "x", 1 };
    struct mmsghdr messages[] = { { .msg_hdr = { .msg_name = &address,
                                                 .msg_namelen = sizeof(address),
                                                 .msg_iov = &bytes,
                                                 .msg_iovlen = 1 } } };
    int flags = MSG_FASTOPEN | MSG_NOSIGNAL | MSG_DONTWAIT;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)place;
    int error = escape_error(
        sendto(fd, "x", 1, flags, (struct sockaddr *)&address, sizeof(address)));
    if (error == EPERM)
        error = escape_error(sendmsg(fd, &messages[0].msg_hdr, flags));
    if (error == EPERM)
        error = escape_error(sendmmsg(fd, messages, 1, flags));
    close(fd);
    return error;
}

static int escape_upper_layer(const struct escape_place *place)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)place;
    int error = escape_error(setsockopt(fd, IPPROTO_TCP, TCP_ULP, "none", 4));
    close(fd);
    return error;
}

static int escape_use_sockets(const struct escape_place *place)
{
    static const int kinds[][3] = { { AF_UNIX, SOCK_STREAM, 0 },
                                    { AF_INET, SOCK_STREAM, 0 },
                                    { AF_INET, SOCK_STREAM, IPPROTO_TCP },
                                    { AF_INET6, SOCK_STREAM, IPPROTO_TCP },
                                    { AF_INET, SOCK_DGRAM, 0 },
                                    { AF_INET6, SOCK_DGRAM, IPPROTO_UDP },
                                    { AF_NETLINK, SOCK_RAW, 0 } };
    int error = 0;
    (void)place;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        error |= escape_close(
            socket(kinds[i][0], kinds[i][1] | SOCK_CLOEXEC | SOCK_NONBLOCK, kinds[i][2]));
    return error;
}

/* ---- programs and processes ---- */

static int escape_execve(const struct escape_place *place)
{
    char *const nothing[] = { NULL };
    (void)place;
    return escape_error(execve("/bin/true", nothing, nothing));
}

static int escape_execveat(const struct escape_place *place)
{
    char *const nothing[] = { NULL };
    (void)place;
    return escape_error(syscall(SYS_execveat, AT_FDCWD, "/bin/true", nothing, nothing, 0));
}

static int escape_clone(unsigned long flags)
{
    long pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
    int error = escape_error(pid);
    if (!pid)
        _exit(0);
    if (pid > 0)
        waitpid((pid_t)pid, NULL, 0);
    return error;
}

static int escape_fork(const struct escape_place *place)
{
    (void)place;
    return escape_clone(0);
}

static int escape_user_namespace(const struct escape_place *place)
{
    (void)place;
    return escape_clone(CLONE_NEWUSER);
}

static int escape_clone3(const struct escape_place *place)
{
    (void)place;
    return escape_error(syscall(SYS_clone3, NULL, 0));
}

static int escape_ptrace(const struct escape_place *place)
{
    (void)place;
    return escape_error(syscall(SYS_ptrace, PTRACE_CONT, getppid(), 0, 0));
}

static int escape_kill(const struct escape_place *place)
{
    (void)place;
    return escape_error(kill(getppid(), 0));
}

/* Sends any signal to the owner of a file, when the file becomes readable. */
static int escape_own(const struct escape_place *place)
{
    (void)place;
    return escape_error(fcntl(STDIN_FILENO, F_SETOWN, getppid()));
}

static int escape_own_otherwise(const struct escape_place *place)
{
    struct f_owner_ex parent = { F_OWNER_PID, getppid() };
    pid_t pid = getppid();
    (void)place;
    int error = escape_error(fcntl(STDIN_FILENO, F_SETOWN_EX, &parent));
    if (error != EPERM)
        return error;
    error = escape_error(ioctl(-1, FIOSETOWN, &pid));
    return error != EPERM ? error : escape_error(ioctl(-1, SIOCSPGRP, &pid));
}

static int escape_type(const struct escape_place *place)
{
    (void)place;
    return escape_error(ioctl(-1, TIOCSTI, "x"));
}

/* ---- the kernel ---- */

/* clang-format off */
#define ESCAPE(name, ...)                                                                    \
    static int escape_##name(const struct escape_place *place)                               \
    {                                                                                        \
        (void)place;                                                                         \
        return escape_error(syscall(__VA_ARGS__));                                           \
    }
ESCAPE(vm_readv, SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0)
ESCAPE(vm_writev, SYS_process_vm_writev, getppid(), NULL, 0, NULL, 0, 0)
ESCAPE(limits, SYS_prlimit64, getppid(), 999, NULL, NULL)
ESCAPE(appletalk, SYS_socket, AF_APPLETALK, SOCK_DGRAM, 0)
ESCAPE(mptcp, SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 262)
ESCAPE(mptcp_6, SYS_socket, AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 262)
ESCAPE(sctp, SYS_socket, AF_INET, SOCK_STREAM, 132)
ESCAPE(smc, SYS_socket, AF_INET, SOCK_STREAM, 256)
ESCAPE(packets, SYS_socket, AF_INET, SOCK_SEQPACKET, 0)
ESCAPE(raw, SYS_socket, AF_INET, SOCK_RAW, IPPROTO_UDP)
ESCAPE(raw_6, SYS_socket, AF_INET6, SOCK_RAW | SOCK_NONBLOCK, IPPROTO_RAW)
ESCAPE(ping, SYS_socket, AF_INET, SOCK_DGRAM, IPPROTO_ICMP)
ESCAPE(netlink, SYS_socket, AF_NETLINK, SOCK_RAW, 12)
ESCAPE(mount, SYS_mount, NULL, NULL, NULL, 0, NULL)
ESCAPE(umount, SYS_umount2, NULL, 0)
ESCAPE(pivot_root, SYS_pivot_root, NULL, NULL)
ESCAPE(open_tree, SYS_open_tree, -1, NULL, 0)
ESCAPE(move_mount, SYS_move_mount, -1, NULL, -1, NULL, 0)
ESCAPE(fsopen, SYS_fsopen, NULL, 0)
ESCAPE(chroot, SYS_chroot, NULL)
ESCAPE(unshare, SYS_unshare, 0)
ESCAPE(setns, SYS_setns, -1, 0)
ESCAPE(add_key, SYS_add_key, NULL, NULL, NULL, 0, 0)
ESCAPE(request_key, SYS_request_key, NULL, NULL, NULL, 0)
ESCAPE(keyctl, SYS_keyctl, 0xffff)
ESCAPE(bpf, SYS_bpf, -1, NULL, 0)
ESCAPE(perf, SYS_perf_event_open, NULL, 0, 0, -1, 0)
ESCAPE(userfaultfd, SYS_userfaultfd, ~0)
ESCAPE(io_uring, SYS_io_uring_setup, 0, NULL)
ESCAPE(init_module, SYS_init_module, NULL, 0, NULL)
ESCAPE(finit_module, SYS_finit_module, -1, NULL, 0)
ESCAPE(kexec, SYS_kexec_load, 0, 999, NULL, 0)
ESCAPE(personality, SYS_personality, 0xffffffff)
ESCAPE(reboot, SYS_reboot, 0, 0, 0, NULL)
ESCAPE(swapon, SYS_swapon, NULL, 0)
ESCAPE(clock, SYS_settimeofday, NULL, NULL)
/* clang-format on */

/* ---- what the gateway needs ---- */

static int escape_write_text(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    int error = escape_error(fd < 0 ? -1 : write(fd, "text", 4));
    if (fd >= 0)
        close(fd);
    return error;
}

static int escape_work_in_data(const struct escape_place *place)
{
    char folder[512], from[512], to[512];
    escape_path(folder, place->data, place->names);
    escape_path(from, folder, "../from");
    escape_path(to, folder, "to");
    bool worked = !mkdir(folder, 0700) && !escape_write_text(from) && !truncate(from, 2) &&
                  !link(from, to) && !unlink(to) && !rename(from, to) && !unlink(to) &&
                  !rmdir(folder);
    return worked ? 0 : errno;
}

static int escape_read_zone(const struct escape_place *place)
{
    (void)place;
    return escape_close(open("/usr/share/zoneinfo/Europe/Berlin", O_RDONLY));
}

static int escape_read_self(const struct escape_place *place)
{
    (void)place;
    return escape_close(open("/proc/self/statm", O_RDONLY));
}

static int escape_use_devices(const struct escape_place *place)
{
    (void)place;
    return escape_close(open("/dev/null", O_RDWR)) |
           escape_close(open("/dev/urandom", O_RDONLY));
}

static int escape_signal_itself(const struct escape_place *place)
{
    (void)place;
    return escape_error(kill(getpid(), 0)) |
           escape_error(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), 0));
}

static int escape_ask_limits(const struct escape_place *place)
{
    struct rlimit limit;
    (void)place;
    return escape_error(getrlimit(RLIMIT_NOFILE, &limit)) |
           escape_error(syscall(SYS_prlimit64, getpid(), RLIMIT_NOFILE, NULL, &limit));
}

static const struct escape escapes[] = {
    { "read a file outside", escape_read, EACCES, 2, false },
    { "write a file outside", escape_write, EACCES, 2, false },
    { "make a file outside", escape_make, EACCES, 2, false },
    { "list a folder outside", escape_list, EACCES, 2, false },
    { "truncate a file outside", escape_truncate, EACCES, 3, false },
    { "remove a file outside", escape_remove, EACCES, 2, false },
    { "give a file outside a name in the data directory", escape_link, EACCES, 2, false },
    { "write into time zones", escape_zone, EACCES, 2, false },
    { "read /etc/shadow", escape_shadow, EACCES, 2, false },
    { "read about the parent process", escape_parent, EACCES, 2, false },
    { "make a symbolic link", escape_symlink, EACCES, 2, false },
    { "make a pipe with a name", escape_device, EACCES, 2, false },
    { "bind another port", escape_bind, EACCES, 4, false },
    { "connect", escape_connect, EACCES, 4, false },
    { "execve", escape_execve, EPERM, 0, false },
    { "execveat", escape_execveat, EPERM, 0, false },
    { "fork", escape_fork, EPERM, 0, true },
    { "clone into a user namespace", escape_user_namespace, EPERM, 0, false },
    { "clone3", escape_clone3, ENOSYS, 0, false },
    { "ptrace", escape_ptrace, EPERM, 0, true },
    { "signal the parent process", escape_kill, EPERM, 0, true },
    { "have the kernel signal the parent process", escape_own, EPERM, 0, false },
    { "have it signal that otherwise", escape_own_otherwise, EPERM, 0, false },
    { "limit the parent process", escape_limits, EPERM, 0, false },
    { "speak another protocol", escape_appletalk, EPERM, 0, false },
    { "connect by fast open", escape_fast_open, EPERM, 0, false },
    { "speak MPTCP", escape_mptcp, EPERM, 0, false },
    { "speak MPTCP over IPv6", escape_mptcp_6, EPERM, 0, false },
    { "speak SCTP", escape_sctp, EPERM, 0, false },
    { "speak SMC", escape_smc, EPERM, 0, false },
    { "open a socket of packets", escape_packets, EPERM, 0, false },
    { "open a raw socket", escape_raw, EPERM, 0, false },
    { "open a raw socket of IPv6", escape_raw_6, EPERM, 0, false },
    { "open a ping socket", escape_ping, EPERM, 0, false },
    { "change the firewall by netlink", escape_netlink, EPERM, 0, false },
    { "change the upper layer of TCP", escape_upper_layer, EPERM, 0, false },
    { "type into the terminal", escape_type, EPERM, 0, false },
    { "process_vm_readv", escape_vm_readv, EPERM, 0, false },
    { "process_vm_writev", escape_vm_writev, EPERM, 0, false },
    { "mount", escape_mount, EPERM, 0, false },
    { "umount", escape_umount, EPERM, 0, false },
    { "pivot_root", escape_pivot_root, EPERM, 0, false },
    { "open_tree", escape_open_tree, EPERM, 0, false },
    { "move_mount", escape_move_mount, EPERM, 0, false },
    { "fsopen", escape_fsopen, EPERM, 0, false },
    { "chroot", escape_chroot, EPERM, 0, false },
    { "unshare", escape_unshare, EPERM, 0, false },
    { "setns", escape_setns, EPERM, 0, false },
    { "add_key", escape_add_key, EPERM, 0, false },
    { "request_key", escape_request_key, EPERM, 0, false },
    { "keyctl", escape_keyctl, EPERM, 0, false },
    { "bpf", escape_bpf, EPERM, 0, false },
    { "perf_event_open", escape_perf, EPERM, 0, false },
    { "userfaultfd", escape_userfaultfd, EPERM, 0, false },
    { "io_uring_setup", escape_io_uring, EPERM, 0, false },
    { "init_module", escape_init_module, EPERM, 0, false },
    { "finit_module", escape_finit_module, EPERM, 0, false },
    { "kexec_load", escape_kexec, EPERM, 0, false },
    { "personality", escape_personality, EPERM, 0, false },
    { "reboot", escape_reboot, EPERM, 0, false },
    { "swapon", escape_swapon, EPERM, 0, false },
    { "settimeofday", escape_clock, EPERM, 0, false },
    { "open sockets of TCP, UDP and UNIX", escape_use_sockets, 0, 0, false },
    { "work in the data directory", escape_work_in_data, 0, 0, false },
    { "read time zones", escape_read_zone, 0, 0, false },
    { "read about itself", escape_read_self, 0, 0, false },
    { "use devices", escape_use_devices, 0, 0, false },
    { "signal itself", escape_signal_itself, 0, 0, false },
    { "ask for its limits", escape_ask_limits, 0, 0, false },
};

enum { ESCAPES = sizeof(escapes) / sizeof(escapes[0]) };
