/* trust.c - the OpenSSL context from which all client connections are created. */
#include "net/client/trust.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/mem.h"
#include "net/tls.h"

struct trust {
    SSL_CTX *context;
};

static enum err set_up(SSL_CTX *context, const char *ca_file, struct failure *why)
{
    static const unsigned char protocols[] = "\x08http/1.1";
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    if (!tls_set_up(context) ||
        SSL_CTX_set_alpn_protos(context, protocols, sizeof(protocols) - 1) ||
        !SSL_CTX_set_default_verify_paths(context))
        return explain(why, ERR_INVALID, "cannot set up OpenSSL for clients");
    if (ca_file && !SSL_CTX_load_verify_locations(context, ca_file, NULL))
        return explain(why, ERR_INVALID, "%s: not a file of certificates in PEM", ca_file);
    return OK;
}

enum err trust_create(const char *ca_file, struct trust **trust, struct failure *why)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context)
        return explain(why, ERR_INVALID, "OpenSSL does not support TLS");
    enum err err = set_up(context, ca_file, why);
    ERR_clear_error();
    if (err) {
        SSL_CTX_free(context);
        return err;
    }
    *trust = mem_new(struct trust);
    (*trust)->context = context;
    return OK;
}

void trust_destroy(struct trust *trust)
{
    if (!trust)
        return;
    SSL_CTX_free(trust->context);
    free(trust);
}

struct ssl_st *trust_make(const struct trust *trust)
{
    return SSL_new(trust->context);
}
