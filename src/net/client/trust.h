/* trust.h - the certificates that clients trust: the system's store and the operator's.
 *
 * Shared by all clients of a process. */
#pragma once

#include "base/error.h"

struct trust;

/* Reads the store, which takes about 30 ms, so call it once, at start. ca_file:
 * certificates in PEM that are trusted in addition; NULL: none. At least TLS 1.2.
 * ERR_INVALID, with the reason: the file is unreadable. */
enum err trust_create(const char *ca_file, struct trust **trust, struct failure *why);

/* Ignores NULL. Connections that use it may continue. */
void trust_destroy(struct trust *trust);

/* Private to client. */
struct ssl_st;
struct ssl_st *trust_make(const struct trust *trust);
