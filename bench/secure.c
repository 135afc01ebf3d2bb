/* secure.c - TLS with one set of trusted authorities for all connections of the process. */
#include "secure.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "net/client/tls_client.h"
#include "net/tls.h"

static struct trust *read_trust(const struct options *options)
{
    static struct trust *trust;
    struct failure why;
    const char *file = options->ca[0] ? options->ca : NULL;
    if (!trust && trust_create(file, &trust, &why))
        fatal("--ca: %s", why.text);
    return trust;
}

static struct tls *begin(const struct source *source, const struct options *options)
{
    struct url url;
    struct failure why;
    if (url_read(slice_of(options->url), &url, &why))
        fatal("--url: %s", why.text);
    struct tls *tls = tls_client_create(read_trust(options), &url, source->fd);
    if (!tls)
        fatal("OpenSSL is out of memory");
    if (options->insecure)
        SSL_set_verify(tls_ssl(tls), SSL_VERIFY_NONE, NULL);
    return tls;
}

bool secure_shake(struct source *source, const struct options *options, uint32_t *events)
{
    struct failure why;
    if (!options->secure)
        return true;
    if (!source->tls)
        source->tls = begin(source, options);
    switch (tls_handshake(source->tls)) {
    case TLS_DONE: return true;
    case TLS_WANTS_READ: *events = EPOLLIN; return false;
    case TLS_WANTS_WRITE: *events = EPOLLOUT; return false;
    default: break;
    }
    tls_client_explain(source->tls, &why);
    fatal("%s: %s (--ca FILE trusts another authority, --insecure any)", options->host,
          why.text);
}

static ssize_t settle(enum tls_result result, size_t len)
{
    if (result == TLS_DONE)
        return (ssize_t)len;
    if (result == TLS_ENDED || result == TLS_CUT)
        return 0;
    errno = result == TLS_FAILED ? EPROTO : EAGAIN;
    return -1;
}

ssize_t secure_recv(struct source *source, void *room, size_t size)
{
    size_t len;
    if (!source->tls)
        return recv(source->fd, room, size, 0);
    enum tls_result result = tls_read(source->tls, room, size, &len);
    return settle(result, len);
}

ssize_t secure_send(struct source *source, const void *bytes, size_t size)
{
    size_t len;
    if (!source->tls)
        return send(source->fd, bytes, size, MSG_NOSIGNAL);
    enum tls_result result = tls_write(source->tls, (struct slice){ bytes, size }, &len);
    return settle(result, len);
}
