/* cluster_gateway.c - the life of a gateway: start, load, turns, kill. */
#include "tests/support/cluster/cluster_gateway.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "tests/support/cluster/cluster.h"
#include "tests/support/cluster/cluster_faults.h"
#include "tests/support/world/world.h"

enum { CONCURRENCY = 100, TURNS_MAX = 50 };

/* ---- accounts ---- */

void cluster_accounts_put(struct cluster_accounts *accounts,
                          const struct document *document)
{
    uint64_t key = 0;
    text_to_u64(bytes_slice(document->name), &key);
    if (document->version <= accounts->version[key])
        return;
    accounts->version[key] = document->version;
    text_to_u64(bytes_slice(document->body), &accounts->generation[key]);
}

/* ---- trust ---- */

bool cluster_gateway_leads(const struct cluster_gateway *gateway)
{
    return cluster_lead_trust(&gateway->lead) > 0;
}

bool cluster_gateway_is_certain(const struct cluster_gateway *gateway)
{
    if (gateway->must_forget || gateway->must_restart)
        return false;
    return gateway->memory == MEMORY_READY &&
           (cluster_gateway_leads(gateway) || cluster_replica_trusts(&gateway->replica));
}

static bool is_certain(void *owner)
{
    return cluster_gateway_is_certain(owner);
}

struct cluster_moment cluster_gateway_moment(const struct cluster_gateway *gateway,
                                             uint64_t seq)
{
    uint64_t term =
        gateway->lead.state == LEAD_LEADING ? gateway->lead.term : gateway->replica.term;
    return (struct cluster_moment){ cluster_history_of(gateway->epoch), seq, term };
}

uint32_t cluster_gateway_connection(const struct cluster_gateway *gateway, int node)
{
    return cluster_pair(&gateway->cluster->network, gateway->number, node)->connection;
}

uint64_t cluster_gateway_ask(struct cluster_gateway *gateway)
{
    if (cluster_gateway_leads(gateway))
        return 0;
    return cluster_replica_ask(&gateway->replica);
}

bool cluster_gateway_is_answered(const struct cluster_gateway *gateway, uint64_t question)
{
    const struct cluster_replica *replica = &gateway->replica;
    if (!cluster_gateway_is_certain(gateway))
        return false;
    if (cluster_gateway_leads(gateway))
        return true;
    if (has_fault(FAULT_EARLY_SNAPSHOT))
        return true;
    return question && replica->answered >= question &&
           gateway->accounts.applied >= replica->positions[REPL_ACCOUNTS] &&
           gateway->env->applied >= replica->positions[REPL_RUNS];
}

/* ---- memory ---- */

static void drop_late(struct cluster_gateway *gateway)
{
    while (!list_empty(&gateway->late_documents)) {
        struct repl_message *late = container_of(list_take(&gateway->late_documents),
                                                 struct repl_message, waiting_link);
        repl_frame_finish(&late->frame);
        free(late);
    }
}

/* Ends the requests to the store, and lets their callers end. */
static void end_requests(struct cluster_gateway *gateway)
{
    for (int i = 0; i < TURNS_MAX; i++) {
        cluster_store_fail_all(&gateway->store);
        if (!loop_turn(gateway->loop, 0))
            return;
    }
}

/* Gives up everything in memory, but no connection of a client. */
static void forget(struct cluster_gateway *gateway)
{
    gateway->must_forget = false;
    gateway->memory = MEMORY_NONE;
    cluster_trace(gateway->cluster, "%s gives up its memory", gateway->name);
    cluster_break(&gateway->cluster->network, gateway->number, CLUSTER_DATABASE);
    cluster_sessions_detach(gateway);
    cluster_replica_end(&gateway->replica);
    cluster_source_init(&gateway->source, gateway);
    end_requests(gateway);
    cluster_catch_up_finish(&gateway->catch_up);
    uint64_t number = gateway->store.number;
    cluster_store_init(&gateway->store, gateway);
    gateway->store.number = number;
    drop_late(gateway);
    gateway->accounts = (struct cluster_accounts){ 0 };
    if (gateway->env)
        environment_destroy(gateway->env);
    gateway->env = NULL;
}

static void create_environment(struct cluster_gateway *gateway)
{
    struct cluster_store *store = &gateway->store;
    gateway->env = environment_create(gateway->loop, &store->store, REPL_RUNS, "env_test",
                                      false, gateway->budget, CONCURRENCY);
    gateway->env->certainty = &gateway->certainty;
}

static void on_loaded(struct store_read *read, enum store_status status)
{
    struct cluster_gateway *gateway =
        container_of(read, struct cluster_gateway, load_runs.read);
    struct store_walk *walk = &gateway->load_runs;
    if (status || strcmp(gateway->epoch, gateway->store.store.epoch) != 0) {
        store_read_finish(read);
        gateway->must_forget = true; /* a new epoch has begun meanwhile: once more */
        return;
    }
    create_environment(gateway);
    for (size_t i = 0; i < walk->count; i++)
        environment_load(gateway->env, &walk->runs[i]);
    free(walk->runs);
    gateway->memory = MEMORY_READY;
    if (gateway->lead.state == LEAD_LOADING)
        cluster_catch_up_begin(&gateway->catch_up);
}

static void load_runs(struct cluster_gateway *gateway)
{
    gateway->load_runs = (struct store_walk){ .read = { READ_WALK, REPL_RUNS, on_loaded },
                                              .kind = WALK_UNFINISHED,
                                              .up_to = UINT64_MAX,
                                              .limit = UINT32_MAX,
                                              .byte_limit = SIZE_MAX };
    cluster_store_read(&gateway->store, &gateway->load_runs.read, true);
}

