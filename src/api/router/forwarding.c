/* forwarding.c - joins the exchange of a client with a relay to the leader. */
#include "api/router/forwarding.h"

#include <string.h>

#include "api/request/parts.h"
#include "api/request/request_log.h"
#include "api/request/routes.h"
#include "api/router/caller_places.h"
#include "api/router/forwarded_headers.h"
#include "api/triggers/own_keys.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/text.h"
#include "net/client/relay.h"
#include "net/http/http_check.h"
#include "net/http/relayed.h"
#include "net/http/tunnel.h"

enum {
    WAIT_MS = 8000,       /* longer than a takeover */
    LOOK_MS = 100,        /* between looks for a leader */
    SILENT_MS = 5 * 1000, /* without a piece of a stream from such a gateway */
    ALONE_MS = 1000,      /* in which calls of a route get connections of their own */
    LEFT_MS = 1000, /* for a gateway that no longer leads to respond to its last calls */
    KEPT_MAX = 64 * 1024,
    SHORT_BODY = 16 * 1024,  /* a response up to this length is sent in one write */
    UNSENT_MAX = 64 * 1024,  /* of a response; then the leader must wait */
    UNKNOWN_BODY = 64 << 10, /* of a path without a route here */
    STATUS_GONE =
        499, /* the leader's response to a client that has left (api_reply_gone) */
};

struct forwarding {
    struct api *api;
    struct loop *loop;
    forwarding_enter_fn *enter;
    struct list calls; // forwarded::link
    struct caller_places places;
    uint32_t kind;           /* of timers */
    uint64_t secret, keys;   /* make the request keys of calls without one */
    struct buf target, note; /* of the call that is being sent */
};

enum forwarded_state {
    FORWARDED_COLLECTS, /* its body, until it is complete */
    FORWARDED_WAITS,
    FORWARDED_SENT,
    FORWARDED_ANSWERS,
    FORWARDED_TUNNEL
};

struct forwarded {
    struct forwarding *all;
    struct api_call *call; /* NULL: a tunnel */
    struct relay relay;
    enum forwarded_state state;
    struct place_owner *place;
    struct timer timer; /* while it waits, or is watched */
    int64_t until_ms;   /* of waiting for a leader */
    struct buf kept;    /* of the body, if that is all that has arrived */
    bool keeps;         /* it is */
    bool is_brief;      /* it is sent once it is complete, with others */
    bool is_alone;      /* but not with others, because of its response */
    bool complete;      /* the whole request has arrived */
    bool was_sent;      /* a leader may have executed the call */
    int status;         /* of the response */
    struct buf lines;   /* its header lines */
    struct buf body;    /* of a short response */
    bool is_short;
    bool is_sized;            /* a long one whose length is known */
    bool has_received;        /* since watch */
    enum forwarded_fate fate; /* as it says */
    struct tunnel *tunnel;    /* NULL: none */
    struct list link;         // forwarding::calls
    struct list sending;      // caller_places::senders
};

static struct forwarded *of(struct relay *relay)
{
    return container_of(relay, struct forwarded, relay);
}

static int64_t now_of(const struct forwarding *all)
{
    return loop_now_ms(all->loop);
}

/* ---- the end ---- */

static void forwarded_destroy(struct forwarded *forwarded)
{
    relay_cancel(&forwarded->relay);
    timers_clear(loop_timers(forwarded->all->loop), &forwarded->timer);
    list_remove(&forwarded->link);
    list_remove(&forwarded->sending);
    caller_places_release(&forwarded->all->places, forwarded->place);
    metric_add(M_FORWARDED_NOW, -1);
    buf_finish(&forwarded->kept);
    buf_finish(&forwarded->lines);
    buf_finish(&forwarded->body);
    free(forwarded);
}

/* Takes the call back, to answer it here. */
static struct api_call *let_go(struct forwarded *forwarded)
{
    struct api_call *call = forwarded->call;
    call->forwarded = NULL;
    call->on_gone = NULL;
    call->on_drained = NULL;
    call->bears_doubt = false;
    list_remove(&call->held);
    forwarded_destroy(forwarded);
    return call;
}

