/* health.c - sends one request over a blocking socket and prints the response. */
#include "server/gateway/health.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "server/config/config_listen.h"

enum { TIMEOUT_S = 5, ANSWER_MAX = 64 * 1024 };

/* Returns the length of the address; 0: it cannot be connected to. */
static socklen_t address_of(const struct config_listener *listener,
                            struct sockaddr_storage *address)
{
    struct sockaddr_un *un = (struct sockaddr_un *)address;
    struct sockaddr_in *four = (struct sockaddr_in *)address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;
    if (listener->path[0]) {
        un->sun_family = AF_UNIX;
        memcpy(un->sun_path, listener->path, sizeof(un->sun_path));
        return sizeof(*un);
    }
    if (!listener->port)
        return 0;
    if (inet_pton(AF_INET, listener->host, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)listener->port);
        return sizeof(*four);
    }
    if (inet_pton(AF_INET6, listener->host, &six->sin6_addr) != 1)
        return 0;
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((uint16_t)listener->port);
    return sizeof(*six);
}

static bool exchange(int fd, const struct sockaddr_storage *address, socklen_t len,
                     struct buf *answer)
{
    static const char request[] =
        "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    struct timeval timeout = { .tv_sec = TIMEOUT_S };
    char text[4096];
    ssize_t count = 0;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    if (connect(fd, (const struct sockaddr *)address, len) ||
        send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) != sizeof(request) - 1)
        return false;
    while (answer->len < ANSWER_MAX && (count = read(fd, text, sizeof(text))) > 0)
        buf_add(answer, (struct slice){ text, (size_t)count });
    return count == 0;
}

/* Returns the body of a response, after the empty line. */
static struct slice body_of(struct slice answer)
{
    static const char end[] = "\r\n\r\n";
    const char *at = memmem(answer.ptr, answer.len, end, sizeof(end) - 1);
    return at ? slice_from(answer, (size_t)(at - answer.ptr) + sizeof(end) - 1) : SLICE("");
}

static enum err judge(struct slice answer, FILE *out, struct failure *why)
{
    struct slice body = body_of(answer);
    if (!slice_starts(answer, "HTTP/1.1 200 "))
        return explain(why, ERR_INVALID, "the gateway is not ready: %.*s", SLICE_ARG(body));
    fprintf(out, "%.*s\n", SLICE_ARG(body));
    return OK;
}

/* Reads a gateway's response; the caller finishes it. */
static enum err ask(const struct config *config, struct buf *answer, struct failure *why)
{
    struct config_listener listener;
    struct sockaddr_storage address = { 0 };
    enum err refused = config_admin_listener(config, &listener, why);
    if (refused)
        return refused;
    socklen_t len = address_of(&listener, &address);
    if (!len)
        return explain(why, ERR_INVALID,
                       "admin-listen is %s; set it to an address with a port, or to a UNIX "
                       "socket, that the command can connect to",
                       config->admin_listen);
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    errno = 0;
    if (fd < 0 || !exchange(fd, &address, len, answer) || !answer->len)
        refused = explain(
            why, ERR_INVALID,
            "no gateway responds at %s: %s; start it, or name its --data or --config",
            listener.path[0] ? listener.path : config->admin_listen,
            errno == EAGAIN ? "timed out"
            : errno         ? strerror(errno)
                            : "empty response");
    if (fd >= 0)
        close(fd);
    return refused;
}

enum err health_ask(const struct config *config, FILE *out, struct failure *why)
{
    struct buf answer = { 0 };
    enum err refused = ask(config, &answer, why);
    if (!refused)
        refused = judge(buf_slice(&answer), out, why);
    buf_finish(&answer);
    return refused;
}

bool health_responds(const struct config *config)
{
    struct failure ignored;
    struct buf answer = { 0 };
    bool responds = !ask(config, &answer, &ignored);
    buf_finish(&answer);
    return responds;
}
