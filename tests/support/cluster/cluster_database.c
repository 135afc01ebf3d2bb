/* cluster_database.c - fenced, numbered commits over fake_data, with a log to replay. */
#include "tests/support/cluster/cluster_database.h"

#include <stdlib.h>

#include "base/mem.h"
#include "tests/support/cluster/cluster.h"
#include "tests/support/cluster/cluster_faults.h"

struct cluster_entry {
    bool is_purge;
    struct store_commit commit; /* with copies of its changes and claims */
    struct store_purge purge;
    unsigned op;
};

void cluster_database_init(struct cluster_database *database, struct cluster *cluster)
{
    *database = (struct cluster_database){ .cluster = cluster };
    database->data = fake_data_create();
    cluster_history_name(0, database->epoch);
}

static void entry_finish(struct cluster_entry *entry)
{
    for (size_t i = 0; i < entry->commit.change_count; i++)
        change_finish(&entry->commit.changes[i]);
    for (size_t i = 0; i < entry->commit.claim_count; i++)
        bytes_unref(entry->commit.claims[i].key);
    free(entry->commit.changes);
    free(entry->commit.claims);
}

void cluster_database_finish(struct cluster_database *database)
{
    for (size_t i = 0; i < database->log_count; i++)
        entry_finish(&database->log[i]);
    free(database->log);
    fake_data_destroy(database->data);
}

/* ---- the log ---- */

static struct cluster_entry *add_entry(struct cluster_database *database)
{
    if (database->log_count == database->log_capacity) {
        database->log_capacity = database->log_capacity ? 2 * database->log_capacity : 256;
        database->log = mem_resize(database->log,
                                   database->log_capacity * sizeof(struct cluster_entry));
    }
    database->log[database->log_count] = (struct cluster_entry){ 0 };
    return &database->log[database->log_count++];
}

static struct change copy_change(const struct change *change)
{
    struct change copy = *change;
    run_copy(&copy.run, &change->run);
    bytes_ref(copy.document.name);
    bytes_ref(copy.document.body);
    return copy;
}

static void log_commit(struct cluster_database *database, const struct store_commit *req,
                       unsigned op)
{
    struct cluster_entry *entry = add_entry(database);
    entry->op = op;
    entry->commit = (struct store_commit){ .change_count = req->change_count,
                                           .claim_count = req->claim_count,
                                           .now_ms = req->now_ms };
    entry->commit.changes = mem_new_array(struct change, req->change_count);
    entry->commit.claims = mem_new_array(struct claim, req->claim_count);
    for (size_t i = 0; i < req->change_count; i++)
        entry->commit.changes[i] = copy_change(&req->changes[i]);
    for (size_t i = 0; i < req->claim_count; i++) {
        entry->commit.claims[i] = req->claims[i];
        bytes_ref(req->claims[i].key);
    }
}

/* Writes the changes into the newest history. */
static void record(struct cluster_database *database, const struct store_commit *req)
{
    struct cluster_check *check = &database->cluster->check;
    for (size_t i = 0; i < req->change_count; i++)
        if (req->changes[i].env == REPL_RUNS)
            ledger_write(check->histories[check->history], &req->changes[i]);
}

static void record_purge(struct cluster_database *database)
{
    struct cluster_check *check = &database->cluster->check;
    check->purged = true;
    list_each (link, &check->histories[check->history]->stories) {
        struct story *story = container_of(link, struct story, link);
        story->purged = !fake_data_run(database->data, REPL_RUNS, slice_of(story->id));
    }
}

/* ---- failover ---- */

static void replay(struct cluster_database *database, struct cluster_entry *entry)
{
    if (entry->is_purge) {
        fake_data_purge(database->data, &entry->purge);
        return;
    }
    fake_data_commit(database->data, &entry->commit);
    if (entry->commit.status)
        violated("a kept commit cannot be replayed: %d", entry->commit.status);
}

