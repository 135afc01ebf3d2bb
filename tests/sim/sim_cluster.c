/* sim_cluster.c - simulates three gateways on one database, by a seed.
 *
 *   sim_cluster            without a fault, and then each deliberate fault until it is caught
 *   sim_cluster FAULT      one fault (cluster_faults.c), in this process: its violation is the
 *                          expected result. "none": without a fault
 *
 *   SEED=n    the first seed (1)      SEEDS=n    number of seeds (40)
 *   TRACE=1   prints events
 *
 * The seed draws cuts and stalls between every two nodes, suspended and killed gateways,
 * failovers that lose commits, retention, rotations of keys, and what clients do. Then
 * everything heals, and the cluster must come to rest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/support/cluster/cluster.h"
#include "tests/support/cluster/cluster_faults.h"
#include "tests/support/cluster/cluster_troubles.h"

enum {
    SEEDS = 40,
    RUN_MS = 40000,
    REST_MS = 60000,
    ARRIVE_MS = 1000, /* longer than any message takes */
    STEP_MS = 30,
};

struct sim {
    struct cluster cluster;
    struct cluster_troubles troubles;
};

/* A failover, or retention. */
static void disturb_database(struct sim *sim, bool fails_over, bool purges)
{
    struct cluster *cluster = &sim->cluster;
    struct cluster_gateway *leader = cluster_leader(cluster);
    if (fails_over && chance(&cluster->draws, 1))
        cluster_database_fail_over(&cluster->database, draw(&cluster->draws, 6));
    if (purges && leader && chance(&cluster->draws, 3))
        cluster_op_purge(leader, 500 + draw(&cluster->draws, 5000));
}

/* ---- clients ---- */

static void step_subscriber(struct cluster *cluster, struct cluster_subscriber *subscriber,
                            bool moves)
{
    struct draws *draws = &cluster->draws;
    if (subscriber->state == SUBSCRIBER_OUT)
        cluster_subscriber_connect(subscriber,
                                   &cluster->gateways[draw(draws, CLUSTER_GATEWAYS)]);
    else if (moves && chance(draws, 10))
        cluster_subscriber_cut(subscriber);
    for (uint32_t frames = draw(draws, 4); frames && cluster_subscriber_read(subscriber);)
        frames--;
}

static void step_clients(struct cluster *cluster, bool moves)
{
    for (int i = 0; i < CLUSTER_SUBSCRIBERS; i++)
        step_subscriber(cluster, &cluster->subscribers[i], moves);
    for (int i = 0; i < CLUSTER_POLLERS; i++) {
        if (moves && chance(&cluster->draws, 5))
            cluster_poller_forget(&cluster->pollers[i]);
        cluster_poller_step(&cluster->pollers[i]);
    }
}

/* ---- one seed ---- */

static void come_to_rest(struct cluster *cluster)
{
    int64_t until = cluster->network.now + REST_MS;
    while (!cluster_rests(cluster)) {
        step_clients(cluster, false);
        cluster_pass(cluster, 1 + draw(&cluster->draws, STEP_MS));
        if (cluster->network.now > until) {
            cluster_print(cluster);
            violated("it does not come to rest");
        }
    }
}

/* Removals by retention change no position, and may still be in flight. */
static void check_end(struct sim *sim)
{
    cluster_troubles_heal(&sim->troubles);
    come_to_rest(&sim->cluster);
    cluster_pass(&sim->cluster, ARRIVE_MS);
    come_to_rest(&sim->cluster);
    cluster_check_end(&sim->cluster);
}

static void print_result(struct cluster *cluster)
{
    unsigned again = 0;
    for (int i = 0; i < CLUSTER_SUBSCRIBERS; i++)
        again += cluster->subscribers[i].again;
    printf("ok %s: %u operations, %u acknowledged, %llu changes, %u shown, %u syncs, "
           "%u takeovers, %u failovers, %u begun again\n",
           sim_title, cluster->op_count, cluster->acked,
           (unsigned long long)cluster->check.histories[cluster->check.history]->seq,
           cluster->check.shown, cluster->check.syncs, cluster->database.takeovers,
           cluster->database.failovers, again);
    fflush(stdout);
}

static void run_seed(uint64_t seed)
{
    static struct sim sim;
    struct cluster *cluster = &sim.cluster;
    memset(&sim, 0, sizeof(sim));
    cluster_init(cluster, seed);
    cluster_troubles_init(&sim.troubles, cluster);
    cluster->session_rule = seed % 2 || has_fault(FAULT_SESSION_ENDS);
    while (cluster->network.now < RUN_MS) {
        cluster_troubles_step(&sim.troubles);
        disturb_database(&sim, seed % 4 < 2, seed % 3 == 0);
        if (chance(&cluster->draws, 350))
            cluster_write(cluster);
        step_clients(cluster, true);
        cluster_pass(cluster, 1 + draw(&cluster->draws, STEP_MS));
    }
    check_end(&sim);
    print_result(cluster);
    cluster_finish(cluster);
}

/* ---- faults ---- */

/* Returns true if the line has one of the words, which are separated by "|". */
static bool is_expected(const char *line, const char *words)
{
    struct slice rest = slice_of(words), word;
    while (slice_split(&rest, '|', &word)) {
        char text[64];
        snprintf(text, sizeof(text), "%.*s", SLICE_ARG(word));
        if (strstr(line, text))
            return true;
    }
    return false;
}

/* Runs seeds with the fault in a process of its own. Copies its last line. */
static bool is_caught(enum cluster_fault fault, char *line, size_t size)
{
    int ends[2], status = 0;
    if (pipe(ends))
        return false;
    pid_t child = fork();
    if (child == 0) {
        char seeds[16];
        snprintf(seeds, sizeof(seeds), "%u", cluster_faults[fault].seeds);
        setenv("SEEDS", seeds, 1);
        snprintf(seeds, sizeof(seeds), "%u", cluster_faults[fault].first);
        setenv("SEED", seeds, 0);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        cluster_fault = fault;
        sim_run_seeds(run_seed, 0);
        fflush(stdout);
        _Exit(0);
    }
    close(ends[1]);
    FILE *output = fdopen(ends[0], "r");
    char text[400];
    while (fgets(text, sizeof(text), output))
        snprintf(line, size, "%s", text);
    fclose(output);
    waitpid(child, &status, 0);
    line[strcspn(line, "\n")] = '\0';
    return WIFEXITED(status) && WEXITSTATUS(status) == 1 && !strncmp(line, "not ok", 6) &&
           is_expected(line, cluster_faults[fault].caught);
}

static int check_faults(void)
{
    int failed = 0;
    printf("1..%d\n", FAULT_COUNT - FAULT_NONE - 1);
    fflush(stdout);
    for (int fault = FAULT_NONE + 1; fault < FAULT_COUNT; fault++) {
        char line[400] = "";
        bool caught = is_caught(fault, line, sizeof(line));
        const char *seed = strstr(line, "seed");
        printf("%s - fault %s: %s\n", caught ? "ok" : "not ok", cluster_faults[fault].name,
               seed ? seed : line);
        fflush(stdout);
        failed |= !caught;
    }
    return failed;
}

int main(int argc, char **argv)
{
    log_configure(LOG_WARN, LOG_JSON);
    cluster_fault = argc > 1 ? cluster_fault_named(argv[1]) : FAULT_NONE;
    if (cluster_fault == FAULT_COUNT) {
        fprintf(stderr, "unknown fault \"%s\"\n", argv[1]);
        return 2;
    }
    int failed = sim_run_seeds(run_seed, SEEDS);
    return argc > 1 ? failed : failed | check_faults();
}
