/* leading.c - elects one of several processes on the same database; the others stand by.
 *
 *    beat: no leader, or it is dead
 * STANDBY ──────────────► TAKING ──lead taken──► LOADING ──loaded──► LEADING
 *     ▲                       │                      │                   │
 *     └──another was first, ──┤                      └────────┬──────────┘
 *        or the call failed   └─ our row is gone ─┐           │ a beat: another one leads;
 *                                                 ▼           │ a commit was rejected;
 *                                               LOST ◄────────┘ our row is gone
 *
 * A beat is sent every second, in every state, but never before the previous one got its
 * response. An idle gateway costs the database only this one statement per second. The
 * response has the leader and the gateways that are alive (observation.h).
 *
 * While another gateway could take over, a leader registers the session of its beats, so
 * that its death is seen sooner. It then doubts sooner, too. So it beats five times a second,
 * and the others do so four times. It registers only if the last answered beat was sent
 * a moment ago, and no follower trusts itself for longer: from then on, the shorter time counts.
 *
 * Doubt is not a state: a leader without a response from the database keeps trying, and
 * continues to lead when it learns that nothing has changed. Meanwhile it rejects requests.
 *
 * LOST is final: this process's memory may be out of date, so all of it is discarded, and
 * the gateway starts again.
 *
 * LEFT ends a drain: LEADING ──hand over──► LEFT. The row of this process is removed, so
 * that a standby takes the lead at once, and no more beats are sent.
 *
 * The leader also removes the rows of gateways that have been dead for an hour. */
#include "store/lead/leading.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "store/lead/observation.h"

enum state { STANDBY, TAKING, LOADING, LEADING, LEFT, LOST };

enum {
    /* Beats while the leader's session is registered, of the leader and of others. If beat is
     * longer than SLOWEST_BEAT_MS, no session is registered: few statements are wanted. */
    LEADER_BEAT_MS = 200,
    WATCHING_BEAT_MS = 250,
    SLOWEST_BEAT_MS = 1000,
    CLOCK_LOGGED_MS = 1000, /* a larger difference from the database's clock is logged */
    /* With a larger difference, a gateway does not begin to lead, because deadlines would
     * be meaningless. */
    CLOCK_LEADS_MS = 30000,
    FORGET_MS = 60 * 60 * 1000,
    FORGET_AT_ONCE = 32,
};

struct leading {
    struct loop *loop;
    struct store *store;
    struct leading_options options;
    struct observation observation;
    enum state state;
    bool stopped, draining;
    const char *refrains; /* the reason of leading_refrain; NULL: it was not called */
    bool moved;         /* the store has lost the lead; the next beat finds out who leads */
    struct timer timer; /* for the next beat */
    uint32_t beat_kind;
    struct store_beat beat;
    /* Our number, from the last response; beat.me is 0 until its response arrives. */
    uint64_t me;
    bool beating;
    bool cannot_register;     /* with this connection */
    bool beat_again;          /* once the one in flight has its response */
    bool asks_successor;      /* the response that leading_drain requested is pending */
    struct timer doubt_timer; /* while leading: when doubt begins */
    uint32_t doubt_kind;
    bool in_doubt; /* on_doubt was called, and on_certain has not been called since */
    /* off_ms: how far our wall clock is ahead of the database's */
    int64_t beat_sent_ms, off_ms;
    bool clock_logged, silence_logged, standby_logged, register_logged;
    /* Leader in the last response in STANDBY; 0: no leader, or no response yet. */
    uint64_t last_leader;
    struct store_lead lead;
    struct store_gateway dead; /* the previous leader, for lead */
    struct store_leave leave;
    int64_t yields_until; /* another gateway should take the free lead before then */
    void (*on_left)(void *owner);
    struct store_forget forget;
    struct store_gateway forgotten[FORGET_AT_ONCE]; /* for forget */
    bool forgetting;
    const char *lost; /* the reason */
    bool lost_for_good;
    bool passed;          /* lost because leading_pass has handed it over */
    struct deferred turn; /* calls the owner */
};

/* ---- losing the lead ---- */

