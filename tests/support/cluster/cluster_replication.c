/* cluster_replication.c - connects sources and replicas by messages. */
#include "tests/support/cluster/cluster_replication.h"

#include <stdlib.h>

#include "base/mem.h"
#include "core/replication/frame_codec.h"
#include "tests/support/cluster/cluster.h"
#include "tests/support/cluster/cluster_faults.h"

enum { CONNECT_MS = 400, SLOW_MS = 500, SLOW_RATE = 12000, FRAME_BYTES = 1000 };

static int64_t now_of(const struct cluster_replication *replication)
{
    return replication->gateway->cluster->network.now;
}

void cluster_replication_init(struct cluster_replication *replication,
                              struct cluster_gateway *gateway)
{
    *replication = (struct cluster_replication){ .gateway = gateway, .leader = -1 };
    list_init(&replication->late);
    for (int i = 0; i < CLUSTER_GATEWAYS; i++)
        list_init(&replication->peers[i].follower.link);
}

/* ---- messages ---- */

static void destroy_message(struct cluster_message *message)
{
    struct repl_message *own = container_of(message, struct repl_message, message);
    repl_frame_finish(&own->frame);
    free(own);
}

static void receive_as_leader(struct cluster_replication *replication,
                              struct repl_message *message);
static void receive_as_follower(struct cluster_replication *replication,
                                struct repl_message *message);

static void on_message(struct cluster *cluster, struct cluster_message *message)
{
    struct repl_message *own = container_of(message, struct repl_message, message);
    struct cluster_gateway *gateway = &cluster->gateways[message->to];
    bool is_of_follower = own->frame.kind == REPL_ASK ||
                          (own->frame.kind == REPL_HELLO && !own->frame.hello.head.term);
    if (is_of_follower)
        receive_as_leader(&gateway->replication, own);
    else
        receive_as_follower(&gateway->replication, own);
}

/* The frame travels as bytes, as between real gateways. */
static void encode_and_read(struct repl_frame *to, const struct repl_frame *from)
{
    struct buf bytes = { 0 };
    struct failure why = { 0 };
    repl_write(from, &bytes);
    struct slice message = buf_slice(&bytes);
    if (repl_read(&message, to, &why) || message.len)
        violated("a frame of kind %d cannot be read: %s", from->kind, why.text);
    buf_finish(&bytes);
}

static void send(struct cluster_replication *replication, int to, uint32_t session,
                 const struct repl_frame *frame)
{
    struct repl_message *message = mem_new(struct repl_message);
    encode_and_read(&message->frame, frame);
    message->session = session;
    message->message.arrive = on_message;
    message->message.destroy = destroy_message;
    cluster_send(&replication->gateway->cluster->network, replication->gateway->number, to,
                 &message->message);
}

/* ---- the leader ---- */

static bool is_connected(const struct cluster_replication *replication, int number)
{
    return replication->peers[number].connection ==
           cluster_gateway_connection(replication->gateway, number);
}

static void send_to(struct cluster_replication *replication, int number,
                    const struct repl_frame *frame)
{
    struct cluster_peer *peer = &replication->peers[number];
    if (is_connected(replication, number))
        send(replication, number, peer->session, frame);
    else
        source_leave(&replication->source, &peer->follower);
}

static int number_of(const struct cluster_replication *replication,
                     const struct source_follower *follower)
{
    return (int)(container_of(follower, struct cluster_peer, follower) -
                 replication->peers);
}

static void source_send(void *owner, struct source_follower *to,
                        const struct repl_frame *frame)
{
    struct cluster_replication *replication = owner;
    struct repl_frame altered = *frame;
    bool is_run = frame->kind == REPL_CHANGE;
    if (is_run)
        run_copy(&altered.run.run, &frame->run.run);
    bool is_sent = cluster_fault_send(replication, &altered);
    for (int i = 0; is_sent && i < CLUSTER_GATEWAYS; i++) {
        struct source_follower *follower = &replication->peers[i].follower;
        if (follower->is_on && (!to || to == follower))
            send_to(replication, i, &altered);
    }
    if (is_run)
        run_finish(&altered.run.run);
}

static void source_end(void *owner, struct source_follower *follower, const char *why)
{
    struct cluster_replication *replication = owner;
    int number = number_of(replication, follower);
    struct repl_frame frame = { .kind = REPL_END };
    snprintf(frame.end.why, sizeof(frame.end.why), "%s", why);
    send(replication, number, replication->peers[number].session, &frame);
}

