/* ring.h - many sends, one system call: io_uring(7) where the kernel has it.
 *
 *   ring_send ─► a place in the batch … all are taken, or ring_flush
 *                                          └─► io_uring_enter: each is sent ─► sent, for each
 *
 * Sends do not wait, so what becomes of each is known when the call returns. What one sender puts
 * into a batch leaves together, as one send. Until then it must send nothing by another way, and its
 * descriptor stays open.
 *
 * A ring is made before the process is confined, may do nothing but send, and belongs to the thread
 * that made it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "net/outbox.h"

enum { RING_BYTES = 256 * 1024 }; /* of one batch at most: nobody looks at the time in it */

struct ring;

/* Embedded by who sends. The zero value waits for nothing. */
struct ring_sender {
    uint8_t place; /* in the batch, from 1; 0: none of its bytes are there */
};

/* result: how many bytes of the pieces the kernel took, or -errno. All is borrowed. Nothing may be
 * sent through the ring from inside the call. */
typedef void ring_sent_fn(struct ring_sender *sender, const struct piece *pieces,
                          size_t count, ssize_t result);

/* ERR_INVALID with the reason: there is no io_uring here, or it may not be used. */
enum err ring_create(struct ring **ring, struct failure *why);

/* NULL is fine. Nobody waits any more. */
void ring_destroy(struct ring *ring);

/* Whom to tell what was sent. */
void ring_tell(struct ring *ring, ring_sent_fn *sent);

/* Puts pieces into the batch, behind those of the same sender: the owners of shared ones are
 * referenced, borrowed ones are copied. False: these do not go through a ring, because there is
 * nothing in them, they are too many or too large, or read in parts; or not before the batch is sent,
 * in which there is no room for them beside those of the sender. */
bool ring_send(struct ring *ring, struct ring_sender *sender, int fd,
               const struct piece *pieces, size_t count);

/* Sends the batch. */
void ring_flush(struct ring *ring);
