/* certificates.c - reads certificates and keys, and selects a pair by the requested name.
 *
 * Each pair is an OpenSSL context. A connection begins with the first one, whose keys seal
 * the tickets of all, and changes to another one if the client asks for one of its
 * names. */
#include "net/certificates.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/tls.h"

enum { FILE_MAX = 1 << 20, TICKET_KEYS_MAX = 128, DATE = 40 };

/* For TLS 1.2: authenticated ciphers with forward secrecy. TLS 1.3 has no others. */
static const char ciphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
static const unsigned char protocol[] = "\x08http/1.1";

struct pair {
    SSL_CTX *context;
    X509 *x509;       /* belongs to the context */
    char *path;       /* the certificate's file */
    char *open_key;   /* path of a key that every user may read; NULL: it is private */
    int64_t from, to; /* Unix seconds */
};

struct certificates {
    size_t refs;
    size_t count;
    int64_t drawn_ms; /* when the keys of tickets were drawn; 0: created with the context */
    struct pair pairs[CERTIFICATES_MAX];
};

/* ---- files ---- */

/* Reads into memory that is never moved: moving would leave a copy of a key in memory. */
static enum err read_bytes(int file, const char *path, struct buf *out, struct failure *why)
{
    char *room = buf_reserve(out, FILE_MAX + 1);
    ssize_t got;
    do {
        got = read(file, room + out->len, FILE_MAX + 1 - out->len);
        out->len += got > 0 ? (size_t)got : 0;
    } while ((got > 0 && out->len <= FILE_MAX) || (got < 0 && errno == EINTR));
    if (got < 0)
        return explain(why, ERR_INVALID, "%s: %s", path, strerror(errno));
    if (out->len > FILE_MAX)
        return explain(why, ERR_INVALID,
                       "%s: too large for a certificate or key (max 1 MiB)", path);
    return OK;
}

/* Non-blocking: a named pipe here would block the gateway forever. */
static enum err read_file(const char *path, struct buf *out, mode_t *mode,
                          struct failure *why)
{
    struct stat found;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return explain(why, ERR_INVALID, "%s: %s", path, strerror(errno));
    enum err err = OK;
    if (fstat(file, &found))
        err = explain(why, ERR_INVALID, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(found.st_mode))
        err = explain(why, ERR_INVALID, "%s: not a regular file", path);
    else
        err = read_bytes(file, path, out, why);
    *mode = err ? 0 : found.st_mode;
    close(file);
    return err;
}

static const char *openssl_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason ? reason : "no reason was given";
}

/* Without this callback, OpenSSL would ask for a passphrase at the terminal. */
static int refuse_passphrase(char *room, int size, int writes, void *asked)
{
    (void)room, (void)size, (void)writes;
    *(bool *)asked = true;
    return -1;
}

/* ---- a certificate and its chain ---- */

/* Returns true for the end of the file, which OpenSSL reports as an error, too. */
static bool is_end(void)
{
    unsigned long code = ERR_peek_last_error();
    return ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
}