static void on_keys(struct store_read *read, enum store_status status)
{
    struct cluster_gateway *gateway =
        container_of(read, struct cluster_gateway, load_keys.read);
    if (status) {
        gateway->memory = MEMORY_NONE;
        return;
    }
    for (size_t i = 0; i < gateway->load_keys.count; i++)
        cluster_accounts_put(&gateway->accounts, &gateway->load_keys.documents[i]);
    gateway->accounts.applied = gateway->store.positions[REPL_ACCOUNTS].seq;
    memcpy(gateway->epoch, gateway->store.store.epoch, sizeof(gateway->epoch));
    store_read_finish(read);
    load_runs(gateway);
}

static void load(struct cluster_gateway *gateway)
{
    gateway->memory = MEMORY_LOADING;
    gateway->load_keys = (struct store_scan){ .read = { READ_SCAN, REPL_ACCOUNTS, on_keys },
                                              .kind = DOC_KEY };
    cluster_store_read(&gateway->store, &gateway->load_keys.read, true);
}

void cluster_gateway_caught_up(struct cluster_gateway *gateway)
{
    cluster_lead_loaded(&gateway->lead);
    cluster_replica_caught_up(&gateway->replica);
}

void cluster_gateway_purge(struct cluster_gateway *gateway,
                           const struct store_position *position)
{
    uint64_t at = 0;
    while (environment_purge(gateway->env, position, &at))
        ;
}

void cluster_gateway_replied(struct cluster_gateway *gateway,
                             const struct cluster_reply *reply)
{
    if (reply->gone) {
        gateway->must_restart = true;
        return;
    }
    if (reply->kind >= CALL_COMMIT)
        cluster_store_replied(&gateway->store, reply);
    else
        cluster_lead_replied(&gateway->lead, reply);
}

/* ---- the process ---- */

void cluster_gateway_init(struct cluster_gateway *gateway, struct cluster *cluster,
                          int number)
{
    *gateway = (struct cluster_gateway){ .cluster = cluster, .number = number };
    snprintf(gateway->name, sizeof(gateway->name), "gw%d", number);
    list_init(&gateway->forwards);
    list_init(&gateway->writes);
    list_init(&gateway->sessions);
    list_init(&gateway->late_documents);
}

void cluster_gateway_start(struct cluster_gateway *gateway)
{
    gateway->running = true;
    gateway->loop = loop_create(NULL);
    loop_set_wall(gateway->loop,
                  world_start_ms + gateway->cluster->network.now + gateway->off_ms);
    gateway->turned_at = gateway->cluster->network.now;
    gateway->must_restart = gateway->must_forget = gateway->was_certain = false;
    gateway->memory = MEMORY_NONE;
    memset(gateway->epoch, 0, sizeof(gateway->epoch));
    certainty_init(&gateway->certainty, gateway->loop);
    gateway->certainty.is_certain = is_certain;
    gateway->certainty.owner = gateway;
    cluster_store_init(&gateway->store, gateway);
    cluster_lead_init(&gateway->lead, gateway);
    cluster_replica_init(&gateway->replica, gateway);
    cluster_source_init(&gateway->source, gateway);
    cluster_catch_up_init(&gateway->catch_up, gateway);
}

static void break_connections(struct cluster_gateway *gateway)
{
    for (int node = 0; node < CLUSTER_NODES; node++)
        if (node != gateway->number)
            cluster_break(&gateway->cluster->network, gateway->number, node);
}

void cluster_gateway_kill(struct cluster_gateway *gateway)
{
    if (!gateway->running)
        return;
    cluster_gateway_suspend(gateway, false);
    break_connections(gateway);
    gateway->running = false;
    cluster_sessions_cut(gateway);
    forget(gateway);
    cluster_forwards_drop(gateway);
    cluster_lead_finish(&gateway->lead);
    certainty_finish(&gateway->certainty);
    while (loop_turn(gateway->loop, 0))
        ;
    loop_destroy(gateway->loop);
    gateway->loop = NULL;
}

void cluster_gateway_suspend(struct cluster_gateway *gateway, bool suspended)
{
    if (!gateway->running)
        return;
    gateway->suspended = suspended;
    gateway->cluster->network.suspended[gateway->number] = suspended;
}

static void note_certainty(struct cluster_gateway *gateway)
{
    bool certain = cluster_gateway_is_certain(gateway);
    if (certain && !gateway->was_certain)
        certainty_return(&gateway->certainty);
    gateway->was_certain = certain;
}

static void pass_time(struct cluster_gateway *gateway)
{
    int64_t now = gateway->cluster->network.now;
    loop_turn(gateway->loop, now - gateway->turned_at);
    gateway->turned_at = now;
    for (int i = 0; i < TURNS_MAX && loop_turn(gateway->loop, 0); i++)
        ;
}

static void evict(struct cluster_gateway *gateway)
{
    if (gateway->env && environment_is_over_budget(gateway->env))
        environment_evict(gateway->env, gateway->budget);
}

void cluster_gateway_turn(struct cluster_gateway *gateway)
{
    if (!gateway->running || gateway->suspended)
        return;
    if (gateway->must_restart) {
        cluster_gateway_kill(gateway);
        cluster_gateway_start(gateway);
    }
    if (gateway->must_forget)
        forget(gateway);
    if (gateway->memory == MEMORY_NONE && gateway->lead.me)
        load(gateway);
    cluster_lead_tick(&gateway->lead);
    cluster_replica_tick(&gateway->replica);
    cluster_store_tick(&gateway->store);
    cluster_forwards_tick(gateway);
    note_certainty(gateway);
    cluster_sessions_tick(gateway);
    pass_time(gateway);
    evict(gateway);
}
