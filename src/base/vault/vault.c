/* vault.c - seals and opens values with one key; rotation to the next one.
 *
 *   sealed = base64url( version 2 | key id, 4 bytes | nonce, 12 random bytes | ciphertext
 *                       | tag, 16 bytes )                       version 1 has no key id
 *
 * A nonce is drawn for each value. With 96 bits, two equal ones are not expected before
 * some 2^32 values were sealed, more than any installation has. */
#include "base/vault/vault.h"

#include <assert.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/vault/key_file.h"
#include "base/vault/peer_proof.h"
#include "base/vault/secret.h"

enum {
    VERSION_WITHOUT_ID = 1,
    VERSION = 2,
    KEY_ID_LEN = 4,
    NONCE_LEN = 12,
    TAG_LEN = 16,
    OVERHEAD = 1 + KEY_ID_LEN + NONCE_LEN + TAG_LEN,
};

struct key {
    unsigned char bytes[KEY_LEN];
    unsigned char id[KEY_ID_LEN];
    bool opened; /* it has opened a value; until vault_settle */
};

struct vault {
    struct key key, next;
    bool has_next; /* of a rotation in progress, or one that was interrupted */
    bool rotating, shut;
    bool unsaved; /* the key is not in its file: drawn, or found among kept ones */
    bool settled; /* vault_settle was called */
    unsigned holders;
    struct list waiters;        // vault_waiter::link
    char *key_file, *next_file; /* NULL: the key was given as text */
    EVP_CIPHER *cipher;
};

/* ---- keys ---- */

static void name_key(struct key *key)
{
    static const char purpose[] = "runcast encryption key id";
    unsigned char hash[HASH_LEN];
    struct buf text = { 0 };
    buf_add(&text, (struct slice){ purpose, sizeof(purpose) });
    buf_add(&text, (struct slice){ (char *)key->bytes, KEY_LEN });
    vault_hash(buf_slice(&text), hash);
    memcpy(key->id, hash, KEY_ID_LEN);
    secret_forget_buf(&text);
}

static void forget_next(struct vault *vault)
{
    OPENSSL_cleanse(&vault->next, sizeof(vault->next));
    vault->has_next = false;
}

static enum err draw(struct key *key, struct failure *why)
{
    if (RAND_priv_bytes(key->bytes, KEY_LEN) != 1)
        return explain(why, ERR_INVALID, "cannot generate an encryption key");
    return OK;
}

/* Reads the key files. A drawn key is written later, by vault_settle: if another key has
 * sealed the database, writing it would only take that key's place. */
static enum err open_files(struct vault *vault, struct failure *why)
{
    enum err err = key_file_read(vault->key_file, vault->key.bytes, why);
    vault->unsaved = err == ERR_NOT_FOUND;
    if (vault->unsaved)
        err = draw(&vault->key, why);
    if (err)
        return err;
    err = key_file_read(vault->next_file, vault->next.bytes, why);
    vault->has_next = !err;
    return err == ERR_NOT_FOUND ? OK : err;
}

bool vault_key_is_right(struct slice key_text)
{
    unsigned char key[KEY_LEN];
    bool right = key_read(key_text, key);
    OPENSSL_cleanse(key, sizeof(key));
    return right;
}

static const char setting[] = "RUNCAST_ENCRYPTION_KEY";

enum err vault_open(struct slice key_text, const char *key_file, struct vault **vault,
                    struct failure *why)
{
    struct vault *opened = mem_new(struct vault);
    enum err err;
    list_init(&opened->waiters);
    if (key_text.len) {
        err = key_parse(key_text, setting, opened->key.bytes, why);
    } else {
        struct buf next = { 0 };
        buf_print(&next, "%s.next", key_file);
        opened->key_file = mem_text(slice_of(key_file));
        opened->next_file = mem_text(buf_slice(&next));
        buf_finish(&next);
        err = open_files(opened, why);
    }
    if (err) {
        vault_close(opened);
        return err;
    }
    name_key(&opened->key);
    name_key(&opened->next);
    opened->cipher = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    assert(opened->cipher);
    *vault = opened;
    return OK;
}

enum err vault_offer(struct vault *vault, struct slice key_text, struct failure *why)
{
    if (vault->key_file)
        return OK;
    enum err err =
        key_parse(key_text, "RUNCAST_NEXT_ENCRYPTION_KEY", vault->next.bytes, why);
    if (err)
        return err;
    name_key(&vault->next);
    vault->has_next = CRYPTO_memcmp(vault->next.bytes, vault->key.bytes, KEY_LEN) != 0;
    return OK;
}

