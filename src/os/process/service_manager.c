/* service_manager.c - the variables of systemd: LISTEN_*, NOTIFY_SOCKET, WATCHDOG_*. */
#include "os/process/service_manager.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/slice.h"
#include "base/text.h"

enum {
    FIRST_SOCKET = 3, /* SD_LISTEN_FDS_START */
    SOCKETS_MAX = 64,
    MESSAGE_MAX = 1024,
    TIMEOUT_US = 200 * 1000
};

/* Returns the number in a variable; 0 if it is missing or not a number. */
static uint64_t number_of(const char *variable)
{
    uint64_t number;
    const char *text = getenv(variable);
    return text && !text_to_u64(slice_of(text), &number) ? number : 0;
}

/* Returns 0 if the variables, which name their process, belong to another service that
 * started this one. */
unsigned service_socket_count(void)
{
    uint64_t count = number_of("LISTEN_FDS");
    return number_of("LISTEN_PID") == (uint64_t)getpid() && count <= SOCKETS_MAX
               ? (unsigned)count
               : 0;
}

int service_socket(const char *name)
{
    const char *names = getenv("LISTEN_FDNAMES");
    struct slice rest = slice_of(names ? names : ""), one;
    int found = -1;
    for (unsigned i = 0; i < service_socket_count() && slice_split(&rest, ':', &one); i++) {
        if (!slice_is(one, name))
            continue;
        if (found >= 0)
            return -1;
        found = FIRST_SOCKET + (int)i;
    }
    return found;
}

void service_keep_sockets(void)
{
    for (unsigned i = 0; i < service_socket_count(); i++)
        fcntl(FIRST_SOCKET + (int)i, F_SETFD, FD_CLOEXEC);
}

/* Reads a path, or the name of an abstract socket after "@". */
static socklen_t read_address(const char *text, struct sockaddr_un *address)
{
    size_t len = strlen(text);
    if ((text[0] != '/' && text[0] != '@') || len >= sizeof(address->sun_path))
        return 0;
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    memcpy(address->sun_path, text, len);
    if (text[0] == '@')
        address->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

static void send_message(const char *message, size_t size, int flags)
{
    struct sockaddr_un address;
    struct timeval patience = { .tv_usec = TIMEOUT_US };
    const char *path = getenv("NOTIFY_SOCKET");
    socklen_t len = path ? read_address(path, &address) : 0;
    int fd = len ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0)
        return;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    sendto(fd, message, size, MSG_NOSIGNAL | flags, (const struct sockaddr *)&address, len);
    close(fd);
}

void service_notify(const char *format, ...)
{
    char message[MESSAGE_MAX];
    va_list values;
    va_start(values, format);
    int size = vsnprintf(message, sizeof(message), format, values);
    va_end(values);
    if (size > 0 && size < MESSAGE_MAX)
        send_message(message, (size_t)size, 0);
}

void service_notify_alive(void)
{
    static const char life[] = "WATCHDOG=1";
    send_message(life, sizeof(life) - 1, MSG_DONTWAIT);
}

int64_t service_watchdog_ms(void)
{
    uint64_t pid = number_of("WATCHDOG_PID"), us = number_of("WATCHDOG_USEC");
    if (pid && pid != (uint64_t)getpid())
        return 0;
    return (int64_t)(us / 1000 / 2);
}
