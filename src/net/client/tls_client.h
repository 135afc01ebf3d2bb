/* tls_client.h - TLS to a server whose certificate is verified; private to client. */
#pragma once

#include "net/client/trust.h"
#include "net/client/url.h"
#include "net/tls.h"

/* The name, or the address, is the one that the certificate must be for. The descriptor stays
 * the caller's. NULL: out of memory. */
struct tls *tls_client_create(const struct trust *trust, const struct url *url, int fd);

/* Why there is no connection, when tls_shake_hands has failed: ERR_UNTRUSTED, ERR_UNREACHABLE. */
void tls_client_explain(const struct tls *tls, struct failure *why);
