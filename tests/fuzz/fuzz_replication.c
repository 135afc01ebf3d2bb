/* fuzz_replication - any bytes as a message between gateways: frames, or a reason.
 *
 * A frame that was read is written and read again as the same bytes. Nothing leaks. */
#include <assert.h>
#include <stdint.h>

#include "core/replication/frame_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct repl_frame *frame)
{
    struct buf once = { 0 }, twice = { 0 };
    struct repl_frame again;
    struct failure why;
    repl_write(frame, &once);
    struct slice rest = buf_slice(&once);
    enum err err = repl_read(&rest, &again, &why);
    assert(!err && !rest.len && again.kind == frame->kind);
    repl_write(&again, &twice);
    assert(slice_equal(buf_slice(&once), buf_slice(&twice)));
    repl_frame_finish(&again);
    buf_finish(&once);
    buf_finish(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice message = { (const char *)data, size };
    struct repl_frame frame;
    struct failure why = { 0 };
    enum err err;
    while (!(err = repl_read(&message, &frame, &why)) && frame.kind != REPL_NONE) {
        check_again(&frame);
        repl_frame_finish(&frame);
    }
    assert(!err || why.text[0]);
    return 0;
}
