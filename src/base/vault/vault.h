/* vault.h - AES-256-GCM for what must be read again: secret keys, environment variables.
 *
 * A sealed value is version, key id, nonce, ciphertext, tag; the context (project,
 * environment, name, …) is authenticated, so a value cannot be moved to another place. The
 * key comes from RUNCAST_ENCRYPTION_KEY (64 hex digits, or 44 characters of base64) or a
 * 0600 file beside the data that the first start makes.
 *
 *   rotation   begin ─► the next key is on the disk ─► everything sealed again, in one
 *              commit ─► end: the next key takes the place of the old one
 *
 * Killed anywhere in between, the next start has both keys, and what is in the database
 * says which of them it is (vault_settle). The old key stays beside it, in a file named after
 * its id, for older databases that are put back. */
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

/* key_text absent or empty: the file is read, or a key drawn that vault_settle writes; beside
 * it the one of a rotation that was not ended. ERR_INVALID with the reason: malformed key,
 * file that others may read. */
enum err vault_open(struct slice key_text, const char *key_file, struct vault **vault,
                    struct failure *why);

/* Another key that may be the right one, of a rotation that was not ended. Only of a vault
 * whose key was given as text; otherwise the file says it. */
enum err vault_offer(struct vault *vault, struct slice key_text, struct failure *why);

/* The text has the form of a key. */
bool vault_key_is_right(struct slice key_text);

/* Wipes the keys. NULL is fine. */
void vault_close(struct vault *vault);

/* The id of the key: 8 hex digits that tell nothing else about it. */
void vault_key_id(const struct vault *vault, char id[KEY_ID_TEXT_MAX]);

/* The id of the key that a value was sealed with; false: it is none, or older than ids. */
bool vault_sealed_id(struct slice sealed, char id[KEY_ID_TEXT_MAX]);

/* The id of the key that has opened something; false: none has yet. */
bool vault_opened_id(const struct vault *vault, char id[KEY_ID_TEXT_MAX]);

/* Appends the sealed value, base64url. */
void vault_seal(const struct vault *vault, struct slice context, struct slice plain,
                struct buf *out);

/* Appends the plain value. ERR_INVALID: another key, another context, or damaged. */
enum err vault_unseal(struct vault *vault, struct slice context, struct slice sealed,
                      struct buf *out);

/* Why a sealed value did not open, and what to do: "<what> does not open: …". */
enum err vault_explain(const struct vault *vault, struct slice sealed, const char *what,
                       struct failure *why);

/* After the accounts were read: of two keys the one that opened them is kept, and takes its
 * place in the file. Says in the log which it was. A key that was drawn, or found among
 * those that rotations have kept, is written to the file. */
enum err vault_settle(struct vault *vault, struct failure *why);

/* ---- rotation ---- */

/* From now on vault_hold says wait. next_key absent: drawn. ERR_INVALID: no key given where
 * one must be, malformed, or the old one; ERR_CONFLICT: one is on already. */
enum err vault_rotation_begin(struct vault *vault, struct slice next_key,
                              struct failure *why);

/* Writes the next key to the disk, before anything is sealed with it. May run on another
 * thread, as long as nothing else is done with the vault. */
enum err vault_rotation_save(const struct vault *vault, struct failure *why);

/* Nobody holds the vault any more. */
bool vault_is_free(const struct vault *vault);

bool vault_is_sealed_with_next(const struct vault *vault, struct slice sealed);
void vault_seal_with_next(const struct vault *vault, struct slice context,
                          struct slice plain, struct buf *out);

/* Puts the key files as they are from now on: with done the next key takes the place of the old
 * one, else it is removed. Like vault_rotation_save on any thread. */
enum err vault_rotation_place(const struct vault *vault, bool done, struct failure *why);

/* done: everything is sealed with the next key, which is the key now. Else it is forgotten.
 * Those who wait are called. */
void vault_rotation_end(struct vault *vault, bool done);

/* Nobody knows which key the database is sealed with: nothing is sealed until the next
 * start. Those who wait are called. */
void vault_rotation_give_up(struct vault *vault);

/* Who seals for the store holds the vault from then until the commit is answered. */
enum vault_gate {
    VAULT_HELD,
    VAULT_WAIT, /* a rotation is on: vault_wait */
    VAULT_SHUT, /* until the next start */
};
enum vault_gate vault_hold(struct vault *vault);
void vault_release(struct vault *vault);

struct vault_waiter {
    void (*fn)(struct vault_waiter *waiter); /* the rotation has ended; once */
    struct list link;                        // vault::waiters
};
void vault_wait(struct vault *vault, struct vault_waiter *waiter);
/* Harmless when it does not wait. */
void vault_wait_no_more(struct vault_waiter *waiter);

/* ---- secrets ---- */

/* SHA-256, for looking secrets up without keeping them. */
void vault_hash(struct slice secret, unsigned char out[HASH_LEN]);
