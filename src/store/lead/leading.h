/* leading.h - whether this process leads: it alone writes, answers, and has the runs in memory.
 *
 * With a database of one process (SQLite) it always does, from the next turn on. */
#pragma once

#include "base/loop.h"
#include "runcast/store.h"

struct leading;

struct leading_options {
    const char *name; /* of this gateway, which no other one has; borrowed */
    int64_t beat_ms;  /* between my beats */
    int64_t dead_ms;  /* a gateway that has not beaten for so long is dead */
    int64_t
        forget_ms; /* its rows are removed when it has been dead for this long; 0: an hour */
    /* Another gateway leads, or the database has not said yet who does: it may take a while. Called
     * once, if at all, and not where it takes the lead with its first beat. */
    void (*on_standby)(void *owner);
    /* While this gateway stands by, another one took the lead: calls that wait here for a leader
     * wait in vain. */
    void (*on_other_leads)(void *owner);
    /* Everything is ours: load it. Once. */
    void (*on_taken)(void *owner);
    /* It is no longer: nothing that is in memory counts. The last call. for_good: another process
     * has begun under our name; to begin anew would take the lead from it, and so on. */
    void (*on_lost)(void *owner, const char *reason, bool for_good);
    /* It leads and is loaded, and begins to doubt: the database has not confirmed the lead for too
     * long, or a commit was refused. leading_why_not has the reason. Called at most once before
     * on_certain. */
    void (*on_doubt)(void *owner);
    /* The doubt has ended: nothing has changed. */
    void (*on_certain)(void *owner);
    void *owner;
};

/* Everything borrowed until leading_destroy. Beats at once, and stands by; store->on_moved becomes
 * its own. */
struct leading *leading_create(struct loop *loop, struct store *store,
                               const struct leading_options *options);

/* Behind the store's end, by which requests that are under way are done. NULL is fine. */
void leading_destroy(struct leading *leading);

/* Beats no more and calls nobody; what was begun comes to its end with the store. */
void leading_stop(struct leading *leading);

/* The process is about to end and takes nothing any more. A leader beats at once: gateways that have
 * joined since its last beat are known to it only when that is answered. */
void leading_drain(struct leading *leading);

/* True until the beat of leading_drain is answered or has failed. */
bool leading_asks_successor(const struct leading *leading);

/* Another gateway stands by, as far as the last answer says, and can take the lead at once. */
bool leading_has_successor(const struct leading *leading);

/* Gives the lead up while this process drains: nothing is written by it from now on, and memory may
 * be old. on_left is called once, on the loop, when the database has answered, or has not for a few
 * seconds. It has a successor, and no other callback comes afterwards. */
void leading_hand_over(struct leading *leading, void (*on_left)(void *owner));

/* Everything is in memory: from now on it leads. */
void leading_loaded(struct leading *leading);

/* Why nothing is answered: "standby", "starting", "no_beat" (the database has not confirmed for
 * too long that we lead); NULL: it leads. Right also in the first moment after this process
 * stood still. */
const char *leading_why_not(const struct leading *leading);
