/* multipart.h - a body of multipart/form-data (RFC 7578), read while it comes.
 *
 *   --boundary
 *   Content-Disposition: form-data; name="key"          ─► on_part("key", not a file)
 *
 *   bundles/x.tar.gz                                    ─► on_content, in pieces
 *   --boundary                                          ─► on_part_end
 *   … name="file"; filename="deployment.tar.gz"         ─► on_part("file", a file) …
 *   --boundary--                                        ─► multipart_end is OK
 *
 * Nothing of a part's content is kept: it is handed on as it comes. Names of files are not
 * looked at, and nothing that a client writes there has a meaning. */
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
    /* The owner's. What is no OK ends the reading, and is its result. */
    enum err (*on_part)(struct multipart *multipart, struct slice name, bool is_file);
    enum err (*on_content)(struct multipart *multipart, struct slice piece);
    enum err (*on_part_end)(struct multipart *multipart);
    struct failure *why;
    unsigned parts_max; /* the owner's; 0: MULTIPART_PARTS_MAX */

    /* The line that parts are divided by, with its break in front. */
    char divider[MULTIPART_BOUNDARY_MAX + 5];
    size_t divider_len;
    size_t matched; /* bytes of it that were the last ones to come */

    enum {
        MULTIPART_PREAMBLE, /* what stands before the first part means nothing */
        MULTIPART_LINE,     /* the rest of the line of a divider */
        MULTIPART_HEAD,
        MULTIPART_CONTENT,
        MULTIPART_EPILOGUE, /* nor does what stands behind the last */
    } at;
    struct buf line; /* of MULTIPART_LINE and MULTIPART_HEAD, as far as it has come */
    unsigned parts;
    size_t outside; /* bytes of preamble and epilogue */
};

/* content_type is the header of the request; the owner's functions and why are set before.
 * ERR_MEDIA_TYPE: it is another type. ERR_INVALID: it names no boundary, or one that is none. */
enum err multipart_init(struct multipart *multipart, struct slice content_type);

/* ERR_INVALID: it is no such body; or what the owner said. */
enum err multipart_feed(struct multipart *multipart, struct slice piece);

/* All of it has come. ERR_INVALID: the last divider has not. */
enum err multipart_end(struct multipart *multipart);

/* A zeroed one is fine. */
void multipart_finish(struct multipart *multipart);