static bool repeats_safely(const struct api_call *call)
{
    enum http_method method = call->x->method;
    return method == HTTP_GET_ || method == HTTP_HEAD_ ||
           (call->route && call->route->claims) ||
           (call->route && call->route->has_steps && api_request_id(call).ptr);
}

/* Returns true if a repetition by the client would take effect once more. */
static bool lacks_key(const struct forwarded *forwarded)
{
    const struct api_call *call = forwarded->call;
    struct slice body = forwarded->is_brief ? call->x->body : buf_slice(&forwarded->kept);
    bool is_known = forwarded->complete && forwarded->keeps;
    return own_keys_lack(call, is_known ? body : (struct slice){ 0 });
}

static void refuse(struct forwarded *forwarded, const char *why)
{
    bool may_double = forwarded->was_sent && lacks_key(forwarded);
    struct api_call *call = let_go(forwarded);
    if (may_double)
        api_add_header(call, "x-should-retry", SLICE("false"));
    explain(&call->why, ERR_DRAINING, "The gateway is not ready: %s", why);
    api_reply_error(call, ERR_DRAINING);
}

static void end_gone(struct forwarded *forwarded)
{
    api_reply_gone(let_go(forwarded));
}

/* Ends a response that has begun. */
static void end_stream(struct forwarded *forwarded, bool is_whole)
{
    struct api_call *call = let_go(forwarded);
    struct exchange *x = call->x;
    api_call_end(call);
    if (is_whole)
        http_stream_end(x);
    else
        http_stream_cut(x);
}

/* ---- the response ---- */

/* lines and body are not memory of the call. */
static void reply_whole(struct forwarded *forwarded, struct slice lines, struct slice body)
{
    int status = forwarded->status;
    struct api_call *call = let_go(forwarded);
    struct exchange *x = call->x;
    request_log_answer(call, status);
    api_call_end(call);
    http_reply(x, status, lines, body);
}

static void reply_short(struct forwarded *forwarded)
{
    struct buf lines = forwarded->lines, body = forwarded->body;
    forwarded->lines = forwarded->body = (struct buf){ 0 };
    reply_whole(forwarded, buf_slice(&lines), buf_slice(&body));
    buf_finish(&lines);
    buf_finish(&body);
}

/* Stops the leader while the client reads too slowly. */
static void send_piece(struct forwarded *forwarded, struct slice piece)
{
    struct exchange *x = forwarded->call->x;
    bool takes_more = http_stream_write(x, piece);
    if (!takes_more && !http_stream_unsent(x)) {
        end_stream(forwarded, false); /* it can no longer be delivered */
        return;
    }
    if (!takes_more || http_stream_unsent(x) > UNSENT_MAX)
        relay_pause(&forwarded->relay, true);
}

static void on_drained(struct api_call *call)
{
    struct forwarded *forwarded = call->forwarded;
    if (forwarded->state == FORWARDED_ANSWERS)
        relay_pause(&forwarded->relay, false);
}

static void begin_stream(struct forwarded *forwarded, bool has_len, uint64_t len)
{
    struct api_call *call = forwarded->call;
    request_log_answer(call, forwarded->status);
    if (has_len)
        http_stream_begin_sized(call->x, forwarded->status, buf_slice(&forwarded->lines),
                                (size_t)len);
    else
        http_stream_begin(call->x, forwarded->status, buf_slice(&forwarded->lines));
    buf_finish(&forwarded->lines);
}

/* ---- tunnels ---- */

static void on_tunnel_bytes(struct tunnel *tunnel, struct slice bytes)
{
    struct forwarded *forwarded = tunnel_owner(tunnel);
    if (!relay_write(&forwarded->relay, bytes))
        tunnel_pause(tunnel, true);
}

static void on_tunnel_drained(struct tunnel *tunnel)
{
    struct forwarded *forwarded = tunnel_owner(tunnel);
    relay_pause(&forwarded->relay, false);
}

static void on_tunnel_closed(struct tunnel *tunnel)
{
    forwarded_destroy(tunnel_owner(tunnel));
}

static const struct tunnel_ops tunnel_ops = { on_tunnel_bytes, on_tunnel_drained,
                                              on_tunnel_closed };

