/* config_tls.c - pairs the certificate files with the key files and loads them. */
#include "server/config/config_tls.h"

#include <string.h>

#include "base/mem.h"
#include "server/config/config_listen.h"

static size_t count_words(const char *list)
{
    struct slice rest = slice_of(list), word;
    size_t count = 0;
    while (rest.len && slice_split(&rest, ' ', &word))
        count++;
    return count;
}

/* *secure: a setting with an address that speaks TLS; its origin is where it was set. NULL:
 * none. */
static enum err has_secure(const struct config *config, const char **secure,
                           struct failure *why)
{
    struct config_listener listeners[CONFIG_LISTENERS_MAX], peer;
    size_t count;
    enum err err = config_listeners(config, listeners, &count, why);
    if (!err)
        err = config_peer_listener(config, &peer, why);
    *secure = !err && peer.secure ? config->origins[SETTING_peer_listen] : NULL;
    for (size_t i = 0; !err && i < count; i++)
        if (listeners[i].secure)
            *secure = config->origins[SETTING_listen];
    return err;
}

enum err config_check_tls(const struct config *config, struct failure *why)
{
    size_t certificates = count_words(config->tls_cert),
           keys = count_words(config->tls_key);
    const char *secure;
    enum err err = has_secure(config, &secure, why);
    if (err)
        return err;
    if (certificates != keys)
        return explain(why, ERR_INVALID,
                       "%s: tls-cert names %zu files but tls-key %zu; give the key of each "
                       "certificate, in the same order",
                       config->origins[certificates ? SETTING_tls_cert : SETTING_tls_key],
                       certificates, keys);
    if (certificates > CERTIFICATES_MAX)
        return explain(why, ERR_INVALID, "%s: too many files in tls-cert (max %d)",
                       config->origins[SETTING_tls_cert], CERTIFICATES_MAX);
    if (secure && !certificates)
        return explain(why, ERR_INVALID,
                       "%s: an address with ,tls needs a certificate; name its file with "
                       "tls-cert, and its key file with tls-key",
                       secure);
    if (!secure && certificates)
        return explain(why, ERR_INVALID,
                       "%s: no address of listen or peer-listen speaks TLS; append ,tls to "
                       "the addresses "
                       "that use tls-cert",
                       config->origins[SETTING_tls_cert]);
    return OK;
}

/* Splits the list in place: replaces each space by a zero. */
static void split(char *list, const char *words[CERTIFICATES_MAX])
{
    char *rest = list, *word;
    for (size_t i = 0; (word = strsep(&rest, " ")); i++)
        words[i] = word;
}

enum err config_load_certificates(const struct config *config, struct certificates **out,
                                  struct failure *why)
{
    struct certificate_files files[CERTIFICATES_MAX];
    const char *certificates[CERTIFICATES_MAX], *keys[CERTIFICATES_MAX];
    size_t count = count_words(config->tls_cert);
    *out = NULL;
    if (!count)
        return OK;
    char *first = mem_text(slice_of(config->tls_cert));
    char *second = mem_text(slice_of(config->tls_key));
    split(first, certificates);
    split(second, keys);
    for (size_t i = 0; i < count; i++)
        files[i] = (struct certificate_files){ certificates[i], keys[i] };
    enum err err = certificates_load(files, count, out, why);
    free(first);
    free(second);
    return err;
}

enum err config_try_certificates(const struct config *config, struct failure *why)
{
    struct certificates *certificates;
    enum err err = config_load_certificates(config, &certificates, why);
    if (!err)
        certificates_unref(certificates);
    return err;
}
