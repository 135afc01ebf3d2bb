/* leading.c - one process of several on the same database leads; the others stand by.
 *
 *    beat: nobody leads, or who leads is dead
 *  STANDBY ───────────────► TAKING ──all is ours──► LOADING ──loaded──► LEADING
 *     ▲                        │                       │                   │
 *     └──another was first, ───┤                       └─────────┬─────────┘
 *        or nobody knows       └─ our row is gone ─┐             │ the beat says that another one
 *                                                  ▼             │ leads; a commit was refused;
 *                                                LOST ◄──────────┘ our row is gone
 *
 * A beat goes out each second, in every state, and never a second one before the first is answered:
 * one statement a second is all that a gateway costs that has nothing to do. It says who lives
 * (observation.h) and who leads.
 *
 * Self-doubt is no state: whoever leads and hears nothing of the database goes on trying, and goes
 * on leading when it hears that nothing has changed. It only answers nobody meanwhile.
 *
 * LOST is the end: what this process has in memory may be old, so it is thrown away as a whole, and
 * the gateway begins anew. */
#include "cluster/leading.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster/observation.h"

enum state { STANDBY, TAKING, LOADING, LEADING, LOST };

enum {
    CLOCK_TOLD_MS = 1000, /* so far off the database's clock is said */
    CLOCK_LEADS_MS =
        30000, /* so far off does not begin to lead: deadlines would be nonsense */
};

struct leading {
    struct loop *loop;
    struct store *store;
    struct leading_options options;
    struct observation observation;
    enum state state;
    bool stopped, draining;
    bool moved; /* a commit has found that somebody else leads; the next beat says who */
    struct timer timer; /* of the next beat */
    uint32_t beat_kind;
    struct store_beat beat;
    bool beating;
    int64_t beat_sent_ms, off_ms; /* how far our wall clock is ahead of the database's */
    bool clock_told, silence_told, standby_told;
    struct store_lead lead;
    struct store_gateway dead; /* the leader before us, for lead */
    const char *lost;          /* the reason */
    bool lost_for_good;
    struct deferred turn; /* tells the owner */
};

/* ---- the end ---- */

static void lose(struct leading *leading, const char *reason, bool for_good)
{
    if (leading->state == LOST || leading->stopped)
        return;
    leading->state = LOST;
    leading->lost = reason;
    leading->lost_for_good = for_good;
    log_warn("the lead is lost", "reason", reason, NULL);
    timers_clear(loop_timers(leading->loop), &leading->timer);
    loop_defer(leading->loop, &leading->turn);
}

static void on_turn(struct deferred *turn)
{
    struct leading *leading = container_of(turn, struct leading, turn);
    struct leading_options *options = &leading->options;
    if (leading->state == LOST) {
        options->on_lost(options->owner, leading->lost, leading->lost_for_good);
        return;
    }
    options->on_taken(options->owner);
}

static bool has_namesake(const struct leading *leading)
{
    const struct store_beat *beat = &leading->beat;
    for (size_t i = 0; i < beat->gateway_count; i++)
        if (beat->gateways[i].id != beat->me &&
            strcmp(beat->gateways[i].name, leading->options.name) == 0)
            return true;
    return false;
}

/* Our own row is gone, and the answer says who else there is. */
static void lose_row(struct leading *leading)
{
    if (has_namesake(leading))
        lose(leading,
             "another gateway has begun under the same name: give each its own "
             "--gateway-name",
             true);
    else
        lose(leading, "this gateway was taken for dead", false);
}

/* ---- taking ---- */

static void on_taken(struct store_lead *lead, enum store_status status)
{
    struct leading *leading = container_of(lead, struct leading, lead);
    if (leading->stopped || leading->state != TAKING)
        return;
    if (status == STORE_OK) {
        leading->state = LOADING;
        log_info("leads", "before", leading->dead.id ? leading->dead.name : "nobody", NULL);
        loop_defer(leading->loop, &leading->turn);
    } else {
        leading->state = STANDBY;
    }
}

static void take(struct leading *leading, uint64_t leader)
{
    const struct store_gateway *dead = observation_find(&leading->observation, leader);
    leading->dead = dead ? *dead : (struct store_gateway){ 0 };
    leading->state = TAKING;
    leading->lead = (struct store_lead){ .dead = &leading->dead,
                                         .dead_count = dead != NULL,
                                         .done = on_taken };
    leading->store->ops->lead(leading->store, &leading->lead);
}

/* ---- what a beat says, by the state ---- */

static bool clock_allows(const struct leading *leading)
{
    return llabs(leading->off_ms) <= CLOCK_LEADS_MS;
}

/* The beat that finds the leader dead comes when it is, and not up to a second later. */
static void beat_sooner(struct leading *leading, int64_t in_ms)
{
    int64_t due_in_ms =
        leading->beat_sent_ms + leading->options.beat_ms - loop_boot_ms(leading->loop);
    if (in_ms >= due_in_ms)
        return;
    timers_clear(loop_timers(leading->loop), &leading->timer);
    loop_set_timer(leading->loop, &leading->timer, leading->beat_kind, in_ms);
}

