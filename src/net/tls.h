/* tls.h - TLS over a non-blocking socket, for clients and servers.
 *
 * Every call does as much as it can at once, but reads only a few records: the socket may
 * still be readable when it returns TLS_WANTS_READ. The result names the socket's
 * direction, not the caller's: a read may have to wait until the socket is writable.
 *
 * The creator of the SSL decides its role: net/client/tls_client.c makes clients that
 * verify their peer, net/certificates.c servers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

enum { TLS_RECORD = 16 * 1024 }; /* bytes that one record holds at most */

struct ssl_st;
struct tls;

enum tls_result {
    TLS_DONE,
    TLS_WANTS_READ,  /* call again when the socket is readable */
    TLS_WANTS_WRITE, /* call again when it is writable */
    TLS_ENDED,       /* the peer sent close_notify */
    TLS_CUT,         /* the socket ended without close_notify */
    TLS_FAILED,
};

/* Sets the modes and options of a context that the functions below rely on. Requires at
 * least TLS 1.2; returns false if OpenSSL lacks that version. */
struct ssl_ctx_st;
bool tls_set_up(struct ssl_ctx_st *context);

/* Takes ownership of the SSL, whose side is set. The descriptor stays the caller's. Returns
 * NULL when out of memory. */
struct tls *tls_create(struct ssl_st *ssl, int fd);

/* Ignores NULL. */
void tls_destroy(struct tls *tls);

enum tls_result tls_handshake(struct tls *tls);

enum tls_result tls_read(struct tls *tls, char *room, size_t size, size_t *len);

/* Writes some of the bytes, at most TLS_RECORD at once. After TLS_WANTS_…, pass the same
 * bytes again; more may follow them. */
enum tls_result tls_write(struct tls *tls, struct slice bytes, size_t *len);

/* Returns true if it holds bytes that polling the socket will no longer report. */
bool tls_has_more(const struct tls *tls);

/* Sends close_notify as far as the socket accepts it now; tls_bytes_sent includes it. */
void tls_say_end(struct tls *tls);

/* Returns the bytes given to the kernel so far, including TLS overhead. */
int64_t tls_bytes_sent(const struct tls *tls);

/* Returns why the last call failed, as the end of a sentence. */
const char *tls_reason(const struct tls *tls);

/* Returns true if the last call failed because the peer does not speak TLS. */
bool tls_peer_is_plain(const struct tls *tls);

/* For the creator of the SSL only. */
struct ssl_st *tls_ssl(const struct tls *tls);
