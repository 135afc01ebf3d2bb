/* client_files.c - the client for pages (src/client), which any page may import from here.
 *
 * The build has put the files into the program: as they are written, compressed, and a tag of
 * their content. A page of another origin may have them, as it may ask for all else; what it sees
 * of runs is a matter of its token, and of --allow-origin. */
#include "call/call.h"
#include "call/route.h"

extern const char client_js[], client_js_gzip[], client_js_tag[];
extern const unsigned client_js_len, client_js_gzip_len;
extern const char client_react_js[], client_react_js_gzip[], client_react_js_tag[];
extern const unsigned client_react_js_len, client_react_js_gzip_len;

/* An hour old is fresh enough: a gateway understands older clients. */
static const char cache_control[] = "public, max-age=3600";

struct file {
    struct slice text, packed;
    const char *tag;
};

/* Whether the client's If-None-Match names the content, be it one of several. */
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

/* The tag is a weak one, since it is that of both encodings. */
static enum err show(struct api_call *call, const struct file *file)
{
    char tag[32];
    snprintf(tag, sizeof(tag), "W/\"%s\"", file->tag);
    api_add_header(call, "etag", slice_of(tag));
    api_add_header(call, "vary", SLICE("accept-encoding"));
    api_let_cache(call, cache_control);
    if (is_known(call, tag)) {
        api_reply_empty(call, 304);
        return OK;
    }
    bool packed = api_accepts_gzip(call);
    if (packed)
        api_add_header(call, "content-encoding", SLICE("gzip"));
    api_add_header(call, "x-content-type-options", SLICE("nosniff"));
    api_reply_text(call, 200, "text/javascript; charset=utf-8",
                   packed ? file->packed : file->text);
    return OK;
}

static enum err show_client(struct api_call *call)
{
    const struct file file = { { client_js, client_js_len },
                               { client_js_gzip, client_js_gzip_len },
                               client_js_tag };
    return show(call, &file);
}

static enum err show_hooks(struct api_call *call)
{
    const struct file file = { { client_react_js, client_react_js_len },
                               { client_react_js_gzip, client_react_js_gzip_len },
                               client_react_js_tag };
    return show(call, &file);
}

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = "/client.js",
      .handle = show_client,
      .id = "client",
      .summary = "The client for pages, an ES module",
      .gives = "text/javascript",
      .reply = "string",
      .also = "304" },
    { .method = HTTP_GET_, .path = "/client/react.js",
      .handle = show_hooks,
      .id = "client_react",
      .summary = "React hooks of the client, an ES module",
      .gives = "text/javascript",
      .reply = "string",
      .also = "304" },
    { 0 },
};
/* clang-format on */

const struct area client_files_area = { .tag = "realtime", .routes = routes };
