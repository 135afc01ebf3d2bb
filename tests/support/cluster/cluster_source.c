/* cluster_source.c - frames from the leader to its followers. */
#include "tests/support/cluster/cluster_source.h"

#include "tests/support/cluster/cluster.h"
#include "tests/support/cluster/cluster_faults.h"

void cluster_source_init(struct cluster_source *source, struct cluster_gateway *gateway)
{
    *source = (struct cluster_source){ .gateway = gateway };
}

static struct repl_head head_of(const struct cluster_gateway *gateway)
{
    struct repl_head head = { .term = gateway->lead.term };
    memcpy(head.epoch, gateway->epoch, sizeof(head.epoch));
    return head;
}

static void send(struct cluster_source *source, int to, struct repl_frame frame)
{
    cluster_frame_send(source->gateway->cluster, source->gateway->number, to, &frame);
}

/* ---- hello and questions ---- */

static void answer_hello(struct cluster_source *source, int follower)
{
    struct cluster_gateway *gateway = source->gateway;
    if (!cluster_lead_trust(&gateway->lead))
        return;
    source->followers[follower].on = true;
    source->followers[follower].connection = cluster_gateway_connection(gateway, follower);
    struct repl_frame frame = { .kind = REPL_HELLO, .hello.head = head_of(gateway) };
    frame.hello.applied[REPL_ACCOUNTS] = gateway->accounts.applied;
    frame.hello.applied[REPL_RUNS] = gateway->env->applied;
    send(source, follower, frame);
}

static void answer_ask(struct cluster_source *source, int follower, uint64_t number)
{
    struct cluster_gateway *gateway = source->gateway;
    int64_t left = cluster_lead_trust(&gateway->lead);
    if (has_fault(FAULT_DOUBTING_BEATS) && gateway->lead.state == LEAD_LEADING)
        left = TRUST_MS;
    if (!left || gateway->memory != MEMORY_READY || !source->followers[follower].on)
        return;
    struct repl_frame frame = {
        .kind = REPL_BEAT,
        .beat = { .head = head_of(gateway), .number = number, .left_ms = left }
    };
    frame.beat.applied[REPL_ACCOUNTS] = gateway->accounts.applied;
    frame.beat.applied[REPL_RUNS] = gateway->env->applied;
    send(source, follower, frame);
}

void cluster_source_receive(struct cluster_source *source,
                            const struct repl_message *message)
{
    if (message->frame.kind == REPL_HELLO)
        answer_hello(source, message->message.from);
    else
        answer_ask(source, message->message.from, message->frame.ask.number);
}

/* ---- changes ---- */

static bool follows(struct cluster_source *source, int follower)
{
    uint32_t connection = cluster_gateway_connection(source->gateway, follower);
    return source->followers[follower].on &&
           source->followers[follower].connection == connection;
}

static void send_run(struct cluster_source *source, enum repl_kind kind, int to,
                     const struct run *run, uint64_t seq)
{
    struct repl_frame frame = { .kind = kind, .run = { .env = REPL_RUNS, .seq = seq } };
    run_copy(&frame.run.run, run);
    send(source, to, frame);
}

void cluster_source_run(struct cluster_source *source, const struct run *before,
                        const struct run *run)
{
    for (int i = 0; i < CLUSTER_GATEWAYS; i++) {
        if (!follows(source, i))
            continue;
        if (before && !has_fault(FAULT_NO_BEFORE))
            send_run(source, REPL_BEFORE, i, before, run->rev);
        send_run(source, REPL_CHANGE, i, run, run->rev);
    }
}

void cluster_source_document(struct cluster_source *source, uint64_t seq,
                             const struct document *document)
{
    for (int i = 0; i < CLUSTER_GATEWAYS; i++) {
        struct repl_frame frame = { .kind = REPL_DOCUMENT,
                                    .document = { REPL_ACCOUNTS, seq, *document } };
        if (!follows(source, i))
            continue;
        bytes_ref(document->name);
        bytes_ref(document->body);
        send(source, i, frame);
    }
}

void cluster_source_passed(struct cluster_source *source, uint64_t seq)
{
    struct repl_frame frame = { .kind = REPL_PASSED, .passed = { REPL_RUNS, seq, seq } };
    for (int i = 0; i < CLUSTER_GATEWAYS; i++)
        if (follows(source, i))
            send(source, i, frame);
}

void cluster_source_floor(struct cluster_source *source,
                          const struct store_position *position)
{
    struct repl_frame frame = { .kind = REPL_FLOOR, .floor = *position };
    for (int i = 0; i < CLUSTER_GATEWAYS; i++)
        if (follows(source, i))
            send(source, i, frame);
}
