/* outbox.c - sendmsg, and an array of references to the bytes that it did not accept. */
#include "net/outbox.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/mem.h"
#include "net/share.h"
#include "net/tls.h"

enum {
    SEND_FLAGS = MSG_NOSIGNAL | MSG_DONTWAIT,
    SEND_BYTES = 256 * 1024,   /* per call: a fast reader must not use up a turn */
    CHANGED_BYTES = 64 * 1024, /* of these, bytes that are escaped or made one line */
    FIRST_CAPACITY = 4,
};

struct left {
    struct bytes *bytes; /* holds a reference */
    size_t offset;       /* of the first unsent byte, counted as read */
};

struct backlog {
    size_t unsent;
    size_t own; /* memory of the unsent bytes, without bytes that BYTES_PARTS refer to */
    size_t first, count,
        capacity;            /* pieces[first] to pieces[first + count - 1] are in use */
    struct rope_place place; /* in the first piece, at its offset; for BYTES_PARTS */
    struct left pieces[];
};

/* ---- memory quota ---- */

typedef void share_fn(struct quota *quota, struct bytes *bytes);

static void share_each(struct outbox *outbox, const struct bytes *bytes, share_fn *share)
{
    uint32_t at = 0;
    struct bytes *owner;
    if (outbox->quota && bytes_are_parts(bytes))
        while ((owner = rope_next_owner(bytes, &at)))
            share(outbox->quota, owner);
}

static void share_all(struct outbox *outbox, share_fn *share)
{
    const struct backlog *backlog = outbox->backlog;
    for (size_t i = 0; backlog && i < backlog->count; i++)
        share_each(outbox, backlog->pieces[backlog->first + i].bytes, share);
}

void outbox_count_in(struct outbox *outbox, struct quota *quota)
{
    if (outbox->quota == quota)
        return;
    share_all(outbox, share_give);
    outbox->quota = quota;
    share_all(outbox, share_take);
}

size_t outbox_own(const struct outbox *outbox)
{
    return outbox->backlog ? outbox->backlog->own : 0;
}

/* ---- unsent bytes ---- */

void outbox_finish(struct outbox *outbox)
{
    struct backlog *backlog = outbox->backlog;
    if (!backlog)
        return;
    share_all(outbox, share_give);
    for (size_t i = 0; i < backlog->count; i++)
        bytes_unref(backlog->pieces[backlog->first + i].bytes);
    free(backlog);
    outbox->backlog = NULL;
}

size_t outbox_unsent(const struct outbox *outbox)
{
    return outbox->backlog ? outbox->backlog->unsent : 0;
}

size_t outbox_pieces(const struct outbox *outbox)
{
    return outbox->backlog ? outbox->backlog->count : 0;
}

/* ---- sending ---- */

/* The position in a vector at which the next record begins. */
struct reading {
    struct iovec *vector;
    size_t count;
    size_t offset; /* in the first element */
};

/* Returns the bytes of the next record. Bytes of one piece are not copied, unless another
 * piece follows that fits into the record. */
static struct slice next_record(struct reading *reading)
{
    static char joined[TLS_RECORD];
    const struct iovec *first = reading->vector;
    struct slice text = { (char *)first->iov_base + reading->offset,
                          first->iov_len - reading->offset };
    if (text.len >= TLS_RECORD || reading->count == 1) {
        text.len = text.len < TLS_RECORD ? text.len : TLS_RECORD;
        return text;
    }
    memcpy(joined, text.ptr, text.len);
    for (size_t i = 1; i < reading->count && text.len < TLS_RECORD; i++) {
        size_t room = TLS_RECORD - text.len, len = reading->vector[i].iov_len;
        len = len < room ? len : room;
        memcpy(joined + text.len, reading->vector[i].iov_base, len);
        text.len += len;
    }
    return (struct slice){ joined, text.len };
}

static void skip(struct reading *reading, size_t len)
{
    while (reading->count && len >= reading->vector->iov_len - reading->offset) {
        len -= reading->vector->iov_len - reading->offset;
        reading->offset = 0;
        reading->vector++;
        reading->count--;
    }
    reading->offset += len;
}

/* Sends the pieces as TLS records. A record that the kernel accepted only in part counts as
 * not sent. Its bytes stay the first unsent ones, so the same bytes are written again, as
 * TLS requires. Without renegotiation, writing never waits for the peer. */
static ssize_t send_records(struct outbox *outbox, struct iovec *vector, size_t count)
{
    struct reading reading = { vector, count, 0 };
    enum tls_result result = TLS_DONE;
    size_t total = 0, len;
    while (reading.count && result == TLS_DONE) {
        result = tls_write(outbox->tls, next_record(&reading), &len);
        skip(&reading, len);
        total += len;
    }
    outbox->handed = tls_bytes_sent(outbox->tls);
    return result == TLS_DONE || result == TLS_WANTS_WRITE ? (ssize_t)total : -1;
}

/* Returns the number of bytes that the kernel accepted; result is its return value, or
 * -errno. 0 if the socket is full, -1 if the connection is gone. */
