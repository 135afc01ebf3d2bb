/* callback_body.h - the output that a webhook's body stands for.
 *
 *   JSON, under any content type          ─► as it is, byte for byte
 *   application/x-www-form-urlencoded     ─► {"field": "text", …}
 *   multipart/form-data                   ─► the same; files are left out
 *   text/… but not XML                    ─► "the text"
 *   XML, any other type, no type, no body ─► {}
 *
 * The task that waits cannot change the sender of a webhook, so a body is refused only when it is
 * too large. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum {
    CALLBACK_FIELDS_MAX = 1000,        /* of a form */
    CALLBACK_OUTPUT_MAX = 1024 * 1024, /* bytes of the output */
};

/* Appends the output, a JSON text. The values of a repeated field become an array.
 * Bytes that are not UTF-8, and escapes that are not valid, become U+FFFD. content_type is the
 * header of the request; absent for none.
 * ERR_TOO_LARGE: the form has more fields, or the output is larger. */
enum err callback_body_read(struct slice content_type, struct slice body,
                            struct buf *output, struct failure *why);
