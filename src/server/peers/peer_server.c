/* peer_server.c - the handshake of the leader, and a queue of unsent messages for each peer. */
#include "server/peers/peer_server.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/vault/secret.h"
#include "net/http/carried.h"
#include "net/http/http_check.h"
#include "net/http/ws.h"
#include "server/peers/callers.h"
#include "server/peers/peer_wire.h"

enum {
    /* Above 7/8 of it, the oldest connection that has proved nothing is closed for each new
     * one. So that is more than all strangers and forwarded calls. */
    CONNECTIONS_MAX =
        (2 * (PEER_STRANGERS_MAX + CALLERS_STRANGERS_MAX) + CALLERS_MAX) / 7 * 8,
    HEADERS_MAX = 110, /* a client may send 100 */
    HEAD_MAX = 18 * 1024,
    HEAD_MS = 2 * 1000,
    STRANGER_TEXT_MAX = 512, /* bytes; an answer has at most 139 */
    MESSAGES_PER_S = 1000,
    SENDS_MAX = 32, /* messages in one write, each of which has two frames */
    HEAD_LEN = PEER_MAC_LEN + PEER_SEAL_LEN,
    WARN_MS = 1000,
};

struct peer_server {
    struct loop *loop;
    struct peer_server_options options;
    struct server *http;
    struct callers *callers;
    struct peer_group *group; /* seals the messages of all peers */
    struct list all;          // peer_conn::link
    unsigned strangers;
    uint32_t handshake_kind;
    int64_t warned_ms; /* when a refused stranger was logged last */
};

/* A message that waits until the peer has read what was sent before. */
struct unsent_message {
    struct bytes *head; /* MAC and seal */
    struct bytes *body;
    int64_t since_ms; /* monotonic */
    struct list link; // peer_conn::waiting
};

/* The payload of a ping, which the peer sends back. */
struct peer_mark {
    uint64_t bytes;   /* link_rate_mark */
    int64_t since_ms; /* when the last message before it was to be sent; monotonic */
};

struct peer_conn {
    struct peer_server *server;
    struct ws *ws;
    bool is_stranger;
    bool ended;   /* on_closed is due */
    bool is_full; /* the kernel accepts nothing until on_drained */
    char why[128], address[ADDRESS_TEXT];
    struct peer_handshake handshake;
    struct timer timer; /* of the handshake */
    struct peer_mac *in, *out;
    struct list waiting; // unsent_message::link
    size_t waiting_bytes;
    uint64_t given;        /* bytes of messages that were given to ws so far */
    struct link_rate rate; /* at which the peer reads them */
    void *owner;
    struct list link; // peer_server::all
};

/* ---- messages ---- */

void peer_message_make(struct peer_server *server, struct peer_message *message,
                       struct slice content)
{
    message->content = content;
    message->frame = NULL;
    peer_group_seal(server->group, content, &message->seal);
}

void peer_message_finish(struct peer_message *message)
{
    bytes_clear(&message->frame);
}

void peer_conn_set_owner(struct peer_conn *peer, void *owner)
{
    peer->owner = owner;
}

void *peer_conn_owner(const struct peer_conn *peer)
{
    return peer->owner;
}

uint64_t peer_conn_id(const struct peer_conn *peer)
{
    return peer->handshake.follower;
}

const char *peer_conn_address(const struct peer_conn *peer)
{
    return peer->address;
}

size_t peer_conn_unread(const struct peer_conn *peer)
{
    return (size_t)(peer->given - peer->rate.read) + peer->waiting_bytes;
}

const struct link_rate *peer_conn_rate(const struct peer_conn *peer)
{
    return &peer->rate;
}

/* ---- ending ---- */

static void leave_strangers(struct peer_conn *peer)
{
    if (!peer->is_stranger)
        return;
    peer->is_stranger = false;
    peer->server->strangers--;
    timers_clear(loop_timers(peer->server->loop), &peer->timer);
}

