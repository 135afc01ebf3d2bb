/* ring_absent.c - replaces ring.c in a build without liburing. */
#include <assert.h>

#include "net/ring.h"

enum err ring_create(struct ring **ring, struct failure *why)
{
    (void)ring;
    return explain(why, ERR_INVALID,
                   "this runcast was built without liburing; build it with -DIO_URING=ON");
}

void ring_destroy(struct ring *ring)
{
    assert(!ring);
    (void)ring;
}

void ring_tell(struct ring *ring, ring_sent_fn *sent)
{
    (void)ring;
    (void)sent;
}

bool ring_send(struct ring *ring, struct ring_sender *sender, int fd,
               const struct piece *pieces, size_t count)
{
    (void)ring;
    (void)sender;
    (void)fd;
    (void)pieces;
    (void)count;
    return false;
}

void ring_flush(struct ring *ring)
{
    (void)ring;
}
