/* outbox.h - one vectored write, and what it left over.
 *
 *   pieces ─► sendmsg ─► all taken: nothing is kept, nothing was allocated
 *                └─► not all: the rest waits in the backlog, shared bytes by reference and
 *                    borrowed ones copied, until outbox_flush has brought them away
 *
 * Bytes of BYTES_PARTS (base/rope.h) are read a stretch at a time as the kernel takes them.
 *
 * With TLS the pieces are records instead of a vector: small ones are put together, so that many
 * frames are one record.
 *
 * It knows no connection and no loop: who owns it polls the socket. The zero value is an
 * empty outbox. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/room.h"
#include "base/rope.h"
#include "base/slice.h"

enum { OUTBOX_PIECES_MAX = 64 }; /* in one call */

struct outbox {
    struct backlog *backlog; /* NULL: nothing is unsent */
    int64_t handed;          /* bytes that the kernel took so far, of TLS records and all */
    struct tls *tls;         /* between us and the kernel, the owner's; NULL: nothing */
    struct room *room;       /* of outbox_count_in */
};

enum outbox_status {
    OUTBOX_EMPTY,  /* the kernel has everything */
    OUTBOX_UNSENT, /* flush when the socket is writable */
    OUTBOX_LOST,   /* the connection is gone, and what was unsent with it */
};

struct piece {
    struct slice text;
    struct bytes *owner; /* of the text; NULL: borrowed for the call */
};

/* All of what is shared; of BYTES_PARTS the text has a length only. */
static inline struct piece piece_of(struct bytes *bytes)
{
    struct slice text = { bytes_are_parts(bytes) ? NULL : bytes->data, bytes->len };
    return (struct piece){ text, bytes };
}

void outbox_finish(struct outbox *outbox);

/* Writes behind what is unsent. Shared pieces are referenced while they are unsent. */
enum outbox_status outbox_send(struct outbox *outbox, int fd, const struct piece *pieces,
                               size_t count);

/* The same for whole shared frames; the fan-out goes through here. */
enum outbox_status outbox_send_frames(struct outbox *outbox, int fd,
                                      struct bytes *const *frames, size_t count);

/* As outbox_send when the pieces were sent by somebody else, behind nothing that is unsent: result
 * says how many of their bytes the kernel took, or -errno. */
enum outbox_status outbox_note_sent(struct outbox *outbox, const struct piece *pieces,
                                    size_t count, ssize_t result);

/* Sends what is unsent; progress says whether the kernel took any of it. */
enum outbox_status outbox_flush(struct outbox *outbox, int fd, bool *progress);

/* Names the room in which the bytes count that unsent ones refer to (BYTES_PARTS): all of them
 * until the last that refers to them is sent, and once, however many outboxes refer to them
 * (base/share.h). NULL: they count nowhere. */
void outbox_count_in(struct outbox *outbox, struct room *room);

/* Bytes in memory for what is unsent, but for those that outbox_count_in counts. */
size_t outbox_own(const struct outbox *outbox);

/* Bytes. */
size_t outbox_unsent(const struct outbox *outbox);

/* Pieces: what the bookkeeping of the unsent bytes costs. */
size_t outbox_pieces(const struct outbox *outbox);
