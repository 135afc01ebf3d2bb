/* muxed_calls.c - opens messages of calls, and collects the answers of a turn. */
#include "server/peers/muxed_calls.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "net/http/carried.h"
#include "net/http/tunnel.h"
#include "net/mux.h"

/* Bytes of a body, since a message has a copy of it. */
enum {
    READ_MAX = 64 * 1024,
    ANSWER_MAX = MUX_MESSAGE_MAX - 1024 * 1024, /* the rest is for heads */
};

struct muxed_calls {
    struct loop *loop;
    struct server *server;
    struct tunnel *tunnel;
    struct peer_mac *mac;
    enum peer_mux mux;
    struct bytes *peer; /* the address of the follower */
    struct mux_reader reader;
    struct buf items; /* answers that are not sent yet */
    struct deferred later;
    struct list calls; // muxed_call::link
};

struct muxed_call {
    struct http_carried carried;
    struct muxed_calls *all; /* NULL: the connection has closed */
    uint32_t id;
    bool is_read;        /* a GET: it may be repeated */
    struct slice origin; /* while its request is taken */
    struct list link;    // muxed_calls::calls
};

static struct muxed_call *of(struct http_carried *carried)
{
    return container_of(carried, struct muxed_call, carried);
}

/* ---- answers ---- */

static void send_items(struct muxed_calls *all)
{
    unsigned char head[MUX_HEAD_LEN];
    if (!all->items.len)
        return;
    mux_write_head(all->items.len - sizeof(head), head);
    memcpy(all->items.ptr, head, sizeof(head));
    bool takes_more = tunnel_send(all->tunnel, buf_slice(&all->items));
    buf_clear(&all->items);
    if (!takes_more)
        tunnel_pause(all->tunnel, true);
}

static void on_later(struct deferred *later)
{
    send_items(container_of(later, struct muxed_calls, later));
}

/* A message begins with the place of its head. */
static void add_answer(struct muxed_calls *all, const struct mux_item *item)
{
    if (!all->items.len) {
        buf_reserve(&all->items, MUX_HEAD_LEN);
        all->items.len = MUX_HEAD_LEN;
    }
    mux_add(&all->items, item);
    if (all->items.len >= MUX_FULL)
        send_items(all);
    else
        loop_defer(all->loop, &all->later);
}

/* Only a read may be repeated, since its handler has begun. */
static void refuse_here(struct muxed_call *call)
{
    add_answer(call->all, &(struct mux_item){ .kind = call->is_read ? MUX_ALONE : MUX_LOST,
                                              .id = call->id });
}

static void on_reply(struct http_carried *carried, int status, struct slice headers,
                     struct slice body)
{
    struct muxed_call *call = of(carried);
    if (!call->all)
        return;
    if (body.len > (call->is_read ? READ_MAX : ANSWER_MAX)) {
        refuse_here(call);
        return;
    }
    add_answer(call->all, &(struct mux_item){ .kind = MUX_ANSWER,
                                              .id = call->id,
                                              .status = (uint16_t)status,
                                              .first = headers,
                                              .second = body });
}

static void on_call_closed(struct http_carried *carried)
{
    struct muxed_call *call = of(carried);
    if (call->all && !carried->is_answered)
        refuse_here(call);
    list_remove(&call->link);
    free(call);
}

static const struct http_carried_ops call_ops = { on_reply, on_call_closed };

struct slice muxed_calls_origin(const struct exchange *x)
{
    struct http_carried *carried = http_carried_of(x);
    return carried ? of(carried)->origin : (struct slice){ 0 };
}

/* ---- calls ---- */

static void take_call(struct muxed_calls *all, const struct mux_item *item)
{
    struct muxed_call *call = mem_new(struct muxed_call);
    call->all = all;
    call->id = item->id;
    call->is_read = slice_starts(item->second, "GET ");
    call->origin = item->first;
    list_append(&all->calls, &call->link);
    http_carry(all->server, &call->carried, &call_ops, all->peer, item->second);
}

static void take_left(struct muxed_calls *all, uint32_t id)
{
    list_each (link, &all->calls) {
        struct muxed_call *call = container_of(link, struct muxed_call, link);
        if (call->id != id)
            continue;
        http_carried_leave(&call->carried);
        return;
    }
}

static bool take_items(struct muxed_calls *all, struct slice items)
{
    struct mux_item item;
    while (items.len) {
        if (!mux_take(&items, &item))
            return false;
        if (item.kind == MUX_CALL)
            take_call(all, &item);
        else if (item.kind == MUX_LEFT)
            take_left(all, item.id);
        else
            return false;
    }
    return true;
}

static bool take_message(struct muxed_calls *all, struct slice message)
{
    return call_wire_open(all->mac, all->mux, &message) && take_items(all, message);
}

static void on_bytes(struct tunnel *tunnel, struct slice bytes)
{
    struct muxed_calls *all = tunnel_owner(tunnel);
    enum mux_read read = MUX_MESSAGE;
    struct slice message;
    while (read == MUX_MESSAGE) {
        read = mux_read(&all->reader, &bytes, &message);
        if (read == MUX_MORE || (read == MUX_MESSAGE && take_message(all, message)))
            continue;
        metric_add(M_PEERS_REFUSED, 1);
        log_warn("a peer was refused", "client", all->peer->data, "reason",
                 "a message of it was changed on the way", NULL);
        tunnel_close(tunnel);
        return;
    }
}

static void on_drained(struct tunnel *tunnel)
{
    tunnel_pause(tunnel, false);
}

/* Calls in progress end as if their clients had left. */
static void on_closed(struct tunnel *tunnel)
{
    struct muxed_calls *all = tunnel_owner(tunnel);
    while (!list_empty(&all->calls)) {
        struct muxed_call *call =
            container_of(list_take(&all->calls), struct muxed_call, link);
        call->all = NULL;
        http_carried_close(&call->carried);
    }
    loop_cancel_deferred(&all->later);
    mux_reader_finish(&all->reader);
    buf_finish(&all->items);
    peer_mac_destroy(all->mac);
    bytes_unref(all->peer);
    free(all);
}

static const struct tunnel_ops tunnel_ops = { on_bytes, on_drained, on_closed };

void muxed_calls_open(struct loop *loop, struct server *server, struct exchange *x,
                      struct peer_mac *mac, enum peer_mux mux)
{
    struct muxed_calls *all = mem_new(struct muxed_calls);
    all->loop = loop;
    all->server = server;
    all->mac = mac;
    all->mux = mux;
    all->peer = bytes_create(slice_of(x->peer));
    all->reader.most = MUX_CALLS_MAX;
    all->later.fn = on_later;
    list_init(&all->later.link);
    list_init(&all->calls);
    all->tunnel = tunnel_accept(x, SLICE("connection: Upgrade\r\nupgrade: websocket\r\n"),
                                &tunnel_ops, all);
}
