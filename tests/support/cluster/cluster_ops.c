/* cluster_ops.c - forwards operations to the leader, and executes them there. */
#include "tests/support/cluster/cluster_ops.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "tests/support/cluster/cluster.h"
#include "tests/support/cluster/cluster_faults.h"
#include "tests/support/world/world.h"

enum { FORWARD_MS = 8000, PURGED_AT_ONCE = 50 };

/* An operation at the gateway that the client has sent it to. */
struct cluster_forward {
    struct cluster_op *op;
    bool sent;
    int leader;
    uint32_t connection;
    struct list link; // cluster_gateway::forwards
};

/* An operation at the leader. */
struct cluster_write {
    struct cluster_gateway *gateway;
    struct cluster_op *op;
    int from;            /* the gateway that forwarded it; -1: none */
    uint32_t connection; /* of that gateway */
    struct store_commit commit;
    struct change change;
    struct claim claim;
    struct store_load load;
    uint64_t applied; /* of the environment when the load began */
    struct store_purge purge;
    bool holds;       /* the run in memory, unless retention removes it */
    struct list link; // cluster_gateway::writes
};

struct cluster_request {
    struct cluster_message message;
    struct cluster_op *op;
    bool is_answer;
    enum { DONE, REFUSED, NOT_EXECUTED } outcome;
    struct cluster_moment moment;
};

/* ---- answers ---- */

static void settle(struct cluster_gateway *gateway, struct cluster_op *op,
                   enum cluster_op_state state, struct cluster_moment moment)
{
    struct cluster_check *check = &gateway->cluster->check;
    int64_t now = gateway->cluster->network.now;
    if (op->state != OP_OPEN)
        return;
    op->state = state;
    if (state != OP_ACKED)
        return;
    gateway->cluster->acked++;
    cluster_trace(gateway->cluster, "%s acknowledges operation %u, at %llu of term %llu",
                  gateway->name, op->number, (unsigned long long)moment.seq,
                  (unsigned long long)moment.term);
    cluster_check_acked(check, now, moment);
    if (op->kind != OP_ROTATE || moment.history != check->history || op->lost)
        return;
    if (op->made > check->revoked_below[op->key]) {
        check->revoked_below[op->key] = op->made;
        check->revoked_at[op->key] = now;
    }
}

static struct cluster_forward *find_forward(struct cluster_gateway *gateway,
                                            const struct cluster_op *op)
{
    list_each (link, &gateway->forwards) {
        struct cluster_forward *forward = container_of(link, struct cluster_forward, link);
        if (forward->op == op)
            return forward;
    }
    return NULL;
}

static void drop_forward(struct cluster_forward *forward)
{
    list_remove(&forward->link);
    free(forward);
}

static void on_answer(struct cluster_gateway *gateway, const struct cluster_request *answer)
{
    struct cluster_forward *forward = find_forward(gateway, answer->op);
    if (!forward)
        return;
    if (answer->outcome == NOT_EXECUTED) {
        forward->sent = false;
        return;
    }
    settle(gateway, answer->op, answer->outcome == DONE ? OP_ACKED : OP_REFUSED,
           answer->moment);
    drop_forward(forward);
}

static void begin_write(struct cluster_gateway *gateway, struct cluster_op *op, int from,
                        uint32_t connection);

static void on_request(struct cluster *cluster, struct cluster_message *message)
{
    struct cluster_request *request =
        container_of(message, struct cluster_request, message);
    struct cluster_gateway *gateway = &cluster->gateways[message->to];
    if (!gateway->running)
        return;
    if (request->is_answer)
        on_answer(gateway, request);
    else
        begin_write(gateway, request->op, message->from, message->connection);
}

static struct cluster_request *make_request(struct cluster_op *op)
{
    struct cluster_request *request = mem_new(struct cluster_request);
    request->message.arrive = on_request;
    request->op = op;
    return request;
}

static void answer(struct cluster_write *write, int outcome)
{
    struct cluster_gateway *gateway = write->gateway;
    struct cluster_moment moment =
        gateway->env ? cluster_gateway_moment(gateway, gateway->env->applied)
                     : (struct cluster_moment){ 0 };
    if (write->from < 0) {
        settle(gateway, write->op,
               outcome == DONE      ? OP_ACKED
               : outcome == REFUSED ? OP_REFUSED
                                    : OP_UNKNOWN,
               moment);
        return;
    }
    struct cluster_request *request = make_request(write->op);
    const struct cluster_message asked = { .from = write->from,
                                           .to = gateway->number,
                                           .connection = write->connection };
    request->is_answer = true;
    request->outcome = outcome;
    request->moment = moment;
    cluster_answer(&gateway->cluster->network, &asked, &request->message);
}