void vault_close(struct vault *vault)
{
    if (!vault)
        return;
    EVP_CIPHER_free(vault->cipher);
    free(vault->key_file);
    free(vault->next_file);
    OPENSSL_cleanse(vault, sizeof(*vault));
    free(vault);
}

void vault_key_id(const struct vault *vault, char id[KEY_ID_TEXT_MAX])
{
    text_to_hex(vault->key.id, KEY_ID_LEN, id);
}

size_t vault_key_ids(const struct vault *vault, char ids[][KEY_ID_TEXT_MAX])
{
    vault_key_id(vault, ids[0]);
    if (vault->has_next)
        text_to_hex(vault->next.id, KEY_ID_LEN, ids[1]);
    return 1 + vault->has_next;
}

bool vault_opened_id(const struct vault *vault, char id[KEY_ID_TEXT_MAX])
{
    bool is_next = vault->has_next && vault->next.opened;
    text_to_hex(is_next ? vault->next.id : vault->key.id, KEY_ID_LEN, id);
    return is_next || vault->key.opened;
}

static void take_next(struct vault *vault)
{
    vault->key = vault->next;
    vault->unsaved = false;
    forget_next(vault);
}

bool vault_has_next(const struct vault *vault)
{
    return vault->has_next;
}

void vault_rotation_follow(struct vault *vault, struct slice sealed)
{
    char old[KEY_ID_TEXT_MAX], new[KEY_ID_TEXT_MAX];
    if (!vault->has_next || !vault_is_sealed_with_next(vault, sealed))
        return;
    text_to_hex(vault->key.id, KEY_ID_LEN, old);
    text_to_hex(vault->next.id, KEY_ID_LEN, new);
    take_next(vault);
    log_info("the encryption key was rotated", "key", new, "old_key", old, NULL);
}

/* ---- keys that were in use before ---- */

/* Returns the path, next to the key in use, where a rotation keeps the key with that id. */
static char *kept_file(const struct vault *vault, const unsigned char id[KEY_ID_LEN])
{
    char text[KEY_ID_TEXT_MAX];
    struct buf path = { 0 };
    text_to_hex(id, KEY_ID_LEN, text);
    buf_print(&path, "%s.%s", vault->key_file, text);
    char *copy = mem_text(buf_slice(&path));
    buf_finish(&path);
    return copy;
}

static enum err keep_key(const struct vault *vault, const struct key *key,
                         struct failure *why)
{
    char *path = kept_file(vault, key->id);
    enum err err = key_file_write(path, key->bytes, why);
    free(path);
    return err;
}

/* Looks for a key kept by a rotation, in case an older database was put back. It replaces
 * the key in use, but only while that one has opened nothing. */
static bool find_kept(struct vault *vault, const unsigned char id[KEY_ID_LEN])
{
    struct key found = { 0 };
    struct failure why;
    if (!vault->key_file || vault->settled || vault->key.opened)
        return false;
    char *path = kept_file(vault, id);
    bool fits = key_file_read(path, found.bytes, &why) == OK;
    free(path);
    name_key(&found);
    fits = fits && !memcmp(found.id, id, KEY_ID_LEN);
    if (fits) {
        vault->key = found;
        vault->unsaved = true;
    }
    OPENSSL_cleanse(&found, sizeof(found));
    return fits;
}

/* Writes the key in use to its file. The key currently in the file is kept, too. */
static enum err save_key(struct vault *vault, struct failure *why)
{
    struct key before = { 0 };
    char id[KEY_ID_TEXT_MAX];
    enum err err = key_file_read(vault->key_file, before.bytes, why);
    name_key(&before);
    if (!err)
        err = keep_key(vault, &before, why);
    OPENSSL_cleanse(&before, sizeof(before));
    if (err && err != ERR_NOT_FOUND)
        return err;
    err = key_file_write(vault->key_file, vault->key.bytes, why);
    vault->unsaved = err != OK;
    vault_key_id(vault, id);
    if (!err && vault->key.opened)
        log_warn("the database is sealed with an earlier key; using that one again", "key",
                 id, NULL);
    return err;
}

