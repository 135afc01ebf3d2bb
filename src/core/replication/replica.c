/* replica.c - applies the leader's frames, in their order, to a follower's memory.
 *
 *   receive ─► keep ─► waiting: [ change │ beat │ change … ] ─► apply, in time slices
 *                │
 *                └── nothing waits, and it is FOLLOWING: applied at once */
#include "core/replication/replica.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "core/replication/comparison.h"

static void apply_some(struct deferred *applying);
static void on_time(struct timer *timer);
static void on_caught_up(struct catch_up *catching, enum store_status status);
static void on_took(struct catch_up *catching, struct environment *env);
static bool needs_packets(void *owner, const struct repl_run *change);
static void on_filled(void *owner);
static void on_not_filled(void *owner);

void replica_init(struct replica *replica, struct loop *loop, struct store *store,
                  const struct replica_options *options)
{
    const struct left_out_options left_out = { .store = store,
                                               .needs = needs_packets,
                                               .filled = on_filled,
                                               .failed = on_not_filled,
                                               .owner = replica };
    *replica = (struct replica){ .loop = loop, .store = store, .options = *options };
    replica->applying.fn = apply_some;
    list_init(&replica->applying.link);
    waiting_init(&replica->waiting, &left_out);
    catch_up_init(&replica->catch_up, loop, store, on_caught_up);
    replica->catch_up.took = on_took;
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

static struct followed *followed_of(struct replica *replica, uint32_t number)
{
    void **place = slots_at(&replica->envs, number);
    if (!*place)
        *place = mem_new(struct followed);
    return *place;
}

/* Returns NULL if the leader did not name the environment. */
static struct followed *find(const struct replica *replica, uint32_t number)
{
    struct followed *followed = slots_get(&replica->envs, number);
    return followed && followed->is_on ? followed : NULL;
}

/* ---- the connection ends ---- */

static void forget_before(struct replica *replica)
{
    run_finish(&replica->before);
    replica->before = (struct run){ 0 };
}

static void forget_stream(struct replica *replica)
{
    uint32_t at = 0;
    for (struct followed *followed; (followed = slots_next(&replica->envs, &at));)
        followed->is_on = followed->is_ahead = false;
    if (replica->has_documents) /* they have not taken effect */
        followed_of(replica, ENV_INSTALLATION)->item.is_partial = true;
    replica->has_documents = false;
    replica->ahead = 0;
    replica->has_hello = replica->begins_again = false;
    replica->trust_until = 0;
    replica->answered = 0;
    replica->purged_at = 0;
}

void replica_disconnected(struct replica *replica)
{
    if (replica->state == REPLICA_OFF)
        return;
    replica->state = REPLICA_OFF;
    timers_clear(loop_timers(replica->loop), &replica->timer);
    loop_cancel_deferred(&replica->applying);
    forget_before(replica);
    waiting_clear(&replica->waiting);
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

static void stop(struct replica *replica, const char *why)
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
        stop(replica, "the leader does not answer");
        return;
    }
    if (now >= replica->ask_at)
        replica_ask(replica);
    if (replica->state != REPLICA_OFF)
        arm(replica);
}

int64_t replica_left_ms(const struct replica *replica)
{
    int64_t left = replica->trust_until - loop_boot_ms(replica->loop);
    bool follows = replica->state == REPLICA_FOLLOWING && !replica->ahead;
    return follows && left > 0 ? left : 0;
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
    uint32_t at = 0;
    if (!replica->ahead || replica->heard_at - replica->follows_at < REPLICA_AHEAD_MS)
        return;
    for (struct followed *followed; (followed = slots_next(&replica->envs, &at));)
        followed->item.is_partial |= followed->is_ahead;
    stop(replica, "the leader does not get what the database has");
}

static void on_beat(struct replica *replica, const struct repl_beat *beat)
{
    const struct repl_head *head = &replica->head;
    if (beat->head.term != head->term || strcmp(beat->head.epoch, head->epoch) != 0) {
        stop(replica, "a beat of another lead");
        return;
    }
    replica->heard_at = loop_boot_ms(replica->loop);
    bool is_known = replica->asked - beat->number < REPLICA_ASKS;
    if (is_known && !replica->ahead && beat->left_ms > 0)
        take_answer(replica, beat);
    else
        check_ahead(replica);
}

