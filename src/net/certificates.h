/* certificates.h - a TLS server's certificates, each with its key.
 *
 *   files ─► certificates_load ─► one for each name that a client may request (SNI);
 *                                 the first pair is for a client that requests none of them
 *
 * A set never changes. Reading the files again creates another set; connections keep the
 * set they began with. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

enum { CERTIFICATES_MAX = 64, CERTIFICATES_TICKET_S = 2 * 3600 };

struct certificate_files {
    const char *certificate; /* PEM: the server's own, then the chain */
    const char *key;         /* PEM, without a passphrase */
};

struct certificates;
struct ssl_st;

/* Loads at least one pair, at most CERTIFICATES_MAX. ERR_INVALID, with a sentence that
 * names the file: it is unreadable, or certificate and key are not a pair. */
enum err certificates_load(const struct certificate_files *files, size_t count,
                           struct certificates **certificates, struct failure *why);

/* Reference counting, by one thread. Both ignore NULL. */
struct certificates *certificates_ref(struct certificates *certificates);
void certificates_unref(struct certificates *certificates);

/* Returns the server's side of a connection, for tls_create; NULL when out of memory. The
 * caller must keep a reference to the set while it uses the result. Session tickets are
 * sealed with keys that change every CERTIFICATES_TICKET_S. now_ms is monotonic. */
struct ssl_st *certificates_make(struct certificates *certificates, int64_t now_ms);

/* Logs a warning for each certificate that has expired or is not valid yet, and for each
 * private key that every user of the machine may read. Ignores NULL. */
void certificates_warn(const struct certificates *certificates, int64_t unix_s);

/* Appends the remaining validity of each certificate in the text format of Prometheus. */
void certificates_print_metrics(const struct certificates *certificates, int64_t unix_s,
                                struct buf *out);
