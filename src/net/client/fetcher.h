/* fetcher.h - the connections to one origin, which requests take one after the other.
 *
 *   fetch_begin ─► waiting ─► an idle connection, or a new one while there are fewer than
 *                             the most ─► answered: idle again, until idle_ms are over */
#pragma once

#include "base/loop.h"
#include "net/client/fetch.h"
#include "net/client/trust.h"
#include "net/client/url.h"

typedef void fetcher_closed_fn(void *owner);

/* Zero values mean the defaults. */
struct fetcher_options {
    const struct url *url;     /* copied */
    const struct trust *trust; /* outlives the fetcher; needed for https */
    unsigned connections_max;  /* at once; default 16 */
    unsigned waiting_max;      /* requests without a connection; default 1000 */
    int64_t connect_ms;        /* names, addresses and TLS; default 10 s */
    int64_t idle_ms;           /* default 30 s: servers mostly wait longer */
};

/* ERR_INVALID: https without trust; ERR_INTERNAL: the system is out of descriptors. */
enum err fetcher_create(struct loop *loop, const struct fetcher_options *options,
                        struct fetcher **fetcher, struct failure *why);

/* Every request ends with ERR_CANCELED. closed is called when all have been told, and the
 * fetcher is gone then. */
void fetcher_close(struct fetcher *fetcher, fetcher_closed_fn *closed, void *owner);

/* For tests and metrics. */
unsigned fetcher_connections(const struct fetcher *fetcher);
