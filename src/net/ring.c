/* ring.c - sends batches through io_uring.
 *
 * The batch is in arrays that are never moved, because the kernel reads vectors, message
 * headers and copied text while it sends.
 *
 *   places   [ sender, its pieces, result ] …     one per sender, in order of submission
 *   pieces, vectors                               of all places; those of a place adjacent
 *   copied                                        the text of borrowed pieces
 *
 * When a sender adds more pieces, its earlier ones are first moved after all others, so
 * that they stay adjacent.
 *
 * A ring that fails is closed, and its unsent pieces are sent without it. */
#include "net/ring.h"

#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"

enum {
    PLACES = 64, /* 0.25 ms of sends: a turn checks its time between batches */
    PIECES = 256,
    COPIED_BYTES = 16 * 1024,
    SEND_FLAGS = MSG_NOSIGNAL | MSG_DONTWAIT,
};

struct ring_place {
    struct ring_sender *sender;
    struct msghdr message;
    uint32_t first, count; /* in ring::pieces and ring::vectors */
    int fd;
    ssize_t result;
    bool done;
};

struct ring {
    struct io_uring uring;
    bool broken; /* it failed and was closed */
    ring_sent_fn *sent;
    struct ring_place places[PLACES];
    uint32_t place_count;
    struct piece pieces[PIECES]; /* the batch holds references to their owners */
    struct iovec vectors[PIECES];
    uint32_t piece_count;
    size_t bytes; /* of all pieces: RING_BYTES at most */
    char copied[COPIED_BYTES];
    size_t copied_len;
};

/* The part of a batch that some pieces take. */
struct ring_load {
    size_t pieces, bytes, copied;
    bool has_parts;
};

/* ---- making ---- */

