/* body_fields.h - collects and validates a JSON body while it arrives.
 *
 *   on_body: body_fields_take, for each piece ─► handle: body_fields_end, the whole object
 *
 * A long body is read once, in small pieces, so no turn must read all of it. The collected
 * text lives until body_fields_free, even after the reply.
 *
 * A long string (an output) near the top of a body can be set aside: it is decoded while it
 * arrives, and in its place the object has a mark that only the functions below understand.
 *
 * A body that must not be refused (the end of an attempt) is taken by body_fields_take_any,
 * which keeps the beginning and the length of a string that is too long. body_fields_end
 * reports any other fault. */
#pragma once

#include "api/request/call.h"

struct body_fields;

/* Takes a piece of the body; for route.on_body. */
enum err body_fields_take(struct api_call *call, struct slice piece);

/* The same, but sets strings of more than 32 KiB aside if they are near the top, which is
 * inside at most two objects or arrays. The rest is walked several times in one turn:
 * returns ERR_TOO_LARGE as soon as it has more than BODY_FIELDS_BESIDE_MAX bytes. */
enum { BODY_FIELDS_BESIDE_MAX = 1024 * 1024 };
enum err body_fields_take_long(struct api_call *call, struct slice piece);

/* Takes a piece of any bytes. Strings of more than 32 KiB inside at most five objects or
 * arrays are set aside, and BODY_FIELDS_ASIDE_MAX bytes of them in total are kept. A string
 * is cut as soon as it is longer than what is left of that: at most BODY_FIELDS_CUT_MAX
 * bytes of it are kept. After a byte that is not JSON, or more than BODY_FIELDS_BESIDE_MAX
 * bytes besides the strings, nothing is kept. */
enum {
    BODY_FIELDS_ASIDE_MAX = 16 * 1024 * 1024,
    BODY_FIELDS_CUT_MAX = 256 * 1024,
};
void body_fields_take_any(struct api_call *call, struct slice piece);

/* Keeps nothing of the body, whatever follows; body_fields_end then returns ERR_INVALID
 * with why. */
void body_fields_ignore(struct api_call *call, const char *why);

/* Returns the bytes of memory of a body that body_fields_take_any is taking. */
size_t body_fields_size(const struct api_call *call);

/* Frees what has arrived of the body: the call will not be handled. */
void body_fields_drop(struct api_call *call);

/* Appends the text of a string, set aside or not; once for each. Returns false for other
 * types. */
bool body_fields_string(struct body_fields *fields, struct slice value, struct buf *out);

/* Appends the first characters of a string, at most `most` bytes. Sets len to the length of
 * the whole string, even if body_fields_take_any did not keep all of it. Returns false for
 * other types. */
bool body_fields_begin(struct body_fields *fields, struct slice value, size_t most,
                       struct buf *out, size_t *len);

/* Returns true if the value contains the mark of a string that was set aside. Such a value
 * is useless as JSON text. */
bool body_fields_has_mark(struct slice value);

/* Like body_fields_string, but returns new bytes. For a string that was set aside, they
 * also record whether it is JSON, which was determined while it arrived. Returns NULL for
 * other types. */
struct bytes *body_fields_bytes(struct body_fields *fields, struct slice value);

/* Returns true if body_fields_take_any has kept only the beginning of the string; sets len
 * to its whole length. */
bool body_fields_is_cut(struct body_fields *fields, struct slice value, size_t *len);

/* Ends a complete body, and takes the fields from the call; the caller frees them. object:
 * a JSON object that scan.h may read. Returns ERR_INVALID, or for body_fields_take_any
 * ERR_TOO_LARGE, with the text for the client; nothing is then left to free. */
enum err body_fields_end(struct api_call *call, struct body_fields **fields,
                         struct slice *object);

/* Ignores NULL. */
void body_fields_free(struct body_fields *fields);
