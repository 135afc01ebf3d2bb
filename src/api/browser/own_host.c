/* own_host.c - compares a request's Host and Origin with this gateway's own names.
 *
 * Browsers send them as in RFC 9110 7.2 (Host) and RFC 6454 7 (Origin). They omit the usual
 * port of a scheme in both. */
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

bool own_host_has_dashboard(const struct api_call *call)
{
    const struct api_options *options = api_options(call->api);
    return options->dashboard && (!options->dashboard_is_admins || call->x->admin);
}

static bool has_tls(const struct api_call *call)
{
    struct slice url = slice_of(api_options(call->api)->public_url);
    bool is_public = is_same_name(name_of(url), http_header(call->x, "host"));
    return call->x->secure || (is_public && slice_starts(url, "https://"));
}

bool own_host_origin(const struct api_call *call, struct buf *out)
{
    if (!own_host_is_named(call))
        return false;
    buf_add_text(out, has_tls(call) ? "https://" : "http://");
    buf_add(out, http_header(call->x, "host"));
    return true;
}

/* Returns true for localhost and for addresses of this machine, each with or without a
 * port. */
static bool is_local(struct slice host)
{
    struct address address;
    struct slice rest = host, name;
    bool is_word = slice_split(&rest, ':', &name) && is_same_name(name, SLICE("localhost"));
    return is_word || (address_read(host, &address) && address_is_loopback(&address));
}

enum own_host_way own_host_way(const struct api_call *call)
{
    if (has_tls(call))
        return OWN_HOST_TLS;
    return is_local(http_header(call->x, "host")) ? OWN_HOST_LOCAL : OWN_HOST_PLAIN;
}

static bool is_json(struct slice content_type)
{
    struct slice rest = content_type, type;
    return content_type.ptr && slice_split(&rest, ';', &type) &&
           is_same_name(slice_trim(type), SLICE("application/json"));
}

enum err own_host_check_page(struct api_call *call)
{
    struct buf origin = { 0 };
    bool is_own = own_host_origin(call, &origin) &&
                  is_same_name(http_header(call->x, "origin"), buf_slice(&origin)) &&
                  slice_is(http_header(call->x, "sec-fetch-site"), "same-origin");
    buf_finish(&origin);
    if (!is_own)
        return explain(&call->why, ERR_FORBIDDEN,
                       "Only the dashboard of this gateway may call this");
    if (!is_json(http_header(call->x, "content-type")))
        return explain(&call->why, ERR_MEDIA_TYPE, "The body must be application/json");
    return OK;
}
