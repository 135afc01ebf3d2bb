/* replica_held.c - holds the frames of one environment while those of others are applied.
 *
 *   its frame lacks a packet, or its windows are full ──► held ──► applied, once it may be
 *        ▲                                                 │
 *        │                                                 │ too much is held, or the leader
 *        │ the stream has reached                          ▼ has omitted a change
 *   ahead of the stream ◄── alone: memory is brought ◄── lacks: frames are given up until
 *                           to the database's state            the next look
 *
 * Beats are applied although frames are held, so memory of an environment may lack what had
 * arrived before a beat. So `reaches` of the environment knows how far the frames are that
 * have arrived, and until when memory without them may be shown: as long as the last beat before
 * them permits. Alone, it is not shown. */
#include "core/replication/replica_parts.h"

#include "base/log.h"
#include "base/metrics.h"

enum { LOG_AGAIN_MS = 60 * 1000 };

/* Why frames were given up; for the log. */
static const char too_many[] = "too many of its changes have waited";
static const char omitted[] = "the leader has omitted some of its changes";
static const char dropped[] = "it left the leader's memory, and came back";
static const char removed[] = "retention has removed a run whose change waited";

/* Returns the frame's environment, or NULL if that is not in memory. */
static struct followed *followed_by(const struct replica *replica,
                                    const struct repl_frame *frame)
{
    uint32_t number = ENV_INSTALLATION;
    switch (frame->kind) {
    case REPL_BEFORE:
    case REPL_CHANGE: number = frame->run.env; break;
    case REPL_PASSED:
    case REPL_OMITTED: number = frame->passed.env; break;
    case REPL_FLOOR: number = frame->floor.env; break;
    case REPL_SUM: number = frame->sum.env; break;
    case REPL_DROPPED: number = frame->dropped.env; break;
    default: break;
    }
    struct followed *followed = replica_find(replica, number);
    return followed && followed->item.env ? followed : NULL;
}

/* Returns true if the windows of the environment have yet to evaluate many changes. */
static bool is_blocked(const struct followed *followed, const struct repl_frame *frame)
{
    const struct environment *env = followed->item.env;
    return frame->kind == REPL_CHANGE && frame->run.seq > env->applied &&
           evaluation_is_full(&env->evaluation);
}

static bool is_omitted(const struct followed *followed, const struct repl_frame *frame)
{
    return frame->kind == REPL_OMITTED && frame->passed.to > followed->item.env->applied;
}

bool replica_must_hold(const struct replica *replica, const struct repl_frame *frame)
{
    const struct followed *followed = followed_by(replica, frame);
    if (!followed)
        return false;
    if (followed->is_catching || !frame_line_is_empty(&followed->held))
        return true;
    if (followed->lacks)
        return frame->kind != REPL_DROPPED;
    return waiting_lacks(frame) || is_omitted(followed, frame) ||
           is_blocked(followed, frame);
}

/* ---- how far memory is ---- */

static int64_t shown_until(const struct followed *followed)
{
    const struct waiting_frame *first = frame_line_first(&followed->held);
    if (followed->is_alone)
        return INT64_MIN;
    if (followed->lacks)
        return followed->until;
    return first ? first->until : INT64_MAX;
}

/* Feeds that have been silent continue. */
static void note_held(const struct followed *followed)
{
    struct environment *env = followed->item.env;
    bool was_late = environment_is_late(env);
    env->reaches.shown_until = shown_until(followed);
    if (was_late && env->certainty && !environment_is_late(env))
        certainty_return(env->certainty);
}

/* Returns the position of memory after the frame; 0: it does not move it. */
static uint64_t position_after(const struct repl_frame *frame)
{
    if (frame->kind == REPL_CHANGE)
        return frame->run.seq;
    bool is_passed = frame->kind == REPL_PASSED || frame->kind == REPL_OMITTED;
    return is_passed ? frame->passed.to : 0;
}

static void note_arrived(const struct followed *followed, const struct repl_frame *frame)
{
    struct reaches *reaches = &followed->item.env->reaches;
    uint64_t position = position_after(frame);
    if (reaches->arrived < position)
        reaches->arrived = position;
}

/* ---- applying ---- */

static bool is_ready(const struct followed *followed)
{
    const struct waiting_frame *first = frame_line_first(&followed->held);
    return first && !followed->is_catching && !waiting_lacks(&first->frame);
}

static void make_ready(struct replica *replica, struct followed *followed)
{
    if (!is_ready(followed) || !list_empty(&followed->link))
        return;
    list_append(&replica->ready, &followed->link);
    loop_defer(replica->loop, &replica->applying);
}

/* Returns false if it must be applied again, later. */
static bool apply_first(struct replica *replica, struct followed *followed)
{
    struct waiting_frame *first = waiting_take(&replica->waiting, &followed->held);
    if (is_blocked(followed, &first->frame) ||
        !replica_apply_change(replica, &first->frame)) {
        waiting_put_back(&replica->waiting, &followed->held, first);
        return false;
    }
    waiting_destroy(first);
    return true;
}

