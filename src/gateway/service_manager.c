/* service_manager.c - the variables of systemd: LISTEN_*, NOTIFY_SOCKET, WATCHDOG_*. */
#include "gateway/service_manager.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/slice.h"
#include "base/text.h"

enum {
    FIRST_SOCKET = 3, /* SD_LISTEN_FDS_START */
    SOCKETS_MAX = 64,
    MESSAGE_MAX = 1024
};

/* The number that a variable says; 0: it is not there, or says none. */
static uint64_t number_of(const char *variable)
{
    uint64_t number;
    const char *text = getenv(variable);
    return text && !text_to_u64(slice_of(text), &number) ? number : 0;
}

/* The variables may be of a service that has started this one: they name their process. */
static unsigned socket_count(void)
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
    for (unsigned i = 0; i < socket_count() && slice_split(&rest, ':', &one); i++)
        if (slice_is(one, name))
            return FIRST_SOCKET + (int)i;
    return -1;
}

void service_keep_sockets(void)
{
    for (unsigned i = 0; i < socket_count(); i++)
        fcntl(FIRST_SOCKET + (int)i, F_SETFD, FD_CLOEXEC);
}

/* A path, or the name of an abstract socket behind "@". */
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

void service_tell(const char *format, ...)
{
    char message[MESSAGE_MAX];
    struct sockaddr_un address;
    const char *path = getenv("NOTIFY_SOCKET");
    socklen_t len = path ? read_address(path, &address) : 0;
    va_list values;
    va_start(values, format);
    int size = vsnprintf(message, sizeof(message), format, values);
    va_end(values);
    int fd = len && size > 0 && size < MESSAGE_MAX
                 ? socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
                 : -1;
    if (fd < 0)
        return;
    sendto(fd, message, (size_t)size, MSG_NOSIGNAL, (const struct sockaddr *)&address, len);
    close(fd);
}

int64_t service_watchdog_ms(void)
{
    uint64_t pid = number_of("WATCHDOG_PID"), us = number_of("WATCHDOG_USEC");
    if (pid && pid != (uint64_t)getpid())
        return 0;
    return (int64_t)(us / 1000 / 2);
}