/* ---- changes ---- */

/* The stream has reached an environment that was ahead of it. No beat was used while one was, so
 * the last one asks for the next beat. */
static void reach(struct replica *replica)
{
    if (!--replica->ahead)
        replica_ask(replica);
}

static void advance(struct replica *replica, struct followed *followed, uint64_t seq)
{
    followed->stream = seq;
    if (!followed->is_ahead || seq < followed->item.target)
        return;
    followed->is_ahead = false;
    reach(replica);
}

/* Returns the environment of a frame that follows on what the stream has had so far. If
 * there is a jump, ends the connection and returns NULL. The accounts are then read again,
 * whatever their position. */
static struct followed *next_in(struct replica *replica, uint32_t env, uint64_t seq)
{
    struct followed *followed = find(replica, env);
    if (followed && seq == followed->stream + 1)
        return followed;
    if (followed && env == ENV_INSTALLATION)
        followed->item.is_partial = true;
    stop(replica, followed ? "the stream has a gap" : "an unknown environment");
    return NULL;
}

static void on_before(struct replica *replica, struct repl_run *before)
{
    forget_before(replica);
    replica->before = before->run;
    before->run = (struct run){ 0 };
}

/* Returns the run as it was before the change. If it has left memory, it returns there, so
 * that the change is one of a known run. NULL: the run is new. */
static const struct run *restore_before(struct replica *replica, struct environment *env,
                                        const struct run *run)
{
    struct tracked *known = environment_find(env, slice_of(run->id));
    bool is_sent = !strcmp(replica->before.id, run->id);
    if (!known && is_sent) {
        run_share_names(&replica->before);
        known = environment_load(env, &replica->before);
    }
    forget_before(replica);
    return known ? &known->run : NULL;
}

static void note_newest(struct replica *replica, const struct run *run)
{
    text_note_id(run->id, replica->newest_id);
    if (replica->newest_ms < run->created_at)
        replica->newest_ms = run->created_at;
}

/* Returns false if memory lacks the run. */
static bool put(struct replica *replica, struct environment *env, struct repl_run *change)
{
    const struct run *known = restore_before(replica, env, &change->run);
    bool is_whole = (change->marks & REPL_PACKETS) == REPL_PACKETS;
    if (!known && !is_whole)
        return false;
    if (known)
        repl_run_complete(change, known);
    else
        note_newest(replica, &change->run);
    run_share_names(&change->run);
    environment_put(env, &change->run, change->seq);
    return true;
}

static void report_applied(const struct replica *replica, struct environment *env)
{
    if (replica->options.applied)
        replica->options.applied(replica->options.owner, env);
}

/* The environment may have the change already, from the database. */
static void on_change(struct replica *replica, struct repl_run *change)
{
    struct followed *followed = next_in(replica, change->env, change->seq);
    if (!followed)
        return;
    struct environment *env = followed->item.env;
    if (change->seq <= env->applied) {
        forget_before(replica);
    } else if (!put(replica, env, change)) {
        followed->item.is_loaded = false;
        stop(replica, "a change of a run that is not in memory");
        return;
    } else {
        replica->changes++;
        report_applied(replica, env);
    }
    advance(replica, followed, change->seq);
}

static void on_document(struct replica *replica, const struct repl_document *change)
{
    struct failure why = { 0 };
    struct followed *followed = next_in(replica, change->env, change->seq);
    if (!followed)
        return;
    /* Otherwise memory has newer accounts, and may lack what this document refers to. */
    if (change->seq > replica->accounts_applied) {
        replica->has_documents = true;
        if (replica->options.take_document(replica->options.owner, &change->document,
                                           &why)) {
            stop(replica, why.text);
            return;
        }
        replica->accounts_applied = change->seq;
    }
    replica->changes++;
    advance(replica, followed, change->seq);
}