static void begin_tunnel(struct forwarded *forwarded)
{
    struct api_call *call = forwarded->call;
    struct exchange *x = call->x;
    if (!forwarded->complete || x->gone) {
        end_gone(forwarded);
        return;
    }
    request_log_answer(call, 101);
    call->forwarded = NULL;
    forwarded->call = NULL;
    forwarded->state = FORWARDED_TUNNEL;
    api_call_end(call);
    forwarded->tunnel =
        tunnel_accept(x, buf_slice(&forwarded->lines), &tunnel_ops, forwarded);
    buf_finish(&forwarded->lines);
}

/* ---- events of the relay ---- */

static void on_ready(struct relay *relay)
{
    struct forwarded *forwarded = of(relay);
    if (forwarded->tunnel)
        tunnel_pause(forwarded->tunnel, false);
    else
        http_body_resume(forwarded->call->x);
}

/* Only a valid credential gets another response than these, if the route checks it. */
static void note_trust(struct forwarded *forwarded)
{
    struct exchange *x = forwarded->call->x;
    const struct route *route = forwarded->call->route;
    if (place_owner_is_known(forwarded->place))
        return; /* it is trusted already */
    if (route && route->auth != AUTH_NONE && !(route->auth & AUTH_SIGNED) &&
        forwarded->status < 400 && http_header(x, "authorization").ptr) {
        http_trust(x);
        list_remove(&forwarded->sending);
    }
}

static void on_head(struct relay *relay, int status, const struct http_header *headers,
                    size_t count)
{
    struct forwarded *forwarded = of(relay);
    uint64_t len = 0;
    bool has_len = forwarded_headers_length(headers, count, &len);
    forwarded->status = status;
    forwarded->fate = forwarded_headers_keep(&forwarded->lines, status, headers, count);
    note_trust(forwarded);
    if (status == 101) {
        begin_tunnel(forwarded);
        return;
    }
    bool is_empty = status == 204 || status == 304;
    bool is_head = forwarded->call->x->method == HTTP_HEAD_;
    forwarded->is_short = is_empty || (has_len && len <= SHORT_BODY && !is_head);
    forwarded->state = FORWARDED_ANSWERS;
    forwarded->is_sized = has_len && !forwarded->is_short;
    if (!forwarded->is_short)
        begin_stream(forwarded, has_len, len);
}

static void on_piece(struct relay *relay, struct slice piece)
{
    struct forwarded *forwarded = of(relay);
    forwarded->has_received = true;
    if (forwarded->is_short)
        buf_add(&forwarded->body, piece);
    else if (!forwarded->tunnel)
        send_piece(forwarded, piece);
    else if (!tunnel_send(forwarded->tunnel, piece))
        relay_pause(relay, true);
}

static void wait_for_leader(struct forwarded *forwarded, int64_t ms);

static bool may_try_again(const struct forwarded *forwarded)
{
    bool is_safe = !forwarded->was_sent || repeats_safely(forwarded->call);
    return is_safe && forwarded->keeps && now_of(forwarded->all) < forwarded->until_ms;
}

/* Forgets the response, of which nothing was passed on. */
static void try_again(struct forwarded *forwarded)
{
    metric_add(M_FORWARDED_AGAIN, 1);
    buf_clear(&forwarded->lines);
    buf_clear(&forwarded->body);
    forwarded->is_short = false;
    forwarded->fate = FATE_KNOWN;
    wait_for_leader(forwarded, LOOK_MS);
}

static void send_or_wait(struct forwarded *forwarded);

/* The response is too long for a message, and the next one of its route may be, too. */
static void send_alone(struct forwarded *forwarded)
{
    forwarded->is_alone = true;
    forwarded->call->routed->alone_until_ms = now_of(forwarded->all) + ALONE_MS;
    send_or_wait(forwarded);
}

static void end_without_response(struct forwarded *forwarded, const char *why)
{
    bool is_refused_by_next = forwarded->all->api->hands_over && !forwarded->relay.was_sent;
    forwarded->was_sent |= forwarded->relay.was_sent;
    if (forwarded->call->x->gone)
        end_gone(forwarded);
    else if (forwarded->relay.is_for_own)
        send_alone(forwarded);
    else if (forwarded->relay.leaves && !is_refused_by_next)
        refuse(forwarded, "draining");
    else if (may_try_again(forwarded))
        try_again(forwarded);
    else
        refuse(forwarded, why);
}

