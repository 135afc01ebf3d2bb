/* serving.c - collects the frames of a turn in one message for all followers.
 *
 * Two such messages are at least EVERY_MS apart. Under load, a turn has few changes, and sending
 * a message costs the leader more than encoding them.
 *
 * Documents of the accounts that were written together stay in one message, so that they take
 * effect together. They are short.
 *
 * The numbers of changes that the source omits are joined (omissions.h).
 *
 * A frame for one follower, such as a beat, is sent alone, after those that were collected
 * before it: each follower gets every frame in the order in which the source made them.
 *
 * A follower reads slowly if it has yet to read more than its link carries in a short time
 * (link_rate.h). The source then sends less to all. */
#include "server/peers/serving.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "core/replication/frame_codec.h"
#include "core/replication/omissions.h"

enum {
    EVERY_MS = 2,
    COLLECTED_MAX = 256 << 10, /* bytes after which a message is sent in the turn */
    KEPT_MAX = 1 << 20,        /* bytes of the buffer that are kept for the next message */
    /* If a follower reads slowly, all count as slow for this long. It doubles each time, because
     * the link that was too slow is filled again afterwards. A quiet time makes it short again. */
    SLOW_MS = 1000,
    SLOW_MAX_MS = 32 * 1000,
    SLOW_QUIET_MS = 60 * 1000,
};

struct serving {
    struct loop *loop;
    struct serving_options options;
    struct peer_server *server;
    bool leads;     /* peers are accepted */
    bool has_begun; /* source is initialized */
    struct source source;
    struct source_options asked; /* its callbacks and owner are the gateway's */
    unsigned followers;
    struct buf collected;       /* frames for all followers */
    struct omissions omissions; /* the same, after them */
    struct flusher flusher;
    int64_t sent_ms;    /* when the last message for all was sent; monotonic */
    struct timer timer; /* until the next one */
    int64_t slow_ms;    /* how long followers count as slow */
    int64_t slow_until; /* monotonic ms */
};

/* A peer, and the source's part of it. */
struct served {
    struct source_follower follower;
    struct peer_conn *peer;
    bool is_counted; /* among serving::followers */
};

/* ---- slow followers ---- */

static const struct served *served_of(struct list *link)
{
    struct source_follower *follower = container_of(link, struct source_follower, link);
    return container_of(follower, struct served, follower);
}

/* Returns true if it has yet to read so many bytes that what follows is late. */
static bool is_full(const struct serving *serving, const struct served *served)
{
    return peer_conn_unread(served->peer) + serving->collected.len >=
           link_rate_most(peer_conn_rate(served->peer));
}

/* Returns NULL if all followers read fast enough. */
static const struct served *find_slow(const struct serving *serving)
{
    list_each (link, &serving->source.followers) {
        if (is_full(serving, served_of(link)))
            return served_of(link);
    }
    return NULL;
}

static void begin_slow(struct serving *serving, const struct served *slow, int64_t now_ms)
{
    int64_t doubled = 2 * serving->slow_ms;
    bool was_quiet = now_ms - serving->slow_until >= SLOW_QUIET_MS;
    if (!serving->slow_ms || was_quiet)
        doubled = SLOW_MS;
    serving->slow_ms = doubled < SLOW_MAX_MS ? doubled : SLOW_MAX_MS;
    log_info("a follower reads slowly; long packets are left out", "gateway",
             log_number((int64_t)peer_conn_id(slow->peer)), "client",
             peer_conn_address(slow->peer), "for_ms", log_number(serving->slow_ms), NULL);
}

static void look_for_slow(struct serving *serving)
{
    int64_t now_ms = loop_now_ms(serving->loop);
    const struct served *slow = find_slow(serving);
    if (!slow)
        return;
    if (now_ms >= serving->slow_until)
        begin_slow(serving, slow, now_ms);
    serving->slow_until = now_ms + serving->slow_ms;
}

static bool is_slow(void *owner)
{
    const struct serving *serving = owner;
    return loop_now_ms(serving->loop) < serving->slow_until;
}

/* Much less than the slowest link carries, so that unread bytes become less. */
static size_t allowance(void *owner)
{
    const struct serving *serving = owner;
    size_t least = SIZE_MAX;
    list_each (link, &serving->source.followers) {
        size_t half = link_rate_most(peer_conn_rate(served_of(link)->peer)) / 2;
        if (is_full(serving, served_of(link)) && half < least)
            least = half;
    }
    return least;
}

/* ---- sending ---- */