static enum err settle_next(struct vault *vault, struct failure *why)
{
    char old[KEY_ID_TEXT_MAX], new[KEY_ID_TEXT_MAX];
    bool done = vault->next.opened;
    text_to_hex(vault->key.id, KEY_ID_LEN, old);
    text_to_hex(vault->next.id, KEY_ID_LEN, new);
    if (done && vault->key.opened)
        return explain(why, ERR_INVALID,
                       "part of the database is sealed with encryption key %s and part "
                       "with %s; restore a backup",
                       old, new);
    enum err err = vault_rotation_place(vault, done, why);
    if (err)
        return err;
    if (done) {
        take_next(vault);
        log_warn(
            "the database is sealed with the next encryption key; using it from now on",
            "key", new, "old_key", old, NULL);
    } else {
        forget_next(vault);
        log_warn("nothing is sealed with the next encryption key; keeping the old one",
                 "key", old, "next_key", new, NULL);
    }
    return OK;
}

enum err vault_settle(struct vault *vault, struct failure *why)
{
    enum err err = vault->has_next ? settle_next(vault, why) : OK;
    vault->settled = true;
    return !err && vault->unsaved ? save_key(vault, why) : err;
}

/* ---- sealing ---- */

static const unsigned char *bytes_of(struct slice s)
{
    return (const unsigned char *)(s.ptr ? s.ptr : "");
}

static void seal(const struct vault *vault, const struct key *key, struct slice context,
                 struct slice plain, struct buf *out)
{
    assert(plain.len < INT_MAX - OVERHEAD && context.len < INT_MAX);
    unsigned char *sealed = mem_alloc(plain.len + OVERHEAD);
    unsigned char *nonce = sealed + 1 + KEY_ID_LEN, *text = nonce + NONCE_LEN;
    unsigned char *tag = text + plain.len;
    int len = 0, rest = 0;
    sealed[0] = VERSION;
    memcpy(sealed + 1, key->id, KEY_ID_LEN);

    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    bool done =
        cipher && RAND_bytes(nonce, NONCE_LEN) == 1 &&
        EVP_EncryptInit_ex2(cipher, vault->cipher, key->bytes, nonce, NULL) &&
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

void vault_seal(const struct vault *vault, struct slice context, struct slice plain,
                struct buf *out)
{
    seal(vault, &vault->key, context, plain, out);
}

void vault_seal_with_next(const struct vault *vault, struct slice context,
                          struct slice plain, struct buf *out)
{
    assert(vault->has_next);
    seal(vault, &vault->next, context, plain, out);
}

/* Returns where the nonce begins; 0: too short, or of an unknown version. */
static size_t nonce_place(const unsigned char *sealed, size_t len)
{
    size_t place = sealed[0] == VERSION              ? 1 + KEY_ID_LEN
                   : sealed[0] == VERSION_WITHOUT_ID ? 1
                                                     : 0;
    return place && len >= place + NONCE_LEN + TAG_LEN ? place : 0;
}

static bool has_id(const unsigned char *sealed, const struct key *key)
{
    return sealed[0] == VERSION && !memcmp(sealed + 1, key->id, KEY_ID_LEN);
}

/* Returns the key in memory that sealed the value; NULL: another one did. A value without a
 * key id is older than any rotation. */
static const struct key *key_here(const struct vault *vault, const unsigned char *sealed)
{
    if (sealed[0] == VERSION_WITHOUT_ID || has_id(sealed, &vault->key))
        return &vault->key;
    return vault->has_next && has_id(sealed, &vault->next) ? &vault->next : NULL;
}

/* The same, and looks among the keys that rotations have kept. */
static struct key *key_of(struct vault *vault, const unsigned char *sealed)
{
    const struct key *here = key_here(vault, sealed);
    if (here)
        return here == &vault->next ? &vault->next : &vault->key;
    return sealed[0] == VERSION && find_kept(vault, sealed + 1) ? &vault->key : NULL;
}

/* Writes the plain text to out before the tag is verified. If it returns false, the caller
 * must wipe out. */
static bool decrypt(const struct vault *vault, const struct key *key, struct slice context,
                    unsigned char *nonce, size_t text_len, unsigned char *out)
{
    unsigned char *text = nonce + NONCE_LEN, *tag = text + text_len;
    int len = 0, rest = 0;
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    bool done =
        cipher && EVP_DecryptInit_ex2(cipher, vault->cipher, key->bytes, nonce, NULL) &&
        EVP_DecryptUpdate(cipher, NULL, &len, bytes_of(context), (int)context.len) &&
        EVP_DecryptUpdate(cipher, out, &len, text, (int)text_len) &&
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, TAG_LEN, tag) &&
        EVP_DecryptFinal_ex(cipher, out + len, &rest) > 0;
    EVP_CIPHER_CTX_free(cipher);
    return done;
}

