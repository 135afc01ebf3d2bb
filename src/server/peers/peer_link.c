/* peer_link.c - the handshake of a follower, and messages with MACs. */
#include "server/peers/peer_link.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/vault/secret.h"
#include "net/client/websocket.h"
#include "server/peers/peer_wire.h"

enum {
    CONNECT_MS = 3 * 1000,
    PING_MS = 5 * 1000,
    SILENCE_MS = 5 * 1000,
    UNSENT_MAX = 64 << 10,
    PROOF_MESSAGE_LEN = PEER_PROOF_LEN + PEER_GROUP_KEY_LEN, /* longer than an opening */
};

enum link_state { LINK_OPENS, LINK_ANSWERED, LINK_OPEN, LINK_ENDED };

struct peer_link {
    struct loop *loop;
    struct peer_link_options options;
    struct websocket *ws;
    enum link_state state;
    char why[160];
    struct timer timer; /* of the handshake */
    struct peer_handshake handshake;
    struct peer_keys keys; /* until the leader has proved that it has one of them */
    struct peer_mac *in, *out;
    struct peer_group *group;
};

static void end(struct peer_link *link, const char *why)
{
    if (link->state == LINK_ENDED)
        return;
    link->state = LINK_ENDED;
    snprintf(link->why, sizeof(link->why), "%s", why);
    timers_clear(loop_timers(link->loop), &link->timer);
    websocket_cut(link->ws);
}

static void on_handshake_due(struct timer *timer)
{
    end(container_of(timer, struct peer_link, timer),
        "the leader proved nothing within 5 s");
}

/* ---- sending ---- */

static void send_text(struct peer_link *link, struct slice bytes)
{
    struct buf text = { 0 };
    peer_wire_add_text(&text, bytes);
    if (websocket_send(link->ws, buf_slice(&text), false))
        end(link, "the leader does not read");
    buf_finish(&text);
}

void peer_link_send(struct peer_link *link, struct slice message)
{
    unsigned char hash[HASH_LEN], mac[PEER_MAC_LEN];
    struct buf sealed = { 0 };
    if (link->state != LINK_OPEN)
        return;
    vault_hash(message, hash);
    peer_mac_next(link->out, hash, mac);
    buf_add(&sealed, (struct slice){ (const char *)mac, sizeof(mac) });
    buf_add(&sealed, message);
    send_text(link, buf_slice(&sealed));
    buf_finish(&sealed);
}

void peer_link_cut(struct peer_link *link, const char *why)
{
    end(link, why);
}

/* ---- the handshake ---- */

/* Proves each key that this gateway has: during a rotation the leader may have one of
 * them. */
static void send_answer(struct peer_link *link)
{
    struct buf answer = { 0 };
    unsigned char proof[PEER_PROOF_LEN];
    peer_wire_add_statement(&answer, link->handshake.follower_random,
                            link->handshake.follower);
    for (size_t i = 0; i < link->keys.count; i++) {
        peer_proof_make(&link->keys.list[i], PEER_FOLLOWER, &link->handshake, proof);
        buf_add(&answer, (struct slice){ (const char *)proof, sizeof(proof) });
    }
    link->state = LINK_ANSWERED;
    send_text(link, buf_slice(&answer));
    buf_finish(&answer);
}

static void take_opening(struct peer_link *link, struct slice opening)
{
    struct peer_handshake *handshake = &link->handshake;
    if (!peer_wire_take_statement(&opening, handshake->leader_random, &handshake->leader) ||
        opening.len)
        end(link, "the first message of the leader is not that of a gateway");
    else if (handshake->leader != link->options.leader)
        end(link, "another gateway than the leader is at its address");
    else
        send_answer(link);
}

