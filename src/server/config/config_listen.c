/* config_listen.c - reads and checks addresses to listen on. */
#include "server/config/config_listen.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/slice.h"
#include "base/text.h"
#include "net/address.h"
#include "net/client/url.h"
#include "server/config/config_value.h"

static const char unix_prefix[] = "unix:", handed_prefix[] = "systemd:",
                  proxy_suffix[] = ",proxy", tls_suffix[] = ",tls";

/* Splits at the last colon. An IPv6 host is in brackets. */
static bool split_listen(struct slice listen, struct slice *host, struct slice *port)
{
    const char *colon = listen.len ? memrchr(listen.ptr, ':', listen.len) : NULL;
    if (!colon) {
        *host = SLICE("127.0.0.1");
        *port = listen;
        return true;
    }
    *host = (struct slice){ listen.ptr, (size_t)(colon - listen.ptr) };
    *port = slice_from(listen, host->len + 1);
    if (host->len > 2 && host->ptr[0] == '[' && host->ptr[host->len - 1] == ']')
        *host = (struct slice){ host->ptr + 1, host->len - 2 };
    else if (memchr(host->ptr, ':', host->len))
        return false;
    if (!host->len)
        *host = SLICE("0.0.0.0");
    else if (slice_is(*host, "localhost"))
        *host = SLICE("127.0.0.1");
    return true;
}

static bool read_port(struct slice word, struct config_listener *listener)
{
    struct slice host, port_text;
    uint64_t port;
    unsigned char binary[sizeof(struct in6_addr)];
    if (!split_listen(word, &host, &port_text) || host.len >= sizeof(listener->host) ||
        text_to_u64(port_text, &port) || port > UINT16_MAX)
        return false;
    memcpy(listener->host, host.ptr, host.len);
    listener->host[host.len] = '\0';
    listener->port = (int)port;
    return inet_pton(AF_INET, listener->host, binary) == 1 ||
           inet_pton(AF_INET6, listener->host, binary) == 1;
}

static bool read_path(struct slice path, struct config_listener *listener)
{
    if (!path.len || path.len >= sizeof(listener->path))
        return false;
    memcpy(listener->path, path.ptr, path.len);
    listener->path[path.len] = '\0';
    return true;
}

/* Reads a name as systemd allows it: printable ASCII without a colon. */
static bool read_name(struct slice name, struct config_listener *listener)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.ptr[i] <= ' ' || name.ptr[i] > '~' || name.ptr[i] == ':')
            return false;
    if (!name.len || name.len >= sizeof(listener->handed))
        return false;
    memcpy(listener->handed, name.ptr, name.len);
    listener->handed[name.len] = '\0';
    return true;
}

/* Removes the suffix, once. */
static bool take_suffix(struct slice *word, const char *suffix, bool *found)
{
    size_t len = strlen(suffix);
    if (*found || word->len <= len || !slice_is(slice_from(*word, word->len - len), suffix))
        return false;
    word->len -= len;
    return *found = true;
}

static bool read_listener(struct slice word, struct config_listener *listener)
{
    *listener = (struct config_listener){ 0 };
    while (take_suffix(&word, proxy_suffix, &listener->proxied) ||
           take_suffix(&word, tls_suffix, &listener->secure))
        ;
    if (slice_starts(word, handed_prefix))
        return read_name(slice_from(word, sizeof(handed_prefix) - 1), listener);
    if (slice_starts(word, unix_prefix))
        return read_path(slice_from(word, sizeof(unix_prefix) - 1), listener);
    return read_port(word, listener);
}

static enum err config_listen_refuse(const struct config *config, enum config_setting which,
                                     struct slice word, struct failure *why)
{
    return explain(
        why, ERR_INVALID,
        "%s: %s cannot be \"%.*s\"; give an address with a port like 127.0.0.1:3030, "
        "[::1]:3030 or :3030, or a socket like unix:/run/runcast/http.sock%s",
        config->origins[which], config_settings[which].name,
        (int)(word.len < 60 ? word.len : 60), word.ptr,
        which == SETTING_listen
            ? ", or systemd:NAME, each optionally followed by ,proxy or ,tls"
            : ", or systemd:NAME");
}

/* Returns true if the two listeners cannot both be bound. Port 0 is a free one each
 * time. */
static bool collide(const struct config_listener *a, const struct config_listener *b)
{
    static const char every[] = "0.0.0.0";
    if (a->handed[0] || b->handed[0])
        return strcmp(a->handed, b->handed) == 0;
    if (a->path[0] || b->path[0])
        return strcmp(a->path, b->path) == 0;
    bool is_ipv4 = !strchr(a->host, ':') && !strchr(b->host, ':');
    bool same = strcmp(a->host, b->host) == 0 ||
                (is_ipv4 && (!strcmp(a->host, every) || !strcmp(b->host, every)));
    return a->port && a->port == b->port && same;
}