/* Returns false if nothing more of the environment may be applied now. */
static bool apply_some(struct replica *replica, struct followed *followed,
                       struct timeslice *timeslice)
{
    bool more = true;
    while (is_ready(followed) && timeslice_left(timeslice) && more)
        more = apply_first(replica, followed);
    if (replica->state == REPLICA_FOLLOWING)
        note_held(followed);
    return is_ready(followed);
}

bool replica_apply_held(struct replica *replica)
{
    struct timeslice timeslice = loop_timeslice(replica->loop);
    struct list again;
    list_init(&again);
    while (!list_empty(&replica->ready) && timeslice_left(&timeslice)) {
        struct followed *followed =
            container_of(list_take(&replica->ready), struct followed, link);
        if (apply_some(replica, followed, &timeslice))
            list_append(&again, &followed->link);
    }
    list_move_all(&replica->ready, &again);
    return !list_empty(&replica->ready);
}

/* ---- giving up ---- */

/* The environment lacks the frame from now on. */
static void note_lack(struct replica *replica, struct followed *followed,
                      const struct waiting_frame *one, const char *why)
{
    if (followed->lacks)
        return;
    followed->until = one->until;
    followed->why = why;
    followed->lacks = replica->has_alone = true;
}

/* Memory gets what the frame has from the database instead. */
static void give_up(struct replica *replica, struct followed *followed,
                    struct waiting_frame *one, const char *why)
{
    uint64_t position = position_after(&one->frame);
    if (one->frame.kind == REPL_CHANGE) {
        replica_note_newest(replica, &one->frame.run.run);
        followed->missed++;
        replica->waiting.changes++;
    }
    note_lack(replica, followed, one, why);
    waiting_destroy(one);
    if (position)
        replica_advance(replica, followed, position);
}

/* Nothing follows on REPL_DROPPED, which is kept. */
static void give_up_held(struct replica *replica, struct followed *followed,
                         const char *why)
{
    replica_forget_before(followed);
    followed->purged_at = 0;
    list_remove(&followed->link);
    left_out_read_on(&followed->held.left_out, false);
    for (struct waiting_frame *first; (first = frame_line_first(&followed->held));) {
        if (first->frame.kind == REPL_DROPPED)
            return;
        give_up(replica, followed, waiting_take(&replica->waiting, &followed->held), why);
    }
}

bool replica_retract_drop(struct replica *replica, const struct repl_position *position)
{
    struct followed *followed = replica_find(replica, position->env);
    const struct waiting_frame *last = followed ? frame_line_last(&followed->held) : NULL;
    if (!last || last->frame.kind != REPL_DROPPED)
        return false;
    struct waiting_frame *drop = waiting_take_last(&replica->waiting, &followed->held);
    give_up_held(replica, followed, dropped);
    followed->item.env->reaches.arrived = position->seq;
    if (followed->stream < position->seq)
        replica_advance(replica, followed, position->seq);
    give_up(replica, followed, drop, dropped);
    note_held(followed);
    return true;
}

static void forget_missed(struct replica *replica, struct followed *followed)
{
    replica->waiting.changes -= followed->missed;
    followed->missed = 0;
}

/* ---- alone ---- */

static void log_alone(const struct replica *replica, struct followed *followed)
{
    int64_t now = loop_boot_ms(replica->loop);
    if (followed->logged_at && now < followed->logged_at + LOG_AGAIN_MS)
        return;
    followed->logged_at = now;
    log_info("an environment is read again from the database", "environment",
             followed->item.env->id, "reason", followed->why, NULL);
}

void replica_begin_alone(struct replica *replica, struct followed *followed)
{
    followed->is_alone = followed->is_catching = replica->has_alone = true;
    followed->lacks = false;
    left_out_read_on(&followed->held.left_out, false);
    note_held(followed);
    catch_up_add(&replica->catch_up, &followed->item);
    if (!replica->catch_up.is_active)
        catch_up_begin(&replica->catch_up);
}

void replica_wait_alone(struct replica *replica, struct followed *followed)
{
    followed->is_alone = replica->has_alone = true;
    followed->landed_at = loop_boot_ms(replica->loop);
    note_held(followed);
}

static void end_loading(struct replica *replica, struct followed *followed)
{
    replica->loading -= followed->is_loading;
    followed->is_loading = false;
}

void replica_reach_alone(struct replica *replica, struct followed *followed)
{
    followed->is_alone = false;
    end_loading(replica, followed);
    note_held(followed);
    replica_report_floor(replica, followed);
}

