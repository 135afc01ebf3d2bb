/* frame.c - rows, and the message around them. */
#include "live/frame.h"

#include "base/metrics.h"
#include "live/feed.h"
#include "runcast/protocol.h"
#include "wire/render.h"
#include "wire/wire.h"

/* Bytes of rows: the envelope of the message fits beside them. */
enum { FRAME_BYTES = PROTOCOL_FRAME_BYTES - 4096 };

static struct {
    struct rope rows;
    size_t count;
} frame;

void frame_start(void)
{
    rope_clear(&frame.rows);
    frame.count = 0;
}

size_t frame_count(void)
{
    return frame.count;
}

bool frame_add(const struct view *view, const struct run *run, uint64_t base)
{
    struct rope_end before = rope_end(&frame.rows);
    if (frame.count && view->encoding != ENCODING_MSGPACK)
        buf_add_char(&frame.rows.text, ',');
    render_since(view, run, base, &frame.rows.text);
    if (frame.count && rope_len(&frame.rows) > FRAME_BYTES) {
        rope_cut(&frame.rows, before);
        return false;
    }
    frame.count++;
    return true;
}

bool frame_send(struct feed *feed, int64_t id, uint64_t seq, bool more)
{
    static struct rope message;
    const struct view *view = feed->view;

    rope_clear(&message);
    const struct rope *text =
        wire_rows(view->encoding, id, seq, more, &frame.rows, frame.count, &message);
    struct bytes *wrapped = view->wrap(text, view->encoding == ENCODING_MSGPACK);
    metric_add(M_FRAMES_WALKED, 1);
    metric_add(M_ROWS_SENT, frame.count);
    bool sent = feed->ops->send(feed, &wrapped, 1);
    bytes_unref(wrapped);
    rope_give_back(&frame.rows, 4 * FRAME_BYTES);
    rope_give_back(&message, 4 * FRAME_BYTES);
    return sent;
}
