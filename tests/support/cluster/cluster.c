/* cluster.c - the parts of a simulated cluster together, and the comparison at rest. */
#include "tests/support/cluster/cluster.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "tests/support/fakes/fake_tables.h"

enum {
    BUDGET_LEAST = 2000,
    BUDGETS = 20000,
    OLD_KEYS_PER_MILLE = 100,
    CLOCK_OFF_MS = 3000,
    BUSY_SEEDS = 5, /* in every fifth seed, time slices are as short as possible */
};

/* Longest delays of a message: within a data center, and between two of them. */
enum { DELAY_MS = 10, DELAY_FAR_MS = 80 };

/* ---- made, gone ---- */

void cluster_init(struct cluster *cluster, uint64_t seed)
{
    *cluster = (struct cluster){ .draws = { seed } };
    cluster->budget = seed % BUSY_SEEDS ? 1000 : 1;
    list_init(&cluster->ops);
    cluster_network_init(&cluster->network, cluster, &cluster->draws);
    cluster->network.delay_ms = draw(&cluster->draws, 2) ? DELAY_MS : DELAY_FAR_MS;
    cluster_check_init(&cluster->check);
    cluster_database_init(&cluster->database, cluster);
    for (int i = 0; i < CLUSTER_GATEWAYS; i++) {
        cluster_gateway_init(&cluster->gateways[i], cluster, i);
        cluster->gateways[i].off_ms = draw(&cluster->draws, CLOCK_OFF_MS);
        cluster->gateways[i].budget = BUDGET_LEAST + draw(&cluster->draws, BUDGETS);
        cluster_gateway_start(&cluster->gateways[i]);
    }
    for (unsigned i = 0; i < CLUSTER_SUBSCRIBERS; i++)
        cluster_subscriber_init(&cluster->subscribers[i], cluster, i);
    for (unsigned i = 0; i < CLUSTER_POLLERS; i++)
        cluster_poller_init(&cluster->pollers[i], cluster, i);
}

void cluster_finish(struct cluster *cluster)
{
    for (unsigned i = 0; i < CLUSTER_SUBSCRIBERS; i++)
        cluster_subscriber_finish(&cluster->subscribers[i]);
    for (unsigned i = 0; i < CLUSTER_POLLERS; i++)
        cluster_poller_finish(&cluster->pollers[i]);
    for (int i = 0; i < CLUSTER_GATEWAYS; i++)
        cluster_gateway_kill(&cluster->gateways[i]);
    cluster_network_finish(&cluster->network);
    cluster_database_finish(&cluster->database);
    cluster_check_finish(&cluster->check);
    while (!list_empty(&cluster->ops))
        free(container_of(list_take(&cluster->ops), struct cluster_op, link));
    tag_list_forget_shared();
    bytes_forget_shared();
}

void cluster_pass(struct cluster *cluster, int64_t ms)
{
    cluster->network.now += ms;
    for (int i = 0; i < CLUSTER_GATEWAYS; i++)
        cluster_gateway_pass_time(&cluster->gateways[i]);
    cluster_database_tick(&cluster->database);
    cluster_deliver(&cluster->network);
    for (int i = 0; i < CLUSTER_GATEWAYS; i++)
        cluster_gateway_turn(&cluster->gateways[i]);
}

/* ---- operations ---- */

void cluster_draw_key(struct cluster *cluster, unsigned *key, uint64_t *generation)
{
    *key = draw(&cluster->draws, CLUSTER_KEYS);
    *generation = cluster->check.generation[*key];
    if (*generation && chance(&cluster->draws, OLD_KEYS_PER_MILLE))
        --*generation;
}

static enum cluster_op_kind draw_kind(struct cluster *cluster)
{
    uint32_t choice = draw(&cluster->draws, 100);
    if (choice < 20 || !cluster->runs)
        return OP_CREATE;
    if (choice < 60)
        return OP_STEP;
    if (choice < 90)
        return OP_NOTE;
    return choice < 97 ? OP_SETTING : OP_ROTATE;
}

