/* listener.c - binds and accepts, and replies 503 at the connection limit. */
#include "net/http/listener.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/metrics.h"
#include "net/http/admission.h"
#include "net/http/server_state.h"

enum {
    BACKLOG = 4096,
    ACCEPTS_PER_TURN = 64,
    REST_MS = 50,
    WASTE_READS = 16,
    UNSENT_BYTES = 256 * 1024, /* unsent bytes per connection in the kernel, besides those
                                * in flight; more would become stale */
};

/* ---- accepting ---- */

static const char turning_away[] = "rejecting connections";

/* Sends 503, so that the client comes back later, and closes. It reads input first, because
 * otherwise the kernel would reset the connection and discard the response. It does not
 * wait for a client that continues to send. A TLS client would not understand the response,
 * so its connection is just closed. */
static void turn_away(struct listener *listener, int fd)
{
    char answer[SERVER_FULL_ANSWER], waste[4096];
    size_t len = server_write_full(listener->server, answer);
    if (listener->options.secure) {
        close(fd);
        return;
    }
    if (send(fd, answer, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len)
        shutdown(fd, SHUT_WR);
    for (int i = 0; i < WASTE_READS; i++)
        if (recv(fd, waste, sizeof(waste), MSG_DONTWAIT) != sizeof(waste))
            break;
    close(fd);
}

/* Returns the descriptor, or -1 with errno. */
static int accept_one(struct listener *listener, struct address *peer)
{
    struct sockaddr_storage from = { 0 };
    socklen_t len = sizeof(from);
    int fd =
        accept4(listener->fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    *peer = address_of_socket((struct sockaddr *)&from);
    return fd;
}

/* Without any free descriptor, gives up the spare one for as long as a rejection takes. */
static bool shed_one(struct listener *listener)
{
    struct server *server = listener->server;
    struct address peer;
    if (server->spare_fd < 0)
        return false;
    close(server->spare_fd);
    int fd = accept_one(listener, &peer);
    if (fd >= 0)
        turn_away(listener, fd);
    server->spare_fd = server_open_spare();
    return fd >= 0;
}

static void on_listener(uv_poll_t *handle, int status, int events);

void listener_on_rested(struct timer *timer)
{
    struct listener *listener = container_of(timer, struct listener, rest);
    if (listener->server->spare_fd < 0)
        listener->server->spare_fd = server_open_spare();
    listener_accept(listener);
}

/* Stops accepting for REST_MS, because the kernel would report the connection over and
 * over. */
static void rest(struct listener *listener)
{
    struct server *server = listener->server;
    uv_poll_stop(&listener->handle);
    loop_set_timer(server->loop, &listener->rest, server->rest_kind, REST_MS);
}

/* Handles an error of accept. Returns false if no more can be accepted in this turn. */
static bool accept_failed(struct listener *listener, int error)
{
    char reason[80];
    if (error == ECONNABORTED || error == EINTR || error == EPROTO)
        return true;
    if (error == EAGAIN)
        return false;
    server_warn(listener->server, turning_away,
                uv_strerror_r(-error, reason, sizeof(reason)));
    if ((error == EMFILE || error == ENFILE) && shed_one(listener))
        return true;
    rest(listener);
    return false;
}

static void on_listener(uv_poll_t *handle, int status, int events)
{
    struct listener *listener = container_of(handle, struct listener, handle);
    (void)status, (void)events;
    for (unsigned i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct address peer;
        int fd = accept_one(listener, &peer);
        if (fd < 0) {
            if (!accept_failed(listener, errno))
                return;
        } else if (admission_is_full(listener)) {
            server_warn(listener->server, turning_away, "connection limit reached");
            turn_away(listener, fd);
        } else {
            admission_adopt(listener, fd, &peer);
        }
    }
}

/* ---- the address ---- */

static const char *setting_of(const struct listen_options *options)
{
    if (options->setting)
        return options->setting;
    return options->admin ? "admin-listen" : "listen";
}

/* Names the flag that sets another port, with the next port as an example. */
static enum err address_in_use(const struct listen_options *options, const char *reason,
                               struct failure *why)
{
    bool six = strchr(options->host, ':') != NULL;
    return explain(why, ERR_INVALID,
                   "cannot listen on %s port %d: %s; choose another port, for example "
                   "--%s %s%s%s:%d%s",
                   options->host, options->port, reason, setting_of(options),
                   six ? "[" : "", options->host, six ? "]" : "",
                   options->port < UINT16_MAX ? options->port + 1 : options->port - 1,
                   options->has_one_port ? ", and the same port at all gateways" : "");
}

static enum err cannot_listen(const struct listener *listener, int error,
                              struct failure *why)
{
    const struct listen_options *options = &listener->options;
    char reason[80];
    uv_strerror_r(-error, reason, sizeof(reason));
    if (options->path)
        return explain(why, ERR_INVALID, "cannot listen on %s: %s", options->path, reason);
    if (error == EADDRINUSE)
        return address_in_use(options, reason, why);
    if (error == EADDRNOTAVAIL)
        return explain(
            why, ERR_INVALID,
            "cannot listen on %s port %d: %s; give %s an address of this machine",
            options->host, options->port, reason, setting_of(options));
    return explain(why, ERR_INVALID, "cannot listen on %s port %d: %s", options->host,
                   options->port, reason);
}

static socklen_t parse_address(const struct listen_options *options,
                               struct sockaddr_storage *address)
{
    struct sockaddr_un *un = (struct sockaddr_un *)address;
    if (options->path) {
        un->sun_family = AF_UNIX;
        if (!options->path[0] || strlen(options->path) >= sizeof(un->sun_path))
            return 0;
        memcpy(un->sun_path, options->path, strlen(options->path) + 1);
        return sizeof(*un);
    }
    if (options->port < 0 || options->port > UINT16_MAX)
        return 0;
    if (!uv_ip4_addr(options->host, options->port, (struct sockaddr_in *)address))
        return sizeof(struct sockaddr_in);
    if (!uv_ip6_addr(options->host, options->port, (struct sockaddr_in6 *)address))
        return sizeof(struct sockaddr_in6);
    return 0;
}

static bool somebody_listens(const struct sockaddr_storage *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool connected = fd >= 0 && (!connect(fd, (const struct sockaddr *)address,
                                          sizeof(struct sockaddr_un)) ||
                                 errno == EAGAIN /* its backlog is full */);
    if (fd >= 0)
        close(fd);
    return connected;
}

/* Removes a socket that a dead process has left at the path. */
static enum err clear_path(const struct listener *listener,
                           const struct sockaddr_storage *address, struct failure *why)
{
    const char *path = listener->options.path;
    struct stat status;
    if (lstat(path, &status))
        return errno == ENOENT ? OK : cannot_listen(listener, errno, why);
    if (!S_ISSOCK(status.st_mode) || status.st_uid != geteuid())
        return explain(why, ERR_INVALID,
                       "cannot listen on %s: the file is not a socket of this user; remove "
                       "it, or choose another path",
                       path);
    if (somebody_listens(address))
        return cannot_listen(listener, EADDRINUSE, why);
    return unlink(path) ? cannot_listen(listener, errno, why) : OK;
}

/* Creates the file and sets its mode in two calls. No client can connect in between,
 * because it is rejected before listen. */
static int bind_path(struct listener *listener, const struct sockaddr_storage *address)
{
    const struct listen_options *options = &listener->options;
    struct stat status;
    if (bind(listener->fd, (const struct sockaddr *)address, sizeof(struct sockaddr_un)))
        return errno;
    listener->path = mem_text(slice_of(options->path));
    if (chmod(options->path, options->mode ? options->mode : S_IRUSR | S_IWUSR) ||
        lstat(options->path, &status))
        return errno;
    listener->device = status.st_dev;
    listener->inode = status.st_ino;
    return 0;
}

static int bind_port(struct listener *listener, struct sockaddr_storage *address,
                     socklen_t len)
{
    int on = 1, unsent = UNSENT_BYTES;
    setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    /* Accepted sockets inherit both options. */
    setsockopt(listener->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(listener->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
    if (bind(listener->fd, (const struct sockaddr *)address, len) ||
        getsockname(listener->fd, (struct sockaddr *)address, &len))
        return errno;
    listener->port =
        ntohs(address->ss_family == AF_INET ? ((struct sockaddr_in *)address)->sin_port
                                            : ((struct sockaddr_in6 *)address)->sin6_port);
    return 0;
}

static enum err open_socket(struct listener *listener, struct sockaddr_storage *address,
                            socklen_t len, struct failure *why)
{
    int kind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
    listener->fd = socket(address->ss_family, kind, 0);
    if (listener->fd < 0)
        return cannot_listen(listener, errno, why);
    int error = listener->options.path ? bind_path(listener, address)
                                       : bind_port(listener, address, len);
    if (!error && listen(listener->fd, BACKLOG))
        error = errno;
    return error ? cannot_listen(listener, error, why) : OK;
}

/* Uses a socket that another process has bound, and keeps bound when this one exits. */
static enum err take_over(struct listener *listener, struct failure *why)
{
    int fd = listener->options.handed, unsent = UNSENT_BYTES, listens = 0;
    socklen_t len = sizeof(listens);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) || !listens)
        return explain(why, ERR_INVALID, "descriptor %d is not a listening socket", fd);
    int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (!listener->options.path)
        setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
    listener->fd = fd;
    listener->port = listener->options.port;
    return OK;
}

enum err listener_bind(struct listener *listener, struct server *server,
                       const struct listen_options *options, struct failure *why)
{
    struct sockaddr_storage address = { 0 };
    socklen_t len = parse_address(options, &address);
    *listener = (struct listener){ .server = server, .options = *options, .fd = -1 };
    if (options->handed)
        return take_over(listener, why);
    if (!len && options->path)
        return explain(why, ERR_INVALID, "cannot listen on %s: path too long",
                       options->path);
    if (!len)
        return explain(why, ERR_INVALID, "cannot listen on \"%s\" port %d: invalid address",
                       options->host, options->port);
    enum err refused = options->path ? clear_path(listener, &address, why) : OK;
    if (!refused)
        refused = open_socket(listener, &address, len, why);
    if (refused)
        listener_finish(listener);
    return refused;
}

void listener_start(struct listener *listener)
{
    struct server *server = listener->server;
    int error = uv_poll_init(loop_uv(server->loop), &listener->handle, listener->fd);
    assert(!error); /* it listens already */
    if (!listener_is_kept(listener))
        listener_accept(listener);
}

bool listener_is_kept(const struct listener *listener)
{
    return listener->options.handed && !listener->options.admin;
}

void listener_accept(struct listener *listener)
{
    uv_poll_start(&listener->handle, UV_READABLE, on_listener);
}

void listener_pause(struct listener *listener)
{
    timers_clear(loop_timers(listener->server->loop), &listener->rest);
    uv_poll_stop(&listener->handle);
}

static void close_socket(struct listener *listener)
{
    struct stat status;
    if (listener->fd < 0)
        return;
    close(listener->fd);
    listener->fd = -1;
    if (listener->path && !lstat(listener->path, &status) &&
        status.st_dev == listener->device && status.st_ino == listener->inode)
        unlink(listener->path);
}

void listener_close(struct listener *listener, uv_close_cb closed)
{
    if (uv_is_closing((uv_handle_t *)&listener->handle))
        return;
    timers_clear(loop_timers(listener->server->loop), &listener->rest);
    uv_close((uv_handle_t *)&listener->handle, closed);
    close_socket(listener);
}

void listener_leave(struct listener *listener, uv_close_cb closed)
{
    if (!uv_is_closing((uv_handle_t *)&listener->handle))
        on_listener(&listener->handle, 0, UV_READABLE);
    listener_close(listener, closed);
}

void listener_finish(struct listener *listener)
{
    close_socket(listener);
    free(listener->path);
    listener->path = NULL;
}
