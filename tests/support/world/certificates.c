/* certificates.c - makes keys and certificates with OpenSSL. */
#include "tests/support/world/certificates.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "tests/support/world/unit.h"

static void add(X509 *x509, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, x509, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    assert_non_null(extension);
    X509_add_ext(x509, extension, -1);
    X509_EXTENSION_free(extension);
}

void certificate_init(struct certificate *certificate, const struct certificate *issuer,
                      const char *names, int64_t from_s, int64_t to_s)
{
    static long serial = 1;
    X509 *x509 = X509_new();
    certificate->key = EVP_EC_gen("P-256");
    certificate->x509 = x509;
    const struct certificate *signer = issuer ? issuer : certificate;
    X509_set_version(x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), serial++);
    X509_gmtime_adj(X509_getm_notBefore(x509), from_s);
    X509_gmtime_adj(X509_getm_notAfter(x509), to_s);
    X509_set_pubkey(x509, certificate->key);
    char said[64];
    snprintf(said, sizeof(said), "%s %ld", names ? "server" : "authority", serial);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC,
                               (const unsigned char *)said, -1, -1, 0);
    X509_set_issuer_name(x509, X509_get_subject_name(signer->x509));
    add(x509, signer->x509, NID_basic_constraints,
        names ? "critical,CA:FALSE" : "critical,CA:TRUE");
    if (names)
        add(x509, signer->x509, NID_subject_alt_name, names);
    assert_true(X509_sign(x509, signer->key, EVP_sha256()) > 0);
}

void certificate_finish(struct certificate *certificate)
{
    X509_free(certificate->x509);
    EVP_PKEY_free(certificate->key);
}

void certificate_write(const struct certificate *certificate, char *template)
{
    int fd = mkstemp(template);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_int_equal(PEM_write_X509(file, certificate->x509), 1);
    fclose(file);
}
