/* body_fields.h - a body that is validated while it comes.
 *
 *   on_body: body_fields_take, for each piece ─► handle: body_fields_end gives the whole object
 *
 * What is long is read once in small pieces, so no turn has to read it whole. The
 * collected text lives until body_fields_free, also behind the reply.
 *
 * A body that carries a long string (an output) near its top can have it set aside: it is
 * decoded while it comes, and in the object stands a mark that only body_fields_string knows. */
#pragma once

#include "call/call.h"

struct body_fields;

/* For route.on_body. */
enum err body_fields_take(struct api_call *call, struct slice piece);

/* The same, and strings of more than 32 KiB inside of at most two objects are set aside. What
 * is beside them is walked over several times in one turn: ERR_TOO_LARGE as soon as it is
 * more than BODY_FIELDS_BESIDE_MAX bytes. */
enum { BODY_FIELDS_BESIDE_MAX = 1024 * 1024 };
enum err body_fields_take_long(struct api_call *call, struct slice piece);

/* Appends the text of a string, set aside or not; once for each. False for another type. */
bool body_fields_string(struct body_fields *fields, struct slice value, struct buf *out);

/* The same as bytes of its own; of what was set aside it is noted there whether it is JSON,
 * which was found while it came. NULL for another type. */
struct bytes *body_fields_bytes(struct body_fields *fields, struct slice value);

/* The body is complete: a JSON object that scan.h may read. Takes the fields out of the
 * call; the caller's to body_fields_free. ERR_INVALID with the text for the client: nothing is
 * left to free. */
enum err body_fields_end(struct api_call *call, struct body_fields **fields,
                         struct slice *object);

/* NULL is fine. */
void body_fields_free(struct body_fields *fields);