static struct environment *next_environment(void *owner, uint32_t *at)
{
    struct cluster_replication *replication = owner;
    return (*at)++ == 0 ? replication->gateway->env : NULL;
}

static int64_t left_ms(void *owner)
{
    struct cluster_gateway *gateway = ((struct cluster_replication *)owner)->gateway;
    if (has_fault(FAULT_DOUBTING_BEATS) && gateway->lead.state == LEAD_LEADING)
        return TRUST_MS;
    return gateway->memory == MEMORY_READY ? cluster_lead_grant(&gateway->lead) : 0;
}

/* Half of the time. */
static bool is_slow(void *owner)
{
    const struct cluster_gateway *gateway = ((struct cluster_replication *)owner)->gateway;
    return loop_now_ms(gateway->loop) / SLOW_MS % 2;
}

static size_t allowance(void *owner)
{
    (void)owner;
    return SLOW_RATE;
}

void cluster_replication_lead(struct cluster_replication *replication)
{
    struct cluster_gateway *gateway = replication->gateway;
    struct source_options options = { .head.term = gateway->lead.term,
                                      .gateway = gateway->lead.me,
                                      .accounts_seq = gateway->accounts.applied,
                                      .send = source_send,
                                      .is_slow = is_slow,
                                      .allowance = allowance,
                                      .end = source_end,
                                      .next = next_environment,
                                      .left_ms = left_ms,
                                      .owner = replication };
    memcpy(options.head.epoch, gateway->epoch, sizeof(options.head.epoch));
    source_init(&replication->source, gateway->loop, &options);
    replication->has_source = true;
}

static void begin_session(struct cluster_replication *replication,
                          const struct repl_message *message)
{
    struct cluster_peer *peer = &replication->peers[message->message.from];
    source_leave(&replication->source, &peer->follower);
    peer->session = message->session;
    peer->connection = message->message.connection;
}

static void receive_as_leader(struct cluster_replication *replication,
                              struct repl_message *message)
{
    int from = message->message.from;
    struct cluster_peer *peer = &replication->peers[from];
    if (!replication->has_source)
        return;
    if (message->frame.kind == REPL_HELLO)
        begin_session(replication, message);
    if (message->session == peer->session && is_connected(replication, from))
        source_receive(&replication->source, &peer->follower, &message->frame);
}

void cluster_replication_apply(struct cluster_replication *replication,
                               const struct run *before, const struct change *change)
{
    if (replication->has_source)
        source_apply(&replication->source, before, change);
}

void cluster_replication_floor(struct cluster_replication *replication,
                               const struct store_position *position)
{
    if (replication->has_source)
        source_floor(&replication->source, position);
}

/* ---- the follower ---- */

static void replica_send(void *owner, const struct repl_frame *frame)
{
    struct cluster_replication *replication = owner;
    send(replication, replication->leader, replication->session, frame);
}

static void replica_end(void *owner, const char *why)
{
    struct cluster_replication *replication = owner;
    cluster_trace(replication->gateway->cluster, "%s follows no more: %s",
                  replication->gateway->name, why);
}

/* The memory of another epoch is given up when the gateway's own beat has found it. */
static void give_up(void *owner, const char *why)
{
    replica_end(owner, why);
}

static struct environment *find(void *owner, uint32_t number)
{
    struct cluster_replication *replication = owner;
    return number == REPL_RUNS ? replication->gateway->env : NULL;
}

static enum err take_document(void *owner, const struct document *document,
                              struct failure *why)
{
    struct cluster_replication *replication = owner;
    (void)why;
    if (!cluster_fault_delays(replication, document))
        cluster_accounts_put(&replication->gateway->accounts, document);
    return OK;
}

static void on_keys(struct store_read *read, enum store_status status)
{
    struct cluster_replication *replication =
        container_of(read, struct cluster_replication, keys.read);
    struct cluster_gateway *gateway = replication->gateway;
    for (size_t i = 0; !status && i < replication->keys.count; i++)
        cluster_accounts_put(&gateway->accounts, &replication->keys.documents[i]);
    if (!status)
        store_read_finish(read);
    if (!status && gateway->memory == MEMORY_LOADING)
        memcpy(gateway->epoch, gateway->store.store.epoch, sizeof(gateway->epoch));
    replica_accounts_read(&replication->replica, 0, err_of_store(status));
}

static void read_accounts(void *owner)
{
    struct cluster_replication *replication = owner;
    struct store *store = &replication->gateway->store.direct;
    replication->keys = (struct store_scan){ .read = { READ_SCAN, REPL_ACCOUNTS, on_keys },
                                             .kind = DOC_KEY };
    store->ops->read(store, &replication->keys.read);
}

