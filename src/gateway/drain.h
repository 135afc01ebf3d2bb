/* drain.h - a gateway stops: who is told, who is waited for.
 *
 * Nothing new is let in, what is under way ends, sockets are asked to move. But on a socket that
 * was handed over and stays, one process follows the other, and nobody is refused: the new one
 * accepts when it is ready; the old one serves as ever for a moment, in which connections that
 * are kept alive are closed by the answers on them; only then it accepts no more.
 *
 *   drain_begin ─► `drain` to sockets, answers say close ─► DRAIN_LINGER_MS ─► accepts no more,
 *        held calls are answered, sockets closed ─► requests are over ─► drain_step: true
 *                                                  └─ some are not, after five seconds: true */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct api;
struct engine;
struct loop;
struct server;

struct drain {
    struct loop *loop; /* these four are the caller's */
    struct server *server;
    struct api *api;
    struct engine *engine;
    bool has_next;        /* the next process follows: */
    int64_t linger_until; /* it serves as ever until then, monotonic ms */
};

void drain_begin(struct drain *drain);

/* Called again and again. True: no client is to be waited for any more. */
bool drain_step(struct drain *drain);