static void forget_waiting(struct peer_conn *peer)
{
    while (!list_empty(&peer->waiting)) {
        struct unsent_message *first =
            container_of(list_take(&peer->waiting), struct unsent_message, link);
        bytes_unref(first->head);
        bytes_unref(first->body);
        free(first);
    }
    peer->waiting_bytes = 0;
}

static void end(struct peer_conn *peer, const char *why)
{
    if (peer->ended)
        return;
    peer->ended = true;
    snprintf(peer->why, sizeof(peer->why), "%s", why);
    leave_strangers(peer);
    forget_waiting(peer);
    ws_cut(peer->ws, 1008, peer->why);
}

void peer_conn_end(struct peer_conn *peer, const char *why)
{
    end(peer, why);
}

/* Logs at most one refused stranger a second, so that a flood does not fill the log. */
static void refuse(struct peer_conn *peer, const char *why)
{
    struct peer_server *server = peer->server;
    int64_t now_ms = loop_now_ms(server->loop);
    metric_add(M_PEERS_REFUSED, 1);
    if (now_ms - server->warned_ms >= WARN_MS) {
        server->warned_ms = now_ms;
        log_warn("a peer was refused", "client", peer->address, "reason", why, NULL);
    }
    end(peer, why);
}

static void on_handshake_due(struct timer *timer)
{
    refuse(container_of(timer, struct peer_conn, timer), "it proved nothing within 5 s");
}

/* ---- sending ---- */

/* Returns the first frame of the message for this peer: MAC and seal. */
static struct slice make_head(struct peer_conn *peer, const struct peer_seal *seal,
                              unsigned char head[HEAD_LEN])
{
    peer_mac_next(peer->out, seal->hash, head);
    memcpy(head + PEER_MAC_LEN, seal->bytes, PEER_SEAL_LEN);
    return (struct slice){ (const char *)head, HEAD_LEN };
}

static size_t weight(const struct unsent_message *waiting)
{
    return waiting->head->len + waiting->body->len;
}

/* Sends a mark, if one is due. since_ms: since when the last bytes before it have waited. */
static void mark(struct peer_conn *peer, uint64_t before, int64_t since_ms)
{
    struct peer_mark mark = { peer->given, since_ms };
    if (!link_rate_is_due(&peer->rate, peer->given))
        return;
    link_rate_mark(&peer->rate, loop_now_ms(peer->server->loop), before, peer->given);
    ws_ping_with(peer->ws, (struct slice){ (const char *)&mark, sizeof(mark) });
}

/* Sends the first messages that wait, and forgets them: the outbox keeps references. */
static void send_first(struct peer_conn *peer)
{
    struct bytes *frames[2 * SENDS_MAX];
    struct unsent_message *sent[SENDS_MAX];
    uint64_t before = peer->given;
    int64_t since_ms = 0;
    size_t count = 0;
    while (count < SENDS_MAX && !list_empty(&peer->waiting)) {
        sent[count] = container_of(list_take(&peer->waiting), struct unsent_message, link);
        frames[2 * count] = sent[count]->head;
        frames[2 * count + 1] = sent[count]->body;
        since_ms = sent[count]->since_ms;
        peer->waiting_bytes -= weight(sent[count]);
        peer->given += weight(sent[count++]);
    }
    peer->is_full = !ws_send(peer->ws, frames, 2 * count);
    for (size_t i = 0; i < count; i++) {
        metric_add(M_REPLICATION_SENT, (int64_t)weight(sent[i]));
        bytes_unref(sent[i]->head);
        bytes_unref(sent[i]->body);
        free(sent[i]);
    }
    mark(peer, before, since_ms);
}

static void flush(struct peer_conn *peer)
{
    while (!peer->is_full && !peer->ended && !list_empty(&peer->waiting))
        send_first(peer);
}

/* Sends a message before which none waits. Nothing of it is copied, unless the kernel does not
 * accept all of it. */
static void send_now(struct peer_conn *peer, const struct peer_message *message,
                     int64_t now_ms)
{
    unsigned char head[HEAD_LEN];
    uint64_t before = peer->given;
    peer->is_full =
        !ws_send_split(peer->ws, make_head(peer, &message->seal, head), message->content);
    peer->given += HEAD_LEN + message->content.len;
    metric_add(M_REPLICATION_SENT, (int64_t)(HEAD_LEN + message->content.len));
    mark(peer, before, now_ms);
}

