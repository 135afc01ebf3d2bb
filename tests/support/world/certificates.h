/* certificates.h - a test's certificate authority, and certificates that it signs. */
#pragma once

#include <stdint.h>

struct x509_st;
struct evp_pkey_st;

struct certificate {
    struct x509_st *x509;
    struct evp_pkey_st *key;
};

/* names: "DNS:localhost,IP:127.0.0.1"; NULL: an authority. issuer NULL: self-signed.
 * Valid from `from_s` to `to_s` seconds from now. */
void certificate_init(struct certificate *certificate, const struct certificate *issuer,
                      const char *names, int64_t from_s, int64_t to_s);
void certificate_finish(struct certificate *certificate);

/* Writes it as PEM into a new file, whose name replaces the template. */
void certificate_write(const struct certificate *certificate, char *template);
