/* logins.c - the pending logins, in a list: there are few. */
#include "accounts/auth/logins.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

struct logins {
    struct list all; // login::link
    size_t count;
};

struct logins *logins_create(void)
{
    struct logins *logins = mem_new(struct logins);
    list_init(&logins->all);
    return logins;
}

void logins_end(struct logins *logins, struct login *login)
{
    list_remove(&login->link);
    logins->count--;
    secret_unref(login->approver);
    OPENSSL_cleanse(login, sizeof(*login));
    free(login);
}

void logins_destroy(struct logins *logins)
{
    while (!list_empty(&logins->all))
        logins_end(logins, container_of(logins->all.next, struct login, link));
    free(logins);
}

/* All have the same lifetime, so the expired ones come first. */
static void end_old(struct logins *logins, int64_t now_ms)
{
    while (!list_empty(&logins->all)) {
        struct login *login = container_of(logins->all.next, struct login, link);
        if (login->ends_at > now_ms)
            return;
        logins_end(logins, login);
    }
}

static bool is_hidden(const struct login *login)
{
    return !*login->client;
}

static bool is_of(const struct login *login, const unsigned char *network)
{
    return !memcmp(login->network, network, LOGIN_NETWORK_LEN);
}

static size_t count_of(const struct logins *logins, const unsigned char *network,
                       bool hidden)
{
    size_t count = 0;
    list_each (link, &logins->all) {
        const struct login *login = container_of(link, struct login, link);
        count += is_hidden(login) == hidden && is_of(login, network);
    }
    return count;
}

/* Ends the oldest login that may make way for another. Returns false if there is none.
 *
 * network: only of this network; NULL: of any. */
static bool end_hidden(struct logins *logins, const unsigned char *network)
{
    list_each (link, &logins->all) {
        struct login *login = container_of(link, struct login, link);
        if (!is_hidden(login) || *login->approval || (network && !is_of(login, network)))
            continue;
        logins_end(logins, login);
        return true;
    }
    return false;
}

static bool make_room(struct logins *logins, const unsigned char *network, bool hidden)
{
    size_t max = hidden ? LOGINS_OF_PROXY_MAX : LOGINS_OF_NETWORK_MAX;
    if (count_of(logins, network, hidden) >= max)
        return hidden && end_hidden(logins, network);
    return logins->count < LOGINS_MAX || end_hidden(logins, NULL);
}

struct login *logins_begin(struct logins *logins, const char *client,
                           const unsigned char network[LOGIN_NETWORK_LEN],
                           struct slice challenge, uint16_t port, int64_t now_ms,
                           int64_t wall_ms)
{
    static const char alphabet[] = "123456789abcdefghijkmnopqrstuvwxyz";
    end_old(logins, now_ms);
    if (!make_room(logins, network, !*client))
        return NULL;
    struct login *login = mem_new(struct login);
    text_random(login->code, LOGIN_CODE_LEN, alphabet);
    snprintf(login->challenge, sizeof(login->challenge), "%.*s", SLICE_ARG(challenge));
    snprintf(login->client, sizeof(login->client), "%s", client);
    memcpy(login->network, network, LOGIN_NETWORK_LEN);
    login->port = port;
    login->created_at = wall_ms;
    login->ends_at = now_ms + LOGIN_TTL_MS;
    list_append(&logins->all, &login->link);
    logins->count++;
    return login;
}

struct login *logins_find(struct logins *logins, struct slice code, int64_t now_ms)
{
    struct login *found = NULL;
    end_old(logins, now_ms);
    list_each (link, &logins->all) {
        struct login *login = container_of(link, struct login, link);
        if (code.len == LOGIN_CODE_LEN && !CRYPTO_memcmp(login->code, code.ptr, code.len))
            found = login;
    }
    return found;
}

/* The alphabet has no letters that look alike, and no vowels that would form words. */
void login_approve(struct login *login, struct secret *approver)
{
    char drawn[12];
    text_random(drawn, sizeof(drawn), "BCDFGHJKLMNPQRSTVWXZ");
    snprintf(login->approval, sizeof(login->approval), "%.4s-%.4s-%.4s", drawn, drawn + 4,
             drawn + 8);
    login->approver = secret_ref(approver);
}

static bool same(struct slice given, const char *wanted, size_t len)
{
    return given.len == len && !CRYPTO_memcmp(given.ptr, wanted, len);
}

bool logins_prove(struct logins *logins, struct login *login, struct slice verifier,
                  struct slice approval)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    char challenge[LOGIN_CHALLENGE_LEN + 5];
    SHA256((const unsigned char *)verifier.ptr, verifier.len, hash);
    size_t len =
        text_to_base64url((struct slice){ (const char *)hash, sizeof(hash) }, challenge);
    bool right = same((struct slice){ challenge, len }, login->challenge,
                      strlen(login->challenge)) &&
                 *login->approval &&
                 same(approval, login->approval, strlen(login->approval));
    if (!right && ++login->tries >= LOGIN_TRIES)
        logins_end(logins, login);
    return right;
}
