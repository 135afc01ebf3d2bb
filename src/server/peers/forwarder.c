/* forwarder.c - proves the key at the leader for each new connection, then signs calls. */
#include "server/peers/forwarder.h"

#include <string.h>

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vault/secret.h"
#include "server/peers/call_wire.h"
#include "server/peers/peer_wire.h"

enum {
    CONNECTIONS_MAX = 4 * 1024,
    CONNECT_MS = 3 * 1000,
};

/* A leader, and the connections to it. */
struct forward_target {
    struct forwarder *forwarder;
    struct relay_pool *pool;
    uint64_t leader;
    char url[sizeof(((struct store_gateway *)0)->peer_url)];
};

struct forwarder {
    struct loop *loop;
    struct forwarder_options options;
    struct forward_target *target; /* NULL: none yet, or its leader is gone */
    unsigned open;                 /* pools that are not closed */
    char failed[sizeof(((struct store_gateway *)0)->peer_url)]; /* a URL that is logged */
    void (*closed)(void *owner);                                /* NULL: it is open */
    void *owner;
    struct deferred end;
};

/* ---- introducing a connection ---- */

enum greeting_state { GREETING_BEGINS, GREETING_ASKED, GREETING_ANSWERED };

struct greeting {
    enum greeting_state state;
    const struct forwarder *forwarder;
    struct peer_handshake handshake;
    struct peer_keys keys; /* until the leader has proved that it has one of them */
    struct peer_mac *mac;
    enum peer_mux mux; /* once it carries calls together */
};

static void *create_greeting(void *owner)
{
    const struct forward_target *target = owner;
    struct greeting *greeting = mem_new(struct greeting);
    greeting->forwarder = target->forwarder;
    greeting->handshake.leader = target->leader;
    return greeting;
}

static void destroy_greeting(void *made)
{
    struct greeting *greeting = made;
    secret_wipe(&greeting->keys, sizeof(greeting->keys));
    peer_mac_destroy(greeting->mac);
    free(greeting);
}

/* Proves each key that this gateway has, as peer_link.c does. */
static void add_answer(struct greeting *greeting, struct buf *body)
{
    struct peer_handshake *handshake = &greeting->handshake;
    const struct forwarder_options *options = &greeting->forwarder->options;
    unsigned char proof[PEER_PROOF_LEN];
    handshake->follower = options->me(options->owner);
    peer_proof_draw(handshake->follower_random);
    vault_peer_keys(options->vault, &greeting->keys);
    peer_wire_add_statement(body, handshake->follower_random, handshake->follower);
    for (size_t i = 0; i < greeting->keys.count; i++) {
        peer_proof_make(&greeting->keys.list[i], PEER_CALLER, handshake, proof);
        buf_add(body, (struct slice){ (const char *)proof, sizeof(proof) });
    }
    greeting->state = GREETING_ANSWERED;
}

static enum relay_greet take_opening(struct greeting *greeting, struct slice opening,
                                     struct buf *body, const char **why)
{
    uint64_t leader = greeting->handshake.leader;
    *why = "another gateway than the leader is at its address";
    if (!peer_wire_take_statement(&opening, greeting->handshake.leader_random,
                                  &greeting->handshake.leader) ||
        opening.len || greeting->handshake.leader != leader)
        return RELAY_GREET_REFUSED;
    add_answer(greeting, body);
    return RELAY_GREET_SEND;
}

static enum relay_greet take_proof(struct greeting *greeting, struct slice proof,
                                   const char **why)
{
    const struct peer_key *key =
        proof.len == PEER_PROOF_LEN
            ? peer_proof_check(&greeting->keys, PEER_CALLED, &greeting->handshake, proof)
            : NULL;
    struct peer_key session;
    *why = "the leader does not have the encryption key of this gateway";
    if (!key)
        return RELAY_GREET_REFUSED;
    peer_proof_session(key, &greeting->handshake, &session);
    greeting->mac = peer_mac_create(&session, PEER_CALLER);
    secret_wipe(&session, sizeof(session));
    secret_wipe(&greeting->keys, sizeof(greeting->keys));
    return RELAY_GREET_DONE;
}

static enum relay_greet next(void *made, int status, struct slice answer, struct buf *body,
                             const char **why)
{
    struct greeting *greeting = made;
    if (greeting->state == GREETING_BEGINS) {
        greeting->state = GREETING_ASKED;
        return RELAY_GREET_SEND;
    }
    if (status != 200) {
        *why = status == 503   ? "the gateway at the leader's address does not lead"
               : status == 429 ? "the leader has too many forwarded calls"
                               : "the gateway at the leader's address refuses this one";
        return RELAY_GREET_REFUSED;
    }
    return greeting->state == GREETING_ASKED ? take_opening(greeting, answer, body, why)
                                             : take_proof(greeting, answer, why);
}