static void release_run(struct cluster_write *write)
{
    struct environment *env = write->gateway->env;
    struct tracked *tracked =
        write->holds ? environment_find(env, slice_of(write->op->run)) : NULL;
    if (tracked)
        tracked->in_flight = false;
    write->holds = false;
}

static void write_end(struct cluster_write *write)
{
    release_run(write);
    change_finish(&write->change);
    bytes_unref(write->claim.key);
    bytes_unref(write->load.name);
    list_remove(&write->link);
    free(write);
}

static void refuse(struct cluster_write *write, int outcome)
{
    answer(write, outcome);
    write_end(write);
}

/* ---- a commit becomes visible ---- */

static void apply_run(struct cluster_write *write)
{
    struct cluster_gateway *gateway = write->gateway;
    struct environment *env = gateway->env;
    const struct tracked *known = environment_find(env, slice_of(write->change.run.id));
    cluster_replication_apply(&gateway->replication, known ? &known->run : NULL,
                              &write->change);
    environment_put(env, &write->change.run, write->change.seq);
    release_run(write);
}

static void apply_document(struct cluster_write *write)
{
    struct cluster_gateway *gateway = write->gateway;
    const struct change *change = &write->change;
    cluster_replication_apply(&gateway->replication, NULL, change);
    if (change->env == REPL_RUNS) {
        environment_pass(gateway->env, change->seq);
        return;
    }
    cluster_accounts_put(&gateway->accounts, &change->document);
    gateway->accounts.applied = change->seq;
}

/* This gateway does not lead any more, or gives up its memory: the outcome is unknown. */
static void abandon(struct cluster_write *write)
{
    struct cluster_gateway *gateway = write->gateway;
    if (gateway->memory == MEMORY_READY)
        gateway->must_restart = true;
    if (write->from < 0)
        settle(gateway, write->op, OP_UNKNOWN, (struct cluster_moment){ 0 });
    write_end(write);
}

static void on_committed(struct store_commit *commit, enum store_status status)
{
    struct cluster_write *write = container_of(commit, struct cluster_write, commit);
    if (status == STORE_OK && write->change.kind == CHANGE_RUN)
        apply_run(write);
    else if (status == STORE_OK)
        apply_document(write);
    if (status == STORE_MOVED)
        abandon(write);
    else
        refuse(write, status == STORE_OK || status == STORE_TAKEN ? DONE : REFUSED);
}

static void commit(struct cluster_write *write)
{
    struct cluster_gateway *gateway = write->gateway;
    write->commit = (struct store_commit){ .changes = &write->change,
                                           .change_count = 1,
                                           .claims = &write->claim,
                                           .claim_count = write->op->keyed,
                                           .now_ms = loop_wall_ms(gateway->loop),
                                           .done = on_committed };
    if (write->op->keyed) {
        char key[32];
        snprintf(key, sizeof(key), "op%u", write->op->number);
        write->claim = (struct claim){ .kind = CLAIM_REQUEST, .env = REPL_RUNS };
        write->claim.key = bytes_create(slice_of(key));
        snprintf(write->claim.owner, sizeof(write->claim.owner), "%llu.%u",
                 (unsigned long long)gateway->lead.me, ++gateway->attempts);
    }
    cluster_store_commit(&gateway->store, &write->commit, write->op->number);
}

/* ---- what an operation changes ---- */

/* Every second one is long, so that a leader with a slow follower leaves it out. */
static struct bytes *make_packet(const char *json, unsigned number)
{
    enum { LONG = SOURCE_PACKET_SLOW + 1 };
    char text[LONG + 1];
    snprintf(text, sizeof(text), "%-*s", number % 2 ? LONG : 0, json);
    return bytes_create(slice_of(text));
}

static void make_run(struct cluster_write *write)
{
    struct change *change = &write->change;
    struct run *run = &change->run;
    int64_t now = loop_wall_ms(write->gateway->loop);
    struct slice tags[] = { write->op->number % 2 ? SLICE("odd") : SLICE("even") };
    change->kind = CHANGE_RUN;
    change->env = REPL_RUNS;
    change->marks = MARK_WHOLE | MARK_PAYLOAD | MARK_METADATA;
    memcpy(run->id, write->op->run, sizeof(run->id));
    run->version = run->snapshot = 1;
    run->status = RUN_QUEUED;
    run->execution = EXECUTION_QUEUED;
    run->created_at = run->updated_at = run->queued_at = now;
    run->task = bytes_create_shared(SLICE("hello"));
    run->queue = bytes_create_shared(SLICE("task/hello"));
    run->payload = make_packet("{\"n\":1}", write->op->number);
    run->tags = tag_list_create(tags, 1);
}

