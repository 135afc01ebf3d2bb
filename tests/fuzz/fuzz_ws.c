/* fuzz_ws - any bytes as frames to an echo server: whole and cut, they get the same response.
 *
 * The first byte of the input is the size of the pieces in the second round. If it is odd,
 * the rest are the bytes of the connection. Otherwise they are the first byte, length and
 * payload of one frame after the other; these are masked here, so that more of them pass
 * the first check. */
#include <stdlib.h>

#include "net/http/ws.h"
#include "tests/support/world/net_fuzz.h"
#include "tests/support/world/ws_peer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Responses to longer inputs might fill the socket. Then the order of pongs would depend on
 * when they are read. */
enum { INPUT_MAX = 1024 };

static struct net_fuzz fuzz;

static void on_message(struct ws *ws, struct slice message)
{
    if (slice_is(message, "close"))
        ws_close(ws, 4000, "as you like");
    struct bytes *frame = ws_frame(message, false);
    ws_send(ws, &frame, 1);
    bytes_unref(frame);
}

static void on_drained(struct ws *ws)
{
    (void)ws;
}

static void on_closed(struct ws *ws)
{
    (void)ws;
}

static const struct ws_ops ops = { .on_message = on_message,
                                   .on_drained = on_drained,
                                   .on_closed = on_closed };

static void on_head(void *owner, struct exchange *x)
{
    (void)owner;
    (void)x;
}

static void on_request(void *owner, struct exchange *x)
{
    if (!ws_accept(x, NULL, &ops, owner))
        abort();
}

static void run(struct slice bytes, size_t piece)
{
    struct slice request =
        SLICE("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
              "Sec-WebSocket-Version: 13\r\n"
              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    net_fuzz_begin(&fuzz);
    net_fuzz_feed(&fuzz, request, 0);
    net_fuzz_feed(&fuzz, bytes, piece);
    net_fuzz_end(&fuzz);
}

static void add_frames(struct buf *out, const uint8_t *data, size_t size)
{
    while (size >= 2) {
        size_t len = data[1] < size - 2 ? data[1] : size - 2;
        ws_peer_add_frame(out, data[0], (struct slice){ (const char *)data + 2, len });
        data += 2 + len;
        size -= 2 + len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf bytes = { 0 }, whole = { 0 };
    if (!fuzz.world.server)
        net_fuzz_open(&fuzz,
                      (struct server_options){
                          .handler = { .on_head = on_head, .on_request = on_request },
                          .ws_messages_burst = 1000000,
                          .ws_message_max = 1000,
                          .ws_fragments_max = 8,
                      });
    if (size < 2 || size > INPUT_MAX)
        return 0;
    if (data[0] & 1)
        buf_add(&bytes, (struct slice){ (const char *)data + 1, size - 1 });
    else
        add_frames(&bytes, data + 1, size - 1);
    run(buf_slice(&bytes), 0);
    buf_add(&whole, buf_slice(&fuzz.answer));
    run(buf_slice(&bytes), data[0] ? data[0] : 1);
    if (!slice_equal(buf_slice(&whole), buf_slice(&fuzz.answer)))
        abort();
    buf_finish(&bytes);
    buf_finish(&whole);
    return 0;
}
