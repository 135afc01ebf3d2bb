/* syscall_filter.c - a BPF program with which the kernel checks each system call.
 *
 *   another machine's numbers ─► the process is killed: none of our libraries uses them
 *   x32's, clone3             ─► ENOSYS: glibc then uses clone, whose flags are visible
 *   forbidden                 ─► EPERM
 *   all others                ─► allowed
 *
 * It lists forbidden calls, not allowed ones. A list of allowed calls would be stronger,
 * but glibc, libuv, SQLite and OpenSSL determine its content, and it changes with their
 * updates: a gateway that dies of a security update is not safer. systemd maintains such a
 * list for its whole system (@system-service), and runcast.service uses it. Forbidden here
 * are calls that lead out of the sandbox (programs, processes, mounts, namespaces, other
 * processes, the terminal), and calls that expose much of the kernel for little use.
 *
 * A forbidden call gets EPERM and the process is not killed: the caller has gained nothing,
 * and a library that merely tries continues, as it does in every container. Only for eleven
 * calls does the verdict depend on arguments. The kernel caches the verdict for all others,
 * so they cost nothing. Calls that send come first, because the fan-out makes them for each
 * frame.
 *
 * Landlock restricts TCP, but it only checks sockets of IPPROTO_TCP, and only bind and
 * connect. Forbidden here are the ways around it: MSG_FASTOPEN, which connects while it
 * sends, and every other protocol over IPv4 and IPv6 (MPTCP, SMC, SCTP, DCCP, raw sockets).
 * Three ways remain open: UDP, which name resolution needs; a socket that listens without
 * bind, on a port chosen by the kernel; and MSG_FASTOPEN through io_uring's ring, whose
 * flags the kernel shows to neither. net.ipv4.tcp_fastopen without bit 1 closes the last
 * one.
 *
 * Creating an io_uring and changing its permissions are forbidden, but using one is not: a
 * ring is created, restricted to the operations that it needs, before the sandbox begins.
 * libuv does without. */
#include "os/process/syscall_filter.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/process/sanitized.h"

#if defined(__x86_64__) || defined(__aarch64__)

#ifdef __x86_64__
static const uint32_t machine = AUDIT_ARCH_X86_64;
#else
static const uint32_t machine = AUDIT_ARCH_AARCH64;
#endif

enum {
    INSTRUCTIONS_MAX = 256,
    X32_FIRST = 0x40000000,
    OPEN_TREE_ATTR = 467, /* newer than the headers of Debian 12 */
    SOCKET_KIND = 0xf,    /* in socket's type; the other bits are flags */
};

/* Calls that only one of the machines has are conditional. */
static const int refused[] = {
    /* programs */
    SYS_execve,
    SYS_execveat,
#ifdef SYS_uselib
    SYS_uselib,
#endif
    /* other processes */
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_process_madvise,
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
    SYS_kcmp,
    SYS_tkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_migrate_pages,
    SYS_move_pages,
    /* file systems and namespaces */
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_tree,
    OPEN_TREE_ATTR,
    SYS_move_mount,
    SYS_mount_setattr,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_unshare,
    SYS_setns,
    SYS_open_by_handle_at,
    SYS_fanotify_init,
    SYS_quotactl,
    SYS_quotactl_fd,
    SYS_swapon,
    SYS_swapoff,
    /* keys, programs, counters and modules of the kernel */
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_register,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_syslog,
#ifdef SYS_lookup_dcookie
    SYS_lookup_dcookie,
#endif
    SYS_personality,
#ifdef SYS_modify_ldt
    SYS_modify_ldt,
#endif
#ifdef SYS_iopl
    SYS_iopl,
    SYS_ioperm,
#endif
    /* the machine */
    SYS_reboot,
    SYS_acct,
    SYS_vhangup,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
};

/* LeakSanitizer inspects the threads from a process that it clones, which traces them. */
static const int refused_without_sanitizer[] = {
    SYS_ptrace,
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
};

struct program {
    struct sock_filter code[INSTRUCTIONS_MAX];
    unsigned short len;
};

/* ---- instructions ---- */

static void add(struct program *program, struct sock_filter instruction)
{
    assert(program->len < INSTRUCTIONS_MAX);
    program->code[program->len++] = instruction;
}

