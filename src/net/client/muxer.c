/* muxer.c - sends the brief requests of a turn together, and pairs responses with them.
 *
 *   relay.c ── each brief request ──────────────────► muxer.c
 *      ▲                                                │
 *      └── a tunnel of the same pool, for all of them ──┘
 *
 * The pool gives connections to both kinds of requests, so the files use each other. */
#include "net/client/muxer.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "net/client/deadline.h"
#include "net/mux.h"

enum {
    CALLS_MAX = 4096,     /* in progress */
    RETRY_MS = 1000,      /* after a connection that failed */
    OLDER_MS = 60 * 1000, /* after a server that has no such target */
};

enum muxer_state { MUXER_CLOSED, MUXER_OPENS, MUXER_OPEN };

struct muxer {
    struct loop *loop;
    struct relay_pool *pool;
    const struct relay_greeter *greeter;
    int64_t first_byte_ms, retry_ms; /* retry: when it may be opened again */
    enum muxer_state state;
    bool is_full, is_closing;
    bool is_older; /* the server does not know the note */
    struct relay tunnel;
    struct mux_reader reader;
    struct buf items; /* of this turn */
    struct buf mac;   /* of the message being sent */
    struct deferred later;
    struct deadline deadline; /* never later than that of the first call */
    struct list calls;        // relay::link; the oldest is first
    uint32_t next;            /* id */
    struct relay *by_id[CALLS_MAX];
};

static int64_t now_of(const struct muxer *muxer)
{
    return loop_now_ms(muxer->loop);
}

static struct muxer *of_tunnel(struct relay *tunnel)
{
    return container_of(tunnel, struct muxer, tunnel);
}

/* ---- the tunnel ---- */

static void maybe_close(struct muxer *muxer)
{
    if (!muxer->is_closing || !list_empty(&muxer->calls))
        return;
    loop_cancel_deferred(&muxer->later);
    deadline_clear(muxer->loop, &muxer->deadline);
    relay_cancel(&muxer->tunnel);
    muxer->state = MUXER_CLOSED;
}

/* The owner may free the relay from now on, or begin it again. */
static void detach(struct relay *relay)
{
    struct muxer *muxer = relay->muxer;
    muxer->by_id[relay->id % CALLS_MAX] = NULL;
    list_remove(&relay->link);
    relay->muxer = NULL;
    maybe_close(muxer);
}

static void fail_all(struct muxer *muxer, enum err error, const char *why)
{
    struct list failed;
    list_init(&failed);
    list_move_all(&failed, &muxer->calls);
    while (!list_empty(&failed)) {
        struct relay *relay = container_of(failed.next, struct relay, link);
        detach(relay);
        relay->ops->on_end(relay, error, why);
    }
}

static void end_tunnel(struct muxer *muxer, const char *why)
{
    muxer->state = MUXER_CLOSED;
    muxer->is_full = false;
    buf_clear(&muxer->items);
    mux_reader_finish(&muxer->reader);
    muxer->reader = (struct mux_reader){ 0 };
    loop_cancel_deferred(&muxer->later);
    fail_all(muxer, ERR_LOST, why);
}

static void on_tunnel_ready(struct relay *tunnel)
{
    of_tunnel(tunnel)->is_full = false;
}

/* The server may know the older note, which the next request tries. */
static void note_older(struct muxer *muxer)
{
    bool tries_older = !muxer->is_older && muxer->greeter->mux_older_note;
    muxer->is_older |= tries_older;
    muxer->retry_ms = now_of(muxer) + (tries_older ? 0 : OLDER_MS);
}

static void on_tunnel_head(struct relay *tunnel, int status,
                           const struct http_header *headers, size_t count)
{
    struct muxer *muxer = of_tunnel(tunnel);
    (void)headers, (void)count;
    if (status == 101)
        muxer->state = MUXER_OPEN;
    else if (status == 404)
        note_older(muxer);
}

static struct relay *find(const struct muxer *muxer, uint32_t id)
{
    struct relay *relay = muxer->by_id[id % CALLS_MAX];
    return relay && relay->id == id ? relay : NULL;
}

