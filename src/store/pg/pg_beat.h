/* pg_beat.h - the connection for beats, and for taking and handing over the lead.
 *
 * store/lead/leading.c calls these through store_ops. The rows of dead gateways are removed
 * on this connection, too, and a gateway that does not lead reads the positions on it. */
#pragma once

#include "store/pg/pg_lead.h"
#include "store/pg/pg_link.h"

enum pg_beat_step {
    PG_BEAT_REST,
    PG_BEAT_LISTENS,
    PG_BEAT_SHOWS_KEYS,
    PG_BEAT_BEATS,
    PG_BEAT_TAKES,
    PG_BEAT_FORGETS,
    PG_BEAT_RECOUNTS,
    PG_BEAT_RENEWS,
    PG_BEAT_LEAVES
};

struct pg_beats {
    struct store *store;  /* its on_left and on_history are called, and its term set */
    const char *timeline; /* of the history that we read (pg_writers::timeline) */
    struct pg_lead *lead;
    struct pg_link link;
    /* A request of each kind, waiting or in flight; NULL: none. */
    struct store_beat *beat;
    struct store_lead *take;
    struct store_forget *forget;
    struct store_recount *recount;
    struct store_renew *renew;
    struct store_leave *leave;
    bool listens;                  /* this connection listens to the channel */
    enum pg_beat_step step;        /* the statement in flight */
    char key_ids[PG_KEY_IDS_TEXT]; /* that PG_BEAT_SHOWS_KEYS writes */
    /* Limits how long a request waits for a connection, and how long pg_beats_stop
     * takes. */
    uv_timer_t timeout;
    bool leaving;
    unsigned open; /* how many of link and timeout are still open */
    void (*stopped_fn)(struct pg_beats *beats);
};

/* The caller must have set store, timeline and lead. */
void pg_beats_start(struct pg_beats *beats, uv_loop_t *loop,
                    const struct pg_options *options);

/* Only one request of each kind at a time. */
void pg_beats_beat(struct pg_beats *beats, struct store_beat *req);
void pg_beats_take(struct pg_beats *beats, struct store_lead *req);
void pg_beats_forget(struct pg_beats *beats, struct store_forget *req);
void pg_beats_recount(struct pg_beats *beats, struct store_recount *req);
void pg_beats_renew(struct pg_beats *beats, struct store_renew *req);
void pg_beats_leave(struct pg_beats *beats, struct store_leave *req);

/* Finishes the current requests first, then calls stopped.
 *
 * If that is possible at once, it also removes this process's row from the database, so
 * that no other gateway must wait until this one counts as dead. */
void pg_beats_stop(struct pg_beats *beats, void (*stopped)(struct pg_beats *beats));