static void end_short(struct forwarded *forwarded)
{
    bool is_gone = forwarded->call->x->gone;
    if (forwarded->fate == FATE_UNSURE && lacks_key(forwarded))
        buf_add_text(&forwarded->lines, API_DO_NOT_RETRY);
    if (forwarded->fate == FATE_UNTAKEN && !is_gone && may_try_again(forwarded))
        try_again(forwarded);
    else if (forwarded->status == STATUS_GONE && !is_gone)
        refuse(forwarded, "draining"); /* the leader believes that the client has left */
    else
        reply_short(forwarded);
}

static void on_end(struct relay *relay, enum err error, const char *why)
{
    struct forwarded *forwarded = of(relay);
    if (forwarded->tunnel)
        tunnel_close(forwarded->tunnel);
    else if (forwarded->state == FORWARDED_ANSWERS && !forwarded->is_short)
        end_stream(forwarded, !error);
    else if (error)
        end_without_response(forwarded, why);
    else
        end_short(forwarded);
}

static void on_answer(struct relay *relay, int status, struct slice lines,
                      struct slice body)
{
    struct forwarded *forwarded = of(relay);
    forwarded->status = status;
    note_trust(forwarded);
    if (status != STATUS_GONE && status != 503) {
        reply_whole(forwarded, lines, body);
        return;
    }
    forwarded->state = FORWARDED_ANSWERS;
    forwarded->is_short = true;
    forwarded->fate = forwarded_headers_keep_lines(&forwarded->lines, lines);
    buf_add(&forwarded->body, body);
    end_short(forwarded);
}

static const struct relay_ops relay_ops = { .on_ready = on_ready,
                                            .on_head = on_head,
                                            .on_piece = on_piece,
                                            .on_answer = on_answer,
                                            .on_end = on_end };

/* ---- the request ---- */

static enum err begin_relay(struct forwarded *forwarded, struct relay_pool *pool,
                            struct failure *why)
{
    const struct exchange *x = forwarded->call->x;
    MEM_UNFILLED struct http_header headers[FORWARDED_HEADERS_MAX];
    struct buf *target = &forwarded->all->target, *note = &forwarded->all->note;
    uint64_t length = 0;
    buf_clear(target);
    buf_clear(note);
    buf_add(target, x->path);
    if (x->query.ptr)
        buf_add_char(target, '?');
    buf_add(target, x->query);
    relayed_write(x, note);
    text_to_u64(http_header(x, "content-length"), &length);
    const struct relay_request request = {
        .method = http_method_name(x->method),
        .target = buf_slice(target),
        .headers = headers,
        .header_count = forwarded_headers_choose(forwarded->call, headers),
        .is_parsed = true,
        .chunked = x->chunked,
        .has_length = x->has_body_length,
        .length = length,
        .upgrades = x->wants_upgrade,
        .note = buf_slice(note),
        .is_brief = forwarded->is_brief && !forwarded->is_alone,
        .body = x->body
    };
    return relay_begin(pool, &forwarded->relay, &request, &relay_ops, why);
}

static void on_drain(struct api_call *call);

/* Sends what is kept of the body, and lets the rest come. */
static void send_kept(struct forwarded *forwarded)
{
    forwarded->state = FORWARDED_SENT;
    if (list_empty(&forwarded->call->held))
        api_hold(forwarded->call, on_drain);
    if (forwarded->relay.is_muxed)
        return;
    relay_write(&forwarded->relay, forwarded->is_brief ? forwarded->call->x->body
                                                       : buf_slice(&forwarded->kept));
    if (forwarded->complete)
        relay_finish(&forwarded->relay);
    else
        http_body_resume(forwarded->call->x);
}

static struct relay_pool *leader_of(const struct forwarding *all)
{
    const struct api_options *options = api_options(all->api);
    return options->leader ? options->leader(options->owner) : NULL;
}

