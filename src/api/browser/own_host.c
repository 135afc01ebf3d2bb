/* own_host.c - compares a request's Host and Origin with this gateway's own names.
 *
 * Browsers send them as in RFC 9110 7.2 (Host) and RFC 6454 7 (Origin). */
#include "api/browser/own_host.h"

#include <strings.h>

#include "net/address.h"

/* Returns the text between the "//" of a URL and the next slash; absent if there is
 * none. */
static struct slice name_of(struct slice url)
{
    struct slice scheme, nothing, name;
    if (slice_split(&url, '/', &scheme) && slice_split(&url, '/', &nothing) &&
        !nothing.len && slice_split(&url, '/', &name))
        return name;
    return (struct slice){ 0 };
}

static bool is_same_name(struct slice one, struct slice other)
{
    return one.ptr && one.len == other.len && !strncasecmp(one.ptr, other.ptr, one.len);
}

bool own_host_is_named(const struct api_call *call)
{
    struct slice host = http_header(call->x, "host");
    struct slice url = slice_of(api_options(call->api)->public_url);
    return call->x->admin || address_is_of_host(host) || is_same_name(name_of(url), host);
}

void own_host_url(const struct api_call *call, struct buf *out)
{
    const struct api_options *options = api_options(call->api);
    if (*options->public_url || own_host_is_named(call))
        api_base_url(call, out);
    else
        buf_add_text(out, options->own_url);
}

bool own_host_is_asking(const struct api_call *call)
{
    struct slice origin = http_header(call->x, "origin");
    return !origin.ptr || (own_host_is_named(call) &&
                           is_same_name(name_of(origin), http_header(call->x, "host")));
}