static void send_to_all(struct serving *serving)
{
    struct peer_message message;
    peer_message_make(serving->server, &message, buf_slice(&serving->collected));
    list_each (link, &serving->source.followers)
        peer_conn_send(served_of(link)->peer, &message);
    peer_message_finish(&message);
    if (serving->collected.capacity > KEPT_MAX)
        buf_finish(&serving->collected);
    else
        buf_clear(&serving->collected);
    look_for_slow(serving);
}

static void write_omissions(struct serving *serving)
{
    for (size_t i = 0; i < serving->omissions.count; i++) {
        const struct repl_frame frame = { .kind = REPL_OMITTED,
                                          .passed = serving->omissions.list[i] };
        repl_write(&frame, &serving->collected);
    }
    serving->omissions.count = 0;
}

static void flush(struct serving *serving)
{
    timers_clear(loop_timers(serving->loop), &serving->timer);
    write_omissions(serving);
    if (!serving->collected.len)
        return;
    serving->sent_ms = loop_now_ms(serving->loop);
    send_to_all(serving);
}

static void on_time(struct timer *timer)
{
    flush(container_of(timer, struct serving, timer));
}

static bool on_flush(struct flusher *flusher)
{
    struct serving *serving = container_of(flusher, struct serving, flusher);
    struct timers *timers = loop_timers(serving->loop);
    int64_t left_ms = serving->sent_ms + EVERY_MS - loop_now_ms(serving->loop);
    if (left_ms <= 0)
        flush(serving);
    else if ((serving->collected.len || serving->omissions.count) && !serving->timer.place)
        loop_set_timer(serving->loop, &serving->timer, timers_kind(timers, on_time),
                       left_ms);
    return false;
}

static void send_to_one(struct serving *serving, struct served *served,
                        const struct repl_frame *frame)
{
    struct peer_message message;
    struct buf content = { 0 };
    flush(serving);
    repl_write(frame, &content);
    peer_message_make(serving->server, &message, buf_slice(&content));
    peer_conn_send(served->peer, &message);
    peer_message_finish(&message);
    buf_finish(&content);
}

static void collect(struct serving *serving, const struct repl_frame *frame)
{
    bool is_omitted = frame->kind == REPL_OMITTED;
    if (is_omitted && omissions_add(&serving->omissions, &frame->passed))
        return;
    if (is_omitted || omissions_precede(&serving->omissions, frame))
        write_omissions(serving);
    if (!is_omitted || !omissions_add(&serving->omissions, &frame->passed))
        repl_write(frame, &serving->collected);
}

static void on_send(void *owner, struct source_follower *to, const struct repl_frame *frame)
{
    struct serving *serving = owner;
    if (to) {
        send_to_one(serving, container_of(to, struct served, follower), frame);
        return;
    }
    collect(serving, frame);
    if (serving->collected.len >= COLLECTED_MAX && frame->kind != REPL_DOCUMENT)
        flush(serving);
    else
        loop_wake(serving->loop, &serving->flusher);
}

/* ---- ending ---- */

static void on_end(void *owner, struct source_follower *follower, const char *why)
{
    struct repl_frame frame = { .kind = REPL_END };
    struct served *served = container_of(follower, struct served, follower);
    snprintf(frame.end.why, sizeof(frame.end.why), "%s", why);
    send_to_one(owner, served, &frame);
    peer_conn_end(served->peer, why);
}

static void count_followers(struct serving *serving, int more)
{
    serving->followers += (unsigned)more;
    metrics[M_FOLLOWERS] = serving->followers;
}

static void on_gone(void *owner, struct peer_conn *peer, const char *why)
{
    struct serving *serving = owner;
    struct served *served = peer_conn_owner(peer);
    source_leave(&serving->source, &served->follower);
    if (served->is_counted)
        count_followers(serving, -1);
    log_info(served->is_counted ? "a follower has left" : "a peer was refused", "gateway",
             log_number((int64_t)peer_conn_id(peer)), "client", peer_conn_address(peer),
             "reason", why, NULL);
    free(served);
}

/* ---- receiving ---- */

static uint64_t leader_id(void *owner)
{
    const struct serving *serving = owner;
    return serving->leads ? serving->source.options.gateway : 0;
}

static void on_peer(void *owner, struct peer_conn *peer)
{
    struct served *served = mem_new(struct served);
    (void)owner;
    served->peer = peer;
    peer_conn_set_owner(peer, served);
}