/* Refuses the call if its head is malformed; otherwise, it is sent or waits. */
static void send_or_wait(struct forwarded *forwarded)
{
    struct relay_pool *pool = leader_of(forwarded->all);
    struct failure why;
    enum err refused = pool ? begin_relay(forwarded, pool, &why) : ERR_DRAINING;
    if (!refused) {
        send_kept(forwarded);
    } else if (refused == ERR_INVALID) {
        struct api_call *call = let_go(forwarded);
        call->why = why;
        api_reply_error(call, refused);
    } else if (refused == ERR_BUSY) {
        refuse(forwarded, why.text);
    } else if (now_of(forwarded->all) >= forwarded->until_ms) {
        refuse(forwarded, "no gateway leads");
    } else {
        wait_for_leader(forwarded, LOOK_MS);
    }
}

/* ---- waiting ---- */

static bool is_streaming(const struct forwarded *forwarded)
{
    return forwarded->state == FORWARDED_ANSWERS && !forwarded->is_short;
}

/* Gives the call to its handler. If a part of its body was sent to a leader before, the rest
 * must arrive first, and all of it must be kept. */
static void enter_here(struct forwarded *forwarded)
{
    struct exchange *x = forwarded->call->x;
    if (!forwarded->keeps) {
        refuse(forwarded, "this gateway has just taken the lead");
    } else if (forwarded->complete || !x->body_len) {
        bool complete = forwarded->complete;
        forwarding_enter_fn *enter = forwarded->all->enter;
        if (forwarded->is_brief)
            buf_add(&forwarded->kept, x->body);
        struct buf kept = forwarded->kept;
        forwarded->kept = (struct buf){ 0 };
        struct api_call *call = let_go(forwarded);
        call->kept = kept;
        identity_unref(call->identity);
        call->identity = NULL;
        enter(call, complete);
    } else {
        wait_for_leader(forwarded, LOOK_MS);
        http_body_resume(x);
    }
}

static void look(struct forwarded *forwarded)
{
    if (api_not_ready(forwarded->all->api))
        send_or_wait(forwarded);
    else
        enter_here(forwarded);
}

static void watch(struct forwarded *forwarded)
{
    forwarded->has_received = false;
    timers_clear(loop_timers(forwarded->all->loop), &forwarded->timer);
    loop_set_timer(forwarded->all->loop, &forwarded->timer, forwarded->all->kind,
                   SILENT_MS);
}

/* A gateway that drains still sends what it has begun. A client that reads slowly holds it back. */
static void end_if_silent(struct forwarded *forwarded)
{
    bool is_held = !forwarded->tunnel && http_stream_unsent(forwarded->call->x);
    if (forwarded->has_received || is_held)
        watch(forwarded);
    else if (forwarded->tunnel)
        tunnel_close(forwarded->tunnel);
    else
        end_stream(forwarded, false);
}

static void on_look(struct timer *timer)
{
    struct forwarded *forwarded = container_of(timer, struct forwarded, timer);
    if (forwarded->state == FORWARDED_WAITS) {
        look(forwarded);
    } else if (forwarded->state == FORWARDED_SENT) {
        forwarded->was_sent |= forwarded->relay.was_sent;
        refuse(forwarded, "the gateway that had the call no longer leads");
    } else if (forwarded->tunnel || is_streaming(forwarded)) {
        end_if_silent(forwarded);
    }
}

/* Meanwhile the rest of the body stays with the client. */
static void wait_for_leader(struct forwarded *forwarded, int64_t ms)
{
    forwarded->state = FORWARDED_WAITS;
    if (!forwarded->complete)
        http_body_pause(forwarded->call->x);
    loop_set_timer(forwarded->all->loop, &forwarded->timer, forwarded->all->kind, ms);
}

/* Returns true if the gateway that has the call does not lead any more. It may be suspended or
 * cut off, or still respond to the calls that it took. */
static bool is_left_behind(const struct forwarded *forwarded,
                           const struct relay_pool *leader)
{
    return leader ? leader != forwarded->relay.pool : !api_not_ready(forwarded->all->api);
}