static enum err use_chain(struct pair *pair, BIO *bio, struct failure *why)
{
    X509 *next;
    while ((next = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
        if (SSL_CTX_add0_chain_cert(pair->context, next))
            continue;
        X509_free(next);
        return explain(why, ERR_INVALID,
                       "%s: OpenSSL rejects a certificate after the first: %s", pair->path,
                       openssl_reason());
    }
    if (!is_end())
        return explain(why, ERR_INVALID,
                       "%s: cannot read a certificate after the first: %s", pair->path,
                       openssl_reason());
    return OK;
}

static int64_t unix_of(const ASN1_TIME *time)
{
    struct tm parts;
    return ASN1_TIME_to_tm(time, &parts) ? (int64_t)timegm(&parts) : 0;
}

static enum err use_certificate(struct pair *pair, BIO *bio, struct failure *why)
{
    X509 *x509 = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    if (!x509)
        return explain(why, ERR_INVALID, "%s: not a certificate in PEM: %s", pair->path,
                       openssl_reason());
    bool used = SSL_CTX_use_certificate(pair->context, x509);
    X509_free(x509); /* the context has its own reference */
    if (!used)
        return explain(why, ERR_INVALID, "%s: OpenSSL rejects the certificate: %s",
                       pair->path, openssl_reason());
    pair->x509 = SSL_CTX_get0_certificate(pair->context);
    pair->from = unix_of(X509_get0_notBefore(pair->x509));
    pair->to = unix_of(X509_get0_notAfter(pair->x509));
    ERR_clear_error();
    return use_chain(pair, bio, why);
}

static enum err load_certificate(struct pair *pair, struct failure *why)
{
    struct buf text = { 0 };
    mode_t mode;
    enum err err = read_file(pair->path, &text, &mode, why);
    if (!err) {
        BIO *bio = BIO_new_mem_buf(text.ptr, (int)text.len);
        err = use_certificate(pair, bio, why);
        BIO_free(bio);
    }
    buf_finish(&text);
    return err;
}

/* ---- its key ---- */

static enum err use_key(struct pair *pair, BIO *bio, const char *path, struct failure *why)
{
    bool asked = false;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, refuse_passphrase, &asked);
    if (!key && asked)
        return explain(why, ERR_INVALID,
                       "%s: the key is encrypted with a passphrase; decrypt it (openssl "
                       "pkey -in … -out …)",
                       path);
    if (!key)
        return explain(why, ERR_INVALID, "%s: not a private key in PEM: %s", path,
                       openssl_reason());
    bool is_pair = X509_check_private_key(pair->x509, key);
    bool used = is_pair && SSL_CTX_use_PrivateKey(pair->context, key);
    EVP_PKEY_free(key);
    if (!is_pair)
        return explain(why, ERR_INVALID,
                       "%s: this key does not match the certificate in %s; name them in "
                       "the same order",
                       path, pair->path);
    if (!used)
        return explain(why, ERR_INVALID, "%s: OpenSSL rejects the key: %s", path,
                       openssl_reason());
    return OK;
}

static enum err load_key(struct pair *pair, const char *path, struct failure *why)
{
    struct buf text = { 0 };
    mode_t mode;
    enum err err = read_file(path, &text, &mode, why);
    if (!err) {
        BIO *bio = BIO_new_mem_buf(text.ptr, (int)text.len);
        err = use_key(pair, bio, path, why);
        BIO_free(bio);
    }
    if (text.ptr)
        OPENSSL_cleanse(text.ptr, text.len);
    buf_finish(&text);
    if (mode & S_IROTH)
        pair->open_key = mem_text(slice_of(path));
    return err;
}

/* ---- selection by name ---- */

static const struct pair *find(const struct certificates *certificates, const char *name,
                               unsigned flags)
{
    flags |= X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;
    for (size_t i = 0; i < certificates->count; i++)
        if (X509_check_host(certificates->pairs[i].x509, name, 0, flags, NULL) == 1)
            return &certificates->pairs[i];
    return NULL;
}

/* Looks for the exact name before any wildcard (RFC 9525, 6.3). */
static int choose_pair(SSL *ssl, int *alert, void *owner)
{
    struct certificates *certificates = owner;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    (void)alert;
    if (!name)
        return SSL_TLSEXT_ERR_NOACK;
    const struct pair *pair = find(certificates, name, X509_CHECK_FLAG_NO_WILDCARDS);
    if (!pair)
        pair = find(certificates, name, 0);
    if (!pair)
        return SSL_TLSEXT_ERR_NOACK;
    SSL_set_SSL_CTX(ssl, pair->context);
    return SSL_TLSEXT_ERR_OK;
}

/* Fails if the client offers only other protocols (RFC 7301, 3.2). It would not understand
 * us. */