static void send_later(struct peer_conn *peer, struct peer_message *message, int64_t now_ms)
{
    unsigned char head[HEAD_LEN];
    struct unsent_message *waiting = mem_new(struct unsent_message);
    if (!message->frame)
        message->frame = ws_frame_end(message->content);
    waiting->head = ws_frame_begin(make_head(peer, &message->seal, head));
    waiting->body = bytes_ref(message->frame);
    waiting->since_ms = now_ms;
    list_append(&peer->waiting, &waiting->link);
    peer->waiting_bytes += weight(waiting);
    flush(peer);
}

void peer_conn_send(struct peer_conn *peer, struct peer_message *message)
{
    if (peer->ended)
        return;
    int64_t now_ms = loop_now_ms(peer->server->loop);
    size_t unsent = peer->waiting_bytes + ws_unsent(peer->ws);
    if (unsent && unsent + message->content.len > peer->server->options.unsent_max) {
        end(peer, "it reads too slowly");
        return;
    }
    if (unsent)
        send_later(peer, message, now_ms);
    else
        send_now(peer, message, now_ms);
    link_rate_look(&peer->rate, now_ms);
}

static void send_alone(struct peer_conn *peer, struct slice content)
{
    struct bytes *frame = ws_frame(content, true);
    peer->is_full = !ws_send(peer->ws, &frame, 1);
    bytes_unref(frame);
}

/* ---- the handshake ---- */

static void send_opening(struct peer_conn *peer)
{
    struct buf opening = { 0 };
    peer_proof_draw(peer->handshake.leader_random);
    peer_wire_add_statement(&opening, peer->handshake.leader_random,
                            peer->handshake.leader);
    send_alone(peer, buf_slice(&opening));
    buf_finish(&opening);
}

static void become_peer(struct peer_conn *peer, const struct peer_key *key)
{
    unsigned char proof[PEER_PROOF_LEN + PEER_GROUP_KEY_LEN];
    struct peer_key session;
    peer_proof_make(key, PEER_LEADER, &peer->handshake, proof);
    peer_proof_session(key, &peer->handshake, &session);
    peer->in = peer_mac_create(&session, PEER_FOLLOWER);
    peer->out = peer_mac_create(&session, PEER_LEADER);
    peer_group_wrap(peer->server->group, &session, proof + PEER_PROOF_LEN);
    secret_wipe(&session, sizeof(session));
    leave_strangers(peer);
    ws_trust(peer->ws);
    send_alone(peer, (struct slice){ (const char *)proof, sizeof(proof) });
    peer->server->options.on_peer(peer->server->options.owner, peer);
}

static void take_answer(struct peer_conn *peer, struct slice text)
{
    struct peer_handshake *handshake = &peer->handshake;
    unsigned char bytes[PEER_TEXT_MAX];
    struct peer_keys keys;
    struct slice answer;
    if (!peer_wire_read_text(text, bytes, &answer) ||
        !peer_wire_take_statement(&answer, handshake->follower_random,
                                  &handshake->follower)) {
        refuse(peer, "its first message is not that of a gateway");
        return;
    }
    vault_peer_keys(peer->server->options.vault, &keys);
    const struct peer_key *key = peer_proof_check(&keys, PEER_FOLLOWER, handshake, answer);
    if (key)
        become_peer(peer, key);
    else
        refuse(peer, "it does not have the encryption key of this gateway");
    secret_wipe(&keys, sizeof(keys));
}

static void take_message(struct peer_conn *peer, struct slice text)
{
    struct peer_server_options *options = &peer->server->options;
    unsigned char bytes[PEER_TEXT_MAX];
    struct slice message;
    if (!peer_wire_read_text(text, bytes, &message) ||
        !peer_wire_open(peer->in, &message)) {
        end(peer, "a message of it was changed on the way");
        return;
    }
    options->on_message(options->owner, peer, message);
}

