/* replica.c - takes the leader's frames, in their order, into a follower's memory.
 *
 *   receive ─► keep ─► waiting: [ change │ beat │ change … ] ─► take, in time slices ─┐
 *                │                                                                    │
 *                └── nothing waits, and it is FOLLOWING: taken at once ───────────────┤
 *                                                                                     ▼
 *                   a change whose environment has to wait ─► replica_held ─► replica_changes
 *                   any other change ──────────────────────────────────────────►┘ */
#include "core/replication/replica.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/replication/replica_parts.h"

static const char no_account[] = "an environment has no account";

static void apply_some(struct deferred *applying);
static void on_time(struct timer *timer);
static void on_caught_up(struct catch_up *catching, enum store_status status);
static void on_took(struct catch_up *catching, struct environment *env);
static void on_takes(struct catch_up *catching, const struct run *run);
static void on_landed(struct catch_up *catching, struct catch_up_item *item);
static void on_not_filled(void *owner);

void replica_init(struct replica *replica, struct loop *loop, struct store *store,
                  const struct replica_options *options)
{
    const struct left_out_options left_out = { .store = store,
                                               .needs = replica_needs_packets,
                                               .filled = replica_note_filled,
                                               .removed = replica_note_removed,
                                               .failed = on_not_filled,
                                               .owner = replica };
    *replica = (struct replica){ .loop = loop, .store = store, .options = *options };
    replica->applying.fn = apply_some;
    list_init(&replica->applying.link);
    list_init(&replica->ready);
    waiting_init(&replica->waiting, &left_out);
    catch_up_init(&replica->catch_up, loop, store, on_caught_up);
    replica->catch_up.took = on_took;
    replica->catch_up.takes = on_takes;
    replica->catch_up.landed = on_landed;
}

void replica_finish(struct replica *replica)
{
    uint32_t at = 0;
    assert(replica->state == REPLICA_OFF && replica_is_idle(replica));
    for (struct followed *followed; (followed = slots_next(&replica->envs, &at));)
        free(followed);
    slots_finish(&replica->envs);
}

static bool is_loading(const struct replica *replica)
{
    return replica->catch_up.is_active || replica->reads_accounts;
}

bool replica_is_idle(const struct replica *replica)
{
    return !is_loading(replica) && left_out_is_idle(&replica->waiting.left_out);
}

struct followed *replica_followed_of(struct replica *replica, uint32_t number)
{
    void **place = slots_at(&replica->envs, number);
    if (*place)
        return *place;
    struct followed *followed = mem_new(struct followed);
    waiting_init_line(&replica->waiting, &followed->held);
    list_init(&followed->link);
    *place = followed;
    return followed;
}

struct followed *replica_find(const struct replica *replica, uint32_t number)
{
    struct followed *followed = slots_get(&replica->envs, number);
    return followed && followed->is_on ? followed : NULL;
}

/* ---- the connection ends ---- */

static void forget_stream(struct replica *replica)
{
    uint32_t at = 0;
    for (struct followed *followed; (followed = slots_next(&replica->envs, &at));)
        followed->is_on = false;
    if (replica->has_documents) /* they have not taken effect */
        replica_followed_of(replica, ENV_INSTALLATION)->item.is_partial = true;
    replica->has_documents = false;
    replica->ahead = false;
    replica->has_hello = replica->begins_again = false;
    replica->trust_until = 0;
    replica->answered = 0;
}

void replica_disconnected(struct replica *replica)
{
    if (replica->state == REPLICA_OFF)
        return;
    replica->state = REPLICA_OFF;
    timers_clear(loop_timers(replica->loop), &replica->timer);
    loop_cancel_deferred(&replica->applying);
    replica_forget_held(replica);
    waiting_clear(&replica->waiting, &replica->waiting.in_order);
    forget_stream(replica);
}

void replica_begin_history(struct replica *replica)
{
    uint32_t at = 0;
    assert(replica->state == REPLICA_OFF && replica_is_idle(replica));
    for (struct followed *followed; (followed = slots_next(&replica->envs, &at));) {
        followed->item.is_loaded = false;
        followed->item.is_partial = true; /* although it may be empty (note_new) */
        followed->stream = 0;
    }
    replica->head = (struct repl_head){ 0 };
    replica->accounts_were_read = false;
    replica->accounts_applied = 0;
}

void replica_stop(struct replica *replica, const char *why)
{
    bool was_loading = replica->state == REPLICA_LOADING;
    replica_disconnected(replica);
    if (was_loading)
        replica->options.loaded(replica->options.owner, ERR_STORE);
    else
        replica->options.end(replica->options.link, why);
}

