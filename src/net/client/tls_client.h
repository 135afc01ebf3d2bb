/* tls_client.h - TLS to a server whose certificate is verified; private to client. */
#pragma once

#include "net/client/trust.h"
#include "net/client/url.h"
#include "net/tls.h"

/* Creates a connection that expects the URL's name or address in the certificate. The
 * descriptor stays the caller's. Returns NULL when out of memory. */
struct tls *tls_client_create(const struct trust *trust, const struct url *url, int fd);

/* Explains why tls_handshake failed: ERR_UNTRUSTED or ERR_UNREACHABLE. */
void tls_client_explain(const struct tls *tls, struct failure *why);
