/* tls.c - an OpenSSL connection over its own BIO, because OpenSSL's would raise SIGPIPE. */
#include "net/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "base/list.h"
#include "base/mem.h"

/* Reads from the socket per call; a record takes two, for its head and its body. Some
 * records deliver nothing to the caller, and the peer may send any number of them: new keys
 * (TLS 1.3), or a handshake in records of one byte. OpenSSL keeps reading while there are
 * any, so the BIO stops it. The kernel reports the rest again, for the next turn. */
enum { READS_AT_ONCE = 32 };

struct tls {
    SSL *ssl;
    BIO_METHOD *method;
    int fd;
    int reads_left;   /* in this call */
    int error;        /* errno of a failed socket; 0: none */
    bool ended;       /* the socket has ended */
    int64_t sent;     /* bytes */
    const char *said; /* OpenSSL's reason for a failed call; NULL: none */
    bool plain;       /* the peer's first bytes are not a TLS record */
};

/* ---- the socket, as OpenSSL sees it ---- */

static int moved(BIO *bio, ssize_t len, int retry)
{
    struct tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (len >= 0)
        return (int)len;
    if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)
        BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
    else
        tls->error = errno;
    return -1;
}

static int bio_write(BIO *bio, const char *bytes, int len)
{
    struct tls *tls = BIO_get_data(bio);
    ssize_t sent = send(tls->fd, bytes, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
    tls->sent += sent > 0 ? sent : 0;
    return moved(bio, sent, BIO_FLAGS_WRITE);
}

static int bio_read(BIO *bio, char *bytes, int len)
{
    struct tls *tls = BIO_get_data(bio);
    errno = EAGAIN;
    ssize_t got = -1;
    if (tls->reads_left-- > 0)
        got = recv(tls->fd, bytes, (size_t)len, MSG_DONTWAIT);
    tls->ended = got == 0;
    return moved(bio, got, BIO_FLAGS_READ);
}

static long bio_control(BIO *bio, int what, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return what == BIO_CTRL_FLUSH;
}

static BIO *make_bio(struct tls *tls)
{
    tls->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket");
    if (!tls->method)
        return NULL;
    BIO_meth_set_write(tls->method, bio_write);
    BIO_meth_set_read(tls->method, bio_read);
    BIO_meth_set_ctrl(tls->method, bio_control);
    BIO *bio = BIO_new(tls->method);
    if (!bio)
        return NULL;
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    return bio;
}

/* ---- the connection ---- */

bool tls_set_up(SSL_CTX *context)
{
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS |
                                  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
}

struct tls *tls_create(SSL *ssl, int fd)
{
    struct tls *tls = mem_new(struct tls);
    tls->fd = fd;
    tls->ssl = ssl;
    BIO *bio = make_bio(tls);
    if (!bio) {
        tls_destroy(tls);
        return NULL;
    }
    SSL_set_bio(ssl, bio, bio);
    return tls;
}

void tls_destroy(struct tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl);
    BIO_meth_free(tls->method);
    free(tls);
}

/* Prepares a call. The error queue belongs to the thread, so errors of other connections
 * are removed before a call, and this call's errors after it. */
static void begin_call(struct tls *tls)
{
    ERR_clear_error();
    tls->reads_left = READS_AT_ONCE;
}

static enum tls_result settle(struct tls *tls, int result)
{
    switch (SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_WANT_READ: return TLS_WANTS_READ;
    case SSL_ERROR_WANT_WRITE: return TLS_WANTS_WRITE;
    case SSL_ERROR_ZERO_RETURN: return TLS_ENDED;
    }
    unsigned long code = ERR_peek_last_error();
    tls->said = code ? ERR_reason_error_string(code) : NULL;
    tls->plain = ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER;
    ERR_clear_error();
    return tls->ended && !tls->error ? TLS_CUT : TLS_FAILED;
}

enum tls_result tls_handshake(struct tls *tls)
{
    begin_call(tls);
    int result = SSL_do_handshake(tls->ssl);
    return result == 1 ? TLS_DONE : settle(tls, result);
}

enum tls_result tls_read(struct tls *tls, char *room, size_t size, size_t *len)
{
    begin_call(tls);
    *len = 0;
    int result = SSL_read_ex(tls->ssl, room, size, len);
    return result == 1 ? TLS_DONE : settle(tls, result);
}

enum tls_result tls_write(struct tls *tls, struct slice bytes, size_t *len)
{
    begin_call(tls);
    *len = 0;
    int result = SSL_write_ex(tls->ssl, bytes.ptr, bytes.len, len);
    return result == 1 ? TLS_DONE : settle(tls, result);
}

bool tls_has_more(const struct tls *tls)
{
    return SSL_has_pending(tls->ssl);
}

void tls_say_end(struct tls *tls)
{
    begin_call(tls);
    SSL_shutdown(tls->ssl);
    ERR_clear_error();
}

int64_t tls_bytes_sent(const struct tls *tls)
{
    return tls->sent;
}

const char *tls_reason(const struct tls *tls)
{
    if (tls->error)
        return strerror(tls->error);
    return tls->said ? tls->said : "the peer closed the connection";
}

bool tls_peer_is_plain(const struct tls *tls)
{
    return tls->plain;
}

SSL *tls_ssl(const struct tls *tls)
{
    return tls->ssl;
}
