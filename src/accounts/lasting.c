/* lasting.c - what a use of a lasting sign-in must prove, and what it changes. */
#include "accounts/lasting.h"

#include <openssl/crypto.h>

#include "accounts/user_tokens.h"
#include "base/mem.h"
#include "base/vault/secret.h"

static const char alphabet[] = "123456789abcdefghijkmnopqrstuvwxyz";

enum { PREFIX_LEN = sizeof(LASTING_PREFIX) - 1 };

void lasting_generate_id(char id[LASTING_ID_LEN + 1])
{
    memcpy(id, LASTING_PREFIX, PREFIX_LEN);
    text_random(id + PREFIX_LEN, LASTING_ID_LEN - PREFIX_LEN, alphabet);
    id[LASTING_ID_LEN] = '\0';
}

void lasting_generate_code(const char *id, char code[LASTING_CODE_LEN + 1])
{
    memcpy(code, id, LASTING_ID_LEN);
    code[LASTING_ID_LEN] = '.';
    text_random(code + LASTING_ID_LEN + 1, LASTING_CODE_LEN - LASTING_ID_LEN - 1, alphabet);
    code[LASTING_CODE_LEN] = '\0';
}

struct slice lasting_id_of(struct slice code)
{
    if (code.len != LASTING_CODE_LEN || code.ptr[LASTING_ID_LEN] != '.')
        return (struct slice){ 0 };
    return (struct slice){ code.ptr, LASTING_ID_LEN };
}

struct secret *lasting_find(struct accounts *accounts, struct slice id, int64_t now_ms)
{
    struct secret *secret = id.len == LASTING_ID_LEN && slice_starts(id, LASTING_PREFIX)
                                ? accounts_secret(accounts, id, now_ms)
                                : NULL;
    return secret && secret->lasting && secret->user->organization ? secret : NULL;
}

/* ---- codes ---- */

struct lasting lasting_with_code(const char *code)
{
    struct lasting lasting = { 0 };
    vault_hash(slice_of(code), lasting.current);
    return lasting;
}

static bool is_same(const unsigned char one[HASH_LEN], const unsigned char other[HASH_LEN])
{
    return CRYPTO_memcmp(one, other, HASH_LEN) == 0;
}

enum lasting_code lasting_judge(const struct secret *secret, struct slice code,
                                int64_t now_ms)
{
    const struct lasting *lasting = secret->lasting;
    unsigned char hash[HASH_LEN];
    int64_t since_ms = now_ms - lasting->used_at;
    vault_hash(code, hash);
    if (is_same(hash, lasting->current))
        return LASTING_CURRENT;
    bool is_before = is_same(hash, lasting->before);
    bool is_soon = since_ms > -LASTING_CLOCK_MS && since_ms < LASTING_REPEAT_MS;
    return is_before && is_soon ? LASTING_REPEATED : LASTING_OLD;
}

int64_t lasting_draft_code(struct draft *draft, const struct secret *secret,
                           enum lasting_code given, const char *next)
{
    int64_t ends_at = user_lasting_end(secret, draft->now_ms);
    struct lasting lasting = lasting_with_code(next);
    bool is_repeated = given == LASTING_REPEATED;
    lasting.used_at = is_repeated ? secret->lasting->used_at : draft->now_ms;
    memcpy(lasting.before, is_repeated ? secret->lasting->before : secret->lasting->current,
           HASH_LEN);
    draft_lasting_again(draft, secret, &lasting, ends_at);
    return ends_at;
}

void lasting_note_next(struct secret *secret, const char *next)
{
    secret_forget(secret->lasting->next);
    secret->lasting->next = mem_text(slice_of(next));
}

/* ---- keys ---- */

struct lasting lasting_with_key(const unsigned char key[LASTING_KEY_LEN])
{
    struct lasting lasting = { .has_key = true };
    memcpy(lasting.key, key, LASTING_KEY_LEN);
    return lasting;
}

const char *lasting_challenge(struct secret *secret)
{
    char *challenge = secret->lasting->challenge;
    text_random(challenge, LASTING_CHALLENGE_LEN, alphabet);
    challenge[LASTING_CHALLENGE_LEN] = '\0';
    return challenge;
}

void lasting_end_challenge(struct secret *secret)
{
    secret->lasting->challenge[0] = '\0';
}

int64_t lasting_draft_signed(struct draft *draft, const struct secret *secret)
{
    int64_t ends_at = user_lasting_end(secret, draft->now_ms);
    struct lasting lasting = lasting_with_key(secret->lasting->key);
    lasting.used_at = draft->now_ms;
    draft_lasting_again(draft, secret, &lasting, ends_at);
    return ends_at;
}