/* Responses to calls that were canceled are ignored. */
static void take_item(struct muxer *muxer, const struct mux_item *item)
{
    struct relay *relay = find(muxer, item->id);
    if (!relay)
        return;
    detach(relay);
    if (item->kind == MUX_ANSWER)
        relay->ops->on_answer(relay, item->status, item->first, item->second);
    else if ((relay->is_for_own = item->kind == MUX_ALONE))
        relay->ops->on_end(relay, ERR_LOST, "the response needs a connection of its own");
    else
        relay->ops->on_end(relay, ERR_LOST, "the server ended the request");
}

static bool take_message(struct muxer *muxer, struct slice items)
{
    struct mux_item item;
    while (items.len && muxer->state == MUXER_OPEN) {
        if (!mux_take(&items, &item))
            return false;
        take_item(muxer, &item);
    }
    return true;
}

/* A callback may close the muxer. */
static void on_tunnel_piece(struct relay *tunnel, struct slice piece)
{
    struct muxer *muxer = of_tunnel(tunnel);
    enum mux_read read = MUX_MESSAGE;
    struct slice message;
    while (muxer->state == MUXER_OPEN && read == MUX_MESSAGE) {
        read = mux_read(&muxer->reader, &piece, &message);
        if (read == MUX_FAULT || (read == MUX_MESSAGE && !take_message(muxer, message))) {
            relay_cancel(tunnel);
            end_tunnel(muxer, "the server sent a malformed message");
        }
    }
}

static void on_tunnel_end(struct relay *tunnel, enum err error, const char *why)
{
    end_tunnel(of_tunnel(tunnel), error ? why : "the server closed the connection");
}

static const struct relay_ops tunnel_ops = { .on_ready = on_tunnel_ready,
                                             .on_head = on_tunnel_head,
                                             .on_piece = on_tunnel_piece,
                                             .on_end = on_tunnel_end };

static void open_tunnel(struct muxer *muxer)
{
    static const struct http_header headers[] = {
        { SLICE("host"), SLICE("localhost") },
        { SLICE("connection"), SLICE("Upgrade") },
        { SLICE("upgrade"), SLICE("websocket") },
    };
    const struct relay_greeter *greeter = muxer->greeter;
    const char *note = muxer->is_older ? greeter->mux_older_note : greeter->mux_note;
    const struct relay_request request = { .method = "GET",
                                           .target = slice_of(greeter->mux_target),
                                           .headers = headers,
                                           .header_count = 3,
                                           .upgrades = true,
                                           .is_urgent = true,
                                           .note = slice_of(note) };
    struct failure why;
    muxer->retry_ms = now_of(muxer) + RETRY_MS;
    if (relay_begin(muxer->pool, &muxer->tunnel, &request, &tunnel_ops, &why))
        return;
    muxer->state = MUXER_OPENS;
    relay_finish(&muxer->tunnel);
}

/* ---- sending ---- */

static void send_message(struct muxer *muxer)
{
    unsigned char bytes[MUX_HEAD_LEN];
    struct buf *mac = &muxer->mac;
    buf_clear(mac);
    relay_seal(&muxer->tunnel, buf_slice(&muxer->items), mac);
    mux_write_head(mac->len + muxer->items.len, bytes);
    relay_write(&muxer->tunnel, (struct slice){ (const char *)bytes, sizeof(bytes) });
    relay_write(&muxer->tunnel, buf_slice(mac));
    muxer->is_full = !relay_write(&muxer->tunnel, buf_slice(&muxer->items));
    buf_clear(&muxer->items);
    for (struct list *link = muxer->calls.prev; link != &muxer->calls; link = link->prev) {
        struct relay *relay = container_of(link, struct relay, link);
        if (relay->was_sent)
            break;
        relay->was_sent = true;
    }
}

static void on_later(struct deferred *later)
{
    struct muxer *muxer = container_of(later, struct muxer, later);
    if (muxer->state == MUXER_OPEN && muxer->items.len)
        send_message(muxer);
}

/* The tunnel sends in the same turn: its own deferred call comes after this one's. */
static void send_later(struct muxer *muxer)
{
    if (muxer->items.len >= MUX_FULL)
        send_message(muxer);
    loop_defer(muxer->loop, &muxer->later);
    relay_send_soon(&muxer->tunnel);
}

