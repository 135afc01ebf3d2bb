/* rope.h - a text that refers to its long parts instead of copying them.
 *
 *   rope:  {"output":"▲","error":▲}      the buffer, and where what belongs into it
 *                    │          │
 *               bytes of a run, by reference: as they are, to be escaped, or on one line
 *
 *   rope_join ─► struct bytes of BYTES_PARTS ─► rope_read, a stretch at a time
 *
 * A value of megabytes is neither copied nor changed when it is added: that is done for each
 * stretch when it is read, which is when a socket can take it. What is shorter than
 * ROPE_LONG is copied like any other text. Whoever writes into a buffer need not know
 * whether it is that of a rope.
 *
 * Bytes of BYTES_PARTS count as many bytes in len as are read from them; their data is
 * nobody else's business. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"

enum { ROPE_LONG = 128 * 1024 };

struct insert;

/* The zero value is an empty rope, after rope_clear. */
struct rope {
    struct buf text;
    struct insert *inserts;
    uint32_t count, capacity;
    size_t inserted; /* bytes of all inserts, as they are read */
};

/* Makes it empty and keeps the memory. */
void rope_clear(struct rope *rope);
void rope_finish(struct rope *rope);

/* Makes a rope that is kept empty, and frees its memory if that is more than `most` bytes. */
void rope_give_back(struct rope *rope, size_t most);

/* Bytes of its text and all inserts. */
size_t rope_len(const struct rope *rope);

/* Where it ends now, to cut there what is added later. */
struct rope_end {
    size_t text;
    uint32_t inserts;
};

struct rope_end rope_end(const struct rope *rope);
void rope_cut(struct rope *rope, struct rope_end end);

/* What was written so far: rope_len if it is the buffer of a rope. */
size_t rope_len_of(const struct buf *out);

/* Like buf_add and buf_add_json; text is a part of owner. Taken by reference when it is long
 * and out is the buffer of a rope. owner NULL: always copied. */
void rope_add(struct buf *out, struct bytes *owner, struct slice text);
void rope_add_json(struct buf *out, struct bytes *owner, struct slice text);

/* All of another rope. */
void rope_add_rope(struct buf *out, const struct rope *rope);

/* The same as a JSON string; nothing in it is to be escaped already. */
void rope_add_json_rope(struct buf *out, const struct rope *rope);

/* Before, the rope and behind as bytes with one reference, the caller's: plain ones when the
 * rope has no insert. */
struct bytes *rope_join(struct slice before, const struct rope *rope, struct slice behind);

/* The same with a space for each line break (CR or LF) of the rope: JSON stays what it is,
 * since there they can only stand between its words. */
struct bytes *rope_join_line(struct slice before, const struct rope *rope,
                             struct slice behind);

/* ---- bytes of BYTES_PARTS ---- */

/* Bytes that they have themselves; the others belong to those that they refer to. */
size_t rope_own_len(const struct bytes *bytes);

/* Those that they refer to, one after the other: start with *at = 0; NULL at the end. */
struct bytes *rope_next_owner(const struct bytes *bytes, uint32_t *at);

/* How far bytes of BYTES_PARTS were read. The zero value: not at all. */
struct rope_place {
    uint32_t part;
    uint32_t at;     /* in that part */
    uint32_t within; /* bytes that were read of an escape there */
};

/* The next stretch, and place moves behind it. What is not read as it is comes in room, which
 * has size bytes. Empty at the end, and when room is needed and has less than
 * ROPE_ROOM_LEAST. */
enum { ROPE_ROOM_LEAST = 128 };
struct slice rope_read(const struct bytes *bytes, struct rope_place *place, char *room,
                       size_t size);

/* The place is behind all of them. */
bool rope_is_read(const struct bytes *bytes, const struct rope_place *place);

/* Moves over so many bytes as they are read. */
void rope_skip(const struct bytes *bytes, struct rope_place *place, size_t len);

/* Appends all but the first `before` and the last `behind` bytes, which are text that was
 * joined with the rope. Of plain bytes too. */
void rope_add_inner(struct buf *out, const struct bytes *bytes, size_t before,
                    size_t behind);
