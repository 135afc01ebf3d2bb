/* ring.h - many sends in one system call: io_uring(7), if the kernel supports it.
 *
 *   ring_send ─► a place in the batch … the batch is full, or ring_flush
 *                                          └─► io_uring_enter: sends all ─► sent, for each
 *
 * The sends do not block, so each result is known when the call returns. The pieces that
 * one sender adds to a batch leave together, as one send. Until then, the sender must not
 * send by any other means, and its descriptor must stay open.
 *
 * A ring is created before the process is confined, can only send, and belongs to the
 * thread that created it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "net/outbox.h"

enum { RING_BYTES = 256 * 1024 }; /* per batch at most: the time is not checked within it */

struct ring;

/* Embedded by a sender. The zero value has nothing in the batch. */
struct ring_sender {
    uint8_t place; /* in the batch, from 1; 0: none of its bytes are in it */
};

/* result: how many bytes of the pieces the kernel accepted, or -errno. All arguments are
 * borrowed. Do not send through the ring from inside this call. */
typedef void ring_sent_fn(struct ring_sender *sender, const struct piece *pieces,
                          size_t count, ssize_t result);

/* ERR_INVALID, with the reason: the kernel has no io_uring, or does not permit it. */
enum err ring_create(struct ring **ring, struct failure *why);

/* Ignores NULL. The batch must be empty. */
void ring_destroy(struct ring *ring);

/* Sets the function that receives results. */
void ring_tell(struct ring *ring, ring_sent_fn *sent);

/* Adds pieces to the batch, after those of the same sender. Takes references to the owners
 * of shared pieces, and copies borrowed ones. Returns false if it cannot take them: they
 * are empty, too many, too large or BYTES_PARTS; or they do not fit into the batch, until
 * it is sent, together with the sender's earlier pieces. */
bool ring_send(struct ring *ring, struct ring_sender *sender, int fd,
               const struct piece *pieces, size_t count);

/* Sends the batch. */
void ring_flush(struct ring *ring);
