/* pg_beat.h - the connection by which this process says that it lives, and takes the lead. */
#pragma once

#include "store/pg/pg_lead.h"
#include "store/pg/pg_link.h"

enum pg_beat_step {
    PG_BEAT_REST,
    PG_BEAT_LISTENS,
    PG_BEAT_BEATS,
    PG_BEAT_TAKES,
    PG_BEAT_FORGETS,
    PG_BEAT_LEAVES
};

struct pg_beats {
    struct store *store; /* whose on_left is called */
    struct pg_lead *lead;
    struct pg_link link;
    struct store_beat *beat; /* asked for, or under way; NULL: none */
    struct store_lead *take; /* the same */
    struct store_forget *forget;
    struct store_leave *leave;
    bool listens;           /* this connection does */
    enum pg_beat_step step; /* the statement in flight */
    uv_timer_t patience; /* of what is asked for while there is no connection; of an end */
    bool leaving;
    unsigned open; /* of link and patience, what is not closed yet */
    void (*stopped_fn)(struct pg_beats *beats);
};

/* The caller has set store and lead. */
void pg_beats_start(struct pg_beats *beats, uv_loop_t *loop,
                    const struct pg_options *options);

/* One of each at a time. */
void pg_beats_beat(struct pg_beats *beats, struct store_beat *req);
void pg_beats_take(struct pg_beats *beats, struct store_lead *req);
void pg_beats_forget(struct pg_beats *beats, struct store_forget *req);
void pg_beats_leave(struct pg_beats *beats, struct store_leave *req);

/* What is asked for is done first. The database is told that this process has ended, so that nobody
 * waits for it to be dead, if it can be told at once. */
void pg_beats_stop(struct pg_beats *beats, void (*stopped)(struct pg_beats *beats));
