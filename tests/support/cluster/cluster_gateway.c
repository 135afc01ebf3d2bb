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
    return gateway->memory == MEMORY_READY && !environment_is_late(gateway->env) &&
           (cluster_gateway_leads(gateway) ||
            cluster_replication_trusts(&gateway->replication));
}

static bool is_certain(void *owner)
{
    return cluster_gateway_is_certain(owner);
}

struct cluster_moment cluster_gateway_moment(const struct cluster_gateway *gateway,
                                             uint64_t seq)
{
    uint64_t term = gateway->lead.state == LEAD_LEADING
                        ? gateway->lead.term
                        : gateway->replication.replica.head.term;
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
    return gateway->replication.has_replica ? replica_ask(&gateway->replication.replica)
                                            : 0;
}

bool cluster_gateway_is_answered(const struct cluster_gateway *gateway, uint64_t question)
{
    if (!cluster_gateway_is_certain(gateway))
        return false;
    if (cluster_gateway_leads(gateway))
        return true;
    if (has_fault(FAULT_EARLY_SNAPSHOT))
        return true;
    return question && gateway->replication.replica.answered >= question &&
           gateway->env->applied >= gateway->env->reaches.arrived;
}

/* ---- memory ---- */

/* Ends the requests to the store, and lets their callers end. */
static void end_requests(struct cluster_gateway *gateway)
{
    for (int i = 0; i < TURNS_MAX; i++) {
        cluster_store_fail_all(&gateway->store);
        if (!loop_turn(gateway->loop, 0) && list_empty(&gateway->store.reads))
            return;
    }
}

/* Nothing that was read so far counts any more. */
static void stop_reading(struct cluster_gateway *gateway)
{
    gateway->must_forget = false;
    gateway->memory = MEMORY_NONE;
    cluster_break(&gateway->cluster->network, gateway->number, CLUSTER_DATABASE);
    if (gateway->replication.has_replica)
        replica_disconnected(&gateway->replication.replica);
    end_requests(gateway);
    uint64_t number = gateway->store.number;
    cluster_store_init(&gateway->store, gateway);
    gateway->store.number = number;
    gateway->accounts = (struct cluster_accounts){ 0 };
}

/* Loads everything again, in place: the environment and its listeners stay. */
static void begin_history(struct cluster_gateway *gateway)
{
    cluster_trace(gateway->cluster, "%s gives up its memory", gateway->name);
    stop_reading(gateway);
    cluster_replication_begin_history(&gateway->replication);
}

/* The process has ended. */
static void forget(struct cluster_gateway *gateway)
{
    stop_reading(gateway);
    cluster_replication_forget(&gateway->replication);
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

static void load(struct cluster_gateway *gateway)
{
    gateway->memory = MEMORY_LOADING;
    if (!gateway->env)
        create_environment(gateway);
    cluster_replication_load(&gateway->replication);
}

void cluster_gateway_loaded(struct cluster_gateway *gateway, enum err status)
{
    if (status || strcmp(gateway->epoch, gateway->store.store.epoch) != 0) {
        gateway->must_forget = true; /* maybe a new epoch has begun meanwhile: once more */
        return;
    }
    bool was_loading = gateway->memory == MEMORY_LOADING;
    gateway->memory = MEMORY_READY;
    gateway->accounts.applied = gateway->replication.replica.accounts_applied;
    if (was_loading && gateway->lead.state == LEAD_LOADING)
        cluster_replication_load(&gateway->replication);
    else
        cluster_lead_loaded(&gateway->lead);
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
}

void cluster_gateway_start(struct cluster_gateway *gateway)
{
    gateway->running = true;
    gateway->loop = loop_create(NULL);
    loop_set_budget(gateway->loop, gateway->cluster->budget);
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
    cluster_replication_init(&gateway->replication, gateway);
}

void cluster_gateway_pass_time(struct cluster_gateway *gateway)
{
    if (!gateway->running || gateway->suspended)
        return;
    int64_t now = gateway->cluster->network.now;
    loop_turn(gateway->loop, now - gateway->turned_at);
    gateway->turned_at = now;
    for (int i = 0; i < TURNS_MAX && loop_turn(gateway->loop, 0); i++)
        ;
}

static void break_connections(struct cluster_gateway *gateway)
{
    for (int node = 0; node < CLUSTER_NODES; node++)
        if (node != gateway->number)
            cluster_break(&gateway->cluster->network, gateway->number, node);
}

static void set_suspended(struct cluster_gateway *gateway, bool suspended)
{
    gateway->suspended = suspended;
    gateway->cluster->network.suspended[gateway->number] = suspended;
}

void cluster_gateway_kill(struct cluster_gateway *gateway)
{
    if (!gateway->running)
        return;
    set_suspended(gateway, false);
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

/* A process that continues reads the clock before anything else. */
void cluster_gateway_suspend(struct cluster_gateway *gateway, bool suspended)
{
    if (!gateway->running)
        return;
    set_suspended(gateway, suspended);
    cluster_gateway_pass_time(gateway);
}

static void note_certainty(struct cluster_gateway *gateway)
{
    bool certain = cluster_gateway_is_certain(gateway);
    if (certain && !gateway->was_certain)
        certainty_return(&gateway->certainty);
    gateway->was_certain = certain;
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
        begin_history(gateway);
    if (gateway->memory == MEMORY_NONE && gateway->lead.me)
        load(gateway);
    cluster_lead_tick(&gateway->lead);
    cluster_replication_tick(&gateway->replication);
    cluster_store_tick(&gateway->store);
    cluster_forwards_tick(gateway);
    note_certainty(gateway);
    cluster_sessions_tick(gateway);
    cluster_gateway_pass_time(gateway);
    evict(gateway);
}
