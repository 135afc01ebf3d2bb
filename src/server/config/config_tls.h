/* config_tls.h - loads the certificates for TLS addresses from the configured files. */
#pragma once

#include "net/certificates.h"
#include "server/config/config.h"

/* Checks that there are as many certificates as keys, and none unless an address ends in
 * ,tls. */
enum err config_check_tls(const struct config *config, struct failure *why);

/* Reads the files. The caller calls certificates_unref. *certificates is NULL if no address
 * uses TLS. ERR_INVALID: a file cannot be used. */
enum err config_load_certificates(const struct config *config,
                                  struct certificates **certificates, struct failure *why);

/* The same, but discards the result. */
enum err config_try_certificates(const struct config *config, struct failure *why);
