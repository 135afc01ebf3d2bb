/* net_fuzz.c - connects the two ends of a socket pair, and reads the response. */
#include "tests/support/world/net_fuzz.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/http/admission.h"
#include "net/http/connection.h"
#include "net/http/server_state.h"

void net_fuzz_open(struct net_fuzz *fuzz, struct server_options options)
{
    struct failure why;
    *fuzz = (struct net_fuzz){ 0 };
    uv_loop_init(&fuzz->world.uv);
    fuzz->world.loop = loop_create(&fuzz->world.uv);
    struct listen_options any_port = { .host = "127.0.0.1" };
    options.listeners = &any_port;
    options.listener_count = 1;
    if (server_create(fuzz->world.loop, &options, &fuzz->world.server, &why))
        abort();
}

void net_fuzz_take(struct net_fuzz *fuzz)
{
    for (;;) {
        char *place = buf_reserve(&fuzz->answer, 65536);
        ssize_t len = recv(fuzz->other, place, 65536, MSG_DONTWAIT);
        if (len <= 0) {
            fuzz->ended |= len == 0;
            return;
        }
        fuzz->answer.len += (size_t)len;
    }
}

/* Bytes that were sent and not read yet, by the kernel's count. */
static int unread(const struct net_fuzz *fuzz)
{
    int size = 0;
    ioctl(fuzz->other, SIOCOUTQ, &size);
    return size;
}

/* A turn reads a part of what was sent. */
static void settle(struct net_fuzz *fuzz)
{
    int before;
    do {
        before = unread(fuzz);
        for (int i = 0; i < 3; i++) {
            uv_run(&fuzz->world.uv, UV_RUN_NOWAIT);
            net_fuzz_take(fuzz);
        }
    } while (!fuzz->ended && unread(fuzz) < before);
}

void net_fuzz_begin(struct net_fuzz *fuzz)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends))
        abort();
    fuzz->other = ends[1];
    fuzz->ended = false;
    buf_clear(&fuzz->answer);
    const struct address nobody = { 0 };
    fuzz->conn = admission_adopt(&fuzz->world.server->listeners[0], ends[0], &nobody);
}

void net_fuzz_feed(struct net_fuzz *fuzz, struct slice bytes, size_t piece)
{
    while (bytes.len && !fuzz->ended) {
        struct slice part = { bytes.ptr, piece && piece < bytes.len ? piece : bytes.len };
        bytes = slice_from(bytes, part.len);
        connection_feed(fuzz->conn, part);
        settle(fuzz);
    }
}

void net_fuzz_send(struct net_fuzz *fuzz, struct slice bytes, size_t piece)
{
    while (bytes.len && !fuzz->ended) {
        size_t most = piece && piece < bytes.len ? piece : bytes.len;
        ssize_t len = send(fuzz->other, bytes.ptr, most, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (len < 0 && errno != EAGAIN)
            return;
        bytes = slice_from(bytes, len > 0 ? (size_t)len : 0);
        settle(fuzz);
    }
}

static void drop_dates(struct buf *answer)
{
    size_t from = 0;
    const size_t len = sizeof("date: Thu, 01 Jan 1970 00:00:00 GMT") - 1;
    char *at;
    while (answer->len - from > len &&
           (at = memmem(answer->ptr + from, answer->len - from, "\r\ndate: ", 8))) {
        from = (size_t)(at - answer->ptr) + 2;
        if (answer->len - from < len)
            return;
        memset(answer->ptr + from, '-', len);
    }
}

void net_fuzz_end(struct net_fuzz *fuzz)
{
    settle(fuzz);
    if (!fuzz->ended)
        connection_close(fuzz->conn);
    close(fuzz->other);
    while (fuzz->world.server->connection_count)
        uv_run(&fuzz->world.uv, UV_RUN_NOWAIT);
    drop_dates(&fuzz->answer);
}
