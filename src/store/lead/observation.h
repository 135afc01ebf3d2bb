/* observation.h - which gateways are alive, judged by their beats in the database, and by the
 * sessions that they have registered there.
 *
 * "I" is this gateway. */
#pragma once

#include "runcast/store.h"

enum {
    /* A leader that has registered its session trusts itself for this time after it has sent
     * its last answered beat. */
    SESSION_TRUST_MS = 1000,
    /* Its session must have ended, without another beat, in two responses to beats of mine
     * that are this far apart. */
    SESSION_DEAD_MS = 1500,
};

struct seen_gateway {
    struct store_gateway gateway; /* from the last response */
    int64_t moved_ms;             /* when I saw its beat change */
    int64_t ended_ms; /* when I first saw that its session had ended; 0: it has not */
};

/* All times are the caller's monotonic clock, in ms. */
struct observation {
    int64_t dead_ms; /* a gateway is dead after its beat has not changed for this long */
    /* Longest gap between responses to my beats; after a longer one I know nothing. */
    int64_t gap_ms;
    int64_t sent_ms;     /* when my newest beat that got a response was sent */
    int64_t answered_ms; /* when the newest response arrived */
    /* since when responses have arrived without a gap; INT64_MAX: none */
    int64_t steady_ms;
    bool is_registered;        /* the others may know my session */
    int64_t granted_ms;        /* until then, followers may trust their memory */
    struct seen_gateway *seen; /* owned by this struct */
    size_t count;
};

/* Until now_ms + dead_ms, no gateway counts as dead, and I may believe that I lead. */
void observation_init(struct observation *observation, int64_t dead_ms, int64_t beat_ms,
                      int64_t now_ms);
void observation_finish(struct observation *observation);

/* I send a beat. registers: it registers my session. */
void observation_send(struct observation *observation, bool registers);

/* Takes the response to my beat that was sent at sent_ms. */
void observation_answer(struct observation *observation, int64_t sent_ms, int64_t now_ms,
                        const struct store_beat *answer);

/* My beat got no response, or its connection was lost.
 *
 * The database has restarted or is unreachable, perhaps for the others as well. */
void observation_miss(struct observation *observation);

/* Returns NULL if it is not in the last response: it has ended. */
const struct store_gateway *observation_find(const struct observation *observation,
                                             uint64_t id);

/* Returns the ms until it counts as dead, if it stops beating and my beats get responses;
 * 0: dead. If its session has ended, another of my beats must show that first.
 *
 * Returns INT64_MAX if I do not know it, or know too little. */
int64_t observation_dead_in(const struct observation *observation, uint64_t id,
                            int64_t now_ms);

/* Returns true if others may consider me dead by now, or soon. */
bool observation_doubts(const struct observation *observation, int64_t now_ms);

/* Returns the ms until then if none of my beats gets a response meanwhile; 0: already. */
int64_t observation_doubts_in(const struct observation *observation, int64_t now_ms);

/* Returns true if I may register my session now. From then on, others may consider me dead
 * sooner, so that neither I nor a follower may trust itself for longer. */
bool observation_may_register(const struct observation *observation, int64_t now_ms);

/* Returns for how many ms from now_ms followers may trust themselves because I lead, and notes
 * that; 0: I doubt. registers: I have registered my session, or will do so. */
int64_t observation_grant(struct observation *observation, bool registers, int64_t now_ms);

/* Returns true if, as far as I know, another gateway is alive and not draining. */
bool observation_has_other(const struct observation *observation, uint64_t me,
                           int64_t now_ms);

/* Copies other gateways whose beats have not changed for still_ms.
 *
 * Returns their number, at most most. */
size_t observation_still_for(const struct observation *observation, uint64_t me,
                             int64_t still_ms, int64_t now_ms,
                             struct store_gateway *gateways, size_t most);