static void on_message(struct ws *ws, struct slice text)
{
    struct peer_conn *peer = ws_owner(ws);
    if (peer->ended)
        return;
    if (peer->is_stranger)
        take_answer(peer, text);
    else
        take_message(peer, text);
}

static void on_drained(struct ws *ws)
{
    struct peer_conn *peer = ws_owner(ws);
    peer->is_full = false;
    flush(peer);
}

/* Pongs without a mark answer pings of ws. */
static void on_pong(struct ws *ws, struct slice payload)
{
    struct peer_conn *peer = ws_owner(ws);
    struct peer_mark mark;
    if (payload.len != sizeof(mark))
        return;
    memcpy(&mark, payload.ptr, sizeof(mark));
    link_rate_answer(&peer->rate, loop_now_ms(peer->server->loop), mark.bytes,
                     mark.since_ms);
}

static void on_closed(struct ws *ws)
{
    struct peer_conn *peer = ws_owner(ws);
    struct peer_server_options *options = &peer->server->options;
    leave_strangers(peer);
    forget_waiting(peer);
    if (peer->in)
        options->on_gone(options->owner, peer,
                         peer->ended ? peer->why : "the connection ended");
    list_remove(&peer->link);
    peer_mac_destroy(peer->in);
    peer_mac_destroy(peer->out);
    free(peer);
}

static const struct ws_ops ws_ops = {
    .on_message = on_message,
    .on_drained = on_drained,
    .on_pong = on_pong,
    .on_closed = on_closed,
};

/* ---- accepting ---- */

/* The oldest stranger is the least likely to prove anything: a follower needs only a moment.
 * Otherwise a few silent strangers would keep all followers out. */
static void refuse_oldest(struct peer_server *server)
{
    list_each (link, &server->all) {
        struct peer_conn *peer = container_of(link, struct peer_conn, link);
        if (!peer->is_stranger)
            continue;
        refuse(peer, "too many have proved nothing yet");
        return;
    }
}

static void accept_stranger(struct peer_server *server, struct exchange *x, uint64_t id)
{
    struct peer_conn *peer = mem_new(struct peer_conn);
    peer->server = server;
    snprintf(peer->address, sizeof(peer->address), "%s", x->peer);
    peer->handshake.leader = id;
    list_init(&peer->waiting);
    peer->ws = ws_accept(x, PEER_PROTOCOL, &ws_ops, peer);
    if (!peer->ws) {
        free(peer);
        return;
    }
    if (server->strangers == PEER_STRANGERS_MAX)
        refuse_oldest(server);
    peer->is_stranger = true;
    server->strangers++;
    list_append(&server->all, &peer->link);
    loop_set_timer(server->loop, &peer->timer, server->handshake_kind, PEER_HANDSHAKE_MS);
    send_opening(peer);
}

static void answer(struct exchange *x, int status)
{
    struct slice headers = status == 503 ? SLICE("retry-after: 1\r\n") : SLICE("");
    http_reply(x, status, headers, (struct slice){ 0 });
}

/* A connection that forwards calls never becomes one of replication, nor does a multiplexed
 * call: a client chooses the paths of its calls. */
static bool is_replication(const struct exchange *x)
{
    struct slice protocols = http_header(x, "sec-websocket-protocol");
    return !http_session_of(x) && !http_carried_of(x) && x->method == HTTP_GET_ &&
           slice_is(x->path, PEER_TARGET) && http_list_has(protocols, PEER_PROTOCOL);
}

static bool takes_calls(const struct peer_server *server)
{
    return server->options.calls.on_head;
}

static void on_head(void *owner, struct exchange *x)
{
    struct peer_server *server = owner;
    const struct peer_server_options *options = &server->options;
    if (is_replication(x)) {
        if (x->chunked) /* the time of the handshake begins after the request */
            answer(x, 400);
        return;
    }
    if (!takes_calls(server))
        answer(x, 404);
    else if (callers_take_head(server->callers, x))
        options->calls.on_head(options->calls_owner, x);
}

