/* certificates.h - what a server shows to prove who it is: pairs of a certificate and its key.
 *
 *   files ─► certificates_load ─► one for each name that a client may ask for (SNI)
 *                                  the first pair is for who asks for none, or for another
 *
 * A set never changes. Files that are read again are another set: connections keep the one that
 * they began with. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

enum { CERTIFICATES_MAX = 64, CERTIFICATES_TICKET_S = 2 * 3600 };

struct certificate_files {
    const char
        *certificate; /* PEM: the server's own, then those between it and the authority */
    const char *key;  /* PEM, without a passphrase */
};

struct certificates;
struct ssl_st;

/* At least one pair, at most CERTIFICATES_MAX. ERR_INVALID, with a sentence that names the file:
 * it cannot be read, or certificate and key are not a pair. */
enum err certificates_load(const struct certificate_files *files, size_t count,
                           struct certificates **certificates, struct failure *why);

/* References, of one thread. NULL is fine. */
struct certificates *certificates_ref(struct certificates *certificates);
void certificates_unref(struct certificates *certificates);

/* The server's side of a connection, for tls_create; who has it keeps a reference of the set.
 * Tickets, by which a client resumes, are sealed with keys that are drawn anew every
 * CERTIFICATES_TICKET_S; now_ms is monotonic. NULL: out of memory. */
struct ssl_st *certificates_make(struct certificates *certificates, int64_t now_ms);

/* Warns of those that are valid no more, or not yet, and of keys that everybody may read. NULL is fine. */
void certificates_warn(const struct certificates *certificates, int64_t unix_s);

/* How long each is valid from now on, in the text format of Prometheus. */
void certificates_print_metrics(const struct certificates *certificates, int64_t unix_s,
                                struct buf *out);
