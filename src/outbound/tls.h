/* tls.h - TLS over a socket that does not block, on the side of the client; private to client.
 *
 * Every call goes as far as it can at once. What it waits for is the socket's, not the
 * caller's, direction: reading may have to wait until something can be written. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"
#include "outbound/trust.h"
#include "outbound/url.h"

struct tls;

enum tls_result {
    TLS_DONE,
    TLS_WANTS_READ,  /* go on when the socket is readable */
    TLS_WANTS_WRITE, /* when it is writable */
    TLS_ENDED,       /* the peer has said that nothing more comes */
    TLS_FAILED, /* and why; ERR_UNTRUSTED, ERR_UNREACHABLE in the handshake, ERR_LOST */
};

/* The name, or the address, is the one that the certificate must be for. The descriptor stays
 * the caller's. NULL: out of memory. */
struct tls *tls_create(const struct trust *trust, const struct url *url, int fd);

/* NULL is fine. */
void tls_destroy(struct tls *tls);

enum tls_result tls_shake_hands(struct tls *tls, struct failure *why);

enum tls_result tls_read(struct tls *tls, char *room, size_t size, size_t *len,
                         struct failure *why);

/* Some of the bytes. After TLS_WANTS_… the same bytes, and maybe more behind them, come
 * again. */
enum tls_result tls_write(struct tls *tls, struct slice bytes, size_t *len,
                          struct failure *why);

/* It holds bytes that the socket does not announce any more. */
bool tls_has_more(const struct tls *tls);

/* Tells the peer that nothing more comes, as far as the socket takes it now. */
void tls_say_end(struct tls *tls);