static void loaded(void *owner, enum err status)
{
    cluster_gateway_loaded(((struct cluster_replication *)owner)->gateway, status);
}

static void begin_replica(struct cluster_replication *replication)
{
    struct cluster_gateway *gateway = replication->gateway;
    struct replica_options options = { .gateway = gateway->lead.me,
                                       .send = replica_send,
                                       .end = replica_end,
                                       .link = replication,
                                       .give_up = give_up,
                                       .find = find,
                                       .take_document = take_document,
                                       .read_accounts = read_accounts,
                                       .next = next_environment,
                                       .loaded = loaded,
                                       .owner = replication };
    replica_init(&replication->replica, gateway->loop, &gateway->store.direct, &options);
    replication->has_replica = true;
}

void cluster_replication_load(struct cluster_replication *replication)
{
    if (!replication->has_replica)
        begin_replica(replication);
    replica_disconnected(&replication->replica);
    replica_load(&replication->replica);
}

static void receive_as_follower(struct cluster_replication *replication,
                                struct repl_message *message)
{
    struct replica *replica = &replication->replica;
    if (!replication->has_replica || message->session != replication->session ||
        message->message.from != replication->leader)
        return;
    enum replica_state before = replica->state;
    cluster_fault_receive(replication, &message->frame);
    replica_receive(replica, &message->frame, FRAME_BYTES);
    message->frame = (struct repl_frame){ 0 };
    if (replica->state == REPLICA_FOLLOWING && before != REPLICA_FOLLOWING)
        cluster_trace(replication->gateway->cluster, "%s follows gw%d",
                      replication->gateway->name, replication->leader);
}

void cluster_replication_end(struct cluster_replication *replication)
{
    if (replication->has_replica && replication->replica.state != REPLICA_LOADING)
        replica_disconnected(&replication->replica);
}

static void end_source(struct cluster_replication *replication)
{
    for (int i = 0; replication->has_source && i < CLUSTER_GATEWAYS; i++)
        source_leave(&replication->source, &replication->peers[i].follower);
    if (replication->has_source)
        source_finish(&replication->source);
    replication->has_source = false;
    cluster_fault_forget(replication);
}

void cluster_replication_begin_history(struct cluster_replication *replication)
{
    end_source(replication);
    if (replication->has_replica)
        replica_begin_history(&replication->replica);
}

void cluster_replication_forget(struct cluster_replication *replication)
{
    end_source(replication);
    if (replication->has_replica)
        replica_finish(&replication->replica);
    replication->has_replica = false;
}

bool cluster_replication_trusts(const struct cluster_replication *replication)
{
    if (!replication->has_replica)
        return false;
    if (has_fault(FAULT_SERVES_IN_DOUBT))
        return replication->gateway->memory == MEMORY_READY &&
               replication->replica.head.term;
    return replica_left_ms(&replication->replica) > 0;
}

/* ---- time ---- */

static void connect(struct cluster_replication *replication, int leader)
{
    replication->leader = leader;
    replication->connection = cluster_gateway_connection(replication->gateway, leader);
    replication->session++;
    replication->connect_at = now_of(replication) + CONNECT_MS;
    replica_connected(&replication->replica);
}

static void try_connect(struct cluster_replication *replication)
{
    struct cluster_gateway *gateway = replication->gateway;
    int leader = cluster_lead_leader(&gateway->lead);
    if (gateway->memory == MEMORY_READY && gateway->lead.state == LEAD_STANDBY &&
        leader >= 0 && leader != gateway->number &&
        now_of(replication) >= replication->connect_at)
        connect(replication, leader);
}

/* Returns true if the connection has broken, or hello has got no answer. */
static bool is_broken(const struct cluster_replication *replication)
{
    const struct cluster_gateway *gateway = replication->gateway;
    enum replica_state state = replication->replica.state;
    return state >= REPLICA_HELLO &&
           (replication->connection !=
                cluster_gateway_connection(gateway, replication->leader) ||
            (state == REPLICA_HELLO && now_of(replication) >= replication->connect_at));
}

void cluster_replication_tick(struct cluster_replication *replication)
{
    struct cluster_gateway *gateway = replication->gateway;
    if (!replication->has_replica)
        return;
    cluster_fault_tick(replication);
    if (is_broken(replication))
        replica_disconnected(&replication->replica);
    if (replication->replica.state == REPLICA_OFF && !gateway->must_forget)
        try_connect(replication);
    if (gateway->lead.state < LEAD_LEADING)
        gateway->accounts.applied = replication->replica.accounts_applied;
}
