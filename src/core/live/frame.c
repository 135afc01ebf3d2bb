/* frame.c - joins rows, and wraps the message around them. */
#include "core/live/frame.h"

#include "base/metrics.h"
#include "core/live/feed.h"
#include "core/wire/render.h"
#include "core/wire/wire.h"
#include "runcast/protocol.h"

/* Maximum bytes of rows; the rest of a frame is for the message's envelope. */
enum { FRAME_BYTES = PROTOCOL_FRAME_BYTES - 4096 };

static struct {
    struct rope rows, message;
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

static void begin_row(const struct view *view)
{
    if (frame.count && view->encoding != ENCODING_MSGPACK)
        buf_add_char(&frame.rows.text, ',');
}

bool frame_add(const struct view *view, const struct run *run, uint64_t base)
{
    struct rope_end before = rope_end(&frame.rows);
    begin_row(view);
    render_since(view, run, base, &frame.rows.text);
    if (frame.count && rope_len(&frame.rows) > FRAME_BYTES) {
        rope_cut(&frame.rows, before);
        return false;
    }
    frame.count++;
    return true;
}

void frame_add_left(const struct view *view, const char *id, uint32_t version)
{
    begin_row(view);
    render_left(view, id, version, &frame.rows.text);
    frame.count++;
}

static bool send(struct feed *feed, const struct rope *text)
{
    const struct view *view = feed->view;
    struct bytes *wrapped = view->wrap(text, view->encoding == ENCODING_MSGPACK);
    metric_add(M_FRAMES_WALKED, 1);
    metric_add(M_ROWS_SENT, frame.count);
    bool sent = feed->ops->send(feed, &wrapped, 1);
    bytes_unref(wrapped);
    rope_give_back(&frame.rows, 4 * FRAME_BYTES);
    rope_give_back(&frame.message, 4 * FRAME_BYTES);
    return sent;
}

bool frame_send(struct feed *feed, int64_t id, uint64_t seq, bool more)
{
    rope_clear(&frame.message);
    return send(feed, wire_rows(feed->view->encoding, id, seq, more, &frame.rows,
                                frame.count, &frame.message));
}

bool frame_send_list(struct feed *feed, int64_t id, uint64_t seq, bool begin, bool more)
{
    rope_clear(&frame.message);
    return send(feed, wire_list(feed->view->encoding, id, seq, begin, more, &frame.rows,
                                frame.count, &frame.message));
}
