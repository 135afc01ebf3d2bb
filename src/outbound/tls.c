/* tls.c - an SSL over a BIO of our own, because that of OpenSSL would raise SIGPIPE. */
#include "outbound/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include "base/list.h"
#include "base/mem.h"

struct tls {
    SSL *ssl;
    BIO_METHOD *method;
    int fd;
    int error; /* errno of the socket when it failed; 0: it did not */
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
    return moved(bio, send(tls->fd, bytes, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT),
                 BIO_FLAGS_WRITE);
}

static int bio_read(BIO *bio, char *bytes, int len)
{
    struct tls *tls = BIO_get_data(bio);
    return moved(bio, recv(tls->fd, bytes, (size_t)len, MSG_DONTWAIT), BIO_FLAGS_READ);
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

static bool expect_name(SSL *ssl, const struct url *url)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                               X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (url->is_ip)
        return X509_VERIFY_PARAM_set1_ip_asc(param, url->host);
    return SSL_set1_host(ssl, url->host) && SSL_set_tlsext_host_name(ssl, url->host);
}

struct tls *tls_create(const struct trust *trust, const struct url *url, int fd)
{
    struct tls *tls = mem_new(struct tls);
    tls->fd = fd;
    tls->ssl = trust_make(trust);
    BIO *bio = tls->ssl ? make_bio(tls) : NULL;
    if (!bio)
        goto fail;
    SSL_set_bio(tls->ssl, bio, bio);
    SSL_set_connect_state(tls->ssl);
    if (!expect_name(tls->ssl, url))
        goto fail;
    return tls;
fail:
    tls_destroy(tls);
    return NULL;
}

void tls_destroy(struct tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl);
    BIO_meth_free(tls->method);
    free(tls);
}

static const char *reason(const struct tls *tls)
{
    unsigned long code = ERR_peek_last_error();
    const char *text = code ? ERR_reason_error_string(code) : NULL;
    if (tls->error)
        return strerror(tls->error);
    return text ? text : "the peer closed the connection";
}

static enum tls_result settle(struct tls *tls, int result, struct failure *why)
{
    switch (SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_WANT_READ: return TLS_WANTS_READ;
    case SSL_ERROR_WANT_WRITE: return TLS_WANTS_WRITE;
    case SSL_ERROR_ZERO_RETURN: return TLS_ENDED;
    }
    explain(why, ERR_LOST, "the TLS connection was lost: %s", reason(tls));
    return TLS_FAILED;
}

static void explain_refusal(const struct tls *tls, struct failure *why)
{
    long verdict = SSL_get_verify_result(tls->ssl);
    if (verdict != X509_V_OK)
        explain(why, ERR_UNTRUSTED, "the certificate is not trusted: %s",
                X509_verify_cert_error_string(verdict));
    else
        explain(why, ERR_UNREACHABLE, "there is no TLS connection: %s", reason(tls));
}

enum tls_result tls_shake_hands(struct tls *tls, struct failure *why)
{
    ERR_clear_error();
    int result = SSL_do_handshake(tls->ssl);
    if (result == 1)
        return TLS_DONE;
    enum tls_result settled = settle(tls, result, why);
    if (settled == TLS_FAILED || settled == TLS_ENDED) {
        explain_refusal(tls, why);
        settled = TLS_FAILED;
    }
    return settled;
}

enum tls_result tls_read(struct tls *tls, char *room, size_t size, size_t *len,
                         struct failure *why)
{
    ERR_clear_error();
    *len = 0;
    int result = SSL_read_ex(tls->ssl, room, size, len);
    return result == 1 ? TLS_DONE : settle(tls, result, why);
}

enum tls_result tls_write(struct tls *tls, struct slice bytes, size_t *len,
                          struct failure *why)
{
    ERR_clear_error();
    *len = 0;
    int result = SSL_write_ex(tls->ssl, bytes.ptr, bytes.len, len);
    return result == 1 ? TLS_DONE : settle(tls, result, why);
}

bool tls_has_more(const struct tls *tls)
{
    return SSL_has_pending(tls->ssl);
}

void tls_say_end(struct tls *tls)
{
    ERR_clear_error();
    SSL_shutdown(tls->ssl);
    ERR_clear_error();
}
