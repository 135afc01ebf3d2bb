/* vault.c - one key, and what is sealed with it.
 *
 *   sealed = base64url( version 1 | nonce, 12 random bytes | ciphertext | tag, 16 bytes )
 *
 * The nonce is drawn for each value: with 96 bits, two equal ones are not expected before
 * some 2^32 values have been sealed, more than an installation has. */
#include "auth/vault.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/secret_file.h"
#include "base/mem.h"
#include "base/text.h"

enum {
    KEY_LEN = 32,
    KEY_HEX_LEN = 2 * KEY_LEN,
    KEY_BASE64_LEN = 44,
    VERSION = 1,
    NONCE_LEN = 12,
    TAG_LEN = 16,
    OVERHEAD = 1 + NONCE_LEN + TAG_LEN,
};

struct vault {
    unsigned char key[KEY_LEN];
    EVP_CIPHER *cipher;
};

/* ---- the key ---- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool read_hex(struct slice text, unsigned char key[KEY_LEN])
{
    if (text.len != KEY_HEX_LEN)
        return false;
    for (size_t i = 0; i < KEY_LEN; i++) {
        int high = hex_value(text.ptr[2 * i]), low = hex_value(text.ptr[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        key[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* Both alphabets, with the one padding character that 32 bytes have. */
static bool read_base64(struct slice text, unsigned char key[KEY_LEN])
{
    char unpadded[KEY_BASE64_LEN];
    size_t len = 0;
    if (text.len != KEY_BASE64_LEN || text.ptr[KEY_BASE64_LEN - 1] != '=')
        return false;
    for (size_t i = 0; i < KEY_BASE64_LEN - 1; i++) {
        char c = text.ptr[i];
        unpadded[i] = c == '+' ? '-' : c == '/' ? '_' : c;
    }
    bool read = text_from_base64url((struct slice){ unpadded, KEY_BASE64_LEN - 1 }, key,
                                    &len) == OK;
    OPENSSL_cleanse(unpadded, sizeof(unpadded));
    return read && len == KEY_LEN;
}

static bool write_all(int file, const char *text, size_t len)
{
    while (len) {
        ssize_t written = write(file, text, len);
        if (written < 0 && errno != EINTR)
            return false;
        text += written > 0 ? written : 0;
        len -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

static bool sync_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = slash ? mem_text((struct slice){ path, (size_t)(slash - path) + 1 })
                       : mem_text(SLICE("."));
    int folder = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = folder >= 0 && fsync(folder) == 0;
    if (folder >= 0)
        close(folder);
    free(name);
    return synced;
}

/* Written beside its place and renamed, so that a key that is there is whole: losing half
 * of one would lose everything sealed with it. */
static enum err make_key_file(const char *path, const unsigned char key[KEY_LEN],
                              struct failure *why)
{
    char text[KEY_HEX_LEN + 2], beside[PATH_MAX];
    int length = snprintf(beside, sizeof(beside), "%s.new", path);
    if (length < 0 || (size_t)length >= sizeof(beside))
        return explain(why, ERR_INVALID, "%s: the path is too long", path);
    text_to_hex(key, KEY_LEN, text);
    text[KEY_HEX_LEN] = '\n';

    int file = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool made = file >= 0 && fchmod(file, 0600) == 0 &&
                write_all(file, text, KEY_HEX_LEN + 1) && fsync(file) == 0;
    if (file >= 0 && close(file))
        made = false;
    made = made && rename(beside, path) == 0 && sync_folder_of(path);
    OPENSSL_cleanse(text, sizeof(text));
    if (made)
        return OK;
    return explain(why, ERR_INVALID, "%s: cannot write the encryption key: %s", path,
                   strerror(errno));
}

static enum err parse_key(struct slice text, const char *source, unsigned char key[KEY_LEN],
                          struct failure *why)
{
    if (read_hex(text, key) || read_base64(text, key))
        return OK;
    return explain(why, ERR_INVALID,
                   "%s: the encryption key is not 64 hex digits or 44 characters of base64",
                   source);
}

static enum err read_key_file(const char *path, unsigned char key[KEY_LEN],
                              struct failure *why)
{
    char *text;
    if (access(path, F_OK) && errno == ENOENT) {
        if (RAND_priv_bytes(key, KEY_LEN) != 1)
            return explain(why, ERR_INVALID, "cannot draw an encryption key");
        return make_key_file(path, key, why);
    }
    enum err err = secret_file_read(path, SECRET_FILE_PRIVATE, &text, why);
    if (err)
        return err;
    err = parse_key(slice_of(text), path, key, why);
    vault_forget(text);
    return err;
}

bool vault_key_is_right(struct slice key_text)
{
    unsigned char key[KEY_LEN];
    bool right = read_hex(key_text, key) || read_base64(key_text, key);
    OPENSSL_cleanse(key, sizeof(key));
    return right;
}

enum err vault_open(struct slice key_text, const char *key_file, struct vault **vault,
                    struct failure *why)
{
    struct vault *opened = mem_new(struct vault);
    enum err err = key_text.len
                       ? parse_key(key_text, "RUNCAST_ENCRYPTION_KEY", opened->key, why)
                       : read_key_file(key_file, opened->key, why);
    if (err) {
        vault_close(opened);
        return err;
    }
    opened->cipher = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    assert(opened->cipher);
    *vault = opened;
    return OK;
}

void vault_close(struct vault *vault)
{
    if (!vault)
        return;
    EVP_CIPHER_free(vault->cipher);
    OPENSSL_cleanse(vault->key, sizeof(vault->key));
    free(vault);
}

/* ---- sealing ---- */

static const unsigned char *bytes_of(struct slice s)
{
    return (const unsigned char *)(s.ptr ? s.ptr : "");
}

void vault_seal(const struct vault *vault, struct slice context, struct slice plain,
                struct buf *out)
{
    assert(plain.len < INT_MAX - OVERHEAD && context.len < INT_MAX);
    unsigned char *sealed = mem_alloc(plain.len + OVERHEAD);
    unsigned char *nonce = sealed + 1, *text = nonce + NONCE_LEN, *tag = text + plain.len;
    int len = 0, rest = 0;
    sealed[0] = VERSION;

    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    bool done =
        cipher && RAND_bytes(nonce, NONCE_LEN) == 1 &&
        EVP_EncryptInit_ex2(cipher, vault->cipher, vault->key, nonce, NULL) &&
        EVP_EncryptUpdate(cipher, NULL, &len, bytes_of(context), (int)context.len) &&
        EVP_EncryptUpdate(cipher, text, &len, bytes_of(plain), (int)plain.len) &&
        EVP_EncryptFinal_ex(cipher, text + len, &rest) &&
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, TAG_LEN, tag);
    EVP_CIPHER_CTX_free(cipher);
    assert(done && (size_t)(len + rest) == plain.len);

    struct slice whole = { (char *)sealed, plain.len + OVERHEAD };
    char *place = buf_reserve(out, (whole.len * 4 + 2) / 3);
    out->len += text_to_base64url(whole, place);
    free(sealed);
}