static void load(struct program *program, size_t offset)
{
    add(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* Loads the lower half of an argument, enough for 32 bits: both machines store it first. */
static void load_argument(struct program *program, int number)
{
    load(program, offsetof(struct seccomp_data, args) + (size_t)number * sizeof(uint64_t));
}

static void answer(struct program *program, uint32_t action)
{
    add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static void syscall_filter_refuse(struct program *program, int error)
{
    answer(program, SECCOMP_RET_ERRNO | (uint32_t)error);
}

/* Executes the next instruction only if the comparison with the loaded value holds.
 * Otherwise continues with the one after it. */
static void when(struct program *program, int comparison, uint32_t value)
{
    add(program, (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | comparison | BPF_K),
                                              value, 0, 1));
}

/* Executes the next count instructions only for that call. */
static void when_call(struct program *program, int call, uint8_t count)
{
    add(program,
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, count));
}

/* ---- forbidden calls ---- */

static void syscall_filter_begin_program(struct program *program)
{
    load(program, offsetof(struct seccomp_data, arch));
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine, 1, 0));
    answer(program, SECCOMP_RET_KILL_PROCESS);
    load(program, offsetof(struct seccomp_data, nr));
    when(program, BPF_JGE, X32_FIRST);
    syscall_filter_refuse(program, ENOSYS);
}

static void refuse_all(struct program *program, const int *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        when(program, BPF_JEQ, (uint32_t)calls[i]);
        syscall_filter_refuse(program, EPERM);
    }
}

/* Allows threads, but no namespaces or processes: a program that executes nothing needs no
 * processes. */
static void limit_clone(struct program *program)
{
    const uint32_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
    when(program, BPF_JEQ, SYS_clone3);
    syscall_filter_refuse(program, ENOSYS);
    when_call(program, SYS_clone, PROCESS_IS_SANITIZED ? 4 : 6);
    load_argument(program, 0);
    when(program, BPF_JSET, namespaces);
    syscall_filter_refuse(program, EPERM);
    if (!PROCESS_IS_SANITIZED) {
        add(program,
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0));
        syscall_filter_refuse(program, EPERM);
    }
    answer(program, SECCOMP_RET_ALLOW);
}

/* Allows signals only to this process; Landlock ensures that only since ABI 6. */
static void limit_signals(struct program *program, int call)
{
    if (PROCESS_IS_SANITIZED)
        return; /* it ends the process that it cloned */
    when_call(program, call, 4);
    load_argument(program, 0);
    add(program,
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)getpid(), 1, 0));
    syscall_filter_refuse(program, EPERM);
    answer(program, SECCOMP_RET_ALLOW);
}

/* Forbids setting the limits of another process, which is as good as a signal: a process
 * beyond its CPU time is killed. */
static void limit_limits(struct program *program)
{
    when_call(program, SYS_prlimit64, 5);
    load_argument(program, 0);
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0));
    add(program,
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)getpid(), 1, 0));
    syscall_filter_refuse(program, EPERM);
    answer(program, SECCOMP_RET_ALLOW);
}

/* Executes part, which ends with a verdict, if the loaded value compares as given. */
static void when_part(struct program *program, int comparison, uint32_t value,
                      const struct program *part)
{
    assert(part->len <= UINT8_MAX && program->len + part->len < INSTRUCTIONS_MAX);
    add(program, (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | comparison | BPF_K),
                                              value, 0, (uint8_t)part->len));
    memcpy(program->code + program->len, part->code, part->len * sizeof(part->code[0]));
    program->len = (unsigned short)(program->len + part->len);
}

/* Allows a socket of the family's default protocol, or of the given one. */
static void require_protocol(struct program *part, uint32_t protocol)
{
    load_argument(part, 2);
    when(part, BPF_JEQ, 0);
    answer(part, SECCOMP_RET_ALLOW);
    when(part, BPF_JEQ, protocol);
    answer(part, SECCOMP_RET_ALLOW);
    syscall_filter_refuse(part, EPERM);
}

/* Allows only TCP and UDP for IPv4 and IPv6. */
static void require_tcp_or_udp(struct program *part)
{
    struct program tcp = { .len = 0 }, udp = { .len = 0 };
    require_protocol(&tcp, IPPROTO_TCP);
    require_protocol(&udp, IPPROTO_UDP);
    load_argument(part, 1);
    add(part, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SOCKET_KIND));
    when_part(part, BPF_JEQ, SOCK_STREAM, &tcp);
    when_part(part, BPF_JEQ, SOCK_DGRAM, &udp);
    syscall_filter_refuse(part, EPERM);
}