/* Restricts the ring to sending, until the process ends. */
static int restrict_ring(struct io_uring *uring)
{
    struct io_uring_restriction allowed[] = {
        { .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_SEND },
        { .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_SENDMSG },
        { .opcode = IORING_RESTRICTION_REGISTER_OP,
          .register_op = IORING_REGISTER_ENABLE_RINGS },
    };
    unsigned count = sizeof(allowed) / sizeof(allowed[0]), fd = (unsigned)uring->ring_fd;
    int trouble = io_uring_register(fd, IORING_REGISTER_RESTRICTIONS, allowed, count);
    return trouble < 0 ? trouble
                       : io_uring_register(fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
}

/* Returns what the operator may do about the error. */
static const char *advice(int trouble)
{
    switch (trouble) {
    case -ENOMEM:
        return "it takes 8 KiB of locked memory, whose limit (RLIMIT_MEMLOCK) all "
               "processes of a user share";
    case -EPERM:
    case -EACCES:
        return "kernel.io_uring_disabled, or a filter of system calls (a container's), "
               "forbids it";
    case -ENOSYS:
        return "it takes Linux 6.1 or newer, and no filter of system calls (a container's) "
               "that hides it";
    case -EINVAL: return "it takes Linux 6.1 or newer";
    default: return "rejected by the kernel";
    }
}

static enum err ring_refuse(struct failure *why, const char *call, int trouble)
{
    return explain(why, ERR_INVALID, "%s: %s: %s", call, strerror(-trouble),
                   advice(trouble));
}

enum err ring_create(struct ring **ring, struct failure *why)
{
    struct ring *made = mem_new(struct ring);
    int trouble =
        io_uring_queue_init(PLACES, &made->uring,
                            IORING_SETUP_R_DISABLED | IORING_SETUP_SUBMIT_ALL |
                                IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
    if (trouble) {
        free(made);
        return ring_refuse(why, "io_uring_setup", trouble);
    }
    trouble = restrict_ring(&made->uring);
    if (trouble) {
        io_uring_queue_exit(&made->uring);
        free(made);
        return ring_refuse(why, "io_uring_register", trouble);
    }
    *ring = made;
    metric_add(M_IO_URING, 1);
    return OK;
}

void ring_destroy(struct ring *ring)
{
    if (!ring)
        return;
    assert(!ring->place_count);
    if (!ring->broken) {
        io_uring_queue_exit(&ring->uring);
        metric_add(M_IO_URING, -1);
    }
    free(ring);
}

void ring_tell(struct ring *ring, ring_sent_fn *sent)
{
    ring->sent = sent;
}

/* ---- a batch ---- */

static struct ring_load load_of(const struct piece *pieces, size_t count)
{
    struct ring_load load = { 0 };
    for (size_t i = 0; i < count; i++) {
        const struct bytes *owner = pieces[i].owner;
        load.pieces += pieces[i].text.len > 0;
        load.bytes += pieces[i].text.len;
        load.copied += owner ? 0 : pieces[i].text.len;
        load.has_parts = load.has_parts || (owner && bytes_are_parts(owner));
    }
    return load;
}

static bool fits(struct ring_load load)
{
    return load.pieces && load.pieces <= PIECES && load.bytes <= RING_BYTES &&
           load.copied <= COPIED_BYTES && !load.has_parts;
}

static bool is_at_end(const struct ring *ring, const struct ring_place *place)
{
    return place->first + place->count == ring->piece_count;
}

/* Returns how many pieces must be moved before the sender can add more. */
static size_t moved_for(const struct ring *ring, const struct ring_sender *sender)
{
    if (!sender->place)
        return 0;
    const struct ring_place *place = &ring->places[sender->place - 1];
    return is_at_end(ring, place) ? 0 : place->count;
}

static bool has_room(const struct ring *ring, const struct ring_sender *sender,
                     struct ring_load load)
{
    size_t pieces = ring->piece_count + moved_for(ring, sender) + load.pieces;
    return (sender->place || ring->place_count < PLACES) && pieces <= PIECES &&
           ring->bytes + load.bytes <= RING_BYTES &&
           ring->copied_len + load.copied <= COPIED_BYTES;
}

static void move_to_end(struct ring *ring, struct ring_place *place)
{
    uint32_t to = ring->piece_count;
    if (is_at_end(ring, place))
        return;
    memcpy(&ring->pieces[to], &ring->pieces[place->first],
           place->count * sizeof(ring->pieces[0]));
    memcpy(&ring->vectors[to], &ring->vectors[place->first],
           place->count * sizeof(ring->vectors[0]));
    place->first = to;
    ring->piece_count += place->count;
}

static struct ring_place *place_of(struct ring *ring, struct ring_sender *sender, int fd)
{
    if (!sender->place) {
        ring->places[ring->place_count] =
            (struct ring_place){ .sender = sender, .first = ring->piece_count, .fd = fd };
        sender->place = (uint8_t)++ring->place_count;
    }
    return &ring->places[sender->place - 1];
}

static void append(struct ring *ring, struct ring_place *place, struct piece piece)
{
    ring->pieces[ring->piece_count] = piece;
    ring->vectors[ring->piece_count++] =
        (struct iovec){ (void *)piece.text.ptr, piece.text.len };
    place->count++;
}

static struct slice copy_text(struct ring *ring, struct slice text)
{
    char *copy = ring->copied + ring->copied_len;
    memcpy(copy, text.ptr, text.len);
    ring->copied_len += text.len;
    return (struct slice){ copy, text.len };
}

/* Copied text that follows that of the last piece makes it longer: one piece is sent without
 * a message header, which the kernel would copy and check. */
static void add_copied(struct ring *ring, struct ring_place *place, struct slice text)
{
    struct piece *last = place->count ? &ring->pieces[ring->piece_count - 1] : NULL;
    struct slice copy = copy_text(ring, text);
    if (last && !last->owner && last->text.ptr + last->text.len == copy.ptr) {
        last->text.len += copy.len;
        ring->vectors[ring->piece_count - 1].iov_len += copy.len;
    } else {
        append(ring, place, (struct piece){ copy, NULL });
    }
}

static void add_piece(struct ring *ring, struct ring_place *place, struct piece piece)
{
    ring->bytes += piece.text.len;
    if (!piece.owner) {
        add_copied(ring, place, piece.text);
        return;
    }
    bytes_ref(piece.owner);
    append(ring, place, piece);
}

bool ring_send(struct ring *ring, struct ring_sender *sender, int fd,
               const struct piece *pieces, size_t count)
{
    struct ring_load load = load_of(pieces, count);
    if (ring->broken || !fits(load))
        return false;
    if (!has_room(ring, sender, load)) {
        if (sender->place)
            return false;
        ring_flush(ring);
    }
    struct ring_place *place = place_of(ring, sender, fd);
    move_to_end(ring, place);
    for (size_t i = 0; i < count; i++)
        if (pieces[i].text.len)
            add_piece(ring, place, pieces[i]);
    return true;
}

static void prepare(struct ring *ring, struct ring_place *place)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);
    struct iovec *vector = &ring->vectors[place->first];
    assert(sqe); /* there are as many as places */
    if (place->count == 1) {
        io_uring_prep_send(sqe, place->fd, vector->iov_base, vector->iov_len, SEND_FLAGS);
    } else {
        place->message = (struct msghdr){ .msg_iov = vector, .msg_iovlen = place->count };
        io_uring_prep_sendmsg(sqe, place->fd, &place->message, SEND_FLAGS);
    }
    io_uring_sqe_set_data64(sqe, (uint64_t)(place - ring->places));
}