/* The plain text is written to out before the tag is known to fit: the caller forgets it
 * when this says false. */
static bool decrypt(const struct vault *vault, struct slice context, unsigned char *sealed,
                    size_t text_len, unsigned char *out)
{
    unsigned char *nonce = sealed + 1, *text = nonce + NONCE_LEN, *tag = text + text_len;
    int len = 0, rest = 0;
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    bool done =
        cipher && EVP_DecryptInit_ex2(cipher, vault->cipher, vault->key, nonce, NULL) &&
        EVP_DecryptUpdate(cipher, NULL, &len, bytes_of(context), (int)context.len) &&
        EVP_DecryptUpdate(cipher, out, &len, text, (int)text_len) &&
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, TAG_LEN, tag) &&
        EVP_DecryptFinal_ex(cipher, out + len, &rest) > 0;
    EVP_CIPHER_CTX_free(cipher);
    return done;
}

enum err vault_unseal(const struct vault *vault, struct slice context, struct slice sealed,
                      struct buf *out)
{
    if (sealed.len >= INT_MAX || context.len >= INT_MAX)
        return ERR_INVALID;
    unsigned char *bytes = mem_alloc(sealed.len);
    size_t len;
    bool opened = false;
    if (text_from_base64url(sealed, bytes, &len) == OK && len >= OVERHEAD &&
        bytes[0] == VERSION) {
        size_t text_len = len - OVERHEAD;
        unsigned char *place = (unsigned char *)buf_reserve(out, text_len + 1);
        opened = decrypt(vault, context, bytes, text_len, place);
        if (opened)
            out->len += text_len;
        else
            OPENSSL_cleanse(place, text_len);
    }
    free(bytes);
    return opened ? OK : ERR_INVALID;
}

/* ---- hashing and forgetting ---- */

/* Fetched once, like the cipher. */
static const EVP_MD *sha256(void)
{
    static EVP_MD *algorithm;
    if (!algorithm)
        algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
    assert(algorithm);
    return algorithm;
}

void vault_hash(struct slice secret, unsigned char out[HASH_LEN])
{
    int done = EVP_Digest(bytes_of(secret), secret.len, out, NULL, sha256(), NULL);
    assert(done);
}

void vault_forget(char *secret)
{
    if (secret)
        OPENSSL_cleanse(secret, strlen(secret));
    free(secret);
}

void vault_forget_buf(struct buf *buf)
{
    if (buf->ptr)
        OPENSSL_cleanse(buf->ptr, buf->len);
    buf_finish(buf);
}
