/* drain.h - stops a gateway step by step.
 *
 * New requests are refused, requests in flight finish, and sockets get `drain`, after which
 * their clients reconnect. If another gateway leads, this one stays for DRAIN_LINGER_MS, so that
 * proxies notice that it is not ready, and passes calls on. Once the calls of that time have
 * ended, it accepts no connections any more. There are two exceptions.
 *
 * If listening sockets were passed in by a service manager, the next process follows on
 * them, and no client is refused. The next process accepts once it is ready. For
 * DRAIN_LINGER_MS this one serves as before, and its responses close kept-alive
 * connections; only then does it stop accepting.
 *
 *   drain_begin ─► `drain` to sockets, responses close ─► DRAIN_LINGER_MS ─► accept no
 *        more, reply to held calls, close sockets ─► all requests ended ─► drain_step: true
 *                                         └─ some have not after five seconds: true
 *
 * If several gateways share the database, sockets stay until it is known whether another
 * gateway takes the lead:
 *
 *   drain_begin ─► drain_hand_over ─┬► DUE ─► give up the lead ─► drain_sockets ─► drain_step …
 *                                   └► NONE: no gateway stands by ─► drain_step … */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct api;
struct engine;
struct leading;
struct loop;
struct server;

struct drain {
    struct loop *loop; /* the pointers and until are set by the caller */
    struct server *server;
    struct api *api;
    struct engine *engine;
    struct leading *leading;
    int64_t until;        /* when open connections are cut; monotonic ms */
    int64_t hand_over_by; /* how long it waits to hand over; monotonic ms; 0: it does not */
    int64_t look_at;      /* when it looks for a successor again; monotonic ms; 0: it has */
    bool hands_over;      /* another gateway takes the lead before sockets move */
    bool has_next;        /* the next process follows on the same sockets */
    bool notes_late;      /* calls that begin from now on are late (server.h) */
    int64_t linger_until; /* until then it serves as before; monotonic ms */
};

/* Returns true if the lead may be handed over: then call drain_hand_over. */
bool drain_begin(struct drain *drain);

enum handover {
    HANDOVER_NONE,  /* no gateway takes the lead, or it was already due */
    HANDOVER_WAITS, /* call again soon */
    HANDOVER_DUE,   /* give up the lead, then call drain_sockets */
};

/* Call it repeatedly. idle: this process has no command in flight. */
enum handover drain_hand_over(struct drain *drain, bool idle);

/* Sends `drain` to sockets: their clients reconnect, to the gateway that leads now. */
void drain_sockets(struct drain *drain);

/* Used instead of drain_begin if another gateway already leads: closes sockets. */
void drain_to_leader(struct drain *drain);

/* Call it repeatedly. Returns true once no client must be waited for. */
bool drain_step(struct drain *drain);
