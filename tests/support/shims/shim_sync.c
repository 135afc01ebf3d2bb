/* shim_sync.c - traces what reaches the disk and what reaches the peers, in order; with
 * faults.
 *
 *   LD_PRELOAD=shim_sync.so  SHIM_TRACE=file  SHIM_CONTROL=file  SHIM_SYNC_FAIL=n  gateway
 *
 * SHIM_TRACE gets one line per event, in the order in which they happened:
 *
 *   begin <fd> <path>       a sync was requested
 *   sync <fd> <path>        it returned and succeeded
 *   failed <fd> <path>      it returned EIO
 *   send <fd> <bytes> <n> <start>
 *                           bytes that a socket took: how many, whether they begin with
 *                           "HTTP/1.1 2" (0 or 1), and the first line of what was sent
 *
 * SHIM_SYNC_FAIL makes the n-th sync, from 1, fail with EIO, and those after it too.
 * SHIM_CONTROL names a file that is read at each sync and database write: "ok", "eio"
 * (syncs fail), "enospc" (writes of *.db, *-wal, *-shm fail), "delay <ms>" (syncs take
 * longer). A missing file means "ok". */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "reach.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int trace_fd = -1;
static long syncs, fail_from;
static const char *control_path;

static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static ssize_t (*real_send)(int, const void *, size_t, int);
static ssize_t (*real_sendmsg)(int, const struct msghdr *, int);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_pwrite64)(int, const void *, size_t, off64_t);

/* dlsym gives objects; POSIX promises that the pointer fits. */
#define FIND(name) (*(void **)&real_##name = dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void start(void)
{
    FIND(fsync);
    FIND(fdatasync);
    FIND(write);
    FIND(writev);
    FIND(send);
    FIND(sendmsg);
    FIND(pwrite);
    FIND(pwrite64);
    const char *trace = getenv("SHIM_TRACE"), *fail = getenv("SHIM_SYNC_FAIL");
    control_path = getenv("SHIM_CONTROL");
    fail_from = fail ? strtol(fail, NULL, 10) : 0;
    if (trace)
        trace_fd = open(trace, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
}

/* ---- trace ---- */

/* The lock makes the order of lines the order of events: it is held from the event on. */
__attribute__((format(printf, 1, 2))) static void trace(const char *format, ...)
{
    char line[512];
    va_list args;
    if (trace_fd < 0)
        return;
    va_start(args, format);
    int len = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (len >= (int)sizeof(line))
        len = sizeof(line) - 1;
    if (real_write(trace_fd, line, (size_t)len) != len)
        abort();
}

static void path_of(int fd, char path[256])
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, 255);
    path[len > 0 ? len : 0] = '\0';
}

static bool is_socket(int fd)
{
    struct stat stat_of;
    return fstat(fd, &stat_of) == 0 && S_ISSOCK(stat_of.st_mode);
}

static void trace_send(int fd, const char *start, size_t len, ssize_t sent)
{
    char first[64] = "";
    size_t keep = len < sizeof(first) - 1 ? len : sizeof(first) - 1;
    for (size_t i = 0; i < keep && start[i] != '\r' && start[i] != '\n'; i++)
        first[i] = start[i] >= ' ' && start[i] <= '~' ? start[i] : '.';
    bool good = !strncmp(first, "HTTP/1.1 2", 10);
    if (sent > 0)
        trace("send %d %zd %d %s\n", fd, sent, good, first);
}

/* ---- faults ---- */

/* The first words of the control file; "ok" without one. */
static void read_control(char order[32])
{
    snprintf(order, 32, "ok");
    int fd = control_path ? open(control_path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    ssize_t len = read(fd, order, 31);
    order[len > 0 ? len : 0] = '\0';
    order[strcspn(order, "\n")] = '\0';
    close(fd);
}

static void wait_ms(long ms)
{
    struct timespec time = { ms / 1000, ms % 1000 * 1000000 };
    while (nanosleep(&time, &time) && errno == EINTR)
        ;
}

static int sync_file(int fd, int (*real)(int))
{
    char order[32], path[256];
    long delay_ms = 0;
    read_control(order);
    path_of(fd, path);
    pthread_mutex_lock(&lock);
    bool fails = (++syncs >= fail_from && fail_from > 0) || !strcmp(order, "eio");
    trace("begin %d %s\n", fd, path);
    pthread_mutex_unlock(&lock);

    if (sscanf(order, "delay %ld", &delay_ms) == 1)
        wait_ms(delay_ms);
    int result = fails ? -1 : real(fd);
    int trouble = fails ? EIO : errno;
    pthread_mutex_lock(&lock);
    trace("%s %d %s\n", result ? "failed" : "sync", fd, path);
    pthread_mutex_unlock(&lock);
    errno = trouble;
    return result;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && !strcmp(text + len - end_len, end);
}

static bool has_no_space(int fd)
{
    char order[32], path[256];
    read_control(order);
    if (strcmp(order, "enospc"))
        return false;
    path_of(fd, path);
    return ends_with(path, ".db") || ends_with(path, "-wal") || ends_with(path, "-shm");
}

/* ---- the calls ---- */

int fsync(int fd)
{
    return sync_file(fd, real_fsync);
}

int fdatasync(int fd)
{
    return sync_file(fd, real_fdatasync);
}

ssize_t pwrite(int fd, const void *from, size_t len, off_t offset)
{
    if (control_path && has_no_space(fd)) {
        errno = ENOSPC;
        return -1;
    }
    return real_pwrite(fd, from, len, offset);
}

ssize_t pwrite64(int fd, const void *from, size_t len, off64_t offset)
{
    if (control_path && has_no_space(fd)) {
        errno = ENOSPC;
        return -1;
    }
    return real_pwrite64(fd, from, len, offset);
}

ssize_t write(int fd, const void *from, size_t len)
{
    if (!is_socket(fd))
        return real_write(fd, from, len);
    pthread_mutex_lock(&lock);
    ssize_t sent = real_write(fd, from, len);
    int trouble = errno;
    trace_send(fd, from, len, sent);
    pthread_mutex_unlock(&lock);
    errno = trouble;
    return sent;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    if (!is_socket(fd))
        return real_writev(fd, parts, count);
    pthread_mutex_lock(&lock);
    ssize_t sent = real_writev(fd, parts, count);
    int trouble = errno;
    trace_send(fd, parts[0].iov_base, parts[0].iov_len, sent);
    pthread_mutex_unlock(&lock);
    errno = trouble;
    return sent;
}

ssize_t send(int fd, const void *from, size_t len, int flags)
{
    pthread_mutex_lock(&lock);
    ssize_t sent = real_send(fd, from, len, flags);
    int trouble = errno;
    trace_send(fd, from, len, sent);
    pthread_mutex_unlock(&lock);
    errno = trouble;
    return sent;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    pthread_mutex_lock(&lock);
    ssize_t sent = real_sendmsg(fd, message, flags);
    int trouble = errno;
    if (message->msg_iovlen > 0)
        trace_send(fd, message->msg_iov[0].iov_base, message->msg_iov[0].iov_len, sent);
    pthread_mutex_unlock(&lock);
    errno = trouble;
    return sent;
}
