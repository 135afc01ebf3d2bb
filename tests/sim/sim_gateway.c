/* sim_gateway.c - simulates the gateway between its database and its sockets, by a seed.
 *
 *   workload ──► engine ──► ledger ──► fake store        late, failing, crashing
 *                  │
 *                live ──► clients                        slow, cut, resumed, of every kind
 *
 * The seed draws the actions of users, workers, the store and the network, and how far the
 * clock advances. Every row, every sync and every acknowledgement is compared with the
 * ledger's record. At the end every client has the final state, the clients got as many
 * gaps as the metric counts, and nothing is left in memory.
 *
 *   SEED=n    the first seed (1)      SEEDS=n    number of seeds (as many as fit into 10 s)
 *
 * A violation prints its seed: SEED=<that> SEEDS=1 repeats it. */
#include <stdio.h>

#include "base/mem.h"
#include "base/metrics.h"
#include "core/engine/calls.h"
#include "tests/support/world/client.h"
#include "tests/support/world/reader.h"
#include "tests/support/world/unit.h"
#include "tests/support/world/workload.h"

enum { CLIENTS = 8, STEPS = 2000, SEEDS = 40, REST_TURNS = 20000, ROOMY = 1 << 30 };

struct sim {
    struct draws draws;
    struct world *world;
    struct ledger *ledger;
    struct workload workload;
    struct client *clients[CLIENTS];
    bool roomy; /* finished runs stay in memory, so that walks are long */
    unsigned crashes, cuts;
};

/* ---- clients ---- */

static struct view view_number(unsigned number)
{
    struct view views[] = {
        view_of(ENCODING_JSON, FIELDS_ALL),
        view_of(ENCODING_MSGPACK, FIELDS_ALL),
        view_of(ENCODING_JSON, FIELDS_ALL & ~(1u << FIELD_PAYLOAD | 1u << FIELD_OUTPUT)),
        view_of(ENCODING_MSGPACK, 1u << FIELD_METADATA),
    };
    views[1].vocabulary = VOCABULARY_B;
    return views[number % 4];
}

static void add_clients(struct sim *sim)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct view view = view_number(i);
        struct client *client = client_create(sim->world, &view);
        client->window = draw(&sim->draws, 6);
        client->sleepy = i % 4 == 3;
        if (i % 3 == 2)
            client->every_ms = 1 + draw(&sim->draws, i == 2 ? 3000 : 100);
        sim->clients[i] = client;
    }
}

/* Subscribes to a run that exists or will exist, tags, a batch or all.
 * Sometimes it subscribes to one task only. */
static void subscribe_somewhere(struct sim *sim, struct client *client)
{
    struct draws *draws = &sim->draws;
    const struct story *story = NULL;
    char about[64] = "all";
    if (sim->ledger->count)
        story = ledger_story(sim->ledger, draw(draws, (uint32_t)sim->ledger->count));
    const struct bytes *batch = story ? story->versions[0].batch : NULL;
    const char *tag = work_tags[draw(draws, WORK_TAGS)];
    uint32_t kind = draw(draws, 10);

    if (kind < 3)
        snprintf(about, sizeof(about), "tag:%s", tag);
    else if (kind < 5)
        snprintf(about, sizeof(about), "tag:%s,%s", tag, work_tags[draw(draws, 5)]);
    else if (kind < 8)
        snprintf(about, sizeof(about), "run:%s", story ? story->id : "run_later");
    else if (batch)
        snprintf(about, sizeof(about), "batch:%s", batch->data);
    if (chance(draws, 150))
        snprintf(about + strlen(about), 16, " task:hello");
    struct filter filter = filter_about(about);
    client_subscribe(client, &filter);
    filter_finish(&filter);
}

static void step_client(struct sim *sim)
{
    struct draws *draws = &sim->draws;
    struct client *client = sim->clients[draw(draws, CLIENTS)];
    uint32_t choice = draw(draws, 1000);

    if (client->lost || choice < 10) {
        client_cut(client);
        sim->cuts++;
    } else if (!client->connected && choice < 500) {
        client_connect(client);
    } else if (choice < 50) {
        subscribe_somewhere(sim, client);
    } else if (choice < 65) {
        client_unsubscribe(client, draw(draws, MIRROR_SUBS));
    } else if (choice < 90) {
        client_ping(client);
    } else if (!client->sleepy || chance(draws, 40)) {
        for (uint32_t frames = draw(draws, 12); frames && client_receive(client);)
            frames--;
    }
}