static void run_name(unsigned number, char *name)
{
    snprintf(name, RUN_ID_MAX, "run_%06u", number % 1000000);
}

void cluster_write(struct cluster *cluster)
{
    struct cluster_op *op = mem_new(struct cluster_op);
    op->number = ++cluster->op_count;
    op->kind = draw_kind(cluster);
    op->keyed =
        op->kind == OP_CREATE || op->kind == OP_ROTATE || chance(&cluster->draws, 300);
    run_name(op->kind == OP_CREATE ? ++cluster->runs
                                   : 1 + draw(&cluster->draws, cluster->runs),
             op->run);
    op->begun = cluster->network.now;
    cluster_draw_key(cluster, &op->key, &op->generation);
    list_append(&cluster->ops, &op->link);
    struct cluster_gateway *gateway =
        &cluster->gateways[draw(&cluster->draws, CLUSTER_GATEWAYS)];
    if (gateway->running && !gateway->suspended)
        cluster_op_send(op, gateway);
    else
        op->state = OP_UNKNOWN;
}

static struct cluster_op *find_op(struct cluster *cluster, unsigned number)
{
    list_each (link, &cluster->ops) {
        struct cluster_op *op = container_of(link, struct cluster_op, link);
        if (op->number == number)
            return op;
    }
    return NULL;
}

void cluster_op_executed(struct cluster *cluster, unsigned number,
                         const struct change *change)
{
    struct cluster_op *op = find_op(cluster, number);
    if (!op)
        return;
    if (++op->executed > 1)
        violated("operation %u is executed twice", number);
    if (op->kind != OP_ROTATE)
        return;
    text_to_u64(bytes_slice(change->document.body), &op->made);
    cluster->check.generation[op->key] = op->made;
}

void cluster_op_lost(struct cluster *cluster, unsigned number)
{
    struct cluster_op *op = find_op(cluster, number);
    if (!op)
        return;
    op->executed--;
    op->lost = true;
}

void cluster_keys_restored(struct cluster *cluster)
{
    struct store_scan scan = { .read = { READ_SCAN, REPL_ACCOUNTS, NULL },
                               .kind = DOC_KEY };
    struct cluster_accounts accounts = { 0 };
    fake_data_read(cluster->database.data, &scan.read);
    for (size_t i = 0; i < scan.count; i++)
        cluster_accounts_put(&accounts, &scan.documents[i]);
    store_read_finish(&scan.read);
    memcpy(cluster->check.generation, accounts.generation, sizeof(accounts.generation));
}

/* ---- rest ---- */

struct cluster_gateway *cluster_leader(struct cluster *cluster)
{
    for (int i = 0; i < CLUSTER_GATEWAYS; i++)
        if (cluster->gateways[i].running && !cluster->gateways[i].suspended &&
            cluster_gateway_leads(&cluster->gateways[i]))
            return &cluster->gateways[i];
    return NULL;
}

static bool gateway_rests(struct cluster_gateway *gateway)
{
    struct cluster_database *database = &gateway->cluster->database;
    struct store_position position = fake_data_position(database->data, REPL_RUNS);
    struct store_position accounts = fake_data_position(database->data, REPL_ACCOUNTS);
    return cluster_gateway_is_certain(gateway) && gateway->env->applied == position.seq &&
           gateway->accounts.applied == accounts.seq && list_empty(&gateway->forwards) &&
           list_empty(&gateway->writes) && replica_is_idle(&gateway->replication.replica) &&
           !gateway->env->evaluation.count;
}

bool cluster_rests(struct cluster *cluster)
{
    for (int i = 0; i < CLUSTER_GATEWAYS; i++)
        if (!gateway_rests(&cluster->gateways[i]))
            return false;
    for (unsigned i = 0; i < CLUSTER_SUBSCRIBERS; i++)
        if (!cluster_subscriber_rests(&cluster->subscribers[i]))
            return false;
    for (unsigned i = 0; i < CLUSTER_POLLERS; i++)
        if (!cluster_poller_rests(&cluster->pollers[i]))
            return false;
    return true;
}

