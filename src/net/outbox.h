/* outbox.h - one vectored write, and a backlog of the bytes that it did not send.
 *
 *   pieces ─► sendmsg ─► all sent: nothing is kept or allocated
 *                └─► not all: the rest waits in the backlog, shared bytes by reference and
 *                    borrowed ones copied, until outbox_flush has sent it
 *
 * Bytes of BYTES_PARTS (base/rope.h) are read a stretch at a time, as the kernel accepts
 * them.
 *
 * With TLS, the pieces become records instead of a vector. Small pieces are joined, so that
 * many frames fit into one record.
 *
 * It does not know the connection or the loop: its owner polls the socket. The zero value
 * is an empty outbox. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/quota.h"
#include "base/rope.h"
#include "base/slice.h"

enum { OUTBOX_PIECES_MAX = 64 }; /* per call */

struct outbox {
    struct backlog *backlog; /* NULL: nothing is unsent */
    int64_t handed;          /* bytes given to the kernel so far, including TLS overhead */
    struct tls *tls;         /* encrypts what is sent; the owner's; NULL: plain text */
    struct quota *quota;     /* set by outbox_count_in */
};

enum outbox_status {
    OUTBOX_EMPTY,  /* the kernel has everything */
    OUTBOX_UNSENT, /* call outbox_flush when the socket is writable */
    OUTBOX_LOST,   /* the connection is gone, and so are the unsent bytes */
};

struct piece {
    struct slice text;
    struct bytes *owner; /* owns the text; NULL: the text is borrowed for the call */
};

/* Returns a piece that is all of the bytes. For BYTES_PARTS, the text has only a length. */
static inline struct piece piece_of(struct bytes *bytes)
{
    struct slice text = { bytes_are_parts(bytes) ? NULL : bytes->data, bytes->len };
    return (struct piece){ text, bytes };
}

void outbox_finish(struct outbox *outbox);

/* Sends pieces after what is unsent. Takes references to shared ones that remain unsent. */
enum outbox_status outbox_send(struct outbox *outbox, int fd, const struct piece *pieces,
                               size_t count);

/* The same for whole shared frames; the fan-out uses it. */
enum outbox_status outbox_send_frames(struct outbox *outbox, int fd,
                                      struct bytes *const *frames, size_t count);

/* Notes the result of sending pieces by other means, while nothing was unsent. result is
 * the number of bytes that the kernel accepted, or -errno. Returns the same as
 * outbox_send. */
enum outbox_status outbox_note_sent(struct outbox *outbox, const struct piece *pieces,
                                    size_t count, ssize_t result);

/* Sends unsent bytes. *progress: the kernel accepted some of them. */
enum outbox_status outbox_flush(struct outbox *outbox, int fd, bool *progress);

/* Sets the memory quota for bytes that unsent pieces (BYTES_PARTS) refer to. They count
 * once, however many outboxes refer to them (net/share.h), until the last piece that
 * refers to them is sent. NULL: they do not count. */
void outbox_count_in(struct outbox *outbox, struct quota *quota);

/* Returns the memory that the unsent bytes take, except those that outbox_count_in
 * counts. */
size_t outbox_own(const struct outbox *outbox);

/* Returns the number of unsent bytes. */
size_t outbox_unsent(const struct outbox *outbox);

/* Returns the number of unsent pieces, a measure of their bookkeeping cost. */
size_t outbox_pieces(const struct outbox *outbox);