static void leave_behind(struct forwarded *forwarded)
{
    if (!repeats_safely(forwarded->call) || !may_try_again(forwarded)) {
        loop_set_timer(forwarded->all->loop, &forwarded->timer, forwarded->all->kind,
                       LEFT_MS);
        return;
    }
    forwarded->was_sent |= forwarded->relay.was_sent;
    relay_cancel(&forwarded->relay);
    try_again(forwarded);
}

void forwarding_look(struct forwarding *forwarding)
{
    const struct relay_pool *leader = leader_of(forwarding);
    list_each (link, &forwarding->calls) {
        struct forwarded *forwarded = container_of(link, struct forwarded, link);
        bool is_left = is_left_behind(forwarded, leader);
        if (is_left && (forwarded->tunnel || is_streaming(forwarded)))
            watch(forwarded);
        else if (is_left && forwarded->state == FORWARDED_SENT && !forwarded->call->x->gone)
            leave_behind(forwarded);
        if (forwarded->state == FORWARDED_WAITS)
            wait_for_leader(forwarded, 0);
    }
}

/* ---- events of the exchange ---- */

static void keep(struct forwarded *forwarded, struct slice piece)
{
    if (!forwarded->keeps)
        return;
    forwarded->keeps = forwarded->kept.len + piece.len <= KEPT_MAX;
    if (forwarded->keeps)
        buf_add(&forwarded->kept, piece);
    else
        buf_finish(&forwarded->kept);
}

void forwarding_take_body(struct api_call *call, struct slice piece)
{
    struct forwarded *forwarded = call->forwarded;
    if (!list_empty(&forwarded->sending))
        caller_places_note_sender(&forwarded->all->places, forwarded->place,
                                  &forwarded->sending);
    keep(forwarded, piece);
    if (forwarded->state == FORWARDED_WAITS && !forwarded->keeps)
        refuse(forwarded, "this gateway has just taken the lead");
    else if (forwarded->state != FORWARDED_WAITS && !relay_write(&forwarded->relay, piece))
        http_body_pause(call->x);
}

void forwarding_take_end(struct api_call *call)
{
    struct forwarded *forwarded = call->forwarded;
    forwarded->complete = true;
    list_remove(&forwarded->sending);
    if (forwarded->state == FORWARDED_COLLECTS) {
        forwarded->until_ms = now_of(forwarded->all) + WAIT_MS;
        look(forwarded);
    } else {
        relay_finish(&forwarded->relay);
    }
}

/* The leader decides what a call in progress is still worth. A client that has merely stopped
 * sending gets the rest of a response whose length it knows. */
static void on_gone(struct api_call *call)
{
    struct forwarded *forwarded = call->forwarded;
    if (is_streaming(forwarded) && !forwarded->is_sized)
        end_stream(forwarded, false);
    else if (forwarded->state == FORWARDED_WAITS || !forwarded->complete)
        end_gone(forwarded);
    else if (!is_streaming(forwarded))
        relay_leave(&forwarded->relay);
}

/* A held call, or a stream, ends at the leader as if its client had left. A writer whose pieces
 * may be minutes apart continues at another gateway. */
static void on_drain(struct api_call *call)
{
    struct forwarded *forwarded = call->forwarded;
    bool is_slow = call->x->slow_body && !forwarded->complete;
    if (call->api->hands_over &&
        (forwarded->state == FORWARDED_WAITS || forwarded->is_brief))
        return; /* the next leader responds soon */
    if (forwarded->state == FORWARDED_WAITS || (is_slow && !is_streaming(forwarded)))
        refuse(forwarded, "draining");
    else if (forwarded->complete && !forwarded->is_sized)
        relay_leave(&forwarded->relay);
}

/* ---- beginning ---- */

static void refuse_one_more(struct api_call *call)
{
    explain(&call->why, ERR_BUSY, "Too many calls wait for the gateway that leads");
    api_reply_error(call, ERR_BUSY);
}

/* Ends the call of the stranger that has sent nothing for the longest time. Otherwise a few
 * clients that send slowly would keep out all others without a credential. */
static void end_sender(struct list *sender)
{
    struct forwarded *silent = container_of(sender, struct forwarded, sending);
    if (is_streaming(silent))
        end_stream(silent, false);
    else
        refuse_one_more(let_go(silent));
}

