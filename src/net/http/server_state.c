/* server_state.c - functions of a server that its connections call.
 *
 * They cover the date header, warnings, and the end of a connection, which may end the
 * server. */
#include "net/http/server_state.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/metrics.h"
#include "net/http/connection.h"

enum { WARNING_PAUSE_MS = 1000, RETRY_AFTER_MAX_S = 10 };

void server_warn(struct server *server, const char *what, const char *reason)
{
    int64_t now = loop_now_ms(server->loop);
    if (server->warned_ms && now - server->warned_ms < WARNING_PAUSE_MS)
        return;
    server->warned_ms = now;
    log_warn(what, "reason", reason, "connections", log_number((int64_t)server->open_count),
             NULL);
}

int server_open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

size_t server_write_full(struct server *server, char answer[SERVER_FULL_ANSWER])
{
    static const char body[] = "{\"error\":\"Too many connections; try again later\"}";
    metric_add(M_HTTP_REFUSED, 1);
    return (size_t)snprintf(answer, SERVER_FULL_ANSWER,
                            "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n"
                            "content-type: application/json; charset=utf-8\r\n"
                            "retry-after: %u\r\ncontent-length: %zu\r\n\r\n%s",
                            1 + server->turn++ % RETRY_AFTER_MAX_S, sizeof(body) - 1, body);
}

const char *server_date(struct server *server)
{
    time_t now = (time_t)(loop_wall_ms(server->loop) / 1000);
    if (now != server->date_s) {
        struct tm parts;
        gmtime_r(&now, &parts);
        strftime(server->date, sizeof(server->date), "%a, %d %b %Y %H:%M:%S GMT", &parts);
        server->date_s = now;
    }
    return server->date;
}

/* ---- the end ---- */

void server_maybe_closed(struct server *server)
{
    if (server->closed && !server->handles && !server->connection_count)
        loop_defer(server->loop, &server->finish);
}

void server_forget(struct connection *conn)
{
    struct server *server = conn->server;
    list_remove(&conn->link);
    server->connection_count--;
    free(conn); /* it begins the memory that http_conn_create allocated */
    server_maybe_closed(server);
}