static void print_gateway(struct cluster_gateway *gateway)
{
    printf("# %s: epoch %s, memory %d, lead %d of term %llu, replica %d, runs %llu, "
           "accounts %llu, catching up %d, forwards %d, writes %d\n",
           gateway->name, gateway->epoch, gateway->memory, gateway->lead.state,
           (unsigned long long)gateway->lead.term, gateway->replication.replica.state,
           (unsigned long long)(gateway->env ? gateway->env->applied : 0),
           (unsigned long long)gateway->accounts.applied,
           !replica_is_idle(&gateway->replication.replica), !list_empty(&gateway->forwards),
           !list_empty(&gateway->writes));
}

void cluster_print(struct cluster *cluster)
{
    const struct cluster_database *database = &cluster->database;
    printf("# database: epoch %s, leader %llu of term %llu, runs %llu, accounts %llu\n",
           database->epoch, (unsigned long long)database->leader,
           (unsigned long long)database->term,
           (unsigned long long)fake_data_position(database->data, REPL_RUNS).seq,
           (unsigned long long)fake_data_position(database->data, REPL_ACCOUNTS).seq);
    for (int i = 0; i < CLUSTER_GATEWAYS; i++)
        print_gateway(&cluster->gateways[i]);
    for (unsigned i = 0; i < CLUSTER_SUBSCRIBERS; i++)
        printf("# %s: state %d, history %u, rests %d\n", cluster->subscribers[i].name,
               cluster->subscribers[i].state, cluster->subscribers[i].history,
               cluster_subscriber_rests(&cluster->subscribers[i]));
    for (unsigned i = 0; i < CLUSTER_POLLERS; i++)
        printf("# poll %u: state %d, history %u, seen %llu\n", i, cluster->pollers[i].state,
               cluster->pollers[i].history, (unsigned long long)cluster->pollers[i].seen);
}

static void compare_run(const struct cluster_gateway *gateway, const struct run *stored)
{
    const struct environment *env = gateway->env;
    const struct tracked *tracked = environment_find(env, slice_of(stored->id));
    bool is_needed = !run_is_settled(stored) || stored->rev > env->cold;
    if (!tracked && is_needed)
        violated("%s lacks %s v%u", gateway->name, stored->id, stored->version);
    if (tracked &&
        (tracked->run.version != stored->version || tracked->run.rev != stored->rev ||
         tracked->run.status != stored->status))
        violated("%s has %s v%u, the database v%u", gateway->name, stored->id,
                 tracked->run.version, stored->version);
}

static void compare_memory(struct cluster_gateway *gateway)
{
    struct cluster_database *database = &gateway->cluster->database;
    struct env *stored = fake_data_env(database->data, REPL_RUNS);
    size_t known = 0, at = 0;
    list_each (link, &stored->runs)
        compare_run(gateway, &container_of(link, struct stored_run, link)->run);
    for (struct tracked *run; (run = table_next(&gateway->env->runs, &at));)
        known += fake_data_run(database->data, REPL_RUNS, slice_of(run->run.id)) != NULL;
    if (known != gateway->env->runs.count)
        violated("%s has %zu runs that the database does not have", gateway->name,
                 gateway->env->runs.count - known);
}

static void check_ops(struct cluster *cluster)
{
    list_each (link, &cluster->ops) {
        const struct cluster_op *op = container_of(link, struct cluster_op, link);
        if (op->state == OP_OPEN)
            violated("operation %u has no response", op->number);
        if (op->state == OP_ACKED && !op->executed && !op->lost)
            violated("operation %u was acknowledged and is lost", op->number);
    }
}

void cluster_check_end(struct cluster *cluster)
{
    for (int i = 0; i < CLUSTER_GATEWAYS; i++)
        compare_memory(&cluster->gateways[i]);
    check_ops(cluster);
    for (unsigned i = 0; i < CLUSTER_SUBSCRIBERS; i++)
        cluster_subscriber_check_end(&cluster->subscribers[i]);
    for (unsigned i = 0; i < CLUSTER_POLLERS; i++)
        cluster_poller_check_end(&cluster->pollers[i]);
}