static void on_passed(struct replica *replica, const struct repl_passed *passed)
{
    struct followed *followed = next_in(replica, passed->env, passed->from);
    if (!followed)
        return;
    struct environment *env = followed->item.env;
    while (env && env->applied < passed->to)
        environment_pass(env, env->applied + 1);
    if (!env && replica->accounts_applied < passed->to)
        replica->accounts_applied = passed->to;
    advance(replica, followed, passed->to);
}

static void report_floor(const struct replica *replica, struct followed *followed)
{
    struct environment *env = followed->item.env;
    if (!env || env->floor == followed->floor)
        return;
    followed->floor = env->floor;
    if (replica->options.floor_moved)
        replica->options.floor_moved(replica->options.owner, env);
}

/* Returns false if the time slice has ended: call it again. */
static bool on_floor(struct replica *replica, const struct store_position *position)
{
    struct followed *followed = find(replica, position->env);
    if (followed && followed->item.env &&
        environment_purge(followed->item.env, position, &replica->purged_at))
        return false;
    replica->purged_at = 0;
    if (followed)
        report_floor(replica, followed);
    return true;
}

/* ---- sums ---- */

/* Memory that is ahead of the stream cannot be compared. */
static void on_sum(struct replica *replica, const struct repl_sum *sum)
{
    struct followed *followed = find(replica, sum->env);
    const struct environment *env = followed ? followed->item.env : NULL;
    if (!env || followed->stream != sum->seq || env->applied != sum->seq)
        return;
    if (comparison_of_sums(env, sum)) {
        replica->equals++;
        return;
    }
    replica->differences++;
    followed->item.is_loaded = false;
    stop(replica, "memory differs from the leader's");
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

/* Later changes of the environment do not arrive here. */
static void leave(struct replica *replica, struct followed *followed)
{
    followed->item.is_loaded = false;
    report_applied(replica, followed->item.env);
}

static void on_dropped(struct replica *replica, const struct repl_dropped *dropped)
{
    struct followed *followed = find(replica, dropped->env);
    if (!followed || !followed->item.env)
        return;
    if (followed->is_ahead)
        reach(replica);
    followed->is_on = followed->is_ahead = false;
    leave(replica, followed);
}

void replica_forget(struct replica *replica, uint32_t number)
{
    struct followed *followed = slots_get(&replica->envs, number);
    assert(replica_was_left(replica, number));
    followed->item.env = NULL;
}

static void follow(struct replica *replica)
{
    uint32_t at = 0;
    replica->state = REPLICA_FOLLOWING;
    replica->heard_at = replica->follows_at = loop_boot_ms(replica->loop);
    replica->ahead = 0;
    for (struct followed *followed; (followed = slots_next(&replica->envs, &at));) {
        followed->is_ahead = followed->is_on && followed->stream < followed->item.target;
        replica->ahead += followed->is_ahead;
        report_floor(replica, followed);
        if (!followed->is_on && followed->item.env)
            leave(replica, followed);
    }
    left_out_read_on(&replica->waiting.left_out, true);
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

/* Everything is caught up. */
static void end_catching(struct replica *replica)
{
    if (replica->state != REPLICA_LOADING) {
        follow(replica);
        return;
    }
    replica_disconnected(replica);
    replica->options.loaded(replica->options.owner, OK);
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

/* Without a leader, the database says how far each environment is. */
static void take_positions(struct replica *replica)
{
    struct store *store = replica->store;
    uint32_t at = 0;
    for (struct environment *env;
         (env = replica->options.next(replica->options.owner, &at));) {
        struct followed *followed = followed_of(replica, env->number);
        followed->is_on = true;
        followed->stream = store->ops->position(store, env->number).seq;
    }
}

/* Returns false if an environment is unknown. */
static bool add_items(struct replica *replica)
{
    for (uint32_t number = 1; number < replica->envs.count; number++) {
        struct followed *followed = find(replica, number);
        if (!followed)
            continue;
        if (!followed->item.env)
            followed->item.env = replica->options.find(replica->options.owner, number);
        if (!followed->item.env)
            return false;
        note_new(followed);
        if (must_catch_up(replica, followed))
            catch_up_add(&replica->catch_up, &followed->item);
    }
    return true;
}

/* The accounts come first: they name the environments, and who may see them. */
static void catch_up(struct replica *replica)
{
    struct followed *accounts = followed_of(replica, ENV_INSTALLATION);
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
        take_positions(replica);
    if (!add_items(replica))
        stop(replica, "an environment has no account");
    else
        catch_up_begin(&replica->catch_up); /* reads the counters, if nothing else */
}

static void note_accounts_read(struct replica *replica, uint64_t seq)
{
    struct catch_up_item *accounts = &followed_of(replica, ENV_INSTALLATION)->item;
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
        stop(replica, "cannot read the accounts from the database");
    else
        catch_up(replica);
}

/* The counters were read after the accounts. So these are no newer than they say. */
static void note_accounts_target(struct replica *replica)
{
    struct store_position position =
        replica->store->ops->position(replica->store, ENV_INSTALLATION);
    if (replica->accounts_were_read)
        followed_of(replica, ENV_INSTALLATION)->item.target = position.seq;
    replica->accounts_were_read = false;
}

/* Retention may have been at work while no leader was followed, in environments that have not
 * changed. Returns false if it was not. */
static bool add_purged(struct replica *replica)
{
    for (uint32_t number = 1; number < replica->envs.count; number++) {
        struct followed *followed = find(replica, number);
        if (followed && is_purged(replica, followed->item.env))
            catch_up_add(&replica->catch_up, &followed->item);
    }
    return !list_empty(&replica->catch_up.waiting);
}

static void on_caught_up(struct catch_up *catching, enum store_status status)
{
    struct replica *replica = container_of(catching, struct replica, catch_up);
    if (!status)
        note_accounts_target(replica);
    if (!is_catching(replica))
        return;
    if (replica->begins_again)
        catch_up(replica);
    else if (status)
        stop(replica, "cannot catch up from the database");
    else if (add_purged(replica))
        catch_up_begin(&replica->catch_up);
    else
        end_catching(replica);
}

static void on_took(struct catch_up *catching, struct environment *env)
{
    report_applied(container_of(catching, struct replica, catch_up), env);
}

void replica_load(struct replica *replica)
{
    struct store *store = replica->store;
    assert(replica->state == REPLICA_OFF);
    replica->state = REPLICA_LOADING;
    followed_of(replica, ENV_INSTALLATION)->stream =
        store->ops->position(store, ENV_INSTALLATION).seq;
    catch_up(replica);
}

/* ---- hello ---- */

static void on_hello(struct replica *replica, const struct repl_hello *hello)
{
    const struct replica_options *options = &replica->options;
    if (!repl_version_common(hello->least, hello->newest)) {
        stop(replica, "no version of replication in common");
    } else if (strcmp(hello->head.epoch, replica->store->epoch) != 0) {
        stop(replica, "the leader has another epoch of the database");
        options->give_up(options->owner, "the leader has another epoch of the database");
    } else if (hello->head.term < replica->head.term) {
        stop(replica, "an earlier lead");
    } else {
        replica->head = hello->head;
        replica->has_hello = true;
    }
}

/* The leader's positions after its hello, or of one environment that it has got since. */
static void on_positions(struct replica *replica, const struct repl_positions *positions)
{
    for (size_t i = 0; i < positions->count; i++) {
        const struct repl_position *position = &positions->list[i];
        struct followed *followed = followed_of(replica, position->env);
        followed->is_on = true;
        followed->stream = position->seq;
    }
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

/* Windows of the environment have yet to evaluate many changes. */
static bool has_to_wait(const struct replica *replica, const struct repl_frame *frame)
{
    if (frame->kind != REPL_CHANGE)
        return false;
    const struct followed *followed = find(replica, frame->run.env);
    return followed && evaluation_is_full(&followed->item.env->evaluation);
}

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
    followed_of(replica, ENV_INSTALLATION)->item.is_partial = true;
    stop(replica, why.text);
    return false;
}

void replica_message_end(struct replica *replica)
{
    if (replica->state == REPLICA_FOLLOWING && waiting_is_empty(&replica->waiting))
        end_documents(replica);
}

/* Returns false if the frame must be applied again, later. */
static bool apply(struct replica *replica, struct repl_frame *frame)
{
    if (has_to_wait(replica, frame))
        return false;
    if (frame->kind != REPL_DOCUMENT && !end_documents(replica))
        return true;
    switch (frame->kind) {
    case REPL_POSITIONS: on_positions(replica, &frame->positions); break;
    case REPL_BEFORE: on_before(replica, &frame->run); break;
    case REPL_CHANGE: on_change(replica, &frame->run); break;
    case REPL_DOCUMENT: on_document(replica, &frame->document); break;
    case REPL_PASSED: on_passed(replica, &frame->passed); break;
    case REPL_FLOOR: return on_floor(replica, &frame->floor);
    case REPL_BEAT: on_beat(replica, &frame->beat); break;
    case REPL_SUM: on_sum(replica, &frame->sum); break;
    case REPL_DROPPED: on_dropped(replica, &frame->dropped); break;
    default: stop(replica, "an unexpected frame"); break;
    }
    return true;
}

static bool may_apply(const struct replica *replica)
{
    return replica->state == REPLICA_FOLLOWING && waiting_is_ready(&replica->waiting);
}

static void apply_some(struct deferred *applying)
{
    struct replica *replica = container_of(applying, struct replica, applying);
    struct timeslice timeslice = loop_timeslice(replica->loop);
    while (may_apply(replica) && timeslice_left(&timeslice)) {
        struct waiting_frame *first = waiting_take(&replica->waiting);
        if (!apply(replica, &first->frame)) {
            waiting_put_back(&replica->waiting, first);
            break;
        }
        waiting_destroy(&replica->waiting, first);
    }
    if (may_apply(replica))
        loop_defer(replica->loop, applying);
    else
        replica_message_end(replica);
}

static void keep(struct replica *replica, const struct repl_frame *frame, size_t bytes)
{
    waiting_add(&replica->waiting, frame, bytes);
    if (replica->waiting.bytes > REPLICA_WAITING_MAX)
        stop(replica, "too many changes have waited for the database");
    else if (may_apply(replica))
        loop_defer(replica->loop, &replica->applying);
}

/* ---- packets that were left out ---- */

static bool needs_packets(void *owner, const struct repl_run *change)
{
    const struct followed *followed = find(owner, change->env);
    return followed && change->seq > followed->item.env->applied;
}

static void on_filled(void *owner)
{
    struct replica *replica = owner;
    if (may_apply(replica))
        loop_defer(replica->loop, &replica->applying);
}

static void on_not_filled(void *owner)
{
    stop(owner, "cannot read packets from the database");
}

/* ---- frames that arrive ---- */

static void receive_hello(struct replica *replica, const struct repl_frame *frame)
{
    if (frame->kind == REPL_HELLO && !replica->has_hello)
        on_hello(replica, &frame->hello);
    else if (frame->kind == REPL_POSITIONS && replica->has_hello)
        on_positions(replica, &frame->positions);
    else
        stop(replica, "an unexpected frame before the positions");
}

void replica_receive(struct replica *replica, struct repl_frame *frame, size_t bytes)
{
    bool at_once =
        replica->state == REPLICA_FOLLOWING && waiting_is_empty(&replica->waiting);
    bool is_done = true;
    replica->bytes += bytes;
    if (replica->state != REPLICA_OFF && frame->kind == REPL_END)
        stop(replica, frame->end.why);
    else if (replica->state == REPLICA_HELLO)
        receive_hello(replica, frame);
    else if (replica->state != REPLICA_OFF)
        is_done = at_once && !waiting_lacks(frame) && apply(replica, frame);
    if (is_done)
        repl_frame_finish(frame);
    else
        keep(replica, frame, bytes);
}