/* ---- questions ---- */

uint64_t replica_ask(struct replica *replica)
{
    struct repl_frame frame = { .kind = REPL_ASK, .ask.number = ++replica->asked };
    int64_t now = loop_boot_ms(replica->loop);
    replica->asked_at[replica->asked % REPLICA_ASKS] = now;
    replica->ask_at = now + REPLICA_ASK_MS;
    if (replica->state == REPLICA_FOLLOWING)
        replica->options.send(replica->options.link, &frame);
    return replica->asked;
}

static void arm(struct replica *replica)
{
    struct timers *timers = loop_timers(replica->loop);
    loop_set_timer(replica->loop, &replica->timer, timers_kind(timers, on_time),
                   REPLICA_ASK_MS);
}

/* Reads of the database may take as long as they need. */
static void on_time(struct timer *timer)
{
    struct replica *replica = container_of(timer, struct replica, timer);
    int64_t now = loop_boot_ms(replica->loop);
    if (replica->state == REPLICA_CATCHING)
        replica->heard_at = now;
    if (now - replica->heard_at >= REPLICA_SILENCE_MS) {
        replica_stop(replica, "the leader does not answer");
        return;
    }
    if (now >= replica->ask_at)
        replica_ask(replica);
    replica_look_alone(replica);
    if (replica->state != REPLICA_OFF)
        arm(replica);
}

int64_t replica_left_ms(const struct replica *replica)
{
    int64_t left = replica->trust_until - loop_boot_ms(replica->loop);
    bool follows = replica->state == REPLICA_FOLLOWING && !replica->ahead;
    return follows && left > 0 ? left : 0;
}

bool replica_is_complete(const struct replica *replica)
{
    return replica->state == REPLICA_FOLLOWING && !replica->loading;
}

static void take_answer(struct replica *replica, const struct repl_beat *beat)
{
    int64_t until = replica->asked_at[beat->number % REPLICA_ASKS] + beat->left_ms;
    if (replica->trust_until < until)
        replica->trust_until = until;
    replica->answered = beat->number;
    if (replica->options.answered)
        replica->options.answered(replica->options.owner);
}

/* A commit whose response is in flight soon reaches the leader's memory. Otherwise one of the two is
 * wrong: what is ahead is read again. */
static void check_ahead(struct replica *replica)
{
    if (!replica->ahead || replica->heard_at - replica->follows_at < REPLICA_AHEAD_MS)
        return;
    replica_followed_of(replica, ENV_INSTALLATION)->item.is_partial = true;
    replica_stop(replica, "the leader does not get what the database has");
}

static void on_beat(struct replica *replica, const struct repl_beat *beat)
{
    const struct repl_head *head = &replica->head;
    if (beat->head.term != head->term || strcmp(beat->head.epoch, head->epoch) != 0) {
        replica_stop(replica, "a beat of another lead");
        return;
    }
    replica->heard_at = loop_boot_ms(replica->loop);
    bool is_known = replica->asked - beat->number < REPLICA_ASKS;
    if (is_known && !replica->ahead && beat->left_ms > 0)
        take_answer(replica, beat);
    else
        check_ahead(replica);
}

/* ---- catching up ---- */

static bool is_catching(const struct replica *replica)
{
    return replica->state == REPLICA_CATCHING || replica->state == REPLICA_LOADING;
}

bool replica_was_left(const struct replica *replica, uint32_t number)
{
    const struct followed *followed = slots_get(&replica->envs, number);
    return replica->state == REPLICA_FOLLOWING && followed && !followed->is_on;
}

void replica_forget(struct replica *replica, uint32_t number)
{
    struct followed *followed = slots_get(&replica->envs, number);
    assert(replica_was_left(replica, number));
    followed->item.env = NULL;
}

/* Retention may have removed runs after the last change that memory has. */
static bool is_purged(const struct replica *replica, const struct environment *env)
{
    struct store_position position =
        replica->store->ops->position(replica->store, env->number);
    return position.purged > env->purged || position.floor > env->floor;
}

static bool must_catch_up(const struct replica *replica, const struct followed *followed)
{
    const struct catch_up_item *item = &followed->item;
    return !item->is_loaded || item->is_partial || item->env->applied < followed->stream ||
           is_purged(replica, item->env);
}

static void begin_alone(struct replica *replica, struct followed *followed)
{
    followed->is_loading = !followed->item.is_loaded;
    replica->loading += followed->is_loading;
    replica_begin_alone(replica, followed);
}