static void on_body(void *owner, struct exchange *x, struct slice piece)
{
    const struct peer_server_options *options = &((struct peer_server *)owner)->options;
    options->calls.on_body(options->calls_owner, x, piece);
}

static void on_request(void *owner, struct exchange *x)
{
    struct peer_server *server = owner;
    const struct peer_server_options *options = &server->options;
    uint64_t id = options->leader_id(options->owner);
    if (x->relayed)
        options->calls.on_request(options->calls_owner, x);
    else if (!is_replication(x))
        callers_take_greeting(server->callers, x);
    else if (id)
        accept_stranger(server, x, id);
    else
        answer(x, 503);
}

/* Ends the exchange: a body was refused, or the peer left before its request was complete. */
static void on_gone(void *owner, struct exchange *x)
{
    const struct peer_server_options *options = &((struct peer_server *)owner)->options;
    if (x->relayed)
        options->calls.on_gone(options->calls_owner, x);
    else
        answer(x, 400);
}

static void on_drained_call(void *owner, struct exchange *x)
{
    const struct peer_server_options *options = &((struct peer_server *)owner)->options;
    if (x->relayed)
        options->calls.on_drained(options->calls_owner, x);
}

static void on_refused(void *owner, const struct exchange *x, int status)
{
    const struct peer_server_options *options = &((struct peer_server *)owner)->options;
    if (x->relayed && options->calls.on_refused)
        options->calls.on_refused(options->calls_owner, x, status);
}

static void on_session_end(void *owner, struct http_session *session)
{
    (void)owner;
    callers_on_session_end(session);
}

/* ---- making ---- */

enum err peer_server_create(struct loop *loop, const struct peer_server_options *options,
                            struct peer_server **out, struct failure *why)
{
    struct peer_server *server = mem_new(struct peer_server);
    const struct server_options http = {
        .listeners = options->address,
        .listener_count = 1,
        .handler = { .on_head = on_head,
                     .on_body = on_body,
                     .on_request = on_request,
                     .on_gone = on_gone,
                     .on_drained = on_drained_call,
                     .on_refused = on_refused },
        .owner = server,
        .on_session_end = on_session_end,
        .head_timeout_ms = HEAD_MS,
        .head_bytes_max = HEAD_MAX,
        .headers_max = HEADERS_MAX,
        .connections_max = CONNECTIONS_MAX,
        .connections_per_address = CONNECTIONS_MAX,
        .certificates = options->certificates,
        .ws_unauthenticated_message_max = STRANGER_TEXT_MAX,
        .ws_messages_per_s = MESSAGES_PER_S,
        .ws_messages_burst = MESSAGES_PER_S,
    };
    server->loop = loop;
    server->options = *options;
    if (!server->options.unsent_max)
        server->options.unsent_max = PEER_UNSENT_MAX;
    server->warned_ms = -WARN_MS;
    list_init(&server->all);
    server->handshake_kind = timers_kind(loop_timers(loop), on_handshake_due);
    enum err refused = server_create(loop, &http, &server->http, why);
    if (refused) {
        free(server);
        return refused;
    }
    const struct callers_options callers = { .vault = options->vault,
                                             .leader_id = options->leader_id,
                                             .owner = options->owner,
                                             .most = options->callers_max };
    server->callers = callers_create(loop, server->http, &callers);
    server->group = peer_group_create();
    *out = server;
    return OK;
}

int peer_server_port(const struct peer_server *server)
{
    return server_port(server->http, 0);
}

void peer_server_show(struct peer_server *server, struct certificates *certificates)
{
    server_show(server->http, certificates);
}

static void on_http_closed(struct server *http)
{
    struct peer_server *server = server_owner(http);
    server->options.closed(server->options.owner);
    peer_group_destroy(server->group);
    callers_destroy(server->callers);
    free(server);
}

void peer_server_end_all(struct peer_server *server, const char *why)
{
    list_each (link, &server->all)
        end(container_of(link, struct peer_conn, link), why);
}

void peer_server_close(struct peer_server *server)
{
    peer_server_end_all(server, "this gateway ends");
    server_close(server->http, on_http_closed);
}
