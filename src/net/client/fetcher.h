/* fetcher.h - the connections to one server, shared by requests.
 *
 *   fetch_begin ─► waiting ─► an idle connection, or a new one up to connections_max
 *                             ─► response: idle again, for at most idle_ms */
#pragma once

#include "base/loop.h"
#include "net/client/fetch.h"
#include "net/client/trust.h"
#include "net/client/url.h"

typedef void fetcher_closed_fn(void *owner);

/* Zero values mean the defaults. */
struct fetcher_options {
    const struct url *url;     /* copied */
    const struct trust *trust; /* must outlive the fetcher; required for https */
    unsigned connections_max;  /* at once; default 16 */
    unsigned waiting_max;      /* max requests without a connection; default 1000 */
    int64_t connect_ms;        /* for names, addresses and TLS; default 10 s */
    int64_t idle_ms;           /* default 30 s: most servers wait longer */
};

/* ERR_INVALID: https without trust. ERR_INTERNAL: out of descriptors. */
enum err fetcher_create(struct loop *loop, const struct fetcher_options *options,
                        struct fetcher **fetcher, struct failure *why);

/* Ends every request with ERR_CANCELED. Calls closed once all have been reported; the
 * fetcher is freed by then. */
void fetcher_close(struct fetcher *fetcher, fetcher_closed_fn *closed, void *owner);

/* Returns the number of connections that are not closing; for tests and metrics. */
unsigned fetcher_connections(const struct fetcher *fetcher);
