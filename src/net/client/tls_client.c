/* tls_client.c - the name that a client verifies, and the reason of a failed handshake. */
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

void tls_client_explain(const struct tls *tls, struct failure *why)
{
    long verdict = SSL_get_verify_result(tls_ssl(tls));
    if (verdict != X509_V_OK)
        explain(why, ERR_UNTRUSTED, "the certificate is not trusted: %s",
                X509_verify_cert_error_string(verdict));
    else
        explain(why, ERR_UNREACHABLE, "there is no TLS connection: %s", tls_reason(tls));
}
