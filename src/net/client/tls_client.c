/* tls_client.c - the name that a client verifies, and the reason for a failed handshake. */
#include "net/client/tls_client.h"

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

static bool expect_name(SSL *ssl, const struct url *url)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                               X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (url->is_ip)
        return X509_VERIFY_PARAM_set1_ip_asc(param, url->host);
    return SSL_set1_host(ssl, url->host) && SSL_set_tlsext_host_name(ssl, url->host);
}

struct tls *tls_client_create(const struct trust *trust, const struct url *url, int fd)
{
    SSL *ssl = trust_make(trust);
    if (!ssl)
        return NULL;
    SSL_set_connect_state(ssl);
    if (expect_name(ssl, url))
        return tls_create(ssl, fd);
    SSL_free(ssl);
    return NULL;
}

/* Returns true if the certificate would be trusted once its issuer is. */
static bool lacks_issuer(long verdict)
{
    return verdict == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
           verdict == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
           verdict == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT ||
           verdict == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
           verdict == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE;
}

void tls_client_explain(const struct tls *tls, struct failure *why)
{
    long verdict = SSL_get_verify_result(tls_ssl(tls));
    if (verdict != X509_V_OK)
        explain(why, ERR_UNTRUSTED, "the certificate is not trusted: %s%s",
                X509_verify_cert_error_string(verdict),
                lacks_issuer(verdict) ? "; trust it with --ca-file FILE" : "");
    else if (tls_peer_is_plain(tls))
        explain(why, ERR_UNREACHABLE, "this address does not speak TLS; try http://");
    else
        explain(why, ERR_UNREACHABLE, "the TLS handshake failed: %s", tls_reason(tls));
}
