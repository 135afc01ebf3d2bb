/* callback_body.h - converts the body of a webhook into the output of a token.
 *
 *   JSON, under any content type          ─► unchanged, byte for byte
 *   application/x-www-form-urlencoded     ─► {"field": "text", …}
 *   multipart/form-data                   ─► the same, without files
 *   text/… but not XML                    ─► "the text"
 *   XML, any other type, no type, no body ─► {}
 *
 * The author of the waiting task cannot change the sender of a webhook, so a body is
 * rejected only if it is too large. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum {
    CALLBACK_FIELDS_MAX = 1000,        /* of a form */
    CALLBACK_OUTPUT_MAX = 1024 * 1024, /* bytes of the output */
};

/* Appends the output, a JSON text. The values of a repeated field become an array. In
 * forms and texts, bytes that are not UTF-8 become U+FFFD. content_type: the request's
 * header, or absent. Returns ERR_TOO_LARGE if the form has too many fields or the output is
 * too large. */
enum err callback_body_read(struct slice content_type, struct slice body,
                            struct buf *output, struct failure *why);
