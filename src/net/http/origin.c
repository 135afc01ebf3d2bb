/* origin.c - determines the client that a connection or request is attributed to. */
#include "net/http/origin.h"

#include "base/log.h"
#include "net/http/http_check.h"
#include "net/http/server_state.h"

static bool count(struct http_conn *conn, const struct address *address)
{
    struct server *server = conn->c.server;
    char reason[128], text[ADDRESS_TEXT];
    if (!address->is_ip || address_is_loopback(address) ||
        address_limit_enter(&server->addresses, &conn->c.place, address,
                            server->options.connections_per_address))
        return true;
    address_print(address, text);
    snprintf(reason, sizeof(reason), "%s has too many (--connections-per-address)", text);
    server_warn(server, "rejecting connections", reason);
    return false;
}

bool origin_note(struct http_conn *conn, const struct address *address)
{
    char text[ADDRESS_TEXT];
    address_print(address, text);
    conn->address = *address;
    bytes_unref(conn->peer);
    conn->peer = bytes_create_shared(slice_of(text));
    return conn->c.admin || ranges_hold(&conn->c.server->trusted, address) ||
           count(conn, address);
}

/* Exempts a proxy that is not configured as trusted from the limit, because it has many
 * clients. A client named by a PROXY header is never exempt. */
static void exempt(struct http_conn *conn)
{
    struct server *server = conn->c.server;
    if (conn->named || server->trusted.count || server->trusted.has_unix)
        return;
    address_limit_exempt(&conn->c.place);
    if (!server->forwarded_logged)
        log_info("untrusted peer sends X-Forwarded-For; add it to --trusted-proxies to "
                 "distinguish its clients",
                 "peer", conn->peer->data, NULL);
    server->forwarded_logged = true;
}

bool origin_note_request(struct http_conn *conn, struct exchange *x)
{
    const struct ranges *trusted = &conn->c.server->trusted;
    struct address client = conn->address;
    bool forwarded = false, further = ranges_hold(trusted, &client);
    memcpy(x->peer, conn->peer->data, conn->peer->len + 1);
    for (size_t i = x->header_count; i-- > 0;) {
        if (!http_name_is(x->headers[i].name, "x-forwarded-for"))
            continue;
        forwarded = true;
        if (further)
            further = address_follow(x->headers[i].value, trusted, &client);
    }
    if (!forwarded)
        return true;
    if (!ranges_hold(trusted, &conn->address)) {
        x->hidden = true;
        exempt(conn);
        return true;
    }
    address_print(&client, x->peer);
    conn->forwarded = true;
    return ranges_hold(trusted, &client) || count(conn, &client);
}

void origin_end_request(struct http_conn *conn)
{
    if (conn->forwarded)
        address_limit_leave(&conn->c.server->addresses, &conn->c.place);
    conn->forwarded = false;
}
