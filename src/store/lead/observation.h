/* observation.h - which gateways live, by what the database says of their beats. */
#pragma once

#include "runcast/store.h"

struct seen_gateway {
    struct store_gateway gateway; /* as the last answer said */
    int64_t moved_ms;             /* when I saw its beat change */
};

/* All times are the caller's monotonic clock, in ms. */
struct observation {
    int64_t dead_ms; /* how long a beat stands still until its gateway is dead */
    int64_t
        gap_ms; /* longest time between answers to my own beats; beyond it I know nothing */
    int64_t sent_ms;           /* when the newest of my beats that was answered was sent */
    int64_t answered_ms;       /* when the newest answer came */
    int64_t steady_ms;         /* since when they have come without a gap */
    struct seen_gateway *seen; /* ours */
    size_t count;
};

/* Nobody is dead, and I may believe that I lead, until now + dead_ms. */
void observation_init(struct observation *observation, int64_t dead_ms, int64_t beat_ms,
                      int64_t now_ms);
void observation_finish(struct observation *observation);

/* My beat, sent then, was answered: these gateways there are. */
void observation_answer(struct observation *observation, int64_t sent_ms, int64_t now_ms,
                        const struct store_beat *answer);

/* My beat was not answered: the database has restarted or cannot be reached, by others neither,
 * for all I know. */
void observation_miss(struct observation *observation);

/* NULL: the last answer did not have it, it has ended. */
const struct store_gateway *observation_find(const struct observation *observation,
                                             uint64_t id);

/* In how many ms it is dead if it does not beat meanwhile, and I do. 0: it is dead. INT64_MAX: I do
 * not know it, or know too little. */
int64_t observation_dead_in(const struct observation *observation, uint64_t id,
                            int64_t now_ms);

/* Others may take me for dead by now, or will soon. */
bool observation_doubts(const struct observation *observation, int64_t now_ms);

/* Returns the ms until that begins if no beat of mine is answered meanwhile; 0: it has begun. */
int64_t observation_doubts_in(const struct observation *observation, int64_t now_ms);

/* Returns true if, as far as I know, another gateway lives and does not drain. */
bool observation_has_other(const struct observation *observation, uint64_t me,
                           int64_t now_ms);

/* Copies gateways other than me whose beats I have seen stand still for that long. Returns their
 * number, at most the maximum given. */
size_t observation_still_for(const struct observation *observation, uint64_t me,
                             int64_t still_ms, int64_t now_ms,
                             struct store_gateway *gateways, size_t most);
