/* url.c - splits a URL at its delimiters, from the left, and validates each part. */
#include "net/client/url.h"

#include <arpa/inet.h>
#include <strings.h>

#include "base/text.h"

enum { LABEL_MAX = 63, IP6_TEXT_MAX = 45 };

static const struct {
    const char *text;
    bool secure;
    uint16_t port;
} schemes[] = {
    [URL_HTTP] = { "http://", false, 80 },
    [URL_HTTPS] = { "https://", true, 443 },
    [URL_WS] = { "ws://", false, 80 },
    [URL_WSS] = { "wss://", true, 443 },
};

static bool cut_scheme(struct slice *rest, struct url *url)
{
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t len = strlen(schemes[i].text);
        if (rest->len < len || strncasecmp(rest->ptr, schemes[i].text, len) != 0)
            continue;
        *rest = slice_from(*rest, len);
        url->scheme = (enum url_scheme)i;
        url->secure = schemes[i].secure;
        url->port = schemes[i].port;
        return true;
    }
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_label(struct slice label)
{
    if (!label.len || label.len > LABEL_MAX || label.ptr[0] == '-' ||
        label.ptr[label.len - 1] == '-')
        return false;
    for (size_t i = 0; i < label.len; i++)
        if (!is_letter(label.ptr[i]) && !is_digit(label.ptr[i]) && label.ptr[i] != '-' &&
            label.ptr[i] != '_')
            return false;
    return true;
}

/* Some programs read 127.1, 0x7f.1 or 2130706433 as addresses, so names must not end this
 * way. */
static bool ends_like_number(struct slice label)
{
    return is_digit(label.ptr[0]);
}

static enum err read_name(struct slice host, struct url *url, struct failure *why)
{
    unsigned char ip[4];
    struct slice rest = host, label = { 0 };
    if (!host.len)
        return explain(why, ERR_INVALID, "the URL has no host name");
    if (host.len > URL_HOST_MAX)
        return explain(why, ERR_INVALID, "the host name of the URL is too long");
    while (slice_split(&rest, '.', &label))
        if (!is_label(label))
            return explain(why, ERR_INVALID,
                           "the host of the URL is neither a name of letters, digits, dots "
                           "and hyphens, nor an IPv4 address, nor an IPv6 address in "
                           "brackets");
    for (size_t i = 0; i < host.len; i++)
        url->host[i] = is_letter(host.ptr[i]) ? (char)(host.ptr[i] | 0x20) : host.ptr[i];
    url->host[host.len] = 0;
    url->is_ip = inet_pton(AF_INET, url->host, ip) == 1;
    if (!url->is_ip && ends_like_number(label))
        return explain(why, ERR_INVALID,
                       "the host of the URL is neither a complete IPv4 address nor a name "
                       "(the last part of a name does not begin with a digit)");
    return OK;
}

static enum err read_ip6(struct slice host, struct url *url, struct failure *why)
{
    unsigned char ip[16];
    if (host.len <= IP6_TEXT_MAX && !memchr(host.ptr, 0, host.len)) {
        memcpy(url->host, host.ptr, host.len);
        url->host[host.len] = 0;
        if (inet_pton(AF_INET6, url->host, ip) == 1) {
            inet_ntop(AF_INET6, ip, url->host, sizeof(url->host));
            url->is_ip = url->is_ip6 = true;
            return OK;
        }
    }
    return explain(why, ERR_INVALID, "the URL has no IPv6 address between its brackets");
}

static enum err read_port(struct slice text, struct url *url, struct failure *why)
{
    uint64_t port;
    if (!text.len || text.len > 5 || text_to_u64(text, &port) || port < 1 ||
        port > UINT16_MAX)
        return explain(why, ERR_INVALID, "the port of the URL is not one of 1 to 65535");
    url->port = (uint16_t)port;
    return OK;
}

static enum err read_authority(struct slice text, struct url *url, struct failure *why)
{
    enum err err;
    if (memchr(text.ptr, '@', text.len))
        return explain(why, ERR_INVALID,
                       "the URL has a user name or a password; remove them");
    const char *end = text.len ? memchr(text.ptr, ']', text.len) : NULL;
    size_t len;
    if (text.len && text.ptr[0] == '[' && end) {
        len = (size_t)(end - text.ptr) + 1;
        err = read_ip6((struct slice){ text.ptr + 1, len - 2 }, url, why);
    } else {
        const char *colon = text.len ? memchr(text.ptr, ':', text.len) : NULL;
        len = colon ? (size_t)(colon - text.ptr) : text.len;
        err = read_name((struct slice){ text.ptr, len }, url, why);
    }
    if (err || len == text.len)
        return err;
    if (text.ptr[len] != ':')
        return explain(why, ERR_INVALID,
                       "the URL has extra characters between host and port");
    return read_port(slice_from(text, len + 1), url, why);
}

static bool is_path_char(char c)
{
    return is_letter(c) || is_digit(c) || (c && strchr("-._~!$&'()*+,;=:@/", c));
}

static bool has_dots(struct slice path)
{
    struct slice segment;
    while (slice_split(&path, '/', &segment))
        if (slice_is(segment, ".") || slice_is(segment, ".."))
            return true;
    return false;
}

static enum err read_path(struct slice path, struct url *url, struct failure *why)
{
    while (path.len && path.ptr[path.len - 1] == '/')
        path.len--;
    if (path.len > URL_PREFIX_MAX)
        return explain(why, ERR_INVALID, "the path of the URL is too long");
    for (size_t i = 0; i < path.len; i++) {
        if (path.ptr[i] == '?' || path.ptr[i] == '#')
            return explain(why, ERR_INVALID,
                           "the URL has a query or a fragment; remove them");
        bool escape = path.ptr[i] == '%' && path.len - i > 2 && is_hex(path.ptr[i + 1]) &&
                      is_hex(path.ptr[i + 2]);
        if (!escape && !is_path_char(path.ptr[i]))
            return explain(why, ERR_INVALID,
                           "the path of the URL has a character that must be escaped");
    }
    if (has_dots(path))
        return explain(why, ERR_INVALID, "the path of the URL contains \".\" or \"..\"");
    if (path.len)
        memcpy(url->prefix, path.ptr, path.len);
    url->prefix[path.len] = 0;
    return OK;
}

enum err url_read(struct slice text, struct url *url, struct failure *why)
{
    struct url read = { 0 };
    struct slice rest = text;
    if (!cut_scheme(&rest, &read))
        return explain(why, ERR_INVALID, "the URL does not begin with http:// or https://");
    size_t len = 0;
    while (len < rest.len && !strchr("/?#\\", rest.ptr[len]))
        len++; /* a zero byte ends it, too; the path rejects it */
    enum err err = read_authority((struct slice){ rest.ptr, len }, &read, why);
    if (!err)
        err = read_path(slice_from(rest, len), &read, why);
    if (!err)
        *url = read;
    return err;
}

enum err url_read_named(const char *origin, const char *text, struct url *url,
                        struct failure *why)
{
    struct failure reason = { 0 };
    enum err refused = url_read(slice_of(text), url, &reason);
    if (refused && strchr(text, '@'))
        return explain(why, refused, "%.60s: %s", origin, reason.text);
    if (refused)
        return explain(why, refused, "%.60s: \"%.100s\": %s", origin, text, reason.text);
    return OK;
}

void url_add_authority(struct buf *out, const struct url *url)
{
    buf_print(out, url->is_ip6 ? "[%s]" : "%s", url->host);
    if (url->port != schemes[url->scheme].port)
        buf_print(out, ":%u", (unsigned)url->port);
}