static bool open_with(const struct vault *vault, const struct key *key,
                      struct slice context, unsigned char *sealed, size_t len,
                      struct buf *out)
{
    size_t place = nonce_place(sealed, len);
    size_t text_len = len - place - NONCE_LEN - TAG_LEN;
    unsigned char *to = (unsigned char *)buf_reserve(out, text_len + 1);
    bool opened = decrypt(vault, key, context, sealed + place, text_len, to);
    if (opened)
        out->len += text_len;
    else
        OPENSSL_cleanse(to, text_len);
    return opened;
}

static bool open_bytes(struct vault *vault, struct slice context, unsigned char *sealed,
                       size_t len, struct buf *out)
{
    struct key *key = nonce_place(sealed, len) ? key_of(vault, sealed) : NULL;
    bool opened = key && open_with(vault, key, context, sealed, len, out);
    if (key)
        key->opened |= opened;
    return opened;
}

enum err vault_unseal(struct vault *vault, struct slice context, struct slice sealed,
                      struct buf *out)
{
    if (sealed.len >= INT_MAX || context.len >= INT_MAX)
        return ERR_INVALID;
    unsigned char *bytes = mem_alloc(sealed.len);
    size_t len;
    bool opened = text_from_base64url(sealed, bytes, &len) == OK && len &&
                  open_bytes(vault, context, bytes, len, out);
    free(bytes);
    return opened ? OK : ERR_INVALID;
}

enum err vault_unseal_message(const struct vault *vault, struct slice context,
                              struct slice sealed, struct buf *out)
{
    unsigned char *bytes = mem_alloc(sealed.len + 1);
    size_t len;
    bool is_whole = sealed.len < INT_MAX && context.len < INT_MAX &&
                    text_from_base64url(sealed, bytes, &len) == OK && len &&
                    nonce_place(bytes, len);
    const struct key *key = is_whole ? key_here(vault, bytes) : NULL;
    bool opened = key && open_with(vault, key, context, bytes, len, out);
    free(bytes);
    return opened ? OK : ERR_INVALID;
}

/* Reads the key id of a sealed value. Returns false if it has none, or is not sealed. */
static bool read_id(struct slice sealed, unsigned char out[KEY_ID_LEN])
{
    enum { BASE64_LEN = 8, BYTES = 6 }; /* version, id and one more */
    unsigned char bytes[BYTES];
    size_t len;
    if (sealed.len < BASE64_LEN ||
        text_from_base64url((struct slice){ sealed.ptr, BASE64_LEN }, bytes, &len) ||
        bytes[0] != VERSION)
        return false;
    memcpy(out, bytes + 1, KEY_ID_LEN);
    return true;
}

bool vault_sealed_id(struct slice sealed, char id[KEY_ID_TEXT_MAX])
{
    unsigned char bytes[KEY_ID_LEN];
    bool has_id = read_id(sealed, bytes);
    if (has_id)
        text_to_hex(bytes, KEY_ID_LEN, id);
    return has_id;
}

bool vault_is_sealed_with_next(const struct vault *vault, struct slice sealed)
{
    unsigned char id[KEY_ID_LEN];
    return vault->has_next && read_id(sealed, id) &&
           !memcmp(id, vault->next.id, KEY_ID_LEN);
}

bool vault_has_key_of(const struct vault *vault, struct slice sealed)
{
    unsigned char id[KEY_ID_LEN];
    return !read_id(sealed, id) || !memcmp(id, vault->key.id, KEY_ID_LEN) ||
           vault_is_sealed_with_next(vault, sealed);
}