/* Memory may lack later changes that were given up meanwhile. */
void replica_land_alone(struct replica *replica, struct followed *followed)
{
    followed->is_catching = false;
    followed->landed_at = loop_boot_ms(replica->loop);
    if (!followed->lacks)
        forget_missed(replica, followed);
    left_out_read_on(&followed->held.left_out, true);
    if (followed->stream >= followed->item.target)
        replica_reach_alone(replica, followed);
    make_ready(replica, followed);
}

/* Returns true if the stream has not reached what was read for too long. */
static bool is_wrong(const struct replica *replica, struct followed *followed)
{
    int64_t landed_ms = loop_boot_ms(replica->loop) - followed->landed_at;
    bool is_wrong =
        followed->is_alone && !followed->is_catching && landed_ms >= REPLICA_AHEAD_MS;
    followed->item.is_partial |= is_wrong;
    return is_wrong;
}

static void look(struct replica *replica, struct followed *followed)
{
    replica->has_alone |= followed->is_alone || followed->lacks;
    if (!followed->lacks || followed->is_catching)
        return;
    log_alone(replica, followed);
    metric_add(M_REPLICATION_ALONE, 1);
    replica_begin_alone(replica, followed);
}

void replica_look_alone(struct replica *replica)
{
    uint32_t at = 0;
    bool had_alone = replica->has_alone;
    replica->has_alone = false;
    if (!had_alone || replica->state != REPLICA_FOLLOWING)
        return;
    for (struct followed *followed; (followed = slots_next(&replica->envs, &at));) {
        if (is_wrong(replica, followed)) {
            replica_stop(replica, "the leader does not get what the database has");
            return;
        }
        look(replica, followed);
    }
}

void replica_forget_alone(struct replica *replica, struct followed *followed)
{
    followed->lacks = followed->is_alone = followed->is_catching = false;
    end_loading(replica, followed);
    forget_missed(replica, followed);
    left_out_read_on(&followed->held.left_out, true);
    note_held(followed);
}

/* ---- holding ---- */

static bool is_too_much(const struct replica *replica, const struct followed *followed)
{
    return followed->held.bytes > REPLICA_HELD_BYTES ||
           followed->held.changes > REPLICA_HELD_CHANGES ||
           replica->waiting.bytes > REPLICA_WAITING_MAX;
}

/* Returns true if memory can get no further by frames. */
static bool is_missing(const struct followed *followed, const struct repl_frame *frame)
{
    return (followed->lacks || frame->kind == REPL_OMITTED) && frame->kind != REPL_DROPPED;
}

void replica_hold(struct replica *replica, struct repl_frame *frame, size_t bytes)
{
    struct followed *followed = followed_by(replica, frame);
    struct waiting_frame *one = waiting_create(frame, bytes);
    *frame = (struct repl_frame){ 0 };
    one->until = replica->trust_until;
    note_arrived(followed, &one->frame);
    if (is_missing(followed, &one->frame)) {
        give_up_held(replica, followed, omitted);
        give_up(replica, followed, one, omitted);
    } else {
        waiting_hold(&replica->waiting, &followed->held, one);
        if (is_too_much(replica, followed))
            give_up_held(replica, followed, too_many);
    }
    note_held(followed);
    make_ready(replica, followed);
}

static void forget(struct replica *replica, struct followed *followed)
{
    waiting_clear(&replica->waiting, &followed->held);
    forget_missed(replica, followed);
    replica_forget_before(followed);
    list_remove(&followed->link);
    followed->lacks = followed->is_alone = followed->is_catching = false;
    end_loading(replica, followed);
    followed->purged_at = 0;
    if (!followed->item.env)
        return;
    followed->item.env->reaches.arrived = 0;
    followed->item.env->reaches.shown_until = INT64_MAX;
}

/* No read begins meanwhile. */
void replica_forget_held(struct replica *replica)
{
    uint32_t at = 0;
    for (struct followed *followed; (followed = slots_next(&replica->envs, &at));)
        left_out_read_on(&followed->held.left_out, false);
    at = 0;
    for (struct followed *followed; (followed = slots_next(&replica->envs, &at));)
        forget(replica, followed);
    replica->has_alone = false;
}

/* ---- packets that were left out ---- */

/* The frame that adds an environment may wait, too. */
bool replica_needs_packets(void *owner, const struct repl_run *change)
{
    const struct followed *followed = replica_find(owner, change->env);
    return !followed || change->seq > followed->item.env->applied;
}

void replica_note_filled(void *owner, const struct repl_run *change)
{
    struct followed *followed = replica_find(owner, change->env);
    if (followed)
        make_ready(owner, followed);
}

/* The run must not be shown without its packets. Its removal may arrive much later. */
void replica_note_removed(void *owner, const struct repl_run *change)
{
    struct followed *followed = replica_find(owner, change->env);
    if (!followed)
        return;
    give_up_held(owner, followed, removed);
    note_held(followed);
    make_ready(owner, followed);
}
