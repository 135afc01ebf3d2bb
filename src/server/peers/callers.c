/* callers.c - the handshake of the leader with connections that forward calls. */
#include "server/peers/callers.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/vault/secret.h"
#include "net/http/relayed.h"
#include "server/peers/call_wire.h"
#include "server/peers/muxed_calls.h"
#include "server/peers/peer_wire.h"

enum {
    ANSWER_MAX = PEER_OPENING_LEN + PEER_KEYS_MAX * PEER_PROOF_LEN,
    WARN_MS = 1000,
};

struct callers {
    struct loop *loop;
    struct server *server;
    struct callers_options options;
    struct list strangers; // peer_caller::link; the oldest is first
    unsigned stranger_count, proven_count;
    uint32_t kind; /* of timers */
    int64_t warned_ms;
};

struct peer_caller {
    struct http_session session;
    struct callers *all;
    struct peer_handshake handshake;
    struct peer_mac *mac; /* NULL: it has proved nothing yet */
    bool is_opened;       /* it has got the opening */
    bool is_proven;
    enum peer_mux mux;  /* which it asks for */
    struct timer timer; /* until then */
    struct list link;   // callers::strangers, until then
};

static struct peer_caller *caller_of(const struct exchange *x)
{
    struct http_session *session = http_session_of(x);
    return session ? container_of(session, struct peer_caller, session) : NULL;
}

static void leave_strangers(struct peer_caller *caller)
{
    if (list_empty(&caller->link))
        return;
    timers_clear(loop_timers(caller->all->loop), &caller->timer);
    list_remove(&caller->link);
    caller->all->stranger_count--;
}

void callers_on_session_end(struct http_session *session)
{
    struct peer_caller *caller = container_of(session, struct peer_caller, session);
    leave_strangers(caller);
    caller->all->proven_count -= caller->is_proven;
    peer_mac_destroy(caller->mac);
    free(caller);
}

/* ---- refusing ---- */

static void reply_last(struct exchange *x, int status, struct slice headers)
{
    x->is_last = true;
    http_reply(x, status, headers, (struct slice){ 0 });
}

/* Logs at most one refused peer a second, so that a flood does not fill the log. */
static void refuse(struct callers *callers, struct exchange *x, const char *why)
{
    int64_t now_ms = loop_now_ms(callers->loop);
    metric_add(M_PEERS_REFUSED, 1);
    if (now_ms - callers->warned_ms >= WARN_MS) {
        callers->warned_ms = now_ms;
        log_warn("a peer was refused", "client", x->peer, "reason", why, NULL);
    }
    reply_last(x, 403, (struct slice){ 0 });
}

static bool leads(struct callers *callers, struct exchange *x)
{
    if (callers->options.leader_id(callers->options.owner))
        return true;
    reply_last(x, 503, SLICE("retry-after: 1\r\n" RELAYED_UNTAKEN ": 1\r\n"));
    return false;
}

/* ---- the handshake ---- */

static void on_due(struct timer *timer)
{
    http_session_close(&container_of(timer, struct peer_caller, timer)->session);
}

/* The oldest stranger is the least likely to prove anything. */
static void close_oldest(struct callers *callers)
{
    struct peer_caller *oldest =
        container_of(callers->strangers.next, struct peer_caller, link);
    leave_strangers(oldest);
    http_session_close(&oldest->session);
}

static void reply_opening(struct peer_caller *caller, struct exchange *x)
{
    struct buf opening = { 0 };
    caller->is_opened = true;
    peer_wire_add_statement(&opening, caller->handshake.leader_random,
                            caller->handshake.leader);
    http_reply(x, 200, (struct slice){ 0 }, buf_slice(&opening));
    buf_finish(&opening);
}

/* Begins the time in which a stranger must prove the key, with the head of its first request:
 * the body may never come. */
static void begin_session(struct callers *callers, struct exchange *x)
{
    struct peer_caller *caller = mem_new(struct peer_caller);
    if (callers->stranger_count == CALLERS_STRANGERS_MAX)
        close_oldest(callers);
    caller->all = callers;
    caller->handshake.leader = callers->options.leader_id(callers->options.owner);
    peer_proof_draw(caller->handshake.leader_random);
    list_append(&callers->strangers, &caller->link);
    callers->stranger_count++;
    http_session_begin(x, &caller->session);
    loop_set_timer(callers->loop, &caller->timer, callers->kind, PEER_HANDSHAKE_MS);
}