enum err vault_explain(const struct vault *vault, struct slice sealed, const char *what,
                       struct failure *why)
{
    unsigned char id[KEY_ID_LEN];
    char wanted[KEY_ID_TEXT_MAX] = "", have[KEY_ID_TEXT_MAX];
    const char *file = vault->key_file;
    vault_key_id(vault, have);
    if (read_id(sealed, id)) {
        text_to_hex(id, KEY_ID_LEN, wanted);
        if (!memcmp(id, vault->key.id, KEY_ID_LEN))
            return explain(why, ERR_INVALID,
                           "cannot decrypt %s although the encryption key is right: the "
                           "database was changed or damaged; restore a backup",
                           what);
    }
    if (vault->unsaved)
        return explain(why, ERR_INVALID,
                       "encryption key missing: the database is sealed with another "
                       "one%s%s; put it back as %s, or set it as %s",
                       wanted[0] ? ", which is " : "", wanted, file, setting);
    return explain(why, ERR_INVALID,
                   "cannot decrypt %s: it is sealed with another encryption key%s%s, not "
                   "with %s; %s%s",
                   what, wanted[0] ? ", which is " : "", wanted, have,
                   file ? "put the right one back as " : "set the right one as ",
                   file ? file : setting);
}

/* ---- rotation ---- */

enum err vault_rotation_begin(struct vault *vault, struct slice next_key,
                              struct failure *why)
{
    enum err err;
    if (vault->rotating || vault->shut)
        return explain(why, ERR_CONFLICT,
                       "a rotation of the encryption key is already in progress");
    if (!next_key.len && !vault->key_file)
        return explain(
            why, ERR_INVALID,
            "this gateway reads its key from %s; set the new one as "
            "RUNCAST_NEXT_ENCRYPTION_KEY, and before the next start set %s to it",
            setting, setting);
    err = next_key.len ? key_parse(next_key, "the new key", vault->next.bytes, why)
                       : draw(&vault->next, why);
    if (!err && !CRYPTO_memcmp(vault->next.bytes, vault->key.bytes, KEY_LEN))
        err = explain(why, ERR_INVALID, "the new encryption key is already in use");
    if (err) {
        forget_next(vault);
        return err;
    }
    name_key(&vault->next);
    vault->has_next = vault->rotating = true;
    return OK;
}

enum err vault_rotation_save(const struct vault *vault, struct failure *why)
{
    return vault->key_file ? key_file_write(vault->next_file, vault->next.bytes, why) : OK;
}

enum err vault_rotation_place(const struct vault *vault, bool done, struct failure *why)
{
    if (!vault->key_file)
        return OK;
    if (!done)
        return key_file_remove(vault->next_file, why);
    enum err err = vault->unsaved ? OK : keep_key(vault, &vault->key, why);
    return err ? err : key_file_move(vault->next_file, vault->key_file, why);
}

static void call_waiters(struct vault *vault)
{
    while (!list_empty(&vault->waiters)) {
        struct list *link = list_take(&vault->waiters);
        struct vault_waiter *waiter = container_of(link, struct vault_waiter, link);
        waiter->fn(waiter);
    }
}

void vault_rotation_end(struct vault *vault, bool done)
{
    assert(vault->rotating);
    if (done)
        take_next(vault);
    else
        forget_next(vault);
    vault->rotating = false;
    call_waiters(vault);
}

void vault_rotation_give_up(struct vault *vault)
{
    vault->rotating = false;
    vault->shut = true;
    call_waiters(vault);
}

bool vault_is_free(const struct vault *vault)
{
    return vault->holders == 0;
}

enum vault_gate vault_hold(struct vault *vault)
{
    if (vault->shut)
        return VAULT_SHUT;
    if (vault->rotating)
        return VAULT_WAIT;
    vault->holders++;
    return VAULT_HELD;
}

void vault_release(struct vault *vault)
{
    assert(vault->holders > 0);
    vault->holders--;
}

void vault_wait(struct vault *vault, struct vault_waiter *waiter)
{
    list_remove(&waiter->link); /* it may be waiting already */
    list_append(&vault->waiters, &waiter->link);
}

void vault_wait_no_more(struct vault_waiter *waiter)
{
    list_remove(&waiter->link);
}

/* ---- keys between gateways ---- */

static void derive_peer_key(const struct key *key, struct peer_key *derived)
{
    static const char label[] = "runcast peer key";
    const unsigned char *made =
        HMAC(EVP_sha256(), key->bytes, KEY_LEN, (const unsigned char *)label, sizeof(label),
             derived->bytes, NULL);
    assert(made);
}

void vault_peer_keys(const struct vault *vault, struct peer_keys *keys)
{
    keys->count = 1 + vault->has_next;
    derive_peer_key(&vault->key, &keys->list[0]);
    if (vault->has_next)
        derive_peer_key(&vault->next, &keys->list[1]);
}

/* ---- hashing and forgetting ---- */

/* Returns the hash function, which is fetched once, like the cipher. */
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