/* Allows the families that glibc, libuv and the gateway use. glibc sorts the addresses of a
 * name with netlink's NETLINK_ROUTE, which is protocol 0. */
static void limit_sockets(struct program *program)
{
    struct program call = { .len = 0 }, internet = { .len = 0 }, netlink = { .len = 0 };
    require_tcp_or_udp(&internet);
    require_protocol(&netlink, 0);
    load_argument(&call, 0);
    when(&call, BPF_JEQ, AF_UNIX);
    answer(&call, SECCOMP_RET_ALLOW);
    when_part(&call, BPF_JEQ, AF_INET, &internet);
    when_part(&call, BPF_JEQ, AF_INET6, &internet);
    when_part(&call, BPF_JEQ, AF_NETLINK, &netlink);
    syscall_filter_refuse(&call, EPERM);
    when_part(program, BPF_JEQ, SYS_socket, &call);
}

static void limit_sends(struct program *program)
{
    static const struct {
        int call, flags; /* the argument with the flags */
    } sends[] = { { SYS_sendmsg, 2 }, { SYS_sendto, 3 }, { SYS_sendmmsg, 3 } };
    for (size_t i = 0; i < sizeof(sends) / sizeof(sends[0]); i++) {
        when_call(program, sends[i].call, 4);
        load_argument(program, sends[i].flags);
        when(program, BPF_JSET, MSG_FASTOPEN);
        syscall_filter_refuse(program, EPERM);
        answer(program, SECCOMP_RET_ALLOW);
    }
}

/* Forbids TCP's upper layer protocols (TCP_ULP), which may turn a TCP socket into one that
 * Landlock does not know. */
static void limit_upper_layers(struct program *program)
{
    struct program call = { .len = 0 }, tcp = { .len = 0 };
    load_argument(&tcp, 2);
    when(&tcp, BPF_JEQ, TCP_ULP);
    syscall_filter_refuse(&tcp, EPERM);
    answer(&tcp, SECCOMP_RET_ALLOW);
    load_argument(&call, 1);
    when_part(&call, BPF_JEQ, IPPROTO_TCP, &tcp);
    answer(&call, SECCOMP_RET_ALLOW);
    when_part(program, BPF_JEQ, SYS_setsockopt, &call);
}

/* Forbids some values of one argument of a call, and allows all others. */
static void refuse_values(struct program *program, int call, int argument,
                          const uint32_t *values, uint8_t count)
{
    when_call(program, call, (uint8_t)(2 * count + 2));
    load_argument(program, argument);
    for (uint8_t i = 0; i < count; i++) {
        when(program, BPF_JEQ, values[i]);
        syscall_filter_refuse(program, EPERM);
    }
    answer(program, SECCOMP_RET_ALLOW);
}

/* Forbids input to the terminal, because the shell that started the gateway would read it.
 * Also forbids setting the owner of a descriptor, to whom the kernel sends signals that the
 * user of the descriptor chooses. */
static void limit_files(struct program *program)
{
    static const uint32_t controls[] = { TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP };
    static const uint32_t commands[] = { F_SETOWN, F_SETOWN_EX };
    refuse_values(program, SYS_ioctl, 1, controls, sizeof(controls) / sizeof(controls[0]));
    refuse_values(program, SYS_fcntl, 1, commands, sizeof(commands) / sizeof(commands[0]));
}

static void write_program(struct program *program)
{
    syscall_filter_begin_program(program);
    limit_sends(program);
    refuse_all(program, refused, sizeof(refused) / sizeof(refused[0]));
    if (!PROCESS_IS_SANITIZED)
        refuse_all(program, refused_without_sanitizer,
                   sizeof(refused_without_sanitizer) /
                       sizeof(refused_without_sanitizer[0]));
    limit_clone(program);
    limit_signals(program, SYS_kill);
    limit_signals(program, SYS_tgkill);
    limit_limits(program);
    limit_sockets(program);
    limit_upper_layers(program);
    limit_files(program);
    answer(program, SECCOMP_RET_ALLOW);
}

int syscall_filter_begin(void)
{
    struct program program = { .len = 0 };
    write_program(&program);
    struct sock_fprog given = { .len = program.len, .filter = program.code };
    long failed =
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &given);
    if (failed < 0)
        return errno;
    return failed ? EBUSY : 0; /* the number of a thread that has a filter of its own */
}

#else

int syscall_filter_begin(void)
{
    return ENOSYS;
}

#endif
