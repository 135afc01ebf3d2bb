/* body_fields.h - a body that is validated while it comes.
 *
 *   on_body: body_fields_take, for each piece ─► handle: body_fields_end gives the whole object
 *
 * What is long is read once in small pieces, so no turn has to read it whole. The
 * collected text lives until body_fields_free, also behind the reply.
 *
 * A body that carries a long string (an output) near its top can have it set aside: it is
 * decoded while it comes, and in the object stands a mark that only body_fields_string knows.
 *
 * A body that must not be refused (the end of an attempt) is taken by body_fields_take_any: a
 * string that is too long keeps its beginning and its length. Any other fault of the body is
 * reported by body_fields_end. */
#pragma once

#include "api/request/call.h"

struct body_fields;

/* For route.on_body. */
enum err body_fields_take(struct api_call *call, struct slice piece);

/* The same, and strings of more than 32 KiB inside of at most two objects are set aside. What
 * is beside them is walked over several times in one turn: ERR_TOO_LARGE as soon as it is
 * more than BODY_FIELDS_BESIDE_MAX bytes. */
enum { BODY_FIELDS_BESIDE_MAX = 1024 * 1024 };
enum err body_fields_take_long(struct api_call *call, struct slice piece);

/* Accepts any bytes. Strings of more than 32 KiB inside of at most five objects or arrays
 * are set aside, and of all those together BODY_FIELDS_ASIDE_MAX bytes are kept. As soon as a
 * string turns out to be longer than what is left of that, it is cut: BODY_FIELDS_CUT_MAX
 * bytes of it are kept at most. After a byte that is not JSON, or more than
 * BODY_FIELDS_BESIDE_MAX bytes apart from the strings, nothing is kept. */
enum {
    BODY_FIELDS_ASIDE_MAX = 16 * 1024 * 1024,
    BODY_FIELDS_CUT_MAX = 256 * 1024,
};
void body_fields_take_any(struct api_call *call, struct slice piece);

/* Nothing is kept of the body, whatever comes of it, and body_fields_end explains ERR_INVALID
 * with this text. */
void body_fields_ignore(struct api_call *call, const char *why);

/* Bytes of memory that the body takes which body_fields_take_any is taking. */
size_t body_fields_size(const struct api_call *call);

/* Frees what has come of the body: the call will not be handled. */
void body_fields_drop(struct api_call *call);

/* Appends the text of a string, set aside or not; once for each. False for another type. */
bool body_fields_string(struct body_fields *fields, struct slice value, struct buf *out);

/* Appends the first characters of a string, at most that many bytes; len becomes the length of
 * the whole string, also when body_fields_take_any has not kept it. False for another type. */
bool body_fields_begin(struct body_fields *fields, struct slice value, size_t most,
                       struct buf *out, size_t *len);

/* True when the value contains the mark of a string that was set aside: as JSON text it is of
 * no use. */
bool body_fields_has_mark(struct slice value);

/* The same as bytes of its own; of what was set aside it is noted there whether it is JSON,
 * which was found while it came. NULL for another type. */
struct bytes *body_fields_bytes(struct body_fields *fields, struct slice value);

/* True when body_fields_take_any has kept only the beginning of the string, which has len
 * bytes. */
bool body_fields_is_cut(struct body_fields *fields, struct slice value, size_t *len);

/* The body is complete: a JSON object that scan.h may read. Takes the fields out of the
 * call; the caller's to body_fields_free. ERR_INVALID, or of body_fields_take_any
 * ERR_TOO_LARGE, with the text for the client: nothing is left to free. */
enum err body_fields_end(struct api_call *call, struct body_fields **fields,
                         struct slice *object);

/* NULL is fine. */
void body_fields_free(struct body_fields *fields);
