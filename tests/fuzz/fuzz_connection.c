/* fuzz_connection - a connection from its first byte: requests, an upgrade, then messages.
 *
 *   byte 0   0: any bytes; 1: after the upgrade of runs.v1; 2: after that of notices
 *   byte 1   size of the pieces; 0: whole
 *
 * The messages are those of runs.v1 or of the workers' notices. After an upgrade, the rest
 * is one message per line, which is framed and masked here; if a line begins with a byte
 * above 127, that byte is the first byte of its frame. When time is judged (judge.h), the
 * store of the world was filled before (api_population.h). */
#include <stdlib.h>

#include "tests/fuzz/judge.h"
#include "tests/support/world/api_population.h"
#include "tests/support/world/api_world.h"
#include "tests/support/world/ws_peer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 64 * 1024, TEXT_FRAME = 0x81 };

#define KEY "tr_dev_abcdefghijklmnopqrstuvwx"
#define UPGRADE                                                                            \
    "Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"                             \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"         \
    "Authorization: Bearer " KEY "\r\n\r\n"

static void add_frames(struct buf *out, struct slice lines)
{
    struct slice line;
    while (slice_split(&lines, '\n', &line)) {
        uint8_t first = TEXT_FRAME;
        if (line.len && (line.ptr[0] & 0x80)) {
            first = (uint8_t)line.ptr[0];
            line = slice_from(line, 1);
        }
        ws_peer_add_frame(out, first, line);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct api_world world;
    struct buf bytes = { 0 };
    if (size < 2 || size > INPUT_MAX)
        return 0;
    struct slice rest = { (const char *)data + 2, size - 2 };
    judge_pause();
    api_world_open(&world);
    if (judge_measures())
        api_population_add(&world);
    judge_resume();
    net_fuzz_begin(&world.net);
    if (data[0] % 3 == 1)
        net_fuzz_send(&world.net, SLICE("GET /realtime/v1/ws HTTP/1.1\r\n" UPGRADE), 0);
    if (data[0] % 3 == 2)
        net_fuzz_send(
            &world.net,
            SLICE("GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\n" UPGRADE), 0);
    if (data[0] % 3)
        add_frames(&bytes, rest);
    else
        buf_add(&bytes, rest);
    net_fuzz_send(&world.net, buf_slice(&bytes), data[1] ? size / 16 + data[1] : 0);
    if (!world.net.ended)
        api_world_settle(&world);
    net_fuzz_end(&world.net);
    judge_pause();
    api_world_close(&world);
    judge_resume();
    buf_finish(&bytes);
    return 0;
}