/* Returns the number of results. */
static unsigned take_results(struct ring *ring)
{
    struct io_uring_cqe *cqe;
    unsigned head, count = 0;
    io_uring_for_each_cqe(&ring->uring, head, cqe)
    {
        struct ring_place *place = &ring->places[cqe->user_data];
        place->result = cqe->res;
        place->done = true;
        count++;
    }
    io_uring_cq_advance(&ring->uring, count);
    return count;
}

/* Bytes left in a closed ring are never sent, so it is safe to send them again. */
static void give_up(struct ring *ring, int trouble)
{
    log_warn("io_uring failed; sending frames one by one from now on", "reason",
             strerror(-trouble), NULL);
    io_uring_queue_exit(&ring->uring);
    ring->broken = true;
    metric_add(M_IO_URING, -1);
}

static void send_alone(const struct ring *ring, struct ring_place *place)
{
    const struct iovec *vector = &ring->vectors[place->first];
    struct msghdr message = { .msg_iov = (struct iovec *)vector,
                              .msg_iovlen = place->count };
    place->result = place->count == 1
                        ? send(place->fd, vector->iov_base, vector->iov_len, SEND_FLAGS)
                        : sendmsg(place->fd, &message, SEND_FLAGS);
    if (place->result < 0)
        place->result = -errno;
}

/* Submits the batch and takes all results. This does not block, because sends with
 * MSG_DONTWAIT have ended once they are submitted. But resending before the kernel has
 * reported a result would send the bytes twice. */
static void submit(struct ring *ring)
{
    unsigned left = ring->place_count;
    for (uint32_t i = 0; i < ring->place_count; i++)
        prepare(ring, &ring->places[i]);
    while (left && !ring->broken) {
        int count = io_uring_submit_and_wait(&ring->uring, left);
        left -= take_results(ring);
        if (count < 0 && count != -EINTR)
            give_up(ring, count);
    }
}

static void ring_finish_place(struct ring *ring, struct ring_place *place)
{
    const struct piece *pieces = &ring->pieces[place->first];
    if (!place->done)
        send_alone(ring, place);
    place->sender->place = 0;
    ring->sent(place->sender, pieces, place->count, place->result);
    for (uint32_t i = 0; i < place->count; i++)
        if (pieces[i].owner)
            bytes_unref(pieces[i].owner);
}

void ring_flush(struct ring *ring)
{
    if (!ring->place_count)
        return;
    if (ring->place_count > 1 && !ring->broken)
        submit(ring); /* a single send is cheaper without the ring */
    for (uint32_t i = 0; i < ring->place_count; i++)
        ring_finish_place(ring, &ring->places[i]);
    explicit_bzero(ring->copied, ring->copied_len); /* responses may contain secrets */
    ring->place_count = ring->piece_count = 0;
    ring->bytes = ring->copied_len = 0;
}