static enum err refuse_twice(const struct config *config, enum config_setting which,
                             struct slice word, struct failure *why)
{
    return explain(why, ERR_INVALID,
                   "%s: %s repeats the address %.*s of listen; give each address once",
                   config->origins[which], config_settings[which].name,
                   (int)(word.len < 60 ? word.len : 60), word.ptr);
}

static bool is_among(const struct config_listener *listeners, size_t count,
                     const struct config_listener *one)
{
    for (size_t i = 0; i < count; i++)
        if (collide(&listeners[i], one))
            return true;
    return false;
}

enum err config_listeners(const struct config *config,
                          struct config_listener listeners[CONFIG_LISTENERS_MAX],
                          size_t *count, struct failure *why)
{
    struct slice rest = slice_of(config->listen), word;
    *count = 0;
    while (slice_split(&rest, ' ', &word)) {
        if (*count == CONFIG_LISTENERS_MAX)
            return explain(why, ERR_INVALID, "%s: too many addresses in listen (max %d)",
                           config->origins[SETTING_listen], CONFIG_LISTENERS_MAX);
        if (!read_listener(word, &listeners[*count]))
            return config_listen_refuse(config, SETTING_listen, word, why);
        if (is_among(listeners, *count, &listeners[*count]))
            return refuse_twice(config, SETTING_listen, word, why);
        ++*count;
    }
    return OK;
}

/* Returns false if the address is of another family. */
static bool write_address(const struct sockaddr_storage *address,
                          struct config_listener *listener)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
    const struct sockaddr_un *un = (const struct sockaddr_un *)address;
    if (address->ss_family == AF_INET) {
        inet_ntop(AF_INET, &four->sin_addr, listener->host, sizeof(listener->host));
        listener->port = ntohs(four->sin_port);
    } else if (address->ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &six->sin6_addr, listener->host, sizeof(listener->host));
        listener->port = ntohs(six->sin6_port);
    } else if (address->ss_family == AF_UNIX) {
        snprintf(listener->path, sizeof(listener->path), "%.*s",
                 (int)sizeof(un->sun_path) - 1, un->sun_path);
    } else {
        return false;
    }
    return true;
}

enum err config_listener_find(struct config_listener *listeners, size_t count,
                              struct failure *why)
{
    for (size_t i = 0; i < count; i++) {
        struct config_listener *one = &listeners[i];
        struct sockaddr_storage address = { 0 };
        socklen_t len = sizeof(address);
        if (!one->handed[0])
            continue;
        one->fd = service_socket(one->handed);
        if (one->fd < 0 || getsockname(one->fd, (struct sockaddr *)&address, &len) ||
            !write_address(&address, one))
            return explain(why, ERR_INVALID,
                           "listen: the service manager passed no socket named %s, or "
                           "several, or one that is neither TCP nor UNIX; set "
                           "FileDescriptorName=%s in one socket unit",
                           one->handed, one->handed);
    }
    return OK;
}

/* ---- the address for peers ---- */

enum err config_peer_listener(const struct config *config, struct config_listener *listener,
                              struct failure *why)
{
    struct slice word = slice_of(config->peer_listen);
    *listener = (struct config_listener){ 0 };
    if (!word.len)
        return OK;
    if (read_listener(word, listener) && listener->host[0] && listener->port &&
        !listener->proxied)
        return OK;
    return explain(why, ERR_INVALID,
                   "%s: peer-listen cannot be \"%.*s\"; give an address with a port like "
                   "10.0.0.2:3040, [::1]:3040 or :3040, optionally followed by ,tls",
                   config->origins[SETTING_peer_listen],
                   (int)(word.len < 60 ? word.len : 60), word.ptr);
}

void config_write_peer_url(const struct config *config,
                           const struct config_listener *listener, char url[PEER_URL_MAX])
{
    bool six = strchr(listener->host, ':') != NULL;
    if (*config->peer_url || !listener->host[0])
        snprintf(url, PEER_URL_MAX, "%s", config->peer_url);
    else
        snprintf(url, PEER_URL_MAX, "http%s://%s%s%s:%d", listener->secure ? "s" : "",
                 six ? "[" : "", listener->host, six ? "]" : "", listener->port);
}

static bool is_every_address(const struct config_listener *listener)
{
    return !strcmp(listener->host, "0.0.0.0") || !strcmp(listener->host, "::");
}

