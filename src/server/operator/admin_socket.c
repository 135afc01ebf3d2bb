/* admin_socket.c - a UNIX socket, for its owner only: one line in, text out. */
#include "server/operator/admin_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vault/secret.h"
#include "server/operator/operator_call.h"

struct admin {
    uv_pipe_t pipe;
    struct operators *operators;
    struct list conns; // admin_conn::link
    char *path;
    unsigned handles; /* libuv handles; the last one frees this struct */
    bool closing;
};

struct admin_conn {
    uv_pipe_t pipe;
    struct admin *admin;
    struct list link; // admin::conns
    uv_write_t write;
    size_t len; /* of what has arrived of call.line */
    struct operator_call call;
};

static void let_go(struct admin *admin)
{
    if (--admin->handles)
        return;
    free(admin->path);
    free(admin);
}

static void on_conn_closed(uv_handle_t *handle)
{
    struct admin_conn *conn = container_of(handle, struct admin_conn, pipe);
    list_remove(&conn->link);
    let_go(conn->admin);
    operator_call_finish(&conn->call);
    secret_wipe(conn->call.line, sizeof(conn->call.line));
    free(conn);
}

static void close_conn(struct admin_conn *conn)
{
    if (!uv_is_closing((uv_handle_t *)&conn->pipe))
        uv_close((uv_handle_t *)&conn->pipe, on_conn_closed);
}

static void on_written(uv_write_t *write, int status)
{
    (void)status;
    close_conn(container_of(write, struct admin_conn, write));
}

static void on_answered(struct operator_call *call, struct slice text)
{
    struct admin_conn *conn = container_of(call, struct admin_conn, call);
    uv_buf_t buf = uv_buf_init((char *)text.ptr, (unsigned)text.len);
    if (conn->admin->closing ||
        uv_write(&conn->write, (uv_stream_t *)&conn->pipe, &buf, 1, on_written))
        close_conn(conn);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct admin_conn *conn = container_of(handle, struct admin_conn, pipe);
    (void)suggested;
    *buf = uv_buf_init(conn->call.line + conn->len,
                       (unsigned)(OPERATOR_LINE_MAX - 1 - conn->len));
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct admin_conn *conn = container_of(stream, struct admin_conn, pipe);
    (void)buf;
    if (count < 0) {
        close_conn(conn);
        return;
    }
    conn->len += (size_t)count;
    char *end = memchr(conn->call.line, '\n', conn->len);
    if (!end && conn->len < OPERATOR_LINE_MAX - 1)
        return;
    *(end ? end : conn->call.line + conn->len) = 0;
    uv_read_stop(stream);
    operator_call_begin(&conn->call, conn->admin->operators);
}

/* Records the user and process at the other end, as the kernel reports them. */
static void note_actor(struct admin_conn *conn)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    int fd;
    if (uv_fileno((uv_handle_t *)&conn->pipe, &fd) ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
        snprintf(conn->call.actor, sizeof(conn->call.actor), "unknown");
    else
        snprintf(conn->call.actor, sizeof(conn->call.actor), "uid %u, pid %d",
                 (unsigned)peer.uid, (int)peer.pid);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct admin *admin = container_of(listener, struct admin, pipe);
    if (status)
        return;
    struct admin_conn *conn = mem_new(struct admin_conn);
    conn->admin = admin;
    conn->call.done = on_answered;
    list_append(&admin->conns, &conn->link);
    admin->handles++;
    uv_pipe_init(listener->loop, &conn->pipe, 0);
    if (uv_accept(listener, (uv_stream_t *)&conn->pipe) ||
        uv_read_start((uv_stream_t *)&conn->pipe, on_room, on_read)) {
        close_conn(conn);
        return;
    }
    note_actor(conn);
}

static void on_listener_closed(uv_handle_t *handle)
{
    let_go(container_of(handle, struct admin, pipe));
}

/* We hold the lock of the data directory, so a socket at the path is an old one of ours. */
enum err admin_create(struct uv_loop_s *loop, const char *path, struct operators *operators,
                      struct admin **out, struct failure *why)
{
    struct admin *admin = mem_new(struct admin);
    admin->operators = operators;
    admin->path = mem_text(slice_of(path));
    admin->handles = 1;
    list_init(&admin->conns);
    uv_pipe_init(loop, &admin->pipe, 0);
    unlink(path);
    mode_t before = umask(0177);
    int code = strlen(path) < sizeof(((struct sockaddr_un *)0)->sun_path)
                   ? uv_pipe_bind(&admin->pipe, path)
                   : UV_ENAMETOOLONG;
    umask(before);
    if (!code)
        code = uv_listen((uv_stream_t *)&admin->pipe, 8, on_connection);
    if (code) {
        uv_close((uv_handle_t *)&admin->pipe, on_listener_closed);
        return explain(why, ERR_INVALID, "cannot listen on %s: %s", path,
                       uv_strerror(code));
    }
    *out = admin;
    return OK;
}

/* Connections that wait for a response are closed after it. All others are closed now: they
 * would keep the loop alive. */
void admin_destroy(struct admin *admin)
{
    if (!admin)
        return;
    admin->closing = true;
    list_each (link, &admin->conns) {
        struct admin_conn *conn = container_of(link, struct admin_conn, link);
        if (!operator_call_is_busy(&conn->call))
            close_conn(conn);
    }
    unlink(admin->path);
    uv_close((uv_handle_t *)&admin->pipe, on_listener_closed);
}

static enum err read_answer(struct slice answer, FILE *out, struct failure *why)
{
    bool misused = slice_starts(answer, OPERATOR_USAGE_MARK);
    if (misused || slice_starts(answer, OPERATOR_ERROR_MARK))
        return explain(
            why, misused ? ERR_USAGE : ERR_INVALID, "%.*s",
            SLICE_ARG(slice_trim(slice_from(answer, strlen(OPERATOR_ERROR_MARK)))));
    if (!answer.len)
        return explain(why, ERR_INVALID, "the gateway stopped without a response");
    if (*answer.ptr)
        fwrite(answer.ptr, 1, answer.len, out);
    return OK;
}

enum err admin_ask(const char *path, const char *request, FILE *out, struct failure *why)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char text[OPERATOR_LINE_MAX];
    struct buf answered = { 0 };
    ssize_t count;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || strlen(path) >= sizeof(address.sun_path)) {
        if (fd >= 0)
            close(fd);
        return explain(why, ERR_NOT_FOUND, "no gateway responds at %s", path);
    }
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    int length = snprintf(text, sizeof(text), "%s\n", request);
    if (length >= (int)sizeof(text)) {
        close(fd);
        return explain(why, ERR_INVALID, "command too long (max %d bytes)",
                       OPERATOR_LINE_MAX);
    }
    bool asked = !connect(fd, (struct sockaddr *)&address, sizeof(address)) &&
                 write(fd, text, (size_t)length) == length;
    secret_wipe(text, sizeof(text));
    if (!asked) {
        close(fd);
        return explain(why, ERR_NOT_FOUND, "no gateway responds at %s", path);
    }
    while ((count = read(fd, text, sizeof(text))) > 0)
        buf_add(&answered, (struct slice){ text, (size_t)count });
    close(fd);
    enum err err = read_answer(buf_slice(&answered), out, why);
    secret_forget_buf(&answered);
    return err;
}