static ssize_t taken(struct outbox *outbox, ssize_t result)
{
    if (result >= 0) {
        outbox->handed += result;
        return result;
    }
    return result == -EAGAIN || result == -EINTR || result == -ENOBUFS ? 0 : -1;
}

static ssize_t send_vector(struct outbox *outbox, int fd, struct iovec *vector,
                           size_t count)
{
    struct msghdr message = { .msg_iov = vector, .msg_iovlen = count };
    ssize_t result;
    if (outbox->tls)
        return send_records(outbox, vector, count);
    if (count == 1)
        result = send(fd, vector->iov_base, vector->iov_len, SEND_FLAGS);
    else
        result = sendmsg(fd, &message, SEND_FLAGS);
    return taken(outbox, result < 0 ? -errno : result);
}

static struct left *new_place(struct outbox *outbox)
{
    struct backlog *backlog = outbox->backlog;
    if (backlog && backlog->first + backlog->count < backlog->capacity)
        return &backlog->pieces[backlog->first + backlog->count++];
    if (backlog && backlog->first > backlog->capacity / 2) {
        memmove(backlog->pieces, backlog->pieces + backlog->first,
                backlog->count * sizeof(struct left));
        backlog->first = 0;
        return &backlog->pieces[backlog->count++];
    }
    size_t capacity = backlog ? backlog->capacity * 2 : FIRST_CAPACITY;
    size_t size = sizeof(*backlog) + capacity * sizeof(struct left);
    if (!backlog)
        backlog = mem_alloc(size);
    else
        backlog = mem_resize(backlog, size);
    backlog->capacity = capacity;
    outbox->backlog = backlog;
    return &backlog->pieces[backlog->first + backlog->count++];
}

/* Keeps the unsent rest of the bytes. Takes ownership of the reference. */
static void keep(struct outbox *outbox, struct bytes *bytes, size_t offset)
{
    size_t len = bytes->len - offset;
    *new_place(outbox) = (struct left){ bytes, offset };
    outbox->backlog->unsent += len;
    outbox->backlog->own += bytes_are_parts(bytes) ? rope_own_len(bytes) : len;
    share_each(outbox, bytes, share_take);
}

static void keep_piece(struct outbox *outbox, const struct piece *piece, size_t sent)
{
    if (!piece->owner) {
        keep(outbox, bytes_create(slice_from(piece->text, sent)), 0);
        return;
    }
    if (bytes_are_parts(piece->owner)) {
        assert(!sent && piece->text.len == piece->owner->len);
        keep(outbox, bytes_ref(piece->owner), 0);
        return;
    }
    size_t start = (size_t)(piece->text.ptr - piece->owner->data);
    assert(start + piece->text.len == piece->owner->len); /* up to the owner's end */
    keep(outbox, bytes_ref(piece->owner), start + sent);
}

static enum outbox_status keep_rest(struct outbox *outbox, const struct piece *pieces,
                                    size_t count, size_t sent)
{
    for (size_t i = 0; i < count; i++) {
        size_t len = pieces[i].text.len;
        if (sent < len)
            keep_piece(outbox, &pieces[i], sent);
        sent -= sent < len ? sent : len;
    }
    return outbox->backlog ? OUTBOX_UNSENT : OUTBOX_EMPTY;
}

/* Sends what was just kept, like anything that waits for the socket. */
static enum outbox_status flush_kept(struct outbox *outbox, int fd)
{
    bool progress;
    return outbox_flush(outbox, fd, &progress);
}

static bool have_parts(const struct piece *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (pieces[i].owner && bytes_are_parts(pieces[i].owner))
            return true;
    return false;
}

enum outbox_status outbox_send(struct outbox *outbox, int fd, const struct piece *pieces,
                               size_t count)
{
    assert(count <= OUTBOX_PIECES_MAX);
    if (outbox->backlog)
        return keep_rest(outbox, pieces, count, 0);
    if (have_parts(pieces, count)) {
        keep_rest(outbox, pieces, count, 0);
        return flush_kept(outbox, fd);
    }
    MEM_UNFILLED struct iovec vector[OUTBOX_PIECES_MAX];
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        if (pieces[i].text.len)
            vector[used++] =
                (struct iovec){ (void *)pieces[i].text.ptr, pieces[i].text.len };
    if (!used)
        return OUTBOX_EMPTY;
    ssize_t sent = send_vector(outbox, fd, vector, used);
    return sent < 0 ? OUTBOX_LOST : keep_rest(outbox, pieces, count, (size_t)sent);
}

static enum outbox_status keep_frames(struct outbox *outbox, struct bytes *const *frames,
                                      size_t count, size_t sent)
{
    for (size_t i = 0; i < count; i++) {
        size_t len = frames[i]->len;
        if (sent < len)
            keep(outbox, bytes_ref(frames[i]), sent);
        sent -= sent < len ? sent : len;
    }
    return OUTBOX_UNSENT;
}

