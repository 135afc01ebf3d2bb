/* pack.h - the values of replication in msgpack: numbers, bytes, arrays and maps.
 *
 * Writing uses the packer of msgpack-c. Reading does not use its unpacker, which allocates
 * what a header claims: here a value is taken off a cursor, nothing is allocated, and an
 * array or a map that claims more values than bytes are left sets cursor::failed, as does a
 * value of another type. Check failed once at the end. */
#pragma once

#include <msgpack.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/cursor.h"

/* Makes a packer that appends to the buffer. */
msgpack_packer pack_to(struct buf *out);

/* An absent slice becomes nil. */
void pack_bytes(msgpack_packer *packer, struct slice bytes);

/* Appends the head of a map whose number of pairs is not known yet. Returns its place for
 * pack_map_end. */
size_t pack_map_begin(msgpack_packer *packer);
void pack_map_end(msgpack_packer *packer, size_t place, size_t pairs);

/* ---- reading ---- */

/* Takes an integer of 0 … most, or of least … most. */
uint64_t take_number(struct cursor *in, uint64_t most);
int64_t take_signed(struct cursor *in, int64_t least, int64_t most);

/* Takes a double, which must be finite. */
double take_real(struct cursor *in);

/* Takes bytes or a str, at most `most` of them. Borrowed. Returns an absent slice for nil. */
struct slice take_bytes(struct cursor *in, size_t most);

/* The same, and copies them. */
struct bytes *take_copy(struct cursor *in);

/* Take the head of an array or a map, and return the number of values or pairs, at most
 * `most`. */
size_t take_array(struct cursor *in, size_t most);
size_t take_map(struct cursor *in, size_t most);

/* Takes true off the front if it is there. */
bool take_true(struct cursor *in);

/* Skips a value of any type, with everything in it. */
void take_any(struct cursor *in);