/* Calls of clients must not keep followers from connecting. */
static bool has_room(struct callers *callers, struct exchange *x)
{
    if (callers->proven_count < callers->options.most)
        return true;
    reply_last(x, 429, SLICE("retry-after: 1\r\n"));
    return false;
}

static void accept_caller(struct peer_caller *caller, const struct peer_key *key,
                          struct exchange *x)
{
    unsigned char proof[PEER_PROOF_LEN];
    struct peer_key session;
    peer_proof_make(key, PEER_CALLED, &caller->handshake, proof);
    peer_proof_session(key, &caller->handshake, &session);
    caller->mac = peer_mac_create(&session, PEER_CALLER);
    secret_wipe(&session, sizeof(session));
    leave_strangers(caller);
    caller->is_proven = true;
    caller->all->proven_count++;
    http_trust(x);
    http_reply(x, 200, (struct slice){ 0 },
               (struct slice){ (const char *)proof, sizeof(proof) });
}

static void take_answer(struct peer_caller *caller, struct exchange *x)
{
    struct callers *callers = caller->all;
    struct peer_handshake *handshake = &caller->handshake;
    struct slice answer = x->body;
    struct peer_keys keys;
    if (!peer_wire_take_statement(&answer, handshake->follower_random,
                                  &handshake->follower)) {
        refuse(callers, x, "its answer is not that of a gateway");
        return;
    }
    vault_peer_keys(callers->options.vault, &keys);
    const struct peer_key *key = peer_proof_check(&keys, PEER_CALLER, handshake, answer);
    if (!key)
        refuse(callers, x, "it does not have the encryption key of this gateway");
    else if (has_room(callers, x))
        accept_caller(caller, key, x);
    secret_wipe(&keys, sizeof(keys));
}

/* The session ends with its HTTP; the MACs continue. */
static void open_mux(struct peer_caller *caller, struct exchange *x)
{
    struct callers *callers = caller->all;
    struct peer_mac *mac = caller->mac;
    if (x->gone) {
        reply_last(x, 400, (struct slice){ 0 });
        return;
    }
    caller->mac = NULL;
    muxed_calls_open(callers->loop, callers->server, x, mac, caller->mux);
}

void callers_take_greeting(struct callers *callers, struct exchange *x)
{
    struct peer_caller *caller = caller_of(x);
    if (!leads(callers, x))
        return;
    if (caller->mux)
        open_mux(caller, x);
    else if (!caller->is_opened)
        reply_opening(caller, x);
    else if (!caller->mac)
        take_answer(caller, x);
    else
        refuse(callers, x, "it has introduced itself before");
}

/* ---- calls ---- */

static void take_greeting_head(struct callers *callers, struct exchange *x)
{
    if (x->method != HTTP_POST_) {
        reply_last(x, 404, (struct slice){ 0 });
        return;
    }
    if (!leads(callers, x))
        return;
    x->body_limit = ANSWER_MAX;
    if (!caller_of(x))
        begin_session(callers, x);
}

static bool check_call(struct peer_caller *caller, struct exchange *x)
{
    return call_wire_check(caller->mac, x, &caller->mux);
}

/* A message of calls had a MAC, so only its origin is left to read. */
static bool take_muxed(struct callers *callers, struct exchange *x, struct slice origin)
{
    if (relayed_read(origin, x))
        return leads(callers, x);
    refuse(callers, x, "a multiplexed call has no origin");
    return false;
}

bool callers_take_head(struct callers *callers, struct exchange *x)
{
    struct peer_caller *caller = caller_of(x);
    struct slice origin = muxed_calls_origin(x);
    if (origin.ptr)
        return take_muxed(callers, x, origin);
    if (slice_is(x->path, PEER_CALLS_TARGET))
        take_greeting_head(callers, x);
    else if (!caller || !caller->mac)
        reply_last(x, 404, (struct slice){ 0 });
    else if (!check_call(caller, x))
        refuse(callers, x, "the head of a call was changed on the way");
    else
        return !caller->mux && leads(callers, x);
    return false;
}

/* ---- making ---- */

struct callers *callers_create(struct loop *loop, struct server *server,
                               const struct callers_options *options)
{
    struct callers *callers = mem_new(struct callers);
    callers->loop = loop;
    callers->server = server;
    callers->options = *options;
    if (!callers->options.most)
        callers->options.most = CALLERS_MAX;
    callers->kind = timers_kind(loop_timers(loop), on_due);
    callers->warned_ms = -WARN_MS;
    list_init(&callers->strangers);
    return callers;
}

void callers_destroy(struct callers *callers)
{
    free(callers);
}