/* Others do not wait for an environment that lacks changes, or all runs, or is ahead. */
static void begin_to_follow(struct replica *replica, struct followed *followed)
{
    bool is_ahead = followed->is_on && followed->stream < followed->item.target;
    if (!followed->item.env)
        replica->ahead |= is_ahead;
    else if (!followed->is_on)
        replica_leave(replica, followed);
    else if (must_catch_up(replica, followed))
        begin_alone(replica, followed);
    else if (is_ahead)
        replica_wait_alone(replica, followed);
    else
        replica_report_floor(replica, followed);
}

static void follow(struct replica *replica)
{
    uint32_t at = 0;
    replica->state = REPLICA_FOLLOWING;
    replica->heard_at = replica->follows_at = loop_boot_ms(replica->loop);
    replica->ahead = false;
    for (struct followed *followed; (followed = slots_next(&replica->envs, &at));)
        begin_to_follow(replica, followed);
    loop_defer(replica->loop, &replica->applying);
    replica_ask(replica);
}

/* Nothing has happened yet in a new environment, so memory has all of it. */
static void note_new(struct followed *followed)
{
    const struct environment *env = followed->item.env;
    if (!followed->stream && !env->applied && !env->runs.count &&
        !followed->item.is_partial)
        followed->item.is_loaded = true;
}

/* The accounts are read, and without a leader all environments. */
static void end_catching(struct replica *replica)
{
    if (replica->state != REPLICA_LOADING) {
        follow(replica);
        return;
    }
    replica_disconnected(replica);
    replica->options.loaded(replica->options.owner, OK);
}

/* Without a leader, the database says how far each environment is. */
static void use_positions(struct replica *replica)
{
    struct store *store = replica->store;
    uint32_t at = 0;
    for (struct environment *env;
         (env = replica->options.next(replica->options.owner, &at));) {
        struct followed *followed = replica_followed_of(replica, env->number);
        followed->is_on = true;
        followed->stream = store->ops->position(store, env->number).seq;
    }
}

/* Returns false if the environment is unknown. */
static bool find_account(const struct replica *replica, struct followed *followed,
                         uint32_t number)
{
    if (!followed->item.env)
        followed->item.env = replica->options.find(replica->options.owner, number);
    if (!followed->item.env)
        return false;
    note_new(followed);
    return true;
}

/* Returns false if an environment is unknown. */
static bool add_items(struct replica *replica)
{
    for (uint32_t number = 1; number < replica->envs.count; number++) {
        struct followed *followed = replica_find(replica, number);
        if (!followed)
            continue;
        if (!find_account(replica, followed, number))
            return false;
        if (replica->state == REPLICA_LOADING && must_catch_up(replica, followed))
            catch_up_add(&replica->catch_up, &followed->item);
    }
    return true;
}

/* The accounts come first: they name the environments, and who may see them. */
static void catch_up(struct replica *replica)
{
    struct followed *accounts = replica_followed_of(replica, ENV_INSTALLATION);
    replica->begins_again = is_loading(replica);
    if (replica->begins_again)
        return;
    bool is_behind = !accounts->item.is_loaded || accounts->item.is_partial ||
                     replica->accounts_applied < accounts->stream;
    if (is_behind) {
        replica->reads_accounts = accounts->item.is_partial = true;
        replica->accounts_target = accounts->stream;
        replica->options.read_accounts(replica->options.owner);
        return;
    }
    if (replica->state == REPLICA_LOADING)
        use_positions(replica);
    if (!add_items(replica))
        replica_stop(replica, no_account);
    else
        catch_up_begin(&replica->catch_up); /* reads the counters, if nothing else */
}

static void note_accounts_read(struct replica *replica, uint64_t seq)
{
    struct catch_up_item *accounts = &replica_followed_of(replica, ENV_INSTALLATION)->item;
    accounts->is_loaded = replica->accounts_were_read = true;
    accounts->is_partial = false;
    if (replica->accounts_target < seq)
        replica->accounts_target = seq;
    if (replica->accounts_applied < replica->accounts_target)
        replica->accounts_applied = replica->accounts_target;
}

void replica_accounts_read(struct replica *replica, uint64_t seq, enum err status)
{
    replica->reads_accounts = false;
    if (!status)
        note_accounts_read(replica, seq);
    if (!is_catching(replica))
        return;
    if (status)
        replica_stop(replica, "cannot read the accounts from the database");
    else
        catch_up(replica);
}

/* The counters were read after the accounts. So these are no newer than they say. */
static void note_accounts_target(struct replica *replica)
{
    struct store_position position =
        replica->store->ops->position(replica->store, ENV_INSTALLATION);
    if (replica->accounts_were_read)
        replica_followed_of(replica, ENV_INSTALLATION)->item.target = position.seq;
    replica->accounts_were_read = false;
}

