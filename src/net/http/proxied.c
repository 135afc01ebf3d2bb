/* proxied.c - who is behind a proxy, as it says before anything else. */
#include "net/http/proxied.h"

#include <stdio.h>

#include "base/metrics.h"
#include "net/http/secure.h"
#include "net/http/server_state.h"
#include "net/proxy_header.h"

/* The header is wrong: a proxy is set up otherwise, or a client found the address for it. */
static void refuse(struct http_conn *conn)
{
    char reason[128], text[ADDRESS_TEXT];
    address_print(&conn->address, text);
    snprintf(reason, sizeof(reason), "%s sent none, and this listener has ,proxy", text);
    metric_add(M_HTTP_REFUSED, 1);
    server_complain(conn->c.server,
                    "closing connections without a header of the PROXY protocol 2", reason);
    connection_close(&conn->c);
}

/* What is missing beyond that is read behind it. */
static uint16_t at_most(size_t missing)
{
    return missing < UINT16_MAX ? (uint16_t)missing : UINT16_MAX;
}

void proxied_begin(struct http_conn *conn)
{
    if (conn->tls_due)
        conn->c.most = at_most(proxy_header_missing(connection_kept(&conn->c)));
}

static void end(struct http_conn *conn, const struct proxy_header *header)
{
    conn->header_due = false;
    conn->named = header->names_client;
    if (header->names_client)
        conn->address = header->client;
    if (!conn->tls_due)
        return;
    conn->c.most = 0;
    secure_begin(&conn->c);
}

bool proxied_take(struct http_conn *conn, struct slice bytes, struct buf *rest)
{
    struct connection *c = &conn->c;
    struct proxy_header header;
    connection_keep(c, bytes);
    switch (proxy_header_read(connection_kept(c), &header)) {
    case PROXY_MORE: proxied_begin(conn); return false;
    case PROXY_BAD: refuse(conn); return false;
    case PROXY_DONE: break;
    }
    end(conn, &header);
    *rest = connection_take_kept(c);
    buf_drop(rest, header.len);
    return true;
}