/* ---- the store, the clock, the process ---- */

static void disturb(struct sim *sim)
{
    struct draws *draws = &sim->draws;
    struct world *world = sim->world;
    struct environment *env = world->env;

    switch (draw(draws, 5)) {
    case 0: fake_store_set_delay(world->fake, draw(draws, 30), draw(draws, 60)); break;
    case 1:
        *fake_store_fault(world->fake) =
            (struct fault){ .countdown = 1 + (int)draw(draws, 5),
                            .repeat = (int)draw(draws, 4) };
        fake_store_fail_with(world->fake,
                             chance(draws, 500) ? STORE_FAILED : STORE_NO_SPACE);
        break;
    case 2: loop_set_budget(world->loop, chance(draws, 500) ? draw(draws, 2) : 1000); break;
    case 3: /* the ring is replaced: it holds only later changes */
        recent_finish(&env->recent);
        env->recent.dropped = env->applied;
        break;
    default: env->budget = sim->roomy ? ROOMY : 2000 + draw(draws, 60000); break;
    }
}

static void crash(struct sim *sim)
{
    for (int i = 0; i < CLIENTS; i++)
        client_cut(sim->clients[i]);
    workload_lose(&sim->workload);
    ledger_crash(sim->ledger, draw(&sim->draws, UINT32_MAX));
    while (!list_empty(&sim->workload.dequeues))
        loop_turn(sim->world->loop, 1);
    world_stop(sim->world);
    while (!list_empty(&sim->ledger->pending))
        loop_turn(sim->world->loop, 1);
    *fake_store_fault(sim->world->fake) = (struct fault){ 0 };
    ledger_revive(sim->ledger);
    sim->world->takes_over = sim->crashes % 2;
    world_start(sim->world);
    workload_return(&sim->workload);
    sim->crashes++;
}

static void step(struct sim *sim)
{
    uint32_t choice = draw(&sim->draws, 1000);
    if (choice < 3)
        crash(sim);
    else if (choice < 40)
        disturb(sim);
    else if (choice < 440)
        workload_step(&sim->workload);
    else if (choice < 820)
        step_client(sim);
    else
        loop_turn(sim->world->loop, chance(&sim->draws, 30) ? draw(&sim->draws, 5000)
                                                            : draw(&sim->draws, 20));
}

/* ---- the end ---- */

static bool all_rest(struct sim *sim)
{
    bool rest = !sim->workload.under_way && engine_idle(sim->world->engine);
    for (int i = 0; i < CLIENTS; i++)
        rest = client_rests(sim->clients[i]) && rest;
    return rest;
}

/* Begins nothing new; all clients reconnect and read until nothing is left to read. */
static void come_to_rest(struct sim *sim)
{
    for (int turn = 0; !all_rest(sim); turn++) {
        for (int i = 0; i < CLIENTS; i++) {
            struct client *client = sim->clients[i];
            if (client->lost)
                client_cut(client);
            if (!client->connected)
                client_connect(client);
            while (client_receive(client))
                ;
        }
        loop_turn(sim->world->loop, 1);
        if (turn == REST_TURNS)
            violated("it does not come to rest");
    }
    for (int i = 0; i < CLIENTS; i++)
        mirror_check_end(&sim->clients[i]->mirror);
}

/* Lets every deadline pass. */
static void let_time_pass(struct sim *sim)
{
    for (int i = 0; i < 400; i++) {
        for (int k = 0; k < CLIENTS; k++)
            while (client_receive(sim->clients[k]))
                ;
        loop_turn(sim->world->loop, 10000);
    }
}

