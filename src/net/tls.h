/* tls.h - TLS over a socket that does not block, on either side.
 *
 * Every call goes as far as it can at once, but reads no more than a few records: the socket may be
 * readable still when TLS_WANTS_READ is said. What it waits for is the socket's, not the
 * caller's, direction: reading may have to wait until something can be written.
 *
 * Who makes the SSL says what it is: net/client/tls_client.c a client that verifies whom it
 * speaks to, net/certificates.c a server. */
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
    TLS_WANTS_READ,  /* go on when the socket is readable */
    TLS_WANTS_WRITE, /* when it is writable */
    TLS_ENDED,       /* the peer has said that nothing more comes */
    TLS_CUT,         /* the socket has ended, and the peer has not said so */
    TLS_FAILED,
};

/* Modes and options of a context without which the calls below are not what they say; TLS 1.2 is
 * the least. False: OpenSSL has no such version. */
struct ssl_ctx_st;
bool tls_set_up(struct ssl_ctx_st *context);

/* Takes over the SSL, whose side is set. The descriptor stays the caller's. NULL: out of memory. */
struct tls *tls_create(struct ssl_st *ssl, int fd);

/* NULL is fine. */
void tls_destroy(struct tls *tls);

enum tls_result tls_shake_hands(struct tls *tls);

enum tls_result tls_read(struct tls *tls, char *room, size_t size, size_t *len);

/* Some of the bytes, of which not more than TLS_RECORD are taken at once. After TLS_WANTS_… the
 * same bytes, and maybe more behind them, come again. */
enum tls_result tls_write(struct tls *tls, struct slice bytes, size_t *len);

/* It holds bytes that the socket does not announce any more. */
bool tls_has_more(const struct tls *tls);

/* Tells the peer that nothing more comes, as far as the socket takes it now; bytes_sent counts
 * that, too. */
void tls_say_end(struct tls *tls);

/* Bytes that the kernel was given so far, records and all. */
int64_t tls_bytes_sent(const struct tls *tls);

/* Why the last call failed, as the end of a sentence. */
const char *tls_reason(const struct tls *tls);

/* Private to who made the SSL. */
struct ssl_st *tls_ssl(const struct tls *tls);
