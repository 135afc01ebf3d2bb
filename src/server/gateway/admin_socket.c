/* admin_socket.c - a UNIX socket, for its owner only: one line in, text out. */
#include "server/gateway/admin_socket.h"

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
#include "server/upkeep/key_rotation.h"
#include "store/lead/leading.h"

enum { REQUEST_MAX = 4096 };

/* Prefixes of a response that reports an error: the words were invalid, or the command
 * failed. */
static const char usage_mark[] = "usage: ", error_mark[] = "error: ";

struct admin {
    uv_pipe_t pipe;
    struct admin_options options;
    struct rotate *rotate;
    struct leading *leading; /* NULL: this gateway does not lead */
    struct list conns;       // admin_conn::link
    char *path;
    unsigned handles; /* libuv handles; the last one frees this struct */
    bool closing;
};

struct admin_conn {
    uv_pipe_t pipe;
    struct admin *admin;
    struct list link; // admin::conns
    uv_write_t write;
    char actor[48];
    char request[REQUEST_MAX];
    size_t len;
    struct account_command command;
    FILE *out; /* the response; NULL: no request yet, or the response was sent */
    char *answer;
    size_t answer_len;
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
    if (conn->answer)
        secret_wipe(conn->answer, conn->answer_len);
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

/* Sends what was printed to conn->out, or the error. If nothing was printed (an empty
 * list), sends the zero at its end: an empty response would look as if the gateway had
 * exited. */
static void give_answer(struct admin_conn *conn, enum err status, const char *reason)
{
    if (status) {
        rewind(conn->out);
        fprintf(conn->out, "%s%s\n", status == ERR_USAGE ? usage_mark : error_mark, reason);
    }
    fclose(conn->out);
    conn->out = NULL;
    size_t len = conn->answer_len ? conn->answer_len : 1;
    uv_buf_t buf = uv_buf_init(conn->answer, (unsigned)len);
    if (conn->admin->closing ||
        uv_write(&conn->write, (uv_stream_t *)&conn->pipe, &buf, 1, on_written))
        close_conn(conn);
}

static void on_rotated(void *owner, enum err status, const char *text)
{
    struct admin_conn *conn = owner;
    fprintf(conn->out, "%s\n", text);
    log_audit("vault rotate", "by", conn->actor, "result", text, NULL);
    give_answer(conn, status, text);
}

static void rotate(struct admin_conn *conn, struct slice key)
{
    struct failure why;
    enum err refused = conn->admin->rotate
                           ? rotate_begin(conn->admin->rotate, key, on_rotated, conn, &why)
                           : explain(&why, ERR_DRAINING, "the gateway is not ready");
    if (!refused)
        return;
    log_audit("vault rotate", "by", conn->actor, "result", why.text, NULL);
    give_answer(conn, refused, why.text);
}

/* The response comes before the end: this process starts again when it has lost the lead. */
static void pass_lead(struct admin_conn *conn, struct slice name)
{
    struct failure why;
    struct leading *leading = conn->admin->leading;
    char *text = mem_text(name);
    enum err refused =
        leading ? leading_pass(leading, text, &why)
                : explain(&why, ERR_DRAINING,
                          "this gateway does not lead; run this on the machine of the "
                          "leading gateway");
    if (!refused)
        fprintf(conn->out, "the lead is handed over to %s\n", text);
    log_audit("lead", "by", conn->actor, "to", text, "result", refused ? why.text : "ok",
              NULL);
    free(text);
    give_answer(conn, refused, why.text);
}

static void on_command(struct account_command *command, enum err status)
{
    struct admin_conn *conn = container_of(command, struct admin_conn, command);
    give_answer(conn, status, command->write.why.text);
}

static enum err choose_change(const struct subcommand *commands,
                              struct account_command *command)
{
    const struct subcommand *row;
    struct failure *why = &command->write.why;
    enum err refused = subcommand_read(commands, command->words, command->word_count, &row,
                                       &command->said, why);
    if (!refused && !row->change)
        refused = explain(why, ERR_USAGE, "%s: unknown command of the gateway", row->words);
    if (!refused)
        command->change = row->change;
    return refused;
}

static void run_command(struct admin_conn *conn)
{
    struct account_command *command = &conn->command;
    command->accounts = conn->admin->options.accounts;
    command->writer = conn->admin->options.writer;
    command->url = conn->admin->options.url;
    command->out = conn->out;
    command->actor = conn->actor;
    command->done = on_command;
    enum err refused = account_command_read(command, slice_of(conn->request));
    if (!refused)
        refused = choose_change(conn->admin->options.commands, command);
    if (!refused) {
        account_command_begin(command);
        return;
    }
    give_answer(conn, refused, command->write.why.text);
    account_command_forget(command);
}

static void ask(struct admin_conn *conn)
{
    static const char rotation[] = "vault rotate ", lead[] = "lead ";
    struct slice request = slice_of(conn->request);
    conn->out = open_memstream(&conn->answer, &conn->answer_len);
    if (!conn->out || conn->admin->closing) {
        if (conn->out)
            fclose(conn->out);
        close_conn(conn);
    } else if (slice_starts(request, "[")) {
        run_command(conn);
    } else if (slice_starts(request, rotation)) {
        rotate(conn, slice_from(request, sizeof(rotation) - 1));
    } else if (slice_starts(request, lead)) {
        pass_lead(conn, slice_from(request, sizeof(lead) - 1));
    } else {
        give_answer(conn, ERR_INVALID, "unknown command of the gateway");
    }
    secret_wipe(conn->request, sizeof(conn->request)); /* it may contain a key */
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
    ask(conn);
}

/* Records the user and process at the other end, as the kernel reports them. */
static void note_actor(struct admin_conn *conn)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    int fd;
    if (uv_fileno((uv_handle_t *)&conn->pipe, &fd) ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
        snprintf(conn->actor, sizeof(conn->actor), "unknown");
    else
        snprintf(conn->actor, sizeof(conn->actor), "uid %u, pid %d", (unsigned)peer.uid,
                 (int)peer.pid);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct admin *admin = container_of(listener, struct admin, pipe);
    if (status)
        return;
    struct admin_conn *conn = mem_new(struct admin_conn);
    conn->admin = admin;
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
enum err admin_create(struct uv_loop_s *loop, const char *path,
                      const struct admin_options *options, struct admin **out,
                      struct failure *why)
{
    struct admin *admin = mem_new(struct admin);
    admin->options = *options;
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

void admin_serve_leader(struct admin *admin, struct rotate *rotate, struct leading *leading)
{
    admin->rotate = rotate;
    admin->leading = leading;
}

/* Connections that wait for a response are closed after it. All others are closed now: they
 * would keep the loop alive. */
void admin_destroy(struct admin *admin)
{
    if (!admin)
        return;
    admin->closing = true;
    admin->options.accounts = NULL;
    admin->rotate = NULL;
    admin->leading = NULL;
    list_each (link, &admin->conns) {
        struct admin_conn *conn = container_of(link, struct admin_conn, link);
        if (!conn->out)
            close_conn(conn);
    }
    unlink(admin->path);
    uv_close((uv_handle_t *)&admin->pipe, on_listener_closed);
}

static enum err read_answer(struct slice answer, FILE *out, struct failure *why)
{
    bool misused = slice_starts(answer, usage_mark);
    if (misused || slice_starts(answer, error_mark))
        return explain(why, misused ? ERR_USAGE : ERR_INVALID, "%.*s",
                       SLICE_ARG(slice_trim(slice_from(answer, sizeof(error_mark) - 1))));
    if (!answer.len)
        return explain(why, ERR_INVALID, "the gateway stopped without a response");
    if (*answer.ptr)
        fwrite(answer.ptr, 1, answer.len, out);
    return OK;
}

enum err admin_ask(const char *path, const char *request, FILE *out, struct failure *why)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char text[REQUEST_MAX];
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
        return explain(why, ERR_INVALID, "command too long (max %d bytes)", REQUEST_MAX);
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