/* The body of a stranger is not kept: the leader may refuse the call before it arrives. */
static void set_limits(struct api_call *call, bool is_known)
{
    const struct route *route = call->route;
    call->x->body_limit = route ? route->body_limit : UNKNOWN_BODY;
    call->x->slow_body = route && route->auth & BODY_SLOW;
    call->x->stream_body = !forwarded_headers_are_brief(call, is_known ? KEPT_MAX : 0);
}

/* Only this process knows the first half, so that no client can send the same key. */
static void make_key(struct forwarding *all, struct api_call *call)
{
    if (!call->route || !call->route->claims || api_request_id(call).ptr)
        return;
    const uint64_t key[] = { all->secret, all->keys++ };
    static_assert(2 * sizeof(key) < MADE_KEY_SIZE, "the digits and a NUL fit");
    text_to_hex((const unsigned char *)key, sizeof(key), call->made_key);
}

static struct forwarded *forwarded_create(struct forwarding *all, struct api_call *call,
                                          struct place_owner *place)
{
    struct forwarded *forwarded = mem_new(struct forwarded);
    forwarded->all = all;
    forwarded->call = call;
    forwarded->place = place;
    forwarded->keeps = true;
    forwarded->is_brief = !call->x->stream_body;
    forwarded->is_alone = call->routed && call->routed->alone_until_ms > now_of(all);
    forwarded->until_ms = now_of(all) + WAIT_MS;
    metric_add(M_FORWARDED, 1);
    metric_add(M_FORWARDED_NOW, 1);
    list_append(&all->calls, &forwarded->link);
    list_init(&forwarded->sending);
    caller_places_note_sender(&all->places, place, &forwarded->sending);
    call->forwarded = forwarded;
    call->on_gone = on_gone;
    call->on_drained = on_drained;
    call->bears_doubt = true;
    api_hold(call, on_drain);
    make_key(all, call);
    return forwarded;
}

bool forwarding_take(struct forwarding *forwarding, struct api_call *call)
{
    if (!api_options(forwarding->api)->leader || call->x->method == HTTP_OTHER_)
        return false;
    struct place_owner *place = caller_places_take_for(&forwarding->places, call);
    if (!place) {
        refuse_one_more(call);
        return true;
    }
    if (place_owner_is_known(place))
        http_trust(call->x);
    set_limits(call, place_owner_is_known(place));
    struct forwarded *forwarded = forwarded_create(forwarding, call, place);
    if (!forwarded->is_brief)
        send_or_wait(forwarded);
    return true;
}

/* ---- making ---- */

struct forwarding *forwarding_create(struct api *api, forwarding_enter_fn *enter)
{
    struct forwarding *forwarding = mem_new(struct forwarding);
    forwarding->api = api;
    forwarding->loop = engine_loop(api->engine);
    forwarding->enter = enter;
    caller_places_init(&forwarding->places, end_sender);
    forwarding->secret = random_below(UINT64_MAX);
    forwarding->kind = timers_kind(loop_timers(forwarding->loop), on_look);
    list_init(&forwarding->calls);
    return forwarding;
}

void forwarding_destroy(struct forwarding *forwarding)
{
    caller_places_finish(&forwarding->places);
    buf_finish(&forwarding->target);
    buf_finish(&forwarding->note);
    free(forwarding);
}

void forwarding_refuse(struct forwarding *forwarding, const char *why)
{
    list_each (link, &forwarding->calls) {
        struct forwarded *forwarded = container_of(link, struct forwarded, link);
        if (forwarded->state == FORWARDED_WAITS || forwarded->state == FORWARDED_COLLECTS)
            refuse(forwarded, why);
    }
}

void forwarding_stop(struct forwarding *forwarding)
{
    list_each (link, &forwarding->calls) {
        struct forwarded *forwarded = container_of(link, struct forwarded, link);
        if (forwarded->tunnel)
            tunnel_close(forwarded->tunnel);
        else if (forwarded->state == FORWARDED_ANSWERS && !forwarded->is_short)
            end_stream(forwarded, false);
        else
            refuse(forwarded, "stopping");
    }
}