static void take_proof(struct peer_link *link, struct slice message)
{
    struct slice proof = { message.ptr, PEER_PROOF_LEN };
    const struct peer_key *key =
        message.len == PROOF_MESSAGE_LEN
            ? peer_proof_check(&link->keys, PEER_LEADER, &link->handshake, proof)
            : NULL;
    struct peer_key session;
    if (!key) {
        end(link, "the leader does not have the encryption key of this gateway");
        return;
    }
    peer_proof_session(key, &link->handshake, &session);
    link->in = peer_mac_create(&session, PEER_LEADER);
    link->out = peer_mac_create(&session, PEER_FOLLOWER);
    link->group =
        peer_group_unwrap((const unsigned char *)message.ptr + PEER_PROOF_LEN, &session);
    secret_wipe(&session, sizeof(session));
    secret_wipe(&link->keys, sizeof(link->keys));
    timers_clear(loop_timers(link->loop), &link->timer);
    websocket_limit_messages(link->ws, PEER_LINK_MESSAGE_MAX);
    link->state = LINK_OPEN;
    link->options.on_open(link->options.owner);
}

static void take_message(struct peer_link *link, struct slice message)
{
    metric_add(M_REPLICATION_RECEIVED, (int64_t)message.len);
    if (peer_wire_open_sealed(link->in, link->group, &message))
        link->options.on_message(link->options.owner, message);
    else
        end(link, "a message of the leader was changed on the way");
}

/* ---- the WebSocket ---- */

static void on_open(struct websocket *ws)
{
    struct peer_link *link = websocket_owner(ws);
    uint32_t kind = timers_kind(loop_timers(link->loop), on_handshake_due);
    loop_set_timer(link->loop, &link->timer, kind, PEER_HANDSHAKE_MS);
}

static void on_message(struct websocket *ws, struct slice message, bool is_binary)
{
    struct peer_link *link = websocket_owner(ws);
    if (!is_binary)
        end(link, "the leader sent text");
    else if (link->state == LINK_OPENS)
        take_opening(link, message);
    else if (link->state == LINK_ANSWERED)
        take_proof(link, message);
    else if (link->state == LINK_OPEN)
        take_message(link, message);
}

/* peer_server responds with 503 until its gateway leads. */
static const char *why_of(const struct peer_link *link, const struct websocket_end *ended)
{
    if (link->state == LINK_ENDED)
        return link->why;
    if (ended->status == 503)
        return "the gateway at this address does not lead, or does not serve yet; if this "
               "lasts, correct peer-url at the leader";
    if (ended->status == 404)
        return "this address is not that of a peer-listen; correct peer-url at the leader";
    return ended->reason.len ? log_slice(ended->reason) : ended->why;
}

static void on_closed(struct websocket *ws, const struct websocket_end *ended)
{
    struct peer_link *link = websocket_owner(ws);
    timers_clear(loop_timers(link->loop), &link->timer);
    link->options.on_closed(link->options.owner, why_of(link, ended));
    peer_mac_destroy(link->in);
    peer_mac_destroy(link->out);
    peer_group_destroy(link->group);
    secret_wipe(&link->keys, sizeof(link->keys));
    free(link);
}

static const struct websocket_ops ws_ops = {
    .on_open = on_open,
    .on_message = on_message,
    .on_closed = on_closed,
};

enum err peer_link_open(struct loop *loop, const struct peer_link_options *options,
                        struct peer_link **out, struct failure *why)
{
    struct url url;
    enum err refused = url_read(slice_of(options->url), &url, why);
    if (refused)
        return refused;
    if (url.secure && !options->trust)
        return explain(
            why, ERR_INVALID,
            "the leader speaks TLS, but this gateway does not; append ,tls to its "
            "peer-listen, too");
    struct peer_link *link = mem_new(struct peer_link);
    const struct websocket_options websocket = {
        .url = &url,
        .trust = options->trust,
        .target = SLICE(PEER_TARGET),
        .protocol = PEER_PROTOCOL,
        .connect_ms = CONNECT_MS,
        .handshake_ms = PEER_HANDSHAKE_MS,
        .ping_ms = PING_MS,
        .silence_ms = SILENCE_MS,
        .message_max = PROOF_MESSAGE_LEN,
        .unsent_max = UNSENT_MAX,
    };
    link->loop = loop;
    link->options = *options;
    link->handshake.follower = options->me;
    peer_proof_draw(link->handshake.follower_random);
    vault_peer_keys(options->vault, &link->keys);
    refused = websocket_open(loop, &websocket, &ws_ops, link, &link->ws, why);
    if (refused) {
        secret_wipe(&link->keys, sizeof(link->keys));
        free(link);
        return refused;
    }
    *out = link;
    return OK;
}