void cluster_database_fail_over(struct cluster_database *database, size_t lost)
{
    struct cluster_network *network = &database->cluster->network;
    for (int i = 0; i < CLUSTER_GATEWAYS; i++)
        cluster_break(network, i, CLUSTER_DATABASE);
    while (lost-- && database->log_count > database->kept) {
        struct cluster_entry *entry = &database->log[--database->log_count];
        cluster_op_lost(database->cluster, entry->op);
        entry_finish(entry);
    }
    cluster_trace(database->cluster, "the database fails over; %zu commits are left",
                  database->log_count);
    fake_data_destroy(database->data);
    database->data = fake_data_create();
    for (size_t i = 0; i < database->log_count; i++)
        replay(database, &database->log[i]);
    database->timeline++;
    database->failovers++;
}

static void begin_epoch(struct cluster_database *database)
{
    struct cluster_check *check = &database->cluster->check;
    database->epoch_timeline = database->timeline;
    cluster_check_begin_history(check);
    cluster_history_name(check->history, database->epoch);
    for (size_t i = 0; i < database->log_count; i++)
        record(database, &database->log[i].commit);
    if (check->purged)
        record_purge(database);
    cluster_keys_restored(database->cluster);
}

/* ---- calls ---- */

static struct cluster_row *row_of(struct cluster_database *database,
                                  const struct cluster_call *call)
{
    struct cluster_row *row = &database->rows[call->message.from];
    return row->id && row->id == call->me ? row : NULL;
}

static void join(struct cluster_database *database, const struct cluster_call *call,
                 struct cluster_reply *reply)
{
    struct cluster_row *row = &database->rows[call->message.from];
    if (row->id && row->id == database->leader)
        database->leader = 0;
    *row = (struct cluster_row){ .id = ++database->last_id };
    reply->me = row->id;
}

static bool is_taken(const struct cluster_database *database,
                     const struct cluster_call *call)
{
    if (!database->leader || database->leader == call->me)
        return false;
    for (int i = 0; i < CLUSTER_GATEWAYS; i++) {
        const struct cluster_row *row = &database->rows[i];
        if (row->id == database->leader)
            return row->id != call->dead.id || row->beat != call->dead.beat;
    }
    return false;
}

static enum store_status lead(struct cluster_database *database, struct cluster_row *row,
                              const struct cluster_call *call)
{
    if (is_taken(database, call))
        return STORE_TAKEN;
    if (database->leader != call->me) {
        database->term++;
        database->takeovers++;
    }
    database->leader = call->me;
    row->group = 0;
    database->kept = database->log_count;
    if (database->timeline != database->epoch_timeline)
        begin_epoch(database);
    return STORE_OK;
}

static enum store_status epoch(struct cluster_database *database, struct cluster_row *row,
                               const struct cluster_call *call)
{
    if (database->leader != call->me || database->term != call->term)
        return STORE_MOVED;
    if (database->timeline != database->epoch_timeline)
        begin_epoch(database);
    row->group = 0;
    return STORE_OK;
}

static bool is_fenced(const struct cluster_database *database,
                      const struct cluster_call *call)
{
    return database->leader != call->me || database->term != call->term;
}

static enum store_status commit(struct cluster_database *database,
                                const struct cluster_call *call)
{
    struct store_commit *req = call->req.commit;
    if (is_fenced(database, call) && !has_fault(FAULT_UNFENCED))
        return STORE_MOVED;
    fake_data_commit(database->data, req);
    if (req->status)
        return req->status;
    if (call->term < database->term)
        violated("a leader of term %llu commits after term %llu has begun",
                 (unsigned long long)call->term, (unsigned long long)database->term);
    log_commit(database, req, call->op);
    record(database, req);
    cluster_op_executed(database->cluster, call->op, &req->changes[0]);
    return STORE_OK;
}