/* Frames that were collected before belong to the followers of that time. */
static void take_frame(struct serving *serving, struct served *served,
                       const struct repl_frame *frame)
{
    flush(serving);
    source_receive(&serving->source, &served->follower, frame);
    if (served->is_counted || !served->follower.is_on)
        return;
    served->is_counted = true;
    count_followers(serving, 1);
    log_info("a gateway follows", "gateway",
             log_number((int64_t)peer_conn_id(served->peer)), "client",
             peer_conn_address(served->peer), NULL);
}

/* A peer has proved its id. It cannot take part as another gateway. */
static bool is_of(const struct peer_conn *peer, const struct repl_frame *frame)
{
    return frame->kind != REPL_HELLO || frame->hello.gateway == peer_conn_id(peer);
}

static void on_message(void *owner, struct peer_conn *peer, struct slice message)
{
    struct serving *serving = owner;
    struct served *served = peer_conn_owner(peer);
    struct repl_frame frame = { 0 };
    struct failure why;
    while (serving->leads && !repl_read(&message, &frame, &why)) {
        bool is_last = frame.kind == REPL_NONE, is_right = is_of(peer, &frame);
        if (!is_last && is_right)
            take_frame(serving, served, &frame);
        repl_frame_finish(&frame);
        if (is_last)
            return;
        if (!is_right)
            break;
        frame = (struct repl_frame){ 0 };
    }
    peer_conn_end(peer, "it sent a malformed frame");
}

/* ---- making ---- */

static void on_server_closed(void *owner)
{
    struct serving *serving = owner;
    loop_remove_flusher(&serving->flusher);
    timers_clear(loop_timers(serving->loop), &serving->timer);
    if (serving->has_begun)
        source_finish(&serving->source);
    buf_finish(&serving->collected);
    serving->options.closed(serving->options.owner);
    free(serving);
}

enum err serving_create(struct loop *loop, const struct serving_options *options,
                        struct serving **out, struct failure *why)
{
    struct serving *serving = mem_new(struct serving);
    const struct peer_server_options server = { .address = options->address,
                                                .certificates = options->certificates,
                                                .vault = options->vault,
                                                .leader_id = leader_id,
                                                .on_peer = on_peer,
                                                .on_message = on_message,
                                                .on_gone = on_gone,
                                                .closed = on_server_closed,
                                                .owner = serving,
                                                .calls = options->calls,
                                                .calls_owner = options->calls_owner };
    serving->loop = loop;
    serving->sent_ms = -EVERY_MS;
    serving->options = *options;
    serving->flusher.fn = on_flush;
    enum err refused = peer_server_create(loop, &server, &serving->server, why);
    if (refused) {
        free(serving);
        return refused;
    }
    loop_add_flusher(loop, &serving->flusher);
    *out = serving;
    return OK;
}

static struct environment *next(void *owner, uint32_t *at)
{
    const struct serving *serving = owner;
    return serving->asked.next(serving->asked.owner, at);
}

static int64_t left_ms(void *owner)
{
    const struct serving *serving = owner;
    return serving->asked.left_ms(serving->asked.owner);
}

static void take(void *owner, struct source_follower *from, const struct repl_frame *frame)
{
    const struct serving *serving = owner;
    serving->asked.take(serving->asked.owner, from, frame);
}

static void left(void *owner, struct source_follower *follower)
{
    const struct serving *serving = owner;
    serving->asked.left(serving->asked.owner, follower);
}

void serving_begin(struct serving *serving, const struct source_options *options)
{
    struct source_options own = *options;
    serving->asked = *options;
    own.send = on_send;
    own.is_slow = is_slow;
    own.allowance = allowance;
    own.end = on_end;
    own.next = next;
    own.left_ms = left_ms;
    own.take = options->take ? take : NULL;
    own.left = options->left ? left : NULL;
    own.owner = serving;
    source_init(&serving->source, serving->loop, &own);
    serving->has_begun = serving->leads = true;
}

struct source *serving_source(struct serving *serving)
{
    return serving->has_begun ? &serving->source : NULL;
}

void serving_send(struct serving *serving, struct source_follower *to,
                  const struct repl_frame *frame)
{
    send_to_one(serving, container_of(to, struct served, follower), frame);
}

void serving_end(struct serving *serving, const char *why)
{
    if (!serving->leads)
        return;
    serving->leads = false;
    source_end_all(&serving->source, why);
    peer_server_end_all(serving->server, why);
}

void serving_show(struct serving *serving, struct certificates *certificates)
{
    peer_server_show(serving->server, certificates);
}

void serving_close(struct serving *serving)
{
    serving_end(serving, "this gateway ends");
    peer_server_close(serving->server);
}