static void step(struct change *change, int64_t now)
{
    struct run *run = &change->run;
    run->snapshot++;
    if (run->status == RUN_QUEUED) {
        run->status = RUN_EXECUTING;
        run->execution = EXECUTION_EXECUTING;
        run->started_at = now;
        return;
    }
    run->status = RUN_COMPLETED;
    run->execution = EXECUTION_FINISHED;
    run->finished_at = now;
    bytes_unref(run->output);
    run->output = make_packet("\"done\"", run->snapshot);
    change->marks = MARK_OUTPUT;
}

static void note(struct change *change, unsigned number)
{
    char metadata[32];
    snprintf(metadata, sizeof(metadata), "{\"op\":%u}", number);
    bytes_unref(change->run.metadata);
    change->run.metadata = make_packet(metadata, number);
    change->marks = MARK_METADATA;
}

static void change_run(struct cluster_write *write, struct tracked *tracked)
{
    const struct cluster_op *op = write->op;
    struct change *change = &write->change;
    int64_t wall = loop_wall_ms(write->gateway->loop);
    int64_t now =
        wall > tracked->run.updated_at ? wall : tracked->run.updated_at; /* as the engine */
    if (tracked->in_flight || (op->kind == OP_STEP && run_is_final(&tracked->run))) {
        refuse(write, REFUSED);
        return;
    }
    tracked->in_flight = true;
    write->holds = true;
    *change = (struct change){ .kind = CHANGE_RUN, .env = REPL_RUNS };
    change->expected = tracked->run.version;
    run_copy(&change->run, &tracked->run);
    change->run.version++;
    change->run.updated_at = now;
    if (op->kind == OP_STEP)
        step(change, now);
    else
        note(change, op->number);
    commit(write);
}

static void on_run(struct store_read *read, enum store_status status)
{
    struct cluster_write *write = container_of(read, struct cluster_write, load.read);
    struct environment *env = write->gateway->env;
    if (status) {
        refuse(write, status == STORE_MISSING ? REFUSED : NOT_EXECUTED);
        return;
    }
    struct tracked *tracked = environment_find(env, slice_of(write->op->run));
    if (!tracked && env->cold > write->applied) { /* it may have changed, and left memory */
        store_read_finish(read);
        refuse(write, NOT_EXECUTED);
        return;
    }
    if (tracked)
        run_finish(&write->load.run);
    else if (environment_has_purged(env, &write->load.run))
        store_read_finish(read);
    else
        tracked = environment_load(env, &write->load.run);
    if (tracked)
        change_run(write, tracked);
    else
        refuse(write, REFUSED);
}

static void find_run(struct cluster_write *write)
{
    struct cluster_gateway *gateway = write->gateway;
    struct tracked *tracked = environment_find(gateway->env, slice_of(write->op->run));
    if (tracked) {
        change_run(write, tracked);
        return;
    }
    write->applied = gateway->env->applied;
    write->load = (struct store_load){ .read = { READ_LOAD, REPL_RUNS, on_run },
                                       .name = bytes_create(slice_of(write->op->run)) };
    gateway->store.store.ops->read(&gateway->store.store, &write->load.read);
}

static void make_document(struct cluster_write *write)
{
    const struct cluster_op *op = write->op;
    struct change *change = &write->change;
    const struct cluster_accounts *accounts = &write->gateway->accounts;
    bool is_key = op->kind == OP_ROTATE;
    char name[16], body[24];
    snprintf(name, sizeof(name), "%u", is_key ? op->key : op->number);
    snprintf(body, sizeof(body), "%llu",
             (unsigned long long)accounts->generation[op->key] + 1);
    *change = (struct change){ .kind = CHANGE_DOCUMENT,
                               .env = is_key ? REPL_ACCOUNTS : REPL_RUNS };
    change->expected = is_key ? accounts->version[op->key] : 0;
    change->document.kind = is_key ? DOC_KEY : DOC_VARIABLE;
    change->document.env = change->env;
    change->document.name = bytes_create(slice_of(name));
    change->document.body = bytes_create(slice_of(body));
    commit(write);
}