static void lose(struct leading *leading, const char *reason, bool for_good)
{
    if (leading->state == LOST || leading->state == LEFT || leading->stopped)
        return;
    leading->state = LOST;
    leading->lost = reason;
    leading->lost_for_good = for_good;
    if (leading->passed)
        log_info("lead handed over", NULL);
    else
        log_warn("lead lost", "reason", reason, NULL);
    timers_clear(loop_timers(leading->loop), &leading->timer);
    timers_clear(loop_timers(leading->loop), &leading->doubt_timer);
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

static bool has_duplicate_name(const struct leading *leading)
{
    const struct store_beat *beat = &leading->beat;
    for (size_t i = 0; i < beat->gateway_count; i++)
        if (beat->gateways[i].id != beat->me &&
            strcmp(beat->gateways[i].name, leading->options.name) == 0)
            return true;
    return false;
}

/* Our own row is gone; the response has the other gateways. */
static void lose_row(struct leading *leading)
{
    if (has_duplicate_name(leading))
        lose(leading,
             "another gateway started with the same name; give each its own --gateway-name",
             true);
    else
        lose(leading, "the other gateways considered this one dead", false);
}

/* ---- taking the lead ---- */

static void on_taken(struct store_lead *lead, enum store_status status)
{
    struct leading *leading = container_of(lead, struct leading, lead);
    if (leading->stopped || leading->state != TAKING)
        return;
    if (status == STORE_OK) {
        leading->state = LOADING;
        log_info("leads", "before", leading->dead.id ? leading->dead.name : "none", NULL);
        loop_defer(leading->loop, &leading->turn);
        if (leading->refrains)
            lose(leading, leading->refrains, false);
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

/* ---- sessions ---- */

static bool may_register(const struct leading *leading)
{
    return leading->state == LEADING && !leading->cannot_register &&
           leading->options.beat_ms <= SLOWEST_BEAT_MS &&
           observation_has_other(&leading->observation, leading->me,
                                 loop_boot_ms(leading->loop));
}

/* Returns true if the beat that is about to be sent registers the session. */
static bool registers(const struct leading *leading)
{
    return may_register(leading) &&
           observation_may_register(&leading->observation, loop_boot_ms(leading->loop));
}

/* A pooler, or a lack of the right to read sessions, keeps the database from registering it. */
static void note_registered(struct leading *leading)
{
    if (!leading->beat.registers || leading->observation.is_registered)
        return;
    leading->cannot_register = true;
    if (!leading->register_logged)
        log_info("the session of heartbeats cannot be registered; a leader that is killed "
                 "counts as dead after dead-after",
                 NULL);
    leading->register_logged = true;
}

static bool watches_session(const struct leading *leading)
{
    const struct store_gateway *leader = leading_leader(leading);
    return leader && leader->session != SESSION_UNKNOWN;
}

static int64_t interval_ms(const struct leading *leading)
{
    int64_t most = may_register(leading)      ? LEADER_BEAT_MS
                   : watches_session(leading) ? WATCHING_BEAT_MS
                                              : leading->options.beat_ms;
    return most < leading->options.beat_ms ? most : leading->options.beat_ms;
}

/* The connection may be open again before the next beat is due, so that none fails. But the
 * database may have restarted, which ends the sessions of all gateways. */
static void on_cut(void *owner)
{
    struct leading *leading = owner;
    observation_miss(&leading->observation);
    leading->cannot_register = false;
}

/* ---- responses to beats, by state ---- */

static bool clock_allows(const struct leading *leading)
{
    return llabs(leading->off_ms) <= CLOCK_LEADS_MS;
}

/* Sends the next beat right when the leader counts as dead, not up to a second later. */
static void beat_sooner(struct leading *leading, int64_t in_ms)
{
    int64_t due_in_ms =
        leading->beat_sent_ms + interval_ms(leading) - loop_boot_ms(leading->loop);
    if (in_ms >= due_in_ms)
        return;
    timers_clear(loop_timers(leading->loop), &leading->timer);
    loop_set_timer(leading->loop, &leading->timer, leading->beat_kind, in_ms);
}

static bool must_not_lead(const struct leading *leading)
{
    return leading->draining || leading->refrains;
}

static void consider(struct leading *leading)
{
    uint64_t leader = leading->beat.leader, before = leading->last_leader;
    int64_t dead_in_ms = 0;
    leading->last_leader = leader;
    if (before && leader && leader != before && leader != leading->beat.me)
        leading->options.on_other_leads(leading->options.owner);
    if (leader && leader != leading->beat.me &&
        observation_find(&leading->observation, leader))
        dead_in_ms =
            observation_dead_in(&leading->observation, leader, loop_boot_ms(leading->loop));
    if (!dead_in_ms && leading->yields_until > loop_boot_ms(leading->loop))
        dead_in_ms = leading->yields_until - loop_boot_ms(leading->loop);
    if (dead_in_ms)
        beat_sooner(leading, dead_in_ms);
    else if (!must_not_lead(leading) && clock_allows(leading))
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

static void on_forgotten(struct store_forget *forget, enum store_status status)
{
    struct leading *leading = container_of(forget, struct leading, forget);
    leading->forgetting = false;
    if (!status)
        log_info("rows of dead gateways removed", "gateways",
                 log_number((int64_t)forget->dead_count), NULL);
}

static void forget_dead(struct leading *leading)
{
    int64_t forget_ms = leading->options.forget_ms ? leading->options.forget_ms : FORGET_MS;
    if (leading->forgetting || leading->state != LEADING)
        return;
    size_t count = observation_still_for(&leading->observation, leading->beat.me, forget_ms,
                                         loop_boot_ms(leading->loop), leading->forgotten,
                                         FORGET_AT_ONCE);
    if (!count)
        return;
    leading->forgetting = true;
    leading->forget = (struct store_forget){ .dead = leading->forgotten,
                                             .dead_count = count,
                                             .done = on_forgotten };
    leading->store->ops->forget(leading->store, &leading->forget);
}

static void check_and_forget(struct leading *leading)
{
    check(leading);
    forget_dead(leading);
}

static void (*const on_beat_in[])(struct leading *leading) = {
    [STANDBY] = consider,         [TAKING] = look_on, [LOADING] = check,
    [LEADING] = check_and_forget, [LEFT] = look_on,   [LOST] = look_on
};

/* ---- doubt ---- */

static void watch_doubt(struct leading *leading)
{
    int64_t in_ms =
        observation_doubts_in(&leading->observation, loop_boot_ms(leading->loop));
    if (leading->state == LEADING && leading->store->ops->beat && !leading->in_doubt)
        loop_set_timer(leading->loop, &leading->doubt_timer, leading->doubt_kind, in_ms);
}

static void begin_doubt(struct leading *leading)
{
    if (leading->in_doubt || leading->state != LEADING)
        return;
    leading->in_doubt = true;
    leading->options.on_doubt(leading->options.owner);
}

static void on_doubt_due(struct timer *timer)
{
    struct leading *leading = container_of(timer, struct leading, doubt_timer);
    if (leading_why_not(leading))
        begin_doubt(leading);
    else
        watch_doubt(leading);
}

static void end_doubt(struct leading *leading)
{
    if (leading->in_doubt && !leading_why_not(leading)) {
        leading->in_doubt = false;
        leading->options.on_certain(leading->options.owner);
    }
    watch_doubt(leading);
}

/* ---- beating ---- */

/* Assumes that the database's clock was read halfway between request and response. */
static void compare_clocks(struct leading *leading, int64_t now_ms)
{
    int64_t way = (now_ms - leading->beat_sent_ms) / 2;
    leading->off_ms = loop_wall_ms(leading->loop) - way - leading->beat.clock_ms;
    bool wrong = llabs(leading->off_ms) > CLOCK_LOGGED_MS + way;
    if (wrong && !leading->clock_logged)
        log_warn(
            clock_allows(leading)
                ? "the clocks of this machine and the database differ"
                : "the clocks of this machine and the database differ too much to lead",
            "ahead_ms", log_number(leading->off_ms), NULL);
    leading->clock_logged = wrong;
}

static void log_silence(struct leading *leading, bool silent)
{
    if (silent && !leading->silence_logged)
        log_warn("the database does not respond to heartbeats", NULL);
    if (!silent && leading->silence_logged)
        log_info("the database responds to heartbeats again", NULL);
    leading->silence_logged = silent;
}

static void log_standby(struct leading *leading)
{
    if (leading->state != STANDBY || leading->standby_logged)
        return;
    const struct store_gateway *leader = leading_leader(leading);
    leading->standby_logged = true;
    log_info("stands by", "leader", leader ? leader->name : "none", NULL);
    leading->options.on_standby(leading->options.owner);
}

static void beat(struct leading *leading);

static void on_beaten(struct store_beat *beaten, enum store_status status)
{
    struct leading *leading = container_of(beaten, struct leading, beat);
    int64_t now_ms = loop_boot_ms(leading->loop);
    bool again = leading->beat_again;
    leading->beating = leading->beat_again = false;
    leading->asks_successor &= again;
    if (leading->stopped || leading->state == LEFT)
        return;
    log_silence(leading, status && status != STORE_MOVED);
    if (status == STORE_MOVED) {
        lose_row(leading);
    } else if (leading->moved) {
        lose(leading, "the store reports that this gateway no longer leads", false);
    } else if (status) {
        observation_miss(&leading->observation);
    } else {
        leading->me = beaten->me;
        observation_answer(&leading->observation, leading->beat_sent_ms, now_ms, beaten);
        note_registered(leading);
        compare_clocks(leading, now_ms);
        on_beat_in[leading->state](leading);
        end_doubt(leading);
    }
    log_standby(leading);
    if (again && (leading->state == STANDBY || leading->state == LEADING))
        beat(leading);
}

static void beat(struct leading *leading)
{
    if (leading->beating)
        return;
    leading->beating = true;
    leading->beat = (struct store_beat){ .draining = must_not_lead(leading),
                                         .registers = registers(leading),
                                         .done = on_beaten };
    leading->beat_sent_ms = loop_boot_ms(leading->loop);
    observation_send(&leading->observation, leading->beat.registers);
    watch_doubt(leading);
    leading->store->ops->beat(leading->store, &leading->beat);
}

/* Sends another beat after one in flight, whose response may be too old. */
static void beat_at_once(struct leading *leading)
{
    leading->beat_again = leading->beating;
    beat(leading);
}

static void on_beat_due(struct timer *timer)
{
    struct leading *leading = container_of(timer, struct leading, timer);
    loop_set_timer(leading->loop, timer, leading->beat_kind, interval_ms(leading));
    beat(leading);
}

/* A commit was rejected, or the database was promoted. So the lead is lost whatever the beat
 * returns, which only determines whether the gateway may start again. */
static void on_moved(void *owner)
{
    struct leading *leading = owner;
    if (leading->stopped || leading->moved || leading->state == LEFT)
        return;
    leading->moved = true;
    begin_doubt(leading);
    beat(leading);
}

/* Called when a gateway has left: the lead may be free. The successor has the time of a beat
 * to take it before others do. */
static void on_left(void *owner, uint64_t successor)
{
    struct leading *leading = owner;
    bool yields = successor && successor != leading->me;
    if (leading->stopped || leading->state != STANDBY)
        return;
    leading->yields_until =
        yields ? loop_boot_ms(leading->loop) + leading->options.beat_ms : 0;
    beat_at_once(leading);
}

/* ---- beginning and ending ---- */

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
    leading->doubt_kind = timers_kind(loop_timers(loop), on_doubt_due);
    observation_init(&leading->observation, options->dead_ms, options->beat_ms,
                     loop_boot_ms(loop));
    if (!store->ops->beat) {
        leading->state = LOADING;
        loop_defer(loop, &leading->turn);
        return leading;
    }
    store->on_moved = on_moved;
    store->on_left = on_left;
    store->on_cut = on_cut;
    store->moved_owner = leading;
    loop_set_timer(loop, &leading->timer, leading->beat_kind, 0);
    return leading;
}

void leading_stop(struct leading *leading)
{
    leading->stopped = true;
    loop_cancel_deferred(&leading->turn);
    timers_clear(loop_timers(leading->loop), &leading->timer);
    timers_clear(loop_timers(leading->loop), &leading->doubt_timer);
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
    if (leading->state == STANDBY)
        beat_at_once(leading);
    else
        leading_ask_successor(leading);
}

void leading_ask_successor(struct leading *leading)
{
    if (leading->state != LEADING || !leading->store->ops->leave)
        return;
    leading->asks_successor = true;
    beat_at_once(leading);
}

void leading_refrain(struct leading *leading, const char *reason)
{
    if (leading->refrains)
        return;
    leading->refrains = reason;
    log_warn("this gateway follows, and will not lead", "reason", reason, NULL);
    if (leading->state == LOADING)
        lose(leading, reason, false);
}

bool leading_asks_successor(const struct leading *leading)
{
    return leading->asks_successor && leading->state == LEADING && !leading->moved;
}

bool leading_has_successor(const struct leading *leading)
{
    return leading->store->ops->leave && leading->state == LEADING && !leading->moved &&
           observation_has_other(&leading->observation, leading->me,
                                 loop_boot_ms(leading->loop));
}

static void on_given_up(struct store_leave *leave, enum store_status status)
{
    struct leading *leading = container_of(leave, struct leading, leave);
    if (status)
        log_warn(
            "cannot hand over the lead; another gateway takes it once dead-after expired",
            NULL);
    else
        log_info("lead handed over", NULL);
    if (!leading->stopped)
        leading->on_left(leading->options.owner);
}

/* Returns 0 if no other gateway accepts calls: then any of them may be the next. */
static uint64_t choose_successor(const struct leading *leading)
{
    const struct observation *observation = &leading->observation;
    for (size_t i = 0; i < observation->count; i++) {
        const struct store_gateway *gateway = &observation->seen[i].gateway;
        if (gateway->id != leading->me && !gateway->draining && gateway->peer_url[0] &&
            observation_dead_in(observation, gateway->id, loop_boot_ms(leading->loop)))
            return gateway->id;
    }
    return 0;
}

void leading_hand_over(struct leading *leading, void (*on_left_fn)(void *owner))
{
    leading->state = LEFT;
    leading->on_left = on_left_fn;
    timers_clear(loop_timers(leading->loop), &leading->timer);
    timers_clear(loop_timers(leading->loop), &leading->doubt_timer);
    leading->leave =
        (struct store_leave){ .successor = choose_successor(leading), .done = on_given_up };
    leading->store->ops->leave(leading->store, &leading->leave);
}

static void on_passed(struct store_leave *leave, enum store_status status)
{
    struct leading *leading = container_of(leave, struct leading, leave);
    leading->state = LEADING;
    leading->passed = !status;
    lose(leading,
         status ? "the lead was to be handed over, but the database did not respond"
                : "the lead was handed over to another gateway",
         false);
}

static const struct store_gateway *find_successor(const struct leading *leading,
                                                  const char *name)
{
    const struct observation *observation = &leading->observation;
    for (size_t i = 0; i < observation->count; i++) {
        const struct store_gateway *gateway = &observation->seen[i].gateway;
        if (!strcmp(gateway->name, name) && gateway->id != leading->me &&
            !gateway->draining &&
            observation_dead_in(observation, gateway->id, loop_boot_ms(leading->loop)))
            return gateway;
    }
    return NULL;
}

/* Returns OK if the lead can be handed over to the gateway of this name, which may be NULL:
 * none can take it. In doubt, the database could not be reached, so the successor would not
 * be chosen. */
static enum err check_pass(const struct leading *leading, const char *name,
                           const struct store_gateway *successor, struct failure *why)
{
    if (leading->state != LEADING || leading->moved || !leading->store->ops->leave)
        return explain(why, ERR_INVALID,
                       "this gateway does not lead others; run this on the machine of the "
                       "leading gateway");
    if (!strcmp(name, leading->options.name))
        return explain(why, ERR_INVALID,
                       "gateway \"%s\" leads already; name one that follows or stands by",
                       name);
    if (leading_why_not(leading))
        return explain(why, ERR_INVALID,
                       "the database does not respond to the leading gateway \"%s\"; try "
                       "again when it does",
                       leading->options.name);
    if (!successor)
        return explain(why, ERR_INVALID,
                       "no gateway \"%s\" can take the lead; name another one that runcast "
                       "gateways lists",
                       name);
    return OK;
}

enum err leading_pass(struct leading *leading, const char *name, struct failure *why)
{
    const struct store_gateway *successor = find_successor(leading, name);
    enum err refused = check_pass(leading, name, successor, why);
    if (refused)
        return refused;
    leading->moved = true;
    begin_doubt(leading);
    leading->state = LEFT;
    timers_clear(loop_timers(leading->loop), &leading->timer);
    timers_clear(loop_timers(leading->loop), &leading->doubt_timer);
    leading->leave = (struct store_leave){ .successor = successor->id, .done = on_passed };
    leading->store->ops->leave(leading->store, &leading->leave);
    return OK;
}

void leading_give_up(struct leading *leading, const char *reason)
{
    if (leading->state == LEADING)
        lose(leading, reason, false);
}

bool leading_has_passed(const struct leading *leading)
{
    return leading->passed;
}

uint64_t leading_me(const struct leading *leading)
{
    return leading->me;
}

const struct store_gateway *leading_leader(const struct leading *leading)
{
    bool other = leading->state == STANDBY && leading->last_leader != leading->me;
    if (leading->state == LEFT)
        return observation_find(&leading->observation, leading->leave.successor);
    return other ? observation_find(&leading->observation, leading->last_leader) : NULL;
}

void leading_loaded(struct leading *leading)
{
    if (leading->state != LOADING)
        return;
    leading->state = LEADING;
    watch_doubt(leading);
}

const struct store_gateway *leading_other(const struct leading *leading, size_t at,
                                          bool *is_dead)
{
    const struct observation *observation = &leading->observation;
    for (size_t i = 0; i < observation->count; i++) {
        const struct store_gateway *gateway = &observation->seen[i].gateway;
        if (gateway->id == leading->me || at--)
            continue;
        *is_dead =
            !observation_dead_in(observation, gateway->id, loop_boot_ms(leading->loop));
        return gateway;
    }
    return NULL;
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

int64_t leading_grant_ms(struct leading *leading)
{
    if (leading_why_not(leading))
        return 0;
    return observation_grant(&leading->observation, may_register(leading),
                             loop_boot_ms(leading->loop));
}
