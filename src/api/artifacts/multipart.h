/* multipart.h - parses multipart/form-data bodies (RFC 7578) as they arrive.
 *
 *   --boundary
 *   Content-Disposition: form-data; name="key"          ─► on_part("key", not a file)
 *
 *   bundles/x.tar.gz                                    ─► on_content, in pieces
 *   --boundary                                          ─► on_part_end
 *   … name="file"; filename="deployment.tar.gz"         ─► on_part("file", a file) …
 *   --boundary--                                        ─► multipart_end is OK
 *
 * The content of a part is passed on as it arrives and not stored. File names are ignored,
 * so whatever a client writes there has no effect. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

enum {
    MULTIPART_BOUNDARY_MAX = 70, /* RFC 2046 */
    MULTIPART_HEAD_MAX = 8192,   /* bytes of a part's headers */
    MULTIPART_PARTS_MAX = 32,
    MULTIPART_OUTSIDE_MAX =
        8192, /* bytes before the first part and after the last, together */
};

struct multipart {
    /* Callbacks of the owner. An error from one ends the parsing and becomes its result. */
    enum err (*on_part)(struct multipart *multipart, struct slice name, bool is_file);
    enum err (*on_content)(struct multipart *multipart, struct slice piece);
    enum err (*on_part_end)(struct multipart *multipart);
    struct failure *why;
    unsigned parts_max; /* set by the owner; 0: MULTIPART_PARTS_MAX */

    /* The line that divides parts, including the line break before it. */
    char divider[MULTIPART_BOUNDARY_MAX + 5];
    size_t divider_len;
    size_t matched; /* how many of its bytes the end of the body has matched */

    enum {
        MULTIPART_PREAMBLE, /* text before the first part is ignored */
        MULTIPART_LINE,     /* the rest of a divider's line */
        MULTIPART_HEAD,
        MULTIPART_CONTENT,
        MULTIPART_EPILOGUE, /* text after the last part is ignored */
    } at;
    struct buf line; /* of MULTIPART_LINE and MULTIPART_HEAD, as far as it has arrived */
    unsigned parts;
    size_t outside; /* bytes of preamble and epilogue */
};

/* Begins to parse. content_type: the request's header. The owner has set the callbacks and
 * why. Returns ERR_MEDIA_TYPE for another type, ERR_INVALID if the boundary is missing or
 * invalid. */
enum err multipart_init(struct multipart *multipart, struct slice content_type);

/* Parses the next piece. Returns ERR_INVALID if the body is malformed, or the error of a
 * callback. */
enum err multipart_feed(struct multipart *multipart, struct slice piece);

/* Ends the body. Returns ERR_INVALID if the last divider is missing. */
enum err multipart_end(struct multipart *multipart);

/* Frees what parsing needed. A zeroed struct is valid. */
void multipart_finish(struct multipart *multipart);
