/* cluster_replica.c - a follower connects, catches up, applies frames, and asks. */
#include "tests/support/cluster/cluster_replica.h"

#include <stdlib.h>

#include "base/mem.h"
#include "tests/support/cluster/cluster.h"
#include "tests/support/cluster/cluster_faults.h"

enum { HELLO_MS = 400, LATE_MS = 6000 };

static int64_t now_of(const struct cluster_replica *replica)
{
    return replica->gateway->cluster->network.now;
}

void cluster_replica_init(struct cluster_replica *replica, struct cluster_gateway *gateway)
{
    *replica = (struct cluster_replica){ .gateway = gateway, .leader = -1 };
    list_init(&replica->waiting);
}

/* ---- messages ---- */

static void destroy_message(struct cluster_message *message)
{
    struct repl_message *own = container_of(message, struct repl_message, message);
    repl_frame_finish(&own->frame);
    free(own);
}

static void on_frame(struct cluster *cluster, struct cluster_message *message)
{
    struct repl_message *own = container_of(message, struct repl_message, message);
    struct cluster_gateway *gateway = &cluster->gateways[message->to];
    if (own->frame.kind == REPL_ASK ||
        (own->frame.kind == REPL_HELLO && !own->frame.hello.head.term))
        cluster_source_receive(&gateway->source, own);
    else
        cluster_replica_receive(&gateway->replica, own);
}

void cluster_frame_send(struct cluster *cluster, int from, int to, struct repl_frame *frame)
{
    struct repl_message *message = mem_new(struct repl_message);
    message->frame = *frame;
    message->message.arrive = on_frame;
    message->message.destroy = destroy_message;
    cluster_send(&cluster->network, from, to, &message->message);
}

static void send(struct cluster_replica *replica, struct repl_frame frame)
{
    cluster_frame_send(replica->gateway->cluster, replica->gateway->number, replica->leader,
                       &frame);
}

/* ---- the connection ---- */

static void forget_before(struct cluster_replica *replica)
{
    if (replica->before)
        run_finish(&replica->before->run);
    free(replica->before);
    replica->before = NULL;
}

static void forget_waiting(struct cluster_replica *replica)
{
    while (!list_empty(&replica->waiting)) {
        struct repl_message *message =
            container_of(list_take(&replica->waiting), struct repl_message, waiting_link);
        destroy_message(&message->message);
    }
}

void cluster_replica_end(struct cluster_replica *replica)
{
    if (replica->state == REPLICA_FOLLOWING)
        cluster_trace(replica->gateway->cluster, "%s follows no more",
                      replica->gateway->name);
    replica->state = REPLICA_NONE;
    replica->trust_until = 0;
    replica->answered = 0;
    forget_before(replica);
    forget_waiting(replica);
}

static void connect(struct cluster_replica *replica, int leader)
{
    struct repl_frame frame = { .kind = REPL_HELLO };
    replica->state = REPLICA_HELLO;
    replica->leader = leader;
    replica->connection = cluster_gateway_connection(replica->gateway, leader);
    replica->hello_at = now_of(replica) + HELLO_MS;
    send(replica, frame);
}

static void try_connect(struct cluster_replica *replica)
{
    struct cluster_gateway *gateway = replica->gateway;
    int leader = cluster_lead_leader(&gateway->lead);
    if (gateway->memory == MEMORY_READY && gateway->lead.state == LEAD_STANDBY &&
        leader >= 0 && leader != gateway->number && now_of(replica) >= replica->hello_at)
        connect(replica, leader);
}

/* ---- questions ---- */

uint64_t cluster_replica_ask(struct cluster_replica *replica)
{
    struct repl_frame frame = { .kind = REPL_ASK, .ask.number = ++replica->asked };
    replica->asked_at[replica->asked % REPLICA_ASKS] = now_of(replica);
    replica->ask_at = now_of(replica) + REPLICA_ASK_MS;
    if (replica->state == REPLICA_FOLLOWING)
        send(replica, frame);
    return replica->asked;
}

static void on_beat(struct cluster_replica *replica, const struct repl_beat *beat)
{
    if (replica->asked - beat->number >= REPLICA_ASKS)
        return;
    int64_t from = replica->asked_at[beat->number % REPLICA_ASKS];
    if (has_fault(FAULT_TRUST_FROM_ARRIVAL))
        from = now_of(replica);
    bool ahead = beat->applied[REPL_RUNS] < replica->caught_up;
    if (ahead && !has_fault(FAULT_AHEAD_OF_LEADER))
        return;
    if (replica->trust_until < from + beat->left_ms)
        replica->trust_until = from + beat->left_ms;
    replica->answered = beat->number;
    memcpy(replica->positions, beat->applied, sizeof(replica->positions));
}

bool cluster_replica_trusts(const struct cluster_replica *replica)
{
    if (has_fault(FAULT_SERVES_IN_DOUBT))
        return replica->gateway->memory == MEMORY_READY && replica->term;
    return replica->state == REPLICA_FOLLOWING && now_of(replica) < replica->trust_until;
}

/* ---- changes ---- */

static void on_before(struct cluster_replica *replica, struct repl_run *before)
{
    forget_before(replica);
    replica->before = mem_new(struct repl_run);
    *replica->before = *before;
    before->run = (struct run){ 0 };
}

/* The run may have left memory: it gets its state before back, so that the change is one of
 * a known run. */
static void restore_before(struct cluster_replica *replica, const struct run *run)
{
    struct environment *env = replica->gateway->env;
    if (replica->before && !environment_find(env, slice_of(run->id)))
        environment_load(env, &replica->before->run);
    forget_before(replica);
}

