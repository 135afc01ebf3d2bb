/* drain.h - a gateway stops: who is told, who is waited for.
 *
 * Nothing new is let in, what is under way ends, sockets are asked to move. But on a socket that
 * was handed over and stays, one process follows the other, and nobody is refused: the new one
 * accepts when it is ready; the old one serves as ever for a moment, in which connections that
 * are kept alive are closed by the answers on them; only then it accepts no more.
 *
 * On a database of several gateways sockets stay as they are until it is known whether another one
 * takes the lead:
 *
 *   drain_begin ─► drain_hand_over ─┬► DUE ─► the lead is given up ─► drain_sockets ─► drain_step …
 *                                   └► NONE: no gateway stands by ─► drain_step …
 *
 *   drain_begin ─► `drain` to sockets, answers say close ─► DRAIN_LINGER_MS ─► accepts no more,
 *        held calls are answered, sockets closed ─► requests are over ─► drain_step: true
 *                                                  └─ some are not, after five seconds: true */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct api;
struct engine;
struct leading;
struct loop;
struct server;

struct drain {
    struct loop *loop; /* the pointers and until are the caller's */
    struct server *server;
    struct api *api;
    struct engine *engine;
    struct leading *leading;
    int64_t until; /* when what is still open is cut, monotonic ms */
    int64_t
        hand_over_by; /* how long it waits to hand over, monotonic ms; 0: it does not wait */
    bool hands_over;  /* another gateway takes the lead before sockets leave */
    bool has_next;    /* the next process follows: */
    int64_t linger_until; /* it serves as ever until then, monotonic ms */
};

/* True: the lead may be handed over, which drain_hand_over decides. */
bool drain_begin(struct drain *drain);

enum handover {
    HANDOVER_NONE,  /* no gateway takes the lead, or it was due before */
    HANDOVER_WAITS, /* call again soon */
    HANDOVER_DUE,   /* give the lead up, then call drain_sockets */
};

/* Called again and again. idle: this process has no command in flight. */
enum handover drain_hand_over(struct drain *drain, bool idle);

/* Sockets are asked to leave for the gateway that leads now. */
void drain_sockets(struct drain *drain);

/* Instead of drain_begin: another gateway leads already, and sockets are closed. */
void drain_to_leader(struct drain *drain);

/* Called again and again. True: no client is to be waited for any more. */
bool drain_step(struct drain *drain);
