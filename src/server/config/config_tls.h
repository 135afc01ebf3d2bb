/* config_tls.h - the certificates of the addresses that speak TLS, from the settings that name
 * their files. */
#pragma once

#include "net/certificates.h"
#include "server/config/config.h"

/* As many certificates as keys: some when an address of listen ends in ,tls, else none. */
enum err config_check_tls(const struct config *config, struct failure *why);

/* Reads the files; the caller's to certificates_unref. NULL: no address speaks TLS. ERR_INVALID:
 * one cannot be used. */
enum err config_load_certificates(const struct config *config,
                                  struct certificates **certificates, struct failure *why);

/* The same, and nothing is kept. */
enum err config_try_certificates(const struct config *config, struct failure *why);