static bool is_skipped(const struct cluster_replica *replica)
{
    return has_fault(FAULT_SKIPPED_CHANGE) &&
           chance(&replica->gateway->cluster->draws, 100);
}

static void on_change(struct cluster_replica *replica, struct repl_run *change)
{
    struct environment *env = replica->gateway->env;
    if (change->seq <= env->applied) {
        forget_before(replica);
    } else if (change->seq > env->applied + 1) {
        cluster_replica_end(replica);
    } else if (is_skipped(replica)) {
        env->applied++;
    } else {
        restore_before(replica, &change->run);
        environment_put(env, &change->run, change->seq);
    }
}

static void on_passed(struct cluster_replica *replica, const struct repl_passed *passed)
{
    struct environment *env = replica->gateway->env;
    if (passed->from > env->applied + 1)
        cluster_replica_end(replica);
    else if (passed->to > env->applied)
        env->applied = passed->to;
}

/* Applies documents of the accounts, and everything after them, in order. */
static void on_document(struct cluster_replica *replica, const struct repl_document *change)
{
    struct cluster_accounts *accounts = &replica->gateway->accounts;
    cluster_accounts_put(accounts, &change->document);
    if (change->seq > accounts->applied)
        accounts->applied = change->seq;
}

static void apply(struct cluster_replica *replica, struct repl_frame *frame)
{
    switch (frame->kind) {
    case REPL_BEFORE: on_before(replica, &frame->run); break;
    case REPL_CHANGE: on_change(replica, &frame->run); break;
    case REPL_DOCUMENT: on_document(replica, &frame->document); break;
    case REPL_PASSED: on_passed(replica, &frame->passed); break;
    case REPL_FLOOR: cluster_gateway_purge(replica->gateway, &frame->floor); break;
    case REPL_BEAT: on_beat(replica, &frame->beat); break;
    default: break;
    }
}

/* With the fault, changes of keys come late. */
static bool is_late(struct cluster_replica *replica, struct repl_message *message)
{
    if (!has_fault(FAULT_LATE_REVOCATION) || message->frame.kind != REPL_DOCUMENT)
        return false;
    struct repl_message *late = mem_new(struct repl_message);
    late->frame = message->frame;
    message->frame.document.document = (struct document){ 0 };
    late->message.at = now_of(replica) + LATE_MS;
    list_append(&replica->gateway->late_documents, &late->waiting_link);
    replica->gateway->accounts.applied = late->frame.document.seq;
    return true;
}

static void apply_late(struct cluster_replica *replica)
{
    list_each (link, &replica->gateway->late_documents) {
        struct repl_message *late = container_of(link, struct repl_message, waiting_link);
        if (late->message.at > now_of(replica))
            continue;
        list_remove(link);
        on_document(replica, &late->frame.document);
        destroy_message(&late->message);
    }
}

/* ---- frames ---- */

static void on_hello(struct cluster_replica *replica, const struct repl_hello *hello)
{
    struct cluster_gateway *gateway = replica->gateway;
    if (replica->state != REPLICA_HELLO)
        return;
    if (strcmp(hello->head.epoch, gateway->epoch) != 0) {
        cluster_replica_end(replica);
        return; /* its own beat finds the epoch */
    }
    replica->term = hello->head.term;
    replica->state = REPLICA_CATCHING;
    cluster_catch_up_begin(&gateway->catch_up);
}

static void keep(struct cluster_replica *replica, struct repl_message *message)
{
    struct repl_message *own = mem_new(struct repl_message);
    own->frame = message->frame;
    message->frame = (struct repl_frame){ .kind = REPL_ASK };
    list_append(&replica->waiting, &own->waiting_link);
}

void cluster_replica_receive(struct cluster_replica *replica, struct repl_message *message)
{
    if (message->message.from != replica->leader)
        return;
    if (message->frame.kind == REPL_HELLO)
        on_hello(replica, &message->frame.hello);
    else if (replica->state == REPLICA_CATCHING)
        keep(replica, message);
    else if (replica->state == REPLICA_FOLLOWING && !is_late(replica, message))
        apply(replica, &message->frame);
}

void cluster_replica_caught_up(struct cluster_replica *replica)
{
    if (replica->state != REPLICA_CATCHING)
        return;
    replica->state = REPLICA_FOLLOWING;
    replica->caught_up = replica->gateway->env->applied;
    cluster_trace(replica->gateway->cluster, "%s follows gw%d, at %llu",
                  replica->gateway->name, replica->leader,
                  (unsigned long long)replica->caught_up);
    while (!list_empty(&replica->waiting) && replica->state == REPLICA_FOLLOWING) {
        struct repl_message *message =
            container_of(list_take(&replica->waiting), struct repl_message, waiting_link);
        apply(replica, &message->frame);
        destroy_message(&message->message);
    }
    cluster_replica_ask(replica);
}

void cluster_replica_tick(struct cluster_replica *replica)
{
    struct cluster_gateway *gateway = replica->gateway;
    bool broken =
        replica->state != REPLICA_NONE &&
        replica->connection != cluster_gateway_connection(gateway, replica->leader);
    bool unanswered =
        replica->state == REPLICA_HELLO && now_of(replica) >= replica->hello_at;
    if (broken || unanswered)
        cluster_replica_end(replica);
    if (replica->state == REPLICA_NONE)
        try_connect(replica);
    else if (replica->state == REPLICA_FOLLOWING && now_of(replica) >= replica->ask_at)
        cluster_replica_ask(replica);
    apply_late(replica);
}