static void add_left(struct relay *relay)
{
    struct muxer *muxer = relay->muxer;
    if (muxer->state != MUXER_OPEN)
        return;
    mux_add(&muxer->items, &(struct mux_item){ .kind = MUX_LEFT, .id = relay->id });
    send_later(muxer);
}

void muxer_leave(struct relay *relay)
{
    if (relay->leaves)
        return;
    relay->leaves = true;
    add_left(relay);
}

void muxer_cancel(struct relay *relay)
{
    if (!relay->leaves)
        add_left(relay);
    detach(relay);
}

/* ---- requests ---- */

static void await_first(struct muxer *muxer)
{
    struct relay *first = container_of(muxer->calls.next, struct relay, link);
    int64_t left = first->began_ms + muxer->first_byte_ms - now_of(muxer);
    deadline_set(muxer->loop, &muxer->deadline, left > 0 ? left : 0);
}

static void on_deadline(struct deadline *deadline)
{
    struct muxer *muxer = container_of(deadline, struct muxer, deadline);
    while (!list_empty(&muxer->calls)) {
        struct relay *relay = container_of(muxer->calls.next, struct relay, link);
        if (relay->began_ms + muxer->first_byte_ms > now_of(muxer)) {
            await_first(muxer);
            return;
        }
        muxer_cancel(relay);
        relay->ops->on_end(relay, ERR_NO_ANSWER,
                           "timed out while waiting for the response");
    }
}

static void add_call(struct muxer *muxer, const struct relay_request *request, uint32_t id)
{
    struct buf *items = &muxer->items;
    size_t begin = mux_begin(
        items, &(struct mux_item){ .kind = MUX_CALL, .id = id, .first = request->note });
    relay_write_head(items, muxer->pool, request);
    buf_add(items, SLICE("\r\n"));
    buf_add(items, request->body);
    mux_end(items, begin);
}

/* Returns true if the tunnel can take a request now; otherwise, opens it. */
static bool is_open(struct muxer *muxer)
{
    bool may_open = muxer->state == MUXER_CLOSED && !muxer->is_closing &&
                    now_of(muxer) >= muxer->retry_ms;
    if (may_open)
        open_tunnel(muxer);
    return muxer->state == MUXER_OPEN && !muxer->is_full;
}

bool muxer_begin(struct muxer *muxer, struct relay *relay,
                 const struct relay_request *request, const struct relay_ops *ops)
{
    uint32_t id = muxer->next++;
    if (!is_open(muxer) || muxer->by_id[id % CALLS_MAX])
        return false;
    *relay = (struct relay){ .ops = ops,
                             .pool = muxer->pool,
                             .muxer = muxer,
                             .is_muxed = true,
                             .is_finished = true,
                             .id = id,
                             .began_ms = now_of(muxer) };
    muxer->by_id[id % CALLS_MAX] = relay;
    list_append(&muxer->calls, &relay->link);
    add_call(muxer, request, id);
    send_later(muxer);
    if (!deadline_is_set(&muxer->deadline))
        await_first(muxer);
    return true;
}

/* ---- making ---- */

struct muxer *muxer_create(struct loop *loop, struct relay_pool *pool,
                           const struct relay_greeter *greeter, int64_t first_byte_ms)
{
    struct muxer *muxer = mem_new(struct muxer);
    muxer->loop = loop;
    muxer->pool = pool;
    muxer->greeter = greeter;
    muxer->first_byte_ms = first_byte_ms;
    muxer->retry_ms = INT64_MIN;
    muxer->later.fn = on_later;
    muxer->deadline.fn = on_deadline;
    list_init(&muxer->later.link);
    list_init(&muxer->calls);
    return muxer;
}

void muxer_destroy(struct muxer *muxer)
{
    if (!muxer)
        return;
    assert(list_empty(&muxer->calls));
    buf_finish(&muxer->items);
    buf_finish(&muxer->mac);
    mux_reader_finish(&muxer->reader);
    free(muxer);
}

void muxer_close(struct muxer *muxer)
{
    muxer->is_closing = true;
    maybe_close(muxer);
}
