/* vault.h - AES-256-GCM for values that are read again: secret keys, environment variables.
 *
 * A sealed value is version, key id, nonce, ciphertext, tag. The context (project,
 * environment, name, …) is authenticated, so a value cannot be moved to another place. The
 * key comes from RUNCAST_ENCRYPTION_KEY (64 hex digits, or 44 characters of base64), or
 * from a 0600 file next to the data, which the first start creates.
 *
 *   rotation   begin ─► the next key is on the disk ─► everything is sealed again, in one
 *              commit ─► end: the next key replaces the old one
 *
 * If the process is killed in between, the next start has both keys, and the content of the
 * database decides which of them it is (vault_settle). The old key stays in a file named
 * after its id, for older databases that are put back. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "base/slice.h"

enum {
    HASH_LEN = 32,       /* SHA-256 */
    KEY_ID_TEXT_MAX = 9, /* 8 hex digits of a hash of the key, and a zero */
};

struct vault;

/* Opens the vault. Without key_text, reads the key file, or draws a key if there is none.
 * vault_settle writes a drawn key. The next key of an interrupted rotation is read, too.
 * ERR_INVALID, with the reason: malformed key, or a file that others may read. */
enum err vault_open(struct slice key_text, const char *key_file, struct vault **vault,
                    struct failure *why);

/* Offers another key, from an interrupted rotation; it may be the right one. Has no effect
 * unless the vault's key was given as text; otherwise the file has the next key. */
enum err vault_offer(struct vault *vault, struct slice key_text, struct failure *why);

/* Returns true if the text has the form of a key. */
bool vault_key_is_right(struct slice key_text);

/* Wipes the keys. Ignores NULL. */
void vault_close(struct vault *vault);

/* Returns the id of the key: 8 hex digits that reveal nothing else about it. */
void vault_key_id(const struct vault *vault, char id[KEY_ID_TEXT_MAX]);

enum { VAULT_KEYS = 2 };

/* Gets the ids of all keys that the vault opens: the key, and the next one if it was offered.
 * Returns how many. */
size_t vault_key_ids(const struct vault *vault, char ids[][KEY_ID_TEXT_MAX]);

/* Gets the id of the key that sealed a value; false if not sealed, or sealed before keys
 * had ids. */
bool vault_sealed_id(struct slice sealed, char id[KEY_ID_TEXT_MAX]);

/* Gets the id of the key that has opened something; false if none has yet. */
bool vault_opened_id(const struct vault *vault, char id[KEY_ID_TEXT_MAX]);

/* Appends the sealed value, base64url. */
void vault_seal(const struct vault *vault, struct slice context, struct slice plain,
                struct buf *out);

/* Appends the plain value. ERR_INVALID: another key, another context, or damaged. */
enum err vault_unseal(struct vault *vault, struct slice context, struct slice sealed,
                      struct buf *out);

/* The same for a message of another process, which shows nothing about the database's key. */
enum err vault_unseal_message(const struct vault *vault, struct slice context,
                              struct slice sealed, struct buf *out);

/* Explains why a sealed value did not open, and what to do: "<what> does not open: …". */
enum err vault_explain(const struct vault *vault, struct slice sealed, const char *what,
                       struct failure *why);

/* Call this once the accounts have been read. Keeps whichever of two keys opened them,
 * places it in the file, and logs it. A key that was drawn, or found among those that
 * rotations have kept, is written to the file, too. */
enum err vault_settle(struct vault *vault, struct failure *why);

/* ---- rotation ---- */

/* Begins a rotation; from now on, vault_hold returns VAULT_WAIT. next_key absent: drawn.
 * ERR_INVALID: the key is required but missing, malformed, or already in use. ERR_CONFLICT:
 * a rotation is in progress, or was given up. */
enum err vault_rotation_begin(struct vault *vault, struct slice next_key,
                              struct failure *why);

/* Writes the next key to the disk, before anything is sealed with it. May run on another
 * thread while nothing else uses the vault. */
enum err vault_rotation_save(const struct vault *vault, struct failure *why);

/* Returns true if no commit holds the vault. */
bool vault_is_free(const struct vault *vault);

bool vault_is_sealed_with_next(const struct vault *vault, struct slice sealed);

/* Returns false if the value was sealed with a key that the vault does not have. */
bool vault_has_key_of(const struct vault *vault, struct slice sealed);
void vault_seal_with_next(const struct vault *vault, struct slice context,
                          struct slice plain, struct buf *out);

/* Updates the key files. done: the next key replaces the old one; otherwise it is removed.
 * May run on any thread, like vault_rotation_save. */
enum err vault_rotation_place(const struct vault *vault, bool done, struct failure *why);

/* Ends a rotation. done: everything is sealed with the next key, which is now the key.
 * Otherwise the next key is forgotten. Calls the waiters. */
void vault_rotation_end(struct vault *vault, bool done);

/* Gives up a rotation after which it is unknown which key sealed the database. Nothing is
 * sealed until the next start. Calls the waiters. */
void vault_rotation_give_up(struct vault *vault);

/* Returns true if the vault has a next key that is not in use yet. */
bool vault_has_next(const struct vault *vault);

/* Another process has sealed this value. If it did so with the next key, that is the key from
 * now on: a rotation seals everything in one commit. */
void vault_rotation_follow(struct vault *vault, struct slice sealed);

/* Code that seals values for the store holds the vault until the commit is done. */
enum vault_gate {
    VAULT_HELD,
    VAULT_WAIT, /* a rotation is in progress: use vault_wait */
    VAULT_SHUT, /* nothing is sealed until the next start */
};
enum vault_gate vault_hold(struct vault *vault);
void vault_release(struct vault *vault);

struct vault_waiter {
    void (*fn)(struct vault_waiter *waiter); /* called once, when the rotation has ended */
    struct list link;                        // vault::waiters
};
void vault_wait(struct vault *vault, struct vault_waiter *waiter);
/* Does nothing if it is not waiting. */
void vault_wait_no_more(struct vault_waiter *waiter);

/* ---- secrets ---- */

/* Computes SHA-256, to look secrets up without storing them. */
void vault_hash(struct slice secret, unsigned char out[HASH_LEN]);
