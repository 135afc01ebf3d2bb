/* replica_changes.c - applies frames with changes to memory. */
#include "core/replication/replica_parts.h"

#include <string.h>

#include "base/text.h"
#include "core/replication/comparison.h"

/* No beat was used while the accounts were ahead. */
static void reach_accounts(struct replica *replica)
{
    replica->ahead = false;
    replica_ask(replica);
}

void replica_advance(struct replica *replica, struct followed *followed, uint64_t seq)
{
    followed->stream = seq;
    if (seq < followed->item.target)
        return;
    if (replica->ahead && !followed->item.env)
        reach_accounts(replica);
    if (followed->is_alone && !followed->is_catching)
        replica_reach_alone(replica, followed);
}

/* Returns the environment of a frame that follows on what the stream has had so far. If
 * there is a jump, ends the connection and returns NULL. The accounts are then read again,
 * whatever their position. */
static struct followed *next_in(struct replica *replica, uint32_t env, uint64_t seq)
{
    struct followed *followed = replica_find(replica, env);
    if (followed && seq == followed->stream + 1)
        return followed;
    if (followed && env == ENV_INSTALLATION)
        followed->item.is_partial = true;
    replica_stop(replica, followed ? "the stream has a gap" : "an unknown environment");
    return NULL;
}

/* ---- runs ---- */

void replica_forget_before(struct followed *followed)
{
    run_finish(&followed->before);
    followed->before = (struct run){ 0 };
}

static void on_before(struct replica *replica, struct repl_run *before)
{
    struct followed *followed = replica_find(replica, before->env);
    if (!followed)
        return; /* its change ends the connection */
    replica_forget_before(followed);
    followed->before = before->run;
    before->run = (struct run){ 0 };
}

/* Returns the run as it was before the change. If it has left memory, it returns there, so
 * that the change is one of a known run. NULL: the run is new. */
static const struct run *restore_before(struct followed *followed, const struct run *run)
{
    struct environment *env = followed->item.env;
    struct tracked *known = environment_find(env, slice_of(run->id));
    bool is_sent = !strcmp(followed->before.id, run->id);
    if (!known && is_sent) {
        run_share_names(&followed->before);
        known = environment_load(env, &followed->before);
    }
    replica_forget_before(followed);
    return known ? &known->run : NULL;
}

void replica_note_newest(struct replica *replica, const struct run *run)
{
    text_note_id(run->id, replica->newest_id);
    if (replica->newest_ms < run->created_at)
        replica->newest_ms = run->created_at;
}

/* Returns false if memory lacks the run. */
static bool put(struct replica *replica, struct followed *followed, struct repl_run *change)
{
    const struct run *known = restore_before(followed, &change->run);
    bool is_whole = (change->marks & REPL_PACKETS) == REPL_PACKETS;
    if (!known && !is_whole)
        return false;
    if (known)
        repl_run_complete(change, known);
    else
        replica_note_newest(replica, &change->run);
    run_share_names(&change->run);
    environment_put(followed->item.env, &change->run, change->seq);
    return true;
}

void replica_report_applied(const struct replica *replica, struct environment *env)
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
        replica_forget_before(followed);
    } else if (!put(replica, followed, change)) {
        followed->item.is_loaded = false;
        replica_stop(replica, "a change of a run that is not in memory");
        return;
    } else {
        replica->changes++;
        replica_report_applied(replica, env);
    }
    replica_advance(replica, followed, change->seq);
}

/* ---- accounts ---- */

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
            replica_stop(replica, why.text);
            return;
        }
        replica->accounts_applied = change->seq;
    }
    replica->changes++;
    replica_advance(replica, followed, change->seq);
}

/* ---- positions ---- */

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
    replica_advance(replica, followed, passed->to);
}

/* Memory has these changes already. */
static void on_omitted(struct replica *replica, const struct repl_passed *omitted)
{
    struct followed *followed = next_in(replica, omitted->env, omitted->from);
    if (followed)
        replica_advance(replica, followed, omitted->to);
}

void replica_report_floor(const struct replica *replica, struct followed *followed)
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
    struct followed *followed = replica_find(replica, position->env);
    if (!followed)
        return true;
    if (followed->item.env &&
        environment_purge(followed->item.env, position, &followed->purged_at))
        return false;
    followed->purged_at = 0;
    replica_report_floor(replica, followed);
    return true;
}

/* Memory that is ahead of the stream cannot be compared. */
static void on_sum(struct replica *replica, const struct repl_sum *sum)
{
    struct followed *followed = replica_find(replica, sum->env);
    const struct environment *env = followed ? followed->item.env : NULL;
    if (!env || followed->stream != sum->seq || env->applied != sum->seq)
        return;
    if (comparison_of_sums(env, sum)) {
        replica->equals++;
        return;
    }
    replica->differences++;
    followed->item.is_loaded = false;
    replica_stop(replica, "memory differs from the leader's");
}

/* ---- environments that the leader does not have ---- */

void replica_leave(struct replica *replica, struct followed *followed)
{
    followed->item.is_loaded = false;
    replica_report_applied(replica, followed->item.env);
}

static void on_dropped(struct replica *replica, const struct repl_dropped *dropped)
{
    struct followed *followed = replica_find(replica, dropped->env);
    if (!followed || !followed->item.env)
        return;
    replica_forget_alone(replica, followed);
    followed->is_on = false;
    replica_leave(replica, followed);
}

/* ---- frames ---- */

bool replica_apply_change(struct replica *replica, struct repl_frame *frame)
{
    switch (frame->kind) {
    case REPL_BEFORE: on_before(replica, &frame->run); break;
    case REPL_CHANGE: on_change(replica, &frame->run); break;
    case REPL_DOCUMENT: on_document(replica, &frame->document); break;
    case REPL_PASSED: on_passed(replica, &frame->passed); break;
    case REPL_OMITTED: on_omitted(replica, &frame->passed); break;
    case REPL_FLOOR: return on_floor(replica, &frame->floor);
    case REPL_SUM: on_sum(replica, &frame->sum); break;
    case REPL_DROPPED: on_dropped(replica, &frame->dropped); break;
    default: replica_stop(replica, "an unexpected frame"); break;
    }
    return true;
}
