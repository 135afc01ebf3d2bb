/* trust.h - whose certificates a client believes: the system's store, and what the operator
 * adds. Shared by all clients of a process. */
#pragma once

#include "base/error.h"

struct trust;

/* Reads the store, which takes some 30 ms: once, at start. ca_file: certificates in PEM that
 * are trusted in addition; NULL: none. TLS 1.2 is the least. ERR_INVALID, with the reason: the
 * file cannot be read. */
enum err trust_create(const char *ca_file, struct trust **trust, struct failure *why);

/* NULL is fine. Connections that use it may go on. */
void trust_destroy(struct trust *trust);

/* Private to client. */
struct ssl_st;
struct ssl_st *trust_make(const struct trust *trust);
