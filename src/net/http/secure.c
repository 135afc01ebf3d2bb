/* secure.c - the steps of TLS handshakes, and two queues of connections with TLS. */
#include "net/http/secure.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "net/http/server_state.h"
#include "net/tls.h"

static const char hint[] =
    "This port speaks TLS: begin the address with https:// or wss://\n";

void secure_begin(struct connection *conn)
{
    struct secure *secure = mem_new(struct secure);
    secure->conn = conn;
    secure->certificates = certificates_ref(conn->server->certificates);
    list_init(&secure->waiting);
    list_init(&secure->begun);
    conn->secure = secure;
}

/* ---- the end of a handshake ---- */

static void fail(struct connection *conn, const char *reason)
{
    metric_add(M_TLS_FAILED, 1);
    log_debug("TLS handshake failed", "reason", reason, NULL);
    connection_close(conn);
}

/* Replies to a client that used http:// instead of https://. */
static void answer_plain(struct connection *conn)
{
    struct buf *out = &conn->server->scratch;
    buf_clear(out);
    buf_print(out,
              "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n"
              "content-type: text/plain; charset=utf-8\r\ncontent-length: %zu\r\n\r\n%s",
              sizeof(hint) - 1, hint);
    struct piece piece = { buf_slice(out), NULL };
    metric_add(M_HTTP_REFUSED, 1);
    connection_drop_secure(conn);
    connection_send(conn, &piece, 1);
    connection_set_deadline(conn, conn->server->options.closing_timeout_ms);
    connection_linger(conn);
}

static void become_open(struct secure *secure)
{
    struct connection *conn = secure->conn;
    metric_add(SSL_session_reused(tls_ssl(secure->tls)) ? M_TLS_RESUMED : M_TLS_FULL, 1);
    list_remove(&secure->begun);
    conn->server->begun_count--;
    secure->is_open = true;
    conn->outbox.tls = secure->tls;
    conn->outbox.handed = tls_bytes_sent(secure->tls);
    connection_set_deadline(conn, conn->server->options.head_timeout_ms);
    connection_watch(conn);
}

/* ---- one step ---- */

static void close_oldest(struct server *server)
{
    struct secure *oldest = container_of(server->begun.next, struct secure, begun);
    metric_add(M_CONNECTIONS_EVICTED, 1);
    fail(oldest->conn, "too many handshakes in progress");
}

/* Returns false if the handshake has ended, or no byte has arrived yet. */
static bool secure_begin_session(struct secure *secure)
{
    struct connection *conn = secure->conn;
    struct server *server = conn->server;
    char first;
    ssize_t len = recv(conn->watch.fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR)) {
        connection_watch(conn);
        return false;
    }
    if (len <= 0) {
        connection_close(conn);
        return false;
    }
    if ((first >= 'A' && first <= 'Z') || (first >= 'a' && first <= 'z')) {
        answer_plain(conn);
        return false;
    }
    SSL *ssl = certificates_make(secure->certificates, loop_now_ms(server->loop));
    secure->tls = ssl ? tls_create(ssl, conn->watch.fd) : NULL;
    if (!secure->tls) {
        fail(conn, "OpenSSL is out of memory");
        return false;
    }
    list_append(&server->begun, &secure->begun);
    if (++server->begun_count > HANDSHAKES_MAX)
        close_oldest(server);
    connection_set_deadline(conn, server->options.head_timeout_ms);
    return true;
}

static void step(struct secure *secure)
{
    if (!secure->tls && !secure_begin_session(secure))
        return;
    enum tls_result result = tls_handshake(secure->tls);
    secure->waits_to_write = result == TLS_WANTS_WRITE;
    if (result == TLS_DONE)
        become_open(secure);
    else if (result == TLS_WANTS_READ || result == TLS_WANTS_WRITE)
        connection_watch(secure->conn);
    else
        fail(secure->conn, tls_reason(secure->tls));
}

/* ---- the queues ---- */

static struct secure *take_first(struct list *line)
{
    return container_of(list_take(line), struct secure, waiting);
}

static void work(struct deferred *securing)
{
    struct server *server = container_of(securing, struct server, securing);
    struct timeslice reading = loop_timeslice(server->loop),
                     handshaking = loop_timeslice(server->loop);
    while (!list_empty(&server->unread) && timeslice_left(&reading))
        connection_read(take_first(&server->unread)->conn);
    while (!list_empty(&server->handshaking) && timeslice_left(&handshaking))
        step(take_first(&server->handshaking));
    if (!list_empty(&server->unread) || !list_empty(&server->handshaking))
        loop_defer(server->loop, securing);
}

void secure_init(struct server *server)
{
    list_init(&server->handshaking);
    list_init(&server->unread);
    list_init(&server->begun);
    list_init(&server->securing.link);
    server->securing.fn = work;
    server->certificates = certificates_ref(server->options.certificates);
}