enum outbox_status outbox_send_frames(struct outbox *outbox, int fd,
                                      struct bytes *const *frames, size_t count)
{
    assert(count && count <= OUTBOX_PIECES_MAX);
    if (outbox->backlog)
        return keep_frames(outbox, frames, count, 0);
    MEM_UNFILLED struct iovec vector[OUTBOX_PIECES_MAX];
    size_t total = 0, used = 0;
    for (; used < count && total < SEND_BYTES; used++) {
        if (bytes_are_parts(frames[used]))
            break;
        vector[used] = (struct iovec){ frames[used]->data, frames[used]->len };
        total += frames[used]->len;
    }
    if (!used) {
        keep_frames(outbox, frames, count, 0);
        return flush_kept(outbox, fd);
    }
    ssize_t sent = send_vector(outbox, fd, vector, used);
    if ((size_t)sent == total && used == count)
        return OUTBOX_EMPTY;
    return sent < 0 ? OUTBOX_LOST : keep_frames(outbox, frames, count, (size_t)sent);
}

enum outbox_status outbox_note_sent(struct outbox *outbox, const struct piece *pieces,
                                    size_t count, ssize_t result)
{
    ssize_t sent = taken(outbox, result);
    assert(!outbox->backlog);
    return sent < 0 ? OUTBOX_LOST : keep_rest(outbox, pieces, count, (size_t)sent);
}

static void drop_first(struct outbox *outbox)
{
    struct backlog *backlog = outbox->backlog;
    struct left *left = &backlog->pieces[backlog->first];
    if (bytes_are_parts(left->bytes))
        backlog->own -= rope_own_len(left->bytes);
    else
        backlog->own -= left->bytes->len - left->offset;
    share_each(outbox, left->bytes, share_give);
    bytes_unref(left->bytes);
    backlog->place = (struct rope_place){ 0 };
    backlog->first++;
    backlog->count--;
}

static void drop_sent(struct outbox *outbox, size_t sent)
{
    struct backlog *backlog = outbox->backlog;
    backlog->unsent -= sent;
    while (sent) {
        struct left *left = &backlog->pieces[backlog->first];
        size_t len = left->bytes->len - left->offset;
        if (sent >= len) {
            sent -= len;
            drop_first(outbox);
            continue;
        }
        left->offset += sent;
        if (bytes_are_parts(left->bytes))
            rope_skip(left->bytes, &backlog->place, sent);
        else
            backlog->own -= sent;
        return;
    }
}

/* The arguments of one sendmsg. */
struct parcel {
    struct iovec vector[OUTBOX_PIECES_MAX];
    size_t count, bytes;
    size_t changed; /* bytes in use of the buffer for changed text */
};

static bool is_full(const struct parcel *parcel)
{
    return parcel->count == OUTBOX_PIECES_MAX || parcel->bytes >= SEND_BYTES;
}

static void add_text(struct parcel *parcel, struct slice text)
{
    if (text.len > SEND_BYTES - parcel->bytes)
        text.len = SEND_BYTES - parcel->bytes;
    parcel->vector[parcel->count++] = (struct iovec){ (void *)text.ptr, text.len };
    parcel->bytes += text.len;
}

/* Adds the parts of a rope's bytes. Returns false if the parcel is full before they end. */
static bool add_parts(struct parcel *parcel, const struct bytes *bytes,
                      struct rope_place place)
{
    static char changed[CHANGED_BYTES];
    while (!is_full(parcel)) {
        char *room = changed + parcel->changed;
        struct slice text = rope_read(bytes, &place, room, CHANGED_BYTES - parcel->changed);
        if (!text.len)
            return rope_is_read(bytes, &place);
        if (text.ptr >= changed && text.ptr < changed + CHANGED_BYTES)
            parcel->changed = (size_t)(text.ptr + text.len - changed);
        add_text(parcel, text);
    }
    return false;
}

/* Fills the parcel with the first pieces, up to SEND_BYTES. */
static void fill(struct parcel *parcel, const struct backlog *backlog)
{
    parcel->count = parcel->bytes = parcel->changed = 0;
    for (size_t i = 0; i < backlog->count && !is_full(parcel); i++) {
        const struct left *left = &backlog->pieces[backlog->first + i];
        struct rope_place place = i ? (struct rope_place){ 0 } : backlog->place;
        if (!bytes_are_parts(left->bytes))
            add_text(parcel, slice_from(bytes_slice(left->bytes), left->offset));
        else if (!add_parts(parcel, left->bytes, place))
            return;
    }
}

enum outbox_status outbox_flush(struct outbox *outbox, int fd, bool *progress)
{
    struct backlog *backlog = outbox->backlog;
    size_t done = 0;
    *progress = false;
    while (backlog && backlog->count) {
        struct parcel parcel;
        fill(&parcel, backlog);
        ssize_t sent = send_vector(outbox, fd, parcel.vector, parcel.count);
        if (sent < 0) {
            outbox_finish(outbox);
            return OUTBOX_LOST;
        }
        *progress = *progress || sent > 0;
        drop_sent(outbox, (size_t)sent);
        done += (size_t)sent;
        if ((size_t)sent < parcel.bytes || (backlog->count && done >= SEND_BYTES))
            return OUTBOX_UNSENT;
    }
    outbox_finish(outbox);
    return OUTBOX_EMPTY;
}