static void end(struct sim *sim)
{
    struct world *world = sim->world;
    workload_rest(&sim->workload);
    *fake_store_fault(world->fake) = (struct fault){ 0 };
    fake_store_set_delay(world->fake, 0, 0);
    loop_set_budget(world->loop, 1000);
    world->env->budget = world->options.memory;
    come_to_rest(sim);
    loop_turn(world->loop, STORE_RETRY_MS); /* retries work that the store has refused */
    come_to_rest(sim);
    workload_check_waits(&sim->workload);
    pushes_check_repetitions(&sim->workload.pushes);
    staff_check_rest(&sim->workload.staff);
    come_to_rest(sim);
    let_time_pass(sim);
    come_to_rest(sim);
    crash(sim); /* no client may notice it */
    let_time_pass(sim);
    come_to_rest(sim);
    workload_check_end(&sim->workload);
}

/* ---- one seed ---- */

/* Ends the unfinished runs of the environment and drops it when no operation uses it. An
 * operation that returns to it later has released it. The clients have disconnected. */
static void archive(struct sim *sim)
{
    struct engine *engine = sim->world->engine;
    struct environment *env = sim->world->env;
    engine_retire_environment(engine, env);
    for (int turn = 0; !engine_may_drop_environment(engine, env); turn++) {
        loop_turn(sim->world->loop, 100);
        if (turn == REST_TURNS)
            violated("the environment of an archived branch does not leave memory");
    }
    engine_drop_environment(engine, env);
    sim->world->env = NULL;
}

static int64_t gaps_of(const struct sim *sim)
{
    uint64_t gaps = 0;
    for (int i = 0; i < CLIENTS; i++)
        gaps += sim->clients[i]->gaps;
    return (int64_t)gaps;
}

static void print_result(const struct sim *sim)
{
    unsigned syncs = 0, rows = 0;
    for (int i = 0; i < CLIENTS; i++) {
        syncs += sim->clients[i]->mirror.syncs;
        rows += sim->clients[i]->mirror.applied;
    }
    printf("ok %s: %zu runs, %llu changes, %u rows, %u syncs, %lld conflated, %u cuts, "
           "%u crashes, %u acknowledged, %u refused, %u of %u pushes joined, %u repeated\n",
           sim_title, sim->ledger->count, (unsigned long long)sim->ledger->seq, rows, syncs,
           (long long)gaps_of(sim), sim->cuts, sim->crashes, sim->workload.acknowledged,
           sim->workload.refused, sim->workload.pushes.joined, sim->workload.pushes.sent,
           sim->workload.pushes.repeated);
    fflush(stdout);
}

static void run_seed(uint64_t seed)
{
    struct sim sim = { .draws = { seed }, .roomy = seed % 3 == 0 };
    int64_t conflated = metrics[M_CONFLATED];
    sim.world = world_create(&(struct world_options){
        .engine = { .memory = sim.roomy ? ROOMY : 40000,
                    .lease_ms = 2000,
                    .heartbeat_ms = 5000,
                    .cancel_ms = 1000,
                    .concurrency = 6 },
        .is_prod = seed % 2,
        .singleton = seed % 4 < 2 ? SINGLETON_SKIP : SINGLETON_CANCEL,
        .wrap = ledger_wrap,
    });
    sim.ledger = ledger_of(sim.world);
    workload_init(&sim.workload, sim.world, &sim.draws);
    add_clients(&sim);
    for (int i = 0; i < CLIENTS; i++) {
        client_connect(sim.clients[i]);
        subscribe_somewhere(&sim, sim.clients[i]);
    }
    for (int i = 0; i < STEPS; i++)
        step(&sim);
    end(&sim);
    if (metrics[M_CONFLATED] - conflated != gaps_of(&sim))
        violated("%lld versions were conflated and the gaps sum up to %lld",
                 (long long)(metrics[M_CONFLATED] - conflated), (long long)gaps_of(&sim));
    print_result(&sim);
    for (int i = 0; i < CLIENTS; i++)
        client_destroy(sim.clients[i]);
    archive(&sim);
    workload_finish(&sim.workload);
    world_destroy(sim.world);
    ledger_destroy(sim.ledger);
}

int main(void)
{
    return sim_run_seeds(run_seed, SEEDS);
}
