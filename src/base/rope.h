/* rope.h - a text that refers to its long parts instead of copying them.
 *
 *   rope:  {"output":"▲","error":▲}      the buffer, and where the inserts belong
 *                    │          │
 *               bytes of a run, by reference: as they are, to be escaped, or on one line
 *
 *   rope_join ─► struct bytes of BYTES_PARTS ─► rope_read, a stretch at a time
 *
 * A value of megabytes is neither copied nor changed when it is added. Both happen one
 * stretch at a time as it is read, which is when a socket can accept it. Text shorter than
 * ROPE_LONG is copied. Code that writes into a buffer need not know whether it belongs to a
 * rope.
 *
 * Bytes of BYTES_PARTS are a joined rope. Their len is the number of bytes that reading
 * them yields; their data is private to rope.c and bytes.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"

enum { ROPE_LONG = 128 * 1024 };

struct insert;

/* To make an empty rope, call rope_clear on a zeroed one. */
struct rope {
    struct buf text;
    struct insert *inserts;
    uint32_t count, capacity;
    size_t inserted; /* bytes that reading all inserts yields */
};

/* Makes the rope empty and keeps the memory. */
void rope_clear(struct rope *rope);
void rope_finish(struct rope *rope);

/* Empties a rope kept for reuse; frees its memory if that exceeds most bytes. */
void rope_give_back(struct rope *rope, size_t most);

/* Returns the length of its text and all inserts. */
size_t rope_len(const struct rope *rope);

/* The present end of a rope, so that what is added later can be cut off again. */
struct rope_end {
    size_t text;
    uint32_t inserts;
};

struct rope_end rope_end(const struct rope *rope);
void rope_cut(struct rope *rope, struct rope_end end);

/* Returns the length written so far; rope_len if the buffer belongs to a rope. */
size_t rope_len_of(const struct buf *out);

/* Like buf_add and buf_add_json, for a text that is part of owner. A long text is taken by
 * reference if out is the buffer of a rope. owner NULL: always copied. */
void rope_add(struct buf *out, struct bytes *owner, struct slice text);
void rope_add_json(struct buf *out, struct bytes *owner, struct slice text);

/* Appends all of another rope. */
void rope_add_rope(struct buf *out, const struct rope *rope);

/* Appends another rope as a JSON string; nothing in it may be marked for escaping yet. */
void rope_add_json_rope(struct buf *out, const struct rope *rope);

/* Joins the two texts, and the rope between them, into bytes with one reference, the
 * caller's. They are plain bytes if the rope has no insert. */
struct bytes *rope_join(struct slice before, const struct rope *rope, struct slice after);

/* The same, with each line break (CR or LF) of the rope replaced by a space. JSON keeps its
 * meaning: raw line breaks occur only between its tokens. */
struct bytes *rope_join_line(struct slice before, const struct rope *rope,
                             struct slice after);

/* ---- bytes of BYTES_PARTS ---- */

/* Returns the number of bytes stored in them, without those that they refer to. */
size_t rope_own_len(const struct bytes *bytes);

/* Returns the next bytes that they refer to; NULL at the end. Start with *at = 0. */
struct bytes *rope_next_owner(const struct bytes *bytes, uint32_t *at);

/* How far bytes of BYTES_PARTS have been read. The zero value is the beginning. */
struct rope_place {
    uint32_t part;
    uint32_t at;     /* offset in that part */
    uint32_t within; /* bytes of an escape there that were already read */
};

/* Returns the next stretch and moves place past it. Stretches that must be changed are
 * written into room, which has size bytes. Returns an empty slice at the end, or if room is
 * needed but smaller than ROPE_ROOM_LEAST. */
enum { ROPE_ROOM_LEAST = 128 };
struct slice rope_read(const struct bytes *bytes, struct rope_place *place, char *room,
                       size_t size);

/* Returns true if place is at the end. */
bool rope_is_read(const struct bytes *bytes, const struct rope_place *place);

/* Skips len bytes, counted as they would be read. */
void rope_skip(const struct bytes *bytes, struct rope_place *place, size_t len);

/* Appends all but the first `before` and the last `after` bytes, which must be text that
 * was joined with the rope. Also accepts plain bytes. */
void rope_add_inner(struct buf *out, const struct bytes *bytes, size_t before,
                    size_t after);
