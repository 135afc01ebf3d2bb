/* cluster_replication_faults.c - deliberate faults of replication, from outside of it. */
#include <stdlib.h>

#include "base/mem.h"
#include "core/replication/replica_parts.h"
#include "tests/support/cluster/cluster.h"
#include "tests/support/cluster/cluster_faults.h"

enum { LATE_MS = 6000, WINDOWS_KEPT = 64 };

/* ---- sent ---- */

bool cluster_fault_send(struct cluster_replication *replication, struct repl_frame *frame)
{
    if (!has_fault(FAULT_NO_BEFORE))
        return true;
    if (frame->kind == REPL_BEFORE) {
        run_finish(&replication->before);
        run_copy(&replication->before, &frame->run.run);
        return false;
    }
    if (frame->kind == REPL_CHANGE && !strcmp(replication->before.id, frame->run.run.id)) {
        repl_run_complete(&frame->run, &replication->before);
        frame->run.marks |= REPL_PACKETS;
    }
    return true;
}

/* ---- received ---- */

static void skip(struct cluster_replication *replication, struct repl_frame *frame)
{
    struct repl_run *change = &frame->run;
    struct repl_passed passed = { change->env, change->seq, change->seq };
    if (frame->kind != REPL_CHANGE || !chance(&replication->gateway->cluster->draws, 100))
        return;
    repl_frame_finish(frame);
    *frame = (struct repl_frame){ .kind = REPL_PASSED, .passed = passed };
}

/* Shows what the leader may not have applied. */
static void forget_ahead(struct replica *replica)
{
    uint32_t at = 0;
    for (struct followed *followed; (followed = slots_next(&replica->envs, &at));)
        if (followed->is_alone && !followed->is_catching)
            replica_reach_alone(replica, followed);
    replica->ahead = false;
}

void cluster_fault_receive(struct cluster_replication *replication,
                           struct repl_frame *frame)
{
    struct replica *replica = &replication->replica;
    if (has_fault(FAULT_SKIPPED_CHANGE))
        skip(replication, frame);
    if (frame->kind != REPL_BEAT)
        return;
    if (has_fault(FAULT_TRUST_FROM_ARRIVAL))
        replica->asked_at[frame->beat.number % REPLICA_ASKS] = loop_boot_ms(replica->loop);
    if (has_fault(FAULT_AHEAD_OF_LEADER))
        forget_ahead(replica);
}

/* ---- changes of keys come late ---- */

bool cluster_fault_delays(struct cluster_replication *replication,
                          const struct document *document)
{
    if (!has_fault(FAULT_LATE_REVOCATION))
        return false;
    struct repl_message *late = mem_new(struct repl_message);
    late->frame.kind = REPL_DOCUMENT;
    late->frame.document.document = *document;
    bytes_ref(document->name);
    bytes_ref(document->body);
    late->message.at = replication->gateway->cluster->network.now + LATE_MS;
    list_append(&replication->late, &late->late_link);
    return true;
}

static void drop(struct repl_message *late)
{
    list_remove(&late->late_link);
    repl_frame_finish(&late->frame);
    free(late);
}

void cluster_fault_tick(struct cluster_replication *replication)
{
    struct environment *env = replication->gateway->env;
    if (env && has_fault(FAULT_SHOWN_ALONE))
        env->reaches.shown_until = INT64_MAX;
    if (env && has_fault(FAULT_HELD_ANSWER))
        env->reaches.arrived = 0;
    list_each (link, &replication->late) {
        struct repl_message *late = container_of(link, struct repl_message, late_link);
        if (late->message.at > replication->gateway->cluster->network.now)
            continue;
        cluster_accounts_put(&replication->gateway->accounts,
                             &late->frame.document.document);
        drop(late);
    }
}

void cluster_fault_forget(struct cluster_replication *replication)
{
    list_each (link, &replication->late)
        drop(container_of(link, struct repl_message, late_link));
    run_finish(&replication->before);
    replication->before = (struct run){ 0 };
}

/* ---- catching up keeps the ring, or the counts ---- */

static void deliver_and_keep_ring(struct environment *env, struct store_read *read,
                                  enum store_status status)
{
    struct recent kept = env->recent;
    env->recent = (struct recent){ .dropped = kept.dropped };
    read->done(read, status);
    if (env->recent.dropped == kept.dropped && !env->recent.count) {
        env->recent = kept; /* it has not landed */
        return;
    }
    recent_finish(&env->recent);
    env->recent = kept;
}

static void deliver_and_keep_counts(struct environment *env, struct store_read *read,
                                    enum store_status status)
{
    struct {
        struct window *window;
        struct tally tally;
    } kept[WINDOWS_KEPT];
    size_t count = 0, at = 0;
    for (struct window *window; (window = table_next(&env->windows.by_key, &at));)
        if (window->tally.exact && count < WINDOWS_KEPT) {
            kept[count].window = window;
            kept[count++].tally = window->tally;
        }
    read->done(read, status);
    for (size_t i = 0; i < count; i++) {
        struct tally *tally = &kept[i].window->tally;
        if (tally->exact)
            continue;
        tally_stop(kept[i].window);
        memcpy(tally->counts, kept[i].tally.counts, sizeof(tally->counts));
        tally->exact = true;
    }
}

void cluster_fault_deliver(struct environment *env, struct store_read *read,
                           enum store_status status)
{
    bool is_page = env && read->kind == READ_WALK &&
                   container_of(read, struct store_walk, read)->kind == WALK_ALL;
    if (is_page && has_fault(FAULT_KEEPS_RING))
        deliver_and_keep_ring(env, read, status);
    else if (is_page && has_fault(FAULT_KEEPS_COUNTS))
        deliver_and_keep_counts(env, read, status);
    else
        read->done(read, status);
}
