/* vault.h - AES-256-GCM for what must be read again: secret keys, environment variables.
 *
 * A sealed value is version, nonce, ciphertext, tag; the context (project, environment,
 * name, …) is authenticated, so a value cannot be moved to another place. The key comes
 * from RUNCAST_ENCRYPTION_KEY (64 hex digits, or 44 characters of base64) or a 0600 file
 * beside the data that the first start makes. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

enum { HASH_LEN = 32 }; /* SHA-256 */

struct vault;

/* key_text absent or empty: the file is read, or made. ERR_INVALID with the reason:
 * malformed key, file that others may read. */
enum err vault_open(struct slice key_text, const char *key_file, struct vault **vault,
                    struct failure *why);

/* The text has the form of a key. */
bool vault_key_is_right(struct slice key_text);

/* Wipes the key. NULL is fine. */
void vault_close(struct vault *vault);

/* Appends the sealed value, base64url. */
void vault_seal(const struct vault *vault, struct slice context, struct slice plain,
                struct buf *out);

/* Appends the plain value. ERR_INVALID: another key, another context, or damaged. */
enum err vault_unseal(const struct vault *vault, struct slice context, struct slice sealed,
                      struct buf *out);

/* SHA-256, for looking secrets up without keeping them. */
void vault_hash(struct slice secret, unsigned char out[HASH_LEN]);

/* Wipes a terminated secret and frees it. NULL is fine. */
void vault_forget(char *secret);

/* The same of a buffer. */
void vault_forget_buf(struct buf *buf);