static int choose_protocol(SSL *ssl, const unsigned char **chosen,
                           unsigned char *chosen_len, const unsigned char *offered,
                           unsigned offered_len, void *owner)
{
    (void)ssl, (void)owner;
    unsigned char *found;
    if (SSL_select_next_proto(&found, chosen_len, protocol, sizeof(protocol) - 1, offered,
                              offered_len) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
}

/* ---- the set ---- */

static bool set_up(SSL_CTX *context)
{
    SSL_CTX_set_options(context,
                        SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF); /* clients have tickets */
    SSL_CTX_set_timeout(context, CERTIFICATES_TICKET_S);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    return tls_set_up(context) && SSL_CTX_set_cipher_list(context, ciphers) &&
           SSL_CTX_set_num_tickets(context, 1);
}

static enum err load_pair(struct certificates *certificates,
                          const struct certificate_files *files, struct failure *why)
{
    struct pair *pair = &certificates->pairs[certificates->count];
    pair->context = SSL_CTX_new(TLS_server_method());
    if (!pair->context || !set_up(pair->context)) {
        SSL_CTX_free(pair->context);
        return explain(why, ERR_INVALID, "cannot set up OpenSSL for a server");
    }
    pair->path = mem_text(slice_of(files->certificate));
    certificates->count++;
    enum err err = load_certificate(pair, why);
    return err ? err : load_key(pair, files->key, why);
}

enum err certificates_load(const struct certificate_files *files, size_t count,
                           struct certificates **out, struct failure *why)
{
    struct certificates *certificates = mem_new(struct certificates);
    enum err err = OK;
    certificates->refs = 1;
    ERR_clear_error();
    for (size_t i = 0; !err && i < count; i++)
        err = load_pair(certificates, &files[i], why);
    ERR_clear_error();
    if (err) {
        certificates_unref(certificates);
        return err;
    }
    SSL_CTX *first = certificates->pairs[0].context;
    SSL_CTX_set_tlsext_servername_callback(first, choose_pair);
    SSL_CTX_set_tlsext_servername_arg(first, certificates);
    *out = certificates;
    return OK;
}

struct certificates *certificates_ref(struct certificates *certificates)
{
    if (certificates)
        certificates->refs++;
    return certificates;
}

void certificates_unref(struct certificates *certificates)
{
    if (!certificates || --certificates->refs)
        return;
    for (size_t i = 0; i < certificates->count; i++) {
        SSL_CTX_free(certificates->pairs[i].context);
        free(certificates->pairs[i].path);
        free(certificates->pairs[i].open_key);
    }
    free(certificates);
}

/* Draws new ticket keys when they are due. Tickets that the old keys sealed become useless:
 * their clients do a full handshake. */
static void renew_ticket_keys(struct certificates *certificates, int64_t now_ms)
{
    unsigned char keys[TICKET_KEYS_MAX];
    SSL_CTX *first = certificates->pairs[0].context;
    if (!certificates->drawn_ms)
        certificates->drawn_ms = now_ms;
    if (now_ms - certificates->drawn_ms < INT64_C(1000) * CERTIFICATES_TICKET_S)
        return;
    long len = SSL_CTX_get_tlsext_ticket_keys(first, NULL, 0);
    if (len > 0 && len <= TICKET_KEYS_MAX && RAND_bytes(keys, (int)len) == 1)
        SSL_CTX_set_tlsext_ticket_keys(first, keys, len);
    OPENSSL_cleanse(keys, sizeof(keys));
    certificates->drawn_ms = now_ms;
}

SSL *certificates_make(struct certificates *certificates, int64_t now_ms)
{
    renew_ticket_keys(certificates, now_ms);
    SSL *ssl = SSL_new(certificates->pairs[0].context);
    if (ssl)
        SSL_set_accept_state(ssl);
    return ssl;
}

/* ---- warnings and metrics for the operator ---- */

static void warn_of_dates(const struct pair *pair, int64_t unix_s)
{
    char date[DATE];
    int64_t when = unix_s > pair->to ? pair->to : pair->from;
    time_t time = (time_t)when;
    struct tm parts;
    if (unix_s <= pair->to && unix_s >= pair->from)
        return;
    gmtime_r(&time, &parts);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &parts);
    log_warn(when == pair->to ? "certificate expired: clients reject it"
                              : "certificate not valid yet: clients reject it",
             "file", pair->path, when == pair->to ? "expired" : "valid_from", date, NULL);
}

void certificates_warn(const struct certificates *certificates, int64_t unix_s)
{
    for (size_t i = 0; certificates && i < certificates->count; i++) {
        const struct pair *pair = &certificates->pairs[i];
        warn_of_dates(pair, unix_s);
        if (pair->open_key)
            log_warn("every user of this machine can read a private key; run chmod 600, or "
                     "640 with a group of its own",
                     "file", pair->open_key, NULL);
    }
}

static void add_label(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("\\\"\n", *text))
            buf_add_char(out, '\\');
        buf_add_char(out, *text == '\n' ? 'n' : *text);
    }
}

void certificates_print_metrics(const struct certificates *certificates, int64_t unix_s,
                                struct buf *out)
{
    static const char name[] = "runcast_tls_certificate_expires_seconds";
    buf_print(out,
              "# HELP %s How long the certificate is valid from now on; below zero: it has "
              "expired\n# TYPE %s gauge\n",
              name, name);
    for (size_t i = 0; i < certificates->count; i++) {
        const struct pair *pair = &certificates->pairs[i];
        buf_print(out, "%s{file=\"", name);
        add_label(out, pair->path);
        buf_print(out, "\"} %lld\n", (long long)(pair->to - unix_s));
    }
}