static enum err check_peer_url(const struct config *config,
                               const struct config_listener *listener, struct failure *why)
{
    const char *origin = config->origins[SETTING_peer_url];
    struct url url;
    if (!*config->peer_url)
        return !is_every_address(listener)
                   ? OK
                   : explain(why, ERR_INVALID,
                             "%s: other gateways cannot connect to the address %s; set "
                             "peer-url to one of this machine",
                             config->origins[SETTING_peer_listen], listener->host);
    if (!listener->host[0])
        return explain(why, ERR_INVALID,
                       "%s: peer-url has no effect without peer-listen; set that, too",
                       origin);
    if (url_read_named(origin, config->peer_url, &url, why))
        return why->code;
    if (strlen(config->peer_url) >= PEER_URL_MAX)
        return explain(why, ERR_INVALID, "%s: peer-url is too long (max %d bytes)", origin,
                       PEER_URL_MAX - 1);
    if (listener->secure && !url.secure)
        return explain(why, ERR_INVALID,
                       "%s: peer-listen has ,tls, so peer-url must begin with https://",
                       origin);
    return OK;
}

enum err config_check_listeners(const struct config *config, struct failure *why)
{
    struct config_listener listeners[CONFIG_LISTENERS_MAX + 1], admin, peer;
    size_t count;
    enum err err = config_listeners(config, listeners, &count, why);
    if (!err)
        err = config_admin_listener(config, &admin, why);
    if (!err && is_among(listeners, count, &admin))
        err =
            refuse_twice(config, SETTING_admin_listen, slice_of(config->admin_listen), why);
    if (!err)
        err = config_peer_listener(config, &peer, why);
    if (err)
        return err;
    listeners[count] = admin;
    if (peer.host[0] && is_among(listeners, count + 1, &peer))
        return refuse_twice(config, SETTING_peer_listen, slice_of(config->peer_listen),
                            why);
    return check_peer_url(config, &peer, why);
}

/* Reads the setting, or metrics.sock in the folder, which the setting home names. */
static enum err read_own(const struct config *config, enum config_setting which,
                         const char *text, enum config_setting home, const char *folder,
                         struct config_listener *listener, struct failure *why)
{
    struct slice word = slice_of(text);
    if (word.len)
        return read_listener(word, listener) && !listener->proxied && !listener->secure
                   ? OK
                   : config_listen_refuse(config, which, word, why);
    *listener = (struct config_listener){ 0 };
    int len = snprintf(listener->path, sizeof(listener->path), "%s/metrics.sock", folder);
    if (len >= (int)sizeof(listener->path))
        return explain(
            why, ERR_INVALID, "%s: the path of %s is too long for a socket; set --%s",
            config->origins[home], "metrics.sock in it", config_settings[which].name);
    return OK;
}

enum err config_admin_listener(const struct config *config,
                               struct config_listener *listener, struct failure *why)
{
    return read_own(config, SETTING_admin_listen, config->admin_listen, SETTING_data,
                    config->data, listener, why);
}

enum err config_supervise_listener(const struct config *config, const char *folder,
                                   struct config_listener *listener, struct failure *why)
{
    return read_own(config, SETTING_supervise_listen, config->supervise_listen,
                    *config->versions ? SETTING_versions : SETTING_data, folder, listener,
                    why);
}

struct listen_options config_listener_address(const struct config_listener *listener,
                                              bool admin)
{
    return (struct listen_options){ .host = listener->host,
                                    .port = listener->port,
                                    .path = listener->path[0] ? listener->path : NULL,
                                    .handed = listener->fd,
                                    .mode = admin ? 0600 : 0660,
                                    .proxied = listener->proxied,
                                    .secure = listener->secure,
                                    .admin = admin };
}

bool config_listener_is_local(const struct config_listener *listener)
{
    struct in6_addr six;
    unsigned char four[4];
    if (!listener->host[0])
        return true;
    if (inet_pton(AF_INET, listener->host, four) == 1)
        return four[0] == 127;
    inet_pton(AF_INET6, listener->host, &six);
    return IN6_IS_ADDR_LOOPBACK(&six) ||
           (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

bool config_listener_is_public(const struct config_listener *listener)
{
    static const char private_ones[] =
        "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 169.254.0.0/16 fc00::/7 "
        "fe80::/10";
    struct ranges ranges;
    struct slice wrong;
    struct address address;
    if (config_listener_is_local(listener) ||
        !ranges_read(slice_of(private_ones), &ranges, &wrong))
        return false;
    bool is_public =
        address_read(slice_of(listener->host), &address) && !ranges_hold(&ranges, &address);
    ranges_finish(&ranges);
    return is_public;
}