/* Retention may have been at work while no leader was followed, in environments that have not
 * changed. Returns false if it was not. */
static bool add_purged(struct replica *replica)
{
    for (uint32_t number = 1; number < replica->envs.count; number++) {
        struct followed *followed = replica_find(replica, number);
        if (followed && is_purged(replica, followed->item.env))
            catch_up_add(&replica->catch_up, &followed->item);
    }
    return !list_empty(&replica->catch_up.waiting);
}

static void on_caught_up(struct catch_up *catching, enum store_status status)
{
    struct replica *replica = container_of(catching, struct replica, catch_up);
    if (replica->state == REPLICA_FOLLOWING) {
        if (status)
            replica_stop(replica, "cannot catch up from the database");
        return;
    }
    if (!status)
        note_accounts_target(replica);
    if (!is_catching(replica))
        return;
    if (replica->begins_again)
        catch_up(replica);
    else if (status)
        replica_stop(replica, "cannot catch up from the database");
    else if (replica->state == REPLICA_LOADING && add_purged(replica))
        catch_up_begin(&replica->catch_up);
    else
        end_catching(replica);
}

static void on_landed(struct catch_up *catching, struct catch_up_item *item)
{
    struct replica *replica = container_of(catching, struct replica, catch_up);
    if (replica->state == REPLICA_FOLLOWING)
        replica_land_alone(replica, container_of(item, struct followed, item));
}

/* An environment has come into memory at the leader. It has no changes here that wait. */
static void add_alone(struct replica *replica, uint32_t number)
{
    struct followed *followed = replica_followed_of(replica, number);
    bool is_held =
        followed->is_alone || followed->lacks || !frame_line_is_empty(&followed->held);
    if (is_held || number == ENV_INSTALLATION)
        replica_stop(replica, "an unexpected position");
    else if (!find_account(replica, followed, number))
        replica_stop(replica, no_account);
    else if (must_catch_up(replica, followed))
        replica_begin_alone(replica, followed);
    else
        replica_report_floor(replica, followed);
}

static void on_took(struct catch_up *catching, struct environment *env)
{
    replica_report_applied(container_of(catching, struct replica, catch_up), env);
}

static void on_takes(struct catch_up *catching, const struct run *run)
{
    replica_note_newest(container_of(catching, struct replica, catch_up), run);
}

void replica_load(struct replica *replica)
{
    struct store *store = replica->store;
    assert(replica->state == REPLICA_OFF);
    replica->state = REPLICA_LOADING;
    replica_followed_of(replica, ENV_INSTALLATION)->stream =
        store->ops->position(store, ENV_INSTALLATION).seq;
    catch_up(replica);
}

/* ---- hello ---- */

static void on_hello(struct replica *replica, const struct repl_hello *hello)
{
    const struct replica_options *options = &replica->options;
    if (!repl_version_common(hello->least, hello->newest)) {
        replica_stop(replica, "no version of replication in common");
    } else if (strcmp(hello->head.epoch, replica->store->epoch) != 0) {
        replica_stop(replica, "the leader has another epoch of the database");
        options->give_up(options->owner, "the leader has another epoch of the database");
    } else if (hello->head.term < replica->head.term) {
        replica_stop(replica, "an earlier lead");
    } else {
        replica->head = hello->head;
        replica->has_hello = true;
    }
}

static void take_positions(struct replica *replica, const struct repl_positions *positions)
{
    for (size_t i = 0; i < positions->count; i++) {
        const struct repl_position *position = &positions->list[i];
        struct followed *followed = replica_followed_of(replica, position->env);
        followed->is_on = true;
        followed->stream = position->seq;
    }
}

/* Those of environments that the leader has got since its hello. */
static void on_later_positions(struct replica *replica,
                               const struct repl_positions *positions)
{
    for (size_t i = 0; i < positions->count && replica->state == REPLICA_FOLLOWING; i++) {
        struct repl_position *position = &positions->list[i];
        if (replica_retract_drop(replica, position))
            continue;
        take_positions(replica, &(struct repl_positions){ position, 1 });
        add_alone(replica, position->env);
    }
}

/* The leader's positions after its hello. */
static void on_positions(struct replica *replica, const struct repl_positions *positions)
{
    take_positions(replica, positions);
    if (positions->count == REPL_POSITIONS_MAX)
        return; /* more follow */
    replica->state = REPLICA_CATCHING;
    catch_up(replica);
}