static void consider(struct leading *leading)
{
    uint64_t leader = leading->beat.leader;
    int64_t dead_in_ms = 0;
    if (leader && leader != leading->beat.me &&
        observation_find(&leading->observation, leader))
        dead_in_ms =
            observation_dead_in(&leading->observation, leader, loop_boot_ms(leading->loop));
    if (dead_in_ms)
        beat_sooner(leading, dead_in_ms);
    else if (!leading->draining && clock_allows(leading))
        take(leading, leader);
}

static void look_on(struct leading *leading)
{
    (void)leading;
}

static void check(struct leading *leading)
{
    if (leading->beat.leader != leading->beat.me)
        lose(leading, "the database says that another gateway leads", false);
}

static void (*const on_beat_in[])(struct leading *leading) = { [STANDBY] = consider,
                                                               [TAKING] = look_on,
                                                               [LOADING] = check,
                                                               [LEADING] = check,
                                                               [LOST] = look_on };

/* ---- beating ---- */

/* Read at the middle of the way there and back. */
static void compare_clocks(struct leading *leading, int64_t now_ms)
{
    int64_t way = (now_ms - leading->beat_sent_ms) / 2;
    leading->off_ms = loop_wall_ms(leading->loop) - way - leading->beat.clock_ms;
    bool wrong = llabs(leading->off_ms) > CLOCK_TOLD_MS + way;
    if (wrong && !leading->clock_told)
        log_warn(
            clock_allows(leading)
                ? "this machine's clock and the database's differ"
                : "this machine's clock and the database's differ too much: it does not "
                  "begin to lead",
            "ahead_ms", log_number(leading->off_ms), NULL);
    leading->clock_told = wrong;
}

static void tell_silence(struct leading *leading, bool silent)
{
    if (silent && !leading->silence_told)
        log_warn("the database does not answer beats", NULL);
    if (!silent && leading->silence_told)
        log_info("the database answers beats again", NULL);
    leading->silence_told = silent;
}

static void tell_standby(struct leading *leading)
{
    if (leading->state != STANDBY || leading->standby_told)
        return;
    leading->standby_told = true;
    log_info("stands by", NULL);
    leading->options.on_standby(leading->options.owner);
}

static void on_beaten(struct store_beat *beat, enum store_status status)
{
    struct leading *leading = container_of(beat, struct leading, beat);
    int64_t now_ms = loop_boot_ms(leading->loop);
    leading->beating = false;
    if (leading->stopped)
        return;
    tell_silence(leading, status && status != STORE_MOVED);
    if (status == STORE_MOVED) {
        lose_row(leading);
    } else if (leading->moved) {
        lose(leading, "another gateway has taken over", false);
    } else if (status) {
        observation_miss(&leading->observation);
    } else {
        observation_answer(&leading->observation, leading->beat_sent_ms, now_ms, beat);
        compare_clocks(leading, now_ms);
        on_beat_in[leading->state](leading);
    }
    tell_standby(leading);
}

static void beat(struct leading *leading)
{
    if (leading->beating)
        return;
    leading->beating = true;
    leading->beat_sent_ms = loop_boot_ms(leading->loop);
    leading->beat = (struct store_beat){ .draining = leading->draining, .done = on_beaten };
    leading->store->ops->beat(leading->store, &leading->beat);
}

static void on_beat_due(struct timer *timer)
{
    struct leading *leading = container_of(timer, struct leading, timer);
    loop_set_timer(leading->loop, timer, leading->beat_kind, leading->options.beat_ms);
    beat(leading);
}

/* Whatever the beat says, it is over: it is asked whether to begin anew. */
static void on_moved(void *owner)
{
    struct leading *leading = owner;
    if (leading->stopped || leading->moved)
        return;
    leading->moved = true;
    beat(leading);
}

/* ---- beginning and end ---- */

struct leading *leading_create(struct loop *loop, struct store *store,
                               const struct leading_options *options)
{
    struct leading *leading = mem_new(struct leading);
    leading->loop = loop;
    leading->store = store;
    leading->options = *options;
    leading->turn.fn = on_turn;
    list_init(&leading->turn.link);
    leading->beat_kind = timers_kind(loop_timers(loop), on_beat_due);
    observation_init(&leading->observation, options->dead_ms, options->beat_ms,
                     loop_boot_ms(loop));
    if (!store->ops->beat) {
        leading->state = LOADING;
        loop_defer(loop, &leading->turn);
        return leading;
    }
    store->on_moved = on_moved;
    store->moved_owner = leading;
    loop_set_timer(loop, &leading->timer, leading->beat_kind, 0);
    return leading;
}

void leading_stop(struct leading *leading)
{
    leading->stopped = true;
    loop_cancel_deferred(&leading->turn);
    timers_clear(loop_timers(leading->loop), &leading->timer);
}

void leading_destroy(struct leading *leading)
{
    if (!leading)
        return;
    observation_finish(&leading->observation);
    free(leading);
}

void leading_drain(struct leading *leading)
{
    leading->draining = true;
}

void leading_loaded(struct leading *leading)
{
    if (leading->state == LOADING)
        leading->state = LEADING;
}

const char *leading_why_not(const struct leading *leading)
{
    if (leading->state == LOADING && !leading->moved)
        return "starting";
    if (leading->state != LEADING || leading->moved)
        return "standby";
    bool silent = leading->store->ops->beat &&
                  observation_doubts(&leading->observation, loop_boot_ms(leading->loop));
    return silent ? "no_beat" : NULL;
}