static void sign(void *made, struct slice head, struct slice note, struct buf *line)
{
    struct greeting *greeting = made;
    greeting->mux = slice_is(note, PEER_MUX_ORIGIN) ? PEER_MUX_SEALED : PEER_MUX_HASHED;
    call_wire_sign(greeting->mac, head, note, line);
}

static void seal(void *made, struct slice items, struct buf *mac)
{
    const struct greeting *greeting = made;
    call_wire_seal(greeting->mac, greeting->mux, items, mac);
}

static const struct relay_greeter greeter = { .target = PEER_CALLS_TARGET,
                                              .create = create_greeting,
                                              .destroy = destroy_greeting,
                                              .next = next,
                                              .sign = sign,
                                              .mux_target = PEER_MUX_TARGET,
                                              .mux_note = PEER_MUX_ORIGIN,
                                              .mux_older_note = PEER_MUX_OLDER_ORIGIN,
                                              .seal = seal };

/* ---- pools ---- */

static void maybe_closed(struct forwarder *forwarder)
{
    if (forwarder->closed && !forwarder->open)
        loop_defer(forwarder->loop, &forwarder->end);
}

static void on_end(struct deferred *deferred)
{
    struct forwarder *forwarder = container_of(deferred, struct forwarder, end);
    void (*closed)(void *owner) = forwarder->closed;
    void *owner = forwarder->owner;
    free(forwarder);
    closed(owner);
}

static void on_pool_closed(void *owner)
{
    struct forward_target *target = owner;
    struct forwarder *forwarder = target->forwarder;
    free(target);
    forwarder->open--;
    maybe_closed(forwarder);
}

static void leave_target(struct forwarder *forwarder)
{
    struct forward_target *target = forwarder->target;
    forwarder->target = NULL;
    if (target)
        relay_pool_close(target->pool, on_pool_closed, target);
}

static enum err create_pool(struct forward_target *target, struct failure *why)
{
    struct forwarder *forwarder = target->forwarder;
    struct url url;
    enum err refused = url_read(slice_of(target->url), &url, why);
    if (refused)
        return refused;
    const struct relay_pool_options options = { .url = &url,
                                                .trust = forwarder->options.trust,
                                                .greeter = &greeter,
                                                .owner = target,
                                                .connections_max = CONNECTIONS_MAX,
                                                .connect_ms = CONNECT_MS };
    return relay_pool_create(forwarder->loop, &options, &target->pool, why);
}

/* A URL that cannot be used is logged once. */
static void log_failure(struct forwarder *forwarder, const struct store_gateway *leader,
                        const char *why)
{
    if (!strcmp(forwarder->failed, leader->peer_url))
        return;
    snprintf(forwarder->failed, sizeof(forwarder->failed), "%s", leader->peer_url);
    log_warn("cannot forward calls to the leader", "leader", leader->name, "url",
             leader->peer_url, "reason", why, NULL);
}

static void enter_target(struct forwarder *forwarder, const struct store_gateway *leader)
{
    struct forward_target *target = mem_new(struct forward_target);
    struct failure why;
    target->forwarder = forwarder;
    target->leader = leader->id;
    snprintf(target->url, sizeof(target->url), "%s", leader->peer_url);
    if (create_pool(target, &why)) {
        log_failure(forwarder, leader, why.text);
        free(target);
        return;
    }
    forwarder->open++;
    forwarder->target = target;
}

static bool is_same(const struct forward_target *target, const struct store_gateway *leader)
{
    return target && leader && target->leader == leader->id &&
           !strcmp(target->url, leader->peer_url);
}

struct relay_pool *forwarder_pool(struct forwarder *forwarder)
{
    const struct forwarder_options *options = &forwarder->options;
    const struct store_gateway *leader = options->leader(options->owner);
    if (!is_same(forwarder->target, leader))
        leave_target(forwarder);
    if (!forwarder->target && leader && leader->peer_url[0] && !forwarder->closed &&
        options->me(options->owner))
        enter_target(forwarder, leader);
    return forwarder->target ? forwarder->target->pool : NULL;
}

void forwarder_renew(struct forwarder *forwarder)
{
    leave_target(forwarder);
}

struct forwarder *forwarder_create(struct loop *loop,
                                   const struct forwarder_options *options)
{
    struct forwarder *forwarder = mem_new(struct forwarder);
    forwarder->loop = loop;
    forwarder->options = *options;
    forwarder->end.fn = on_end;
    list_init(&forwarder->end.link);
    return forwarder;
}

void forwarder_close(struct forwarder *forwarder, void (*closed)(void *owner), void *owner)
{
    forwarder->closed = closed;
    forwarder->owner = owner;
    leave_target(forwarder);
    maybe_closed(forwarder);
}
