/* fuzz_mux - any bytes as a multiplexed connection, cut into pieces by its first byte.
 *
 * The pieces yield the same messages as the whole, and an item that was read is written again
 * as the same bytes. */
#include <assert.h>
#include <stdint.h>

#include "net/mux.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Appends what the items say, and returns false if one is malformed. */
static bool read_items(struct slice items, struct buf *seen)
{
    while (items.len) {
        const char *begin = items.ptr;
        struct mux_item item;
        struct buf again = { 0 };
        if (!mux_take(&items, &item))
            return false;
        mux_add(&again, &item);
        assert(slice_equal(buf_slice(&again),
                           (struct slice){ begin, (size_t)(items.ptr - begin) }));
        buf_add(seen, buf_slice(&again));
        buf_finish(&again);
    }
    return true;
}

static enum mux_read read_all(struct mux_reader *reader, struct slice bytes,
                              struct buf *seen)
{
    enum mux_read read = MUX_MESSAGE;
    struct slice message;
    while (read == MUX_MESSAGE) {
        read = mux_read(reader, &bytes, &message);
        if (read == MUX_MESSAGE && !read_items(message, seen))
            read = MUX_FAULT;
    }
    assert(read == MUX_FAULT || !bytes.len);
    return read;
}

static enum mux_read read_pieces(struct slice bytes, size_t len, struct buf *seen)
{
    struct mux_reader reader = { 0 };
    enum mux_read read = MUX_MORE;
    while (bytes.len && read != MUX_FAULT) {
        struct slice piece = { bytes.ptr, bytes.len < len ? bytes.len : len };
        read = read_all(&reader, piece, seen);
        bytes = slice_from(bytes, piece.len);
    }
    mux_reader_finish(&reader);
    return read;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole = { 0 }, parts = { 0 };
    if (!size)
        return 0;
    struct slice bytes = { (const char *)data + 1, size - 1 };
    enum mux_read once = read_pieces(bytes, size, &whole);
    enum mux_read twice = read_pieces(bytes, 1 + data[0] % 16, &parts);
    assert(once == twice && slice_equal(buf_slice(&whole), buf_slice(&parts)));
    buf_finish(&whole);
    buf_finish(&parts);
    return 0;
}
