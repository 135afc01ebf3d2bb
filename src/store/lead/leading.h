/* leading.h - decides whether this gateway leads: only the leader writes and answers.
 *
 * Only the leader has the runs in memory; the other gateways on the database stand by. On a
 * single-process database (SQLite), this process always leads, starting with the next turn
 * of the loop. Loop thread only. */
#pragma once

#include "base/loop.h"
#include "runcast/store.h"

struct leading;

struct leading_options {
    const char *name; /* of this gateway, unique; borrowed */
    int64_t beat_ms;  /* longest interval between beats */
    int64_t dead_ms;  /* a gateway is dead after this time without a beat */
    /* The leader removes a gateway's row after this time without a beat; 0: an hour. */
    int64_t forget_ms;
    /* Another gateway leads, or the database has not responded yet.
     *
     * Called at most once, and not if this gateway takes the lead with its first beat. */
    void (*on_standby)(void *owner);
    /* The lead passed from one other gateway to another while this one stands by.
     *
     * Requests held here until this gateway leads would wait in vain. */
    void (*on_other_leads)(void *owner);
    /* Called once, when this gateway has taken the lead and must load everything. */
    void (*on_taken)(void *owner);
    /* The lead is lost, and nothing in memory is valid. The last callback.
     *
     * for_good: another process has started under our name. If this one restarted, the two
     * would keep taking the lead from each other. */
    void (*on_lost)(void *owner, const char *reason, bool for_good);
    /* A loaded leader begins to doubt that it still leads.
     *
     * The database has not confirmed the lead for too long, or a commit was rejected.
     * leading_why_not has the reason. Called at most once before on_certain. */
    void (*on_doubt)(void *owner);
    /* The doubt has ended: this gateway still leads. */
    void (*on_certain)(void *owner);
    void *owner;
};

/* Sends the first beat, and stands by until it gets the lead.
 *
 * Everything is borrowed until leading_destroy. Takes the callbacks store->on_moved,
 * on_left and on_cut for itself. */
struct leading *leading_create(struct loop *loop, struct store *store,
                               const struct leading_options *options);

/* Call it after closing the store, which ends all requests in progress. Ignores NULL. */
void leading_destroy(struct leading *leading);

/* Stops sending beats and calling callbacks. Requests in flight end with the store. */
void leading_stop(struct leading *leading);

/* Call it when the process begins to drain and accepts no new work.
 *
 * It then sends a beat at once. The response to a leader has the gateways that joined since
 * its last beat. That of a standby reports to a leader that it is not a successor. */
void leading_drain(struct leading *leading);

/* This gateway does not take the lead any more, because it could not store all that the leader
 * writes; the reason is not copied. Other gateways see it as one that drains. If it has taken the
 * lead, and does not serve yet, it loses it. Further calls have no effect. */
void leading_refrain(struct leading *leading, const char *reason);

/* Sends another beat at once, if the process drains and leads: its successor may drain by
 * now. */
void leading_ask_successor(struct leading *leading);

/* Returns true until the beat of leading_drain or leading_ask_successor has completed or
 * failed. */
bool leading_asks_successor(const struct leading *leading);

/* Returns true if, according to the last response, another gateway can take the lead at
 * once. */
bool leading_has_successor(const struct leading *leading);

/* Hands the lead over while this process drains; requires leading_has_successor.
 *
 * From now on this process writes nothing, and its memory may be out of date. on_left is
 * called once, on the loop, when the database has responded or has failed to for a few
 * seconds. No other callback is called afterwards. */
void leading_hand_over(struct leading *leading, void (*on_left)(void *owner));

/* Hands the lead over to a gateway by its name, although this process does not end.
 *
 * This process has then lost the lead: requests are rejected at once, and on_lost is called
 * when the database has responded, or has failed to for a few seconds. ERR_INVALID with the
 * reason if this gateway does not lead or doubts it, or no live gateway of that name stands
 * by. */
enum err leading_pass(struct leading *leading, const char *name, struct failure *why);

/* Gives up the lead because memory cannot be used; the reason is not copied. on_lost is called
 * later. Does nothing if this gateway does not lead. */
void leading_give_up(struct leading *leading, const char *reason);

/* Returns true if the lead was lost because leading_pass has handed it over. */
bool leading_has_passed(const struct leading *leading);

/* Returns our own number; 0: the database has not responded yet. */
uint64_t leading_me(const struct leading *leading);

/* Returns for how long from now followers may trust themselves, because this gateway then still
 * leads for certain, even if no beat gets a response; 0: it does not, or doubts it. */
int64_t leading_grant_ms(struct leading *leading);

/* Returns the gateway that leads, as of the last response while this one stands by; the one
 * that takes the lead next, once this one has handed it over.
 *
 * NULL: this one leads, no gateway does, or the database has not responded yet. Valid until
 * the loop runs again. */
const struct store_gateway *leading_leader(const struct leading *leading);

/* Returns the other gateways, one for each number from 0 on, as of the last response; NULL: no
 * more. Sets whether it counts as dead. Valid until the loop runs again. */
const struct store_gateway *leading_other(const struct leading *leading, size_t at,
                                          bool *is_dead);

/* Call it after on_taken, once everything is in memory: from now on this gateway leads. */
void leading_loaded(struct leading *leading);

/* Returns why requests are rejected; NULL if this gateway leads.
 *
 * "standby", "starting", or "no_beat": the database has not confirmed the lead for too
 * long. Correct even right after this process was suspended. */
const char *leading_why_not(const struct leading *leading);