static bool is_accepted(const struct cluster_gateway *gateway, const struct cluster_op *op)
{
    if (gateway->accounts.generation[op->key] != op->generation)
        return false;
    cluster_check_accepted(&gateway->cluster->check, gateway->cluster->network.now, op->key,
                           op->generation, op->begun, true);
    return true;
}

static void begin_write(struct cluster_gateway *gateway, struct cluster_op *op, int from,
                        uint32_t connection)
{
    struct cluster_write *write = mem_new(struct cluster_write);
    *write = (struct cluster_write){
        .gateway = gateway, .op = op, .from = from, .connection = connection
    };
    list_append(&gateway->writes, &write->link);
    if (!cluster_gateway_leads(gateway))
        refuse(write, NOT_EXECUTED);
    else if (!is_accepted(gateway, op))
        refuse(write, REFUSED);
    else if (op->kind == OP_CREATE) {
        make_run(write);
        commit(write);
    } else if (op->kind == OP_SETTING || op->kind == OP_ROTATE)
        make_document(write);
    else
        find_run(write);
}

/* ---- forwarding ---- */

static void forward(struct cluster_forward *forward, struct cluster_gateway *gateway)
{
    int leader = cluster_lead_leader(&gateway->lead);
    if (leader < 0 || leader == gateway->number ||
        cluster_pair(&gateway->cluster->network, gateway->number, leader)->cut)
        return;
    struct cluster_request *request = make_request(forward->op);
    request->message.may_survive = true;
    forward->sent = true;
    forward->leader = leader;
    forward->connection = cluster_gateway_connection(gateway, leader);
    cluster_send(&gateway->cluster->network, gateway->number, leader, &request->message);
}

/* The connection broke, and the request may have been executed. */
static void on_break(struct cluster_forward *forward, struct cluster_gateway *gateway)
{
    if (forward->op->keyed || has_fault(FAULT_FORWARDED_TWICE)) {
        forward->sent = false;
        return;
    }
    settle(gateway, forward->op, OP_UNKNOWN, (struct cluster_moment){ 0 });
    drop_forward(forward);
}

static void tick(struct cluster_forward *waiting, struct cluster_gateway *gateway)
{
    struct cluster_op *op = waiting->op;
    if (waiting->sent &&
        waiting->connection != cluster_gateway_connection(gateway, waiting->leader)) {
        on_break(waiting, gateway);
    } else if (gateway->cluster->network.now > op->begun + FORWARD_MS) {
        settle(gateway, op, OP_UNKNOWN, (struct cluster_moment){ 0 });
        drop_forward(waiting);
    } else if (!waiting->sent && cluster_gateway_leads(gateway)) {
        drop_forward(waiting);
        begin_write(gateway, op, -1, 0);
    } else if (!waiting->sent) {
        forward(waiting, gateway);
    }
}

void cluster_forwards_tick(struct cluster_gateway *gateway)
{
    list_each (link, &gateway->forwards)
        tick(container_of(link, struct cluster_forward, link), gateway);
}

void cluster_op_send(struct cluster_op *op, struct cluster_gateway *gateway)
{
    struct cluster_forward *forward = mem_new(struct cluster_forward);
    forward->op = op;
    list_append(&gateway->forwards, &forward->link);
}

void cluster_forwards_drop(struct cluster_gateway *gateway)
{
    while (!list_empty(&gateway->forwards)) {
        struct cluster_forward *forward =
            container_of(gateway->forwards.next, struct cluster_forward, link);
        settle(gateway, forward->op, OP_UNKNOWN, (struct cluster_moment){ 0 });
        drop_forward(forward);
    }
}

/* ---- retention ---- */

static void on_purged(struct store_purge *purge, enum store_status status)
{
    struct cluster_write *write = container_of(purge, struct cluster_write, purge);
    struct cluster_gateway *gateway = write->gateway;
    if (status == STORE_OK) {
        cluster_replication_floor(&gateway->replication, &purge->position);
        cluster_gateway_purge(gateway, &purge->position);
    }
    write_end(write);
}

void cluster_op_purge(struct cluster_gateway *gateway, int64_t age_ms)
{
    struct cluster_write *write = mem_new(struct cluster_write);
    write->gateway = gateway;
    write->purge = (struct store_purge){ .env = REPL_RUNS,
                                         .before = loop_wall_ms(gateway->loop) - age_ms,
                                         .limit = PURGED_AT_ONCE,
                                         .done = on_purged };
    list_append(&gateway->writes, &write->link);
    gateway->store.store.ops->purge(&gateway->store.store, &write->purge);
}