void replica_connected(struct replica *replica)
{
    struct repl_frame frame = { .kind = REPL_HELLO,
                                .hello = { .least = REPL_VERSION_LEAST,
                                           .newest = REPL_VERSION,
                                           .gateway = replica->options.gateway } };
    assert(replica->state == REPLICA_OFF);
    memcpy(frame.hello.head.epoch, replica->store->epoch, sizeof(frame.hello.head.epoch));
    replica->state = REPLICA_HELLO;
    replica->heard_at = loop_boot_ms(replica->loop);
    replica->ask_at = INT64_MAX; /* not before it follows */
    arm(replica);
    replica->options.send(replica->options.link, &frame);
}

/* ---- frames ---- */

/* Returns false if the connection has ended. */
static bool end_documents(struct replica *replica)
{
    struct failure why = { 0 };
    enum err err = OK;
    if (replica->has_documents && replica->options.documents_end)
        err = replica->options.documents_end(replica->options.owner, &why);
    replica->has_documents = false;
    if (!err)
        return true;
    replica_followed_of(replica, ENV_INSTALLATION)->item.is_partial = true;
    replica_stop(replica, why.text);
    return false;
}

void replica_message_end(struct replica *replica)
{
    if (replica->state == REPLICA_FOLLOWING &&
        frame_line_is_empty(&replica->waiting.in_order))
        end_documents(replica);
}

/* Returns false if the frame must be applied again, later. */
static bool apply(struct replica *replica, struct repl_frame *frame)
{
    switch (frame->kind) {
    case REPL_POSITIONS: on_later_positions(replica, &frame->positions); return true;
    case REPL_BEAT: on_beat(replica, &frame->beat); return true;
    default: return replica_apply_change(replica, frame);
    }
}

/* The frame is of that many bytes. Returns false if it must be taken again, later. */
static bool take(struct replica *replica, struct repl_frame *frame, size_t bytes)
{
    if (frame->kind != REPL_DOCUMENT && !end_documents(replica))
        return true;
    if (!replica_must_hold(replica, frame))
        return apply(replica, frame);
    replica_hold(replica, frame, bytes);
    return true;
}

static bool may_take(const struct replica *replica)
{
    return replica->state == REPLICA_FOLLOWING &&
           !frame_line_is_empty(&replica->waiting.in_order);
}

static void take_some(struct replica *replica)
{
    struct waiting_frames *waiting = &replica->waiting;
    struct timeslice timeslice = loop_timeslice(replica->loop);
    while (may_take(replica) && timeslice_left(&timeslice)) {
        struct waiting_frame *first = waiting_take(waiting, &waiting->in_order);
        if (!take(replica, &first->frame, first->bytes - sizeof(*first))) {
            waiting_put_back(waiting, &waiting->in_order, first);
            return;
        }
        waiting_destroy(first);
    }
}

static void apply_some(struct deferred *applying)
{
    struct replica *replica = container_of(applying, struct replica, applying);
    take_some(replica);
    bool more = replica_apply_held(replica) || may_take(replica);
    if (more)
        loop_defer(replica->loop, applying);
    else
        replica_message_end(replica);
}

static void keep(struct replica *replica, const struct repl_frame *frame, size_t bytes)
{
    waiting_add(&replica->waiting, waiting_create(frame, bytes));
    if (replica->waiting.in_order.bytes > REPLICA_WAITING_MAX)
        replica_stop(replica, "too many changes have waited for the database");
    else if (may_take(replica))
        loop_defer(replica->loop, &replica->applying);
}

static void on_not_filled(void *owner)
{
    replica_stop(owner, "cannot read packets from the database");
}

/* ---- frames that arrive ---- */

static void receive_hello(struct replica *replica, const struct repl_frame *frame)
{
    if (frame->kind == REPL_HELLO && !replica->has_hello)
        on_hello(replica, &frame->hello);
    else if (frame->kind == REPL_POSITIONS && replica->has_hello)
        on_positions(replica, &frame->positions);
    else
        replica_stop(replica, "an unexpected frame before the positions");
}

void replica_receive(struct replica *replica, struct repl_frame *frame, size_t bytes)
{
    bool at_once = replica->state == REPLICA_FOLLOWING &&
                   frame_line_is_empty(&replica->waiting.in_order);
    bool is_done = true;
    replica->bytes += bytes;
    if (replica->state != REPLICA_OFF && frame->kind == REPL_END)
        replica_stop(replica, frame->end.why);
    else if (replica->state == REPLICA_HELLO)
        receive_hello(replica, frame);
    else if (replica->state != REPLICA_OFF)
        is_done = at_once && take(replica, frame, bytes);
    if (is_done)
        repl_frame_finish(frame);
    else
        keep(replica, frame, bytes);
}
