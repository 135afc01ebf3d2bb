/* mux.h - the bytes of a connection that carries short requests of many clients at once.
 *
 *   message: length of the rest (4) │ MAC, from the client only (16) │ item, item, …
 *   item:    kind (1) │ id (4) │ status (2) │ lengths of two texts (4, 4) │ the texts
 *
 *   client ── call: origin and request ──► server    an id is one call; answers come in any
 *          ◄── answer: header lines, body ──         order
 *          ◄── lost: no response will come
 *          ◄── alone: the response is too long for a message, or a stream; repeat the request,
 *              which has changed nothing, on a connection of its own
 *          ── left: its client has left ──►          the server may still respond
 *
 * All numbers are big-endian. One message has the items of a turn, so they share a MAC and
 * a system call. This file does not know the MAC. */
#pragma once

#include "base/buf.h"

enum {
    MUX_HEAD_LEN = 4,     /* of a message */
    MUX_FULL = 32 * 1024, /* above it, another message is begun */
    MUX_MESSAGE_MAX = 64 * 1024 * 1024,
    MUX_CALLS_MAX = 1024 * 1024, /* of calls: they are read before their MAC is checked */
};

enum mux_kind { MUX_CALL = 1, MUX_ANSWER, MUX_LOST, MUX_LEFT, MUX_ALONE };

struct mux_item {
    enum mux_kind kind;
    uint32_t id;
    uint16_t status;            /* of an answer */
    struct slice first, second; /* borrowed from the message */
};

/* Writes the head of a message whose other bytes are len. */
void mux_write_head(size_t len, unsigned char head[MUX_HEAD_LEN]);

/* Appends the item. */
void mux_add(struct buf *items, const struct mux_item *item);

/* Appends the item without its second text, which the caller appends before mux_end.
 * Returns where the item begins. */
size_t mux_begin(struct buf *items, const struct mux_item *item);
void mux_end(struct buf *items, size_t begin);

/* Takes an item off the front. Returns false if it is malformed. */
bool mux_take(struct slice *items, struct mux_item *item);

/* Cuts a stream of bytes into messages. The zero value has none. */
struct mux_reader {
    struct buf kept; /* the beginning of a message */
    size_t used;     /* bytes of kept that were returned */
    size_t most;     /* bytes of a message; 0: MUX_MESSAGE_MAX */
};

enum mux_read { MUX_MORE, MUX_MESSAGE, MUX_FAULT };

/* Takes bytes off the front. MUX_MESSAGE: *message is all of a message but its head,
 * borrowed until the next call; there may be more. MUX_FAULT: it is too long. */
enum mux_read mux_read(struct mux_reader *reader, struct slice *bytes,
                       struct slice *message);
void mux_reader_finish(struct mux_reader *reader);
