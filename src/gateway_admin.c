/* gateway_admin.c - one line in, text out, over a Unix socket that only its owner opens. */
#include "gateway_admin.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "base/buf.h"
#include "base/mem.h"
#include "gateway_load.h"

enum { REQUEST_MAX = 64 };

struct admin {
    uv_pipe_t pipe;
    struct accounts *accounts;
    char *path;
    unsigned handles; /* of libuv; the last one frees */
    bool closing;
};

struct admin_conn {
    uv_pipe_t pipe;
    struct admin *admin;
    uv_write_t write;
    char request[REQUEST_MAX];
    size_t len;
    char *answer;
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
    let_go(conn->admin);
    free(conn->answer);
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

static void answer(struct admin_conn *conn)
{
    size_t len = 0;
    FILE *out = open_memstream(&conn->answer, &len);
    if (!out || conn->admin->closing) {
        if (out)
            fclose(out);
        close_conn(conn);
        return;
    }
    if (!strcmp(conn->request, "keys"))
        print_keys(conn->admin->accounts, out);
    else
        fprintf(out, "unknown request; this gateway knows: keys\n");
    fclose(out);
    uv_buf_t buf = uv_buf_init(conn->answer, (unsigned)len);
    if (uv_write(&conn->write, (uv_stream_t *)&conn->pipe, &buf, 1, on_written))
        close_conn(conn);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct admin_conn *conn = container_of(handle, struct admin_conn, pipe);
    (void)suggested;
    *buf = uv_buf_init(conn->request + conn->len, (unsigned)(REQUEST_MAX - 1 - conn->len));
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
    char *end = memchr(conn->request, '\n', conn->len);
    if (!end && conn->len < REQUEST_MAX - 1)
        return;
    *(end ? end : conn->request + conn->len) = 0;
    uv_read_stop(stream);
    answer(conn);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct admin *admin = container_of(listener, struct admin, pipe);
    if (status)
        return;
    struct admin_conn *conn = mem_new(struct admin_conn);
    conn->admin = admin;
    admin->handles++;
    uv_pipe_init(listener->loop, &conn->pipe, 0);
    if (uv_accept(listener, (uv_stream_t *)&conn->pipe) ||
        uv_read_start((uv_stream_t *)&conn->pipe, on_room, on_read))
        close_conn(conn);
}

static void on_listener_closed(uv_handle_t *handle)
{
    let_go(container_of(handle, struct admin, pipe));
}

/* The data directory is locked by us: what is left at the path is an old one of ours. */
enum err admin_create(struct uv_loop_s *loop, const char *path, struct accounts *accounts,
                      struct admin **out, struct failure *why)
{
    struct admin *admin = mem_new(struct admin);
    admin->accounts = accounts;
    admin->path = mem_text(slice_of(path));
    admin->handles = 1;
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

void admin_destroy(struct admin *admin)
{
    if (!admin)
        return;
    admin->closing = true;
    admin->accounts = NULL;
    unlink(admin->path);
    uv_close((uv_handle_t *)&admin->pipe, on_listener_closed);
}

enum err admin_ask(const char *path, const char *request, FILE *out, struct failure *why)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char text[4096];
    ssize_t count;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || strlen(path) >= sizeof(address.sun_path)) {
        if (fd >= 0)
            close(fd);
        return explain(why, ERR_NOT_FOUND, "no gateway answers at %s", path);
    }
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    int length = snprintf(text, sizeof(text), "%s\n", request);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
        write(fd, text, (size_t)length) != length) {
        close(fd);
        return explain(why, ERR_NOT_FOUND, "no gateway answers at %s", path);
    }
    while ((count = read(fd, text, sizeof(text))) > 0)
        fwrite(text, 1, (size_t)count, out);
    close(fd);
    return OK;
}
