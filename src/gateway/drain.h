/* drain.h - a gateway stops: who is told, who is waited for.
 *
 * Nothing new is let in, what is under way ends, sockets are asked to move. But on a socket that
 * was handed over and stays, one process follows the other, and nobody is refused: the new one
 * accepts when it is ready; the old one serves as ever for a moment, in which connections that
 * are kept alive are closed by the answers on them; only then it accepts no more.
 *
 * Where another gateway stands by and takes the lead, the two steps of a beginning are apart:
 *
 *   drain_hands_over ─► drain_has_written ─► the lead is given up ─► drain_sockets ─► drain_step …
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
    bool hands_over;      /* another gateway takes the lead before sockets leave */
    bool has_next;        /* the next process follows: */
    int64_t linger_until; /* it serves as ever until then, monotonic ms */
};

void drain_begin(struct drain *drain);

/* Begins as drain_begin does, but leaves sockets as they are. False: nothing was begun, because the
 * next process follows on the same socket, and clients wait there. */
bool drain_hands_over(struct drain *drain);

/* No call is held any more, and what is in memory alone was handed to the store. */
bool drain_has_written(const struct drain *drain);

/* The second step: sockets are asked to leave for the gateway that leads now. */
void drain_sockets(struct drain *drain);

/* Instead of drain_begin: another gateway leads already, and sockets are closed. */
void drain_to_leader(struct drain *drain);

/* Called again and again. True: no client is to be waited for any more. */
bool drain_step(struct drain *drain);
