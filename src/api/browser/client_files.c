/* client_files.c - serves the JavaScript client (src/web/client) for pages to import.
 *
 * The build embeds each file as it is written, its gzip form, and a tag of its content. A
 * page of another origin may load the files, as it may call the API. Its token and
 * --allow-origin decide which runs it sees. */
#include "api/browser/web_file.h"
#include "api/request/route.h"

extern const char client_js[], client_js_gzip[], client_js_tag[];
extern const unsigned client_js_len, client_js_gzip_len;
extern const char client_react_js[], client_react_js_gzip[], client_react_js_tag[];
extern const unsigned client_react_js_len, client_react_js_gzip_len;

/* Browsers may reuse a file for an hour: a gateway understands older clients. */
static const char cache_control[] = "public, max-age=3600";

static enum err show_client(struct api_call *call)
{
    const struct web_file file = { { client_js, client_js_len },
                                   { client_js_gzip, client_js_gzip_len },
                                   client_js_tag,
                                   "text/javascript; charset=utf-8",
                                   cache_control };
    return web_file_show(call, &file);
}

static enum err show_hooks(struct api_call *call)
{
    const struct web_file file = { { client_react_js, client_react_js_len },
                                   { client_react_js_gzip, client_react_js_gzip_len },
                                   client_react_js_tag,
                                   "text/javascript; charset=utf-8",
                                   cache_control };
    return web_file_show(call, &file);
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