static enum store_status purge(struct cluster_database *database,
                               const struct cluster_call *call)
{
    if (is_fenced(database, call))
        return STORE_MOVED;
    fake_data_purge(database->data, call->req.purge);
    struct cluster_entry *entry = add_entry(database);
    entry->is_purge = true;
    entry->purge = *call->req.purge;
    record_purge(database);
    return call->req.purge->status;
}

/* Executes a numbered group once. */
static enum store_status write_once(struct cluster_database *database,
                                    struct cluster_row *row,
                                    const struct cluster_call *call)
{
    if (row->group == call->group)
        return row->answer;
    if (call->group != row->group + 1)
        return STORE_FAILED; /* of an earlier connection: no caller waits for it */
    row->group = call->group;
    row->answer =
        call->kind == CALL_COMMIT ? commit(database, call) : purge(database, call);
    return row->answer;
}

static bool is_stale(const struct cluster_database *database,
                     const struct cluster_call *call)
{
    return database->timeline != database->epoch_timeline ||
           (call->epoch[0] && strcmp(call->epoch, database->epoch) != 0);
}

static void execute(struct cluster_database *database, struct cluster_call *call,
                    struct cluster_reply *reply)
{
    if (call->kind == CALL_JOIN)
        join(database, call, reply);
    struct cluster_row *row = call->kind == CALL_JOIN ? &database->rows[call->message.from]
                                                      : row_of(database, call);
    reply->gone = !row;
    if (!row)
        return;
    row->session = true;
    row->connection = call->message.connection;
    reply->stale = call->kind >= CALL_COMMIT && is_stale(database, call);
    if (reply->stale)
        return;
    switch (call->kind) {
    case CALL_JOIN: break;
    case CALL_BEAT:
        row->beat++;
        row->registered = call->registers;
        break;
    case CALL_LEAD: reply->status = lead(database, row, call); break;
    case CALL_EPOCH: reply->status = epoch(database, row, call); break;
    case CALL_COMMIT:
    case CALL_PURGE: reply->status = write_once(database, row, call); break;
    case CALL_READ: reply->status = fake_data_read(database->data, call->req.read); break;
    }
}

static void describe(struct cluster_database *database, struct cluster_reply *reply)
{
    reply->leader = database->leader;
    reply->term = database->term;
    reply->other_timeline = database->timeline != database->epoch_timeline;
    memcpy(reply->epoch, database->epoch, sizeof(reply->epoch));
    memcpy(reply->rows, database->rows, sizeof(reply->rows));
    for (uint32_t env = 0; env < REPL_ENVS; env++)
        reply->positions[env] = fake_data_position(database->data, env);
}

static void on_reply(struct cluster *cluster, struct cluster_message *message)
{
    cluster_gateway_replied(&cluster->gateways[message->to],
                            container_of(message, struct cluster_reply, message));
}

static void on_call(struct cluster *cluster, struct cluster_message *message)
{
    struct cluster_call *call = container_of(message, struct cluster_call, message);
    struct cluster_reply *reply = mem_new(struct cluster_reply);
    reply->message.arrive = on_reply;
    reply->kind = call->kind;
    reply->number = call->number;
    reply->me = call->me;
    execute(&cluster->database, call, reply);
    describe(&cluster->database, reply);
    cluster_answer(&cluster->network, message, &reply->message);
}

void cluster_database_call(struct cluster *cluster, int gateway, struct cluster_call *call)
{
    call->message.arrive = on_call;
    call->message.may_survive = call->kind != CALL_READ && call->kind != CALL_BEAT;
    cluster_send(&cluster->network, gateway, CLUSTER_DATABASE, &call->message);
}

void cluster_database_tick(struct cluster_database *database)
{
    for (int i = 0; i < CLUSTER_GATEWAYS; i++) {
        const struct cluster_pair *pair =
            cluster_pair(&database->cluster->network, i, CLUSTER_DATABASE);
        struct cluster_row *row = &database->rows[i];
        row->session = row->session && row->connection == pair->connection && !pair->cut;
    }
}
