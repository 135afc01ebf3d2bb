/* web_file.c - serves an embedded file, gzipped if accepted; 304 if the client has it. */
#include "api/browser/web_file.h"

/* Returns true if If-None-Match is "*" or one of its tags is the content's. */
static bool is_known(const struct api_call *call, const char *tag)
{
    struct slice rest = http_header(call->x, "if-none-match"), one;
    while (rest.ptr && slice_split(&rest, ',', &one)) {
        one = slice_trim(one);
        if (slice_is(one, "*") || slice_is(one, tag))
            return true;
    }
    return false;
}

/* The tag is weak, because both encodings share it. */
enum err web_file_show(struct api_call *call, const struct web_file *file)
{
    char tag[32];
    snprintf(tag, sizeof(tag), "W/\"%s\"", file->tag);
    api_add_header(call, "etag", slice_of(tag));
    api_add_header(call, "vary", SLICE("accept-encoding"));
    api_let_cache(call, file->cache);
    if (is_known(call, tag)) {
        api_reply_empty(call, 304);
        return OK;
    }
    bool packed = api_accepts_gzip(call);
    if (packed)
        api_add_header(call, "content-encoding", SLICE("gzip"));
    api_add_header(call, "x-content-type-options", SLICE("nosniff"));
    api_reply_text(call, 200, file->type, packed ? file->packed : file->text);
    return OK;
}
