/* cluster_troubles.c - cuts, stalls, resets, partitions, suspended and killed gateways. */
#include "tests/support/cluster/cluster_troubles.h"

#include "tests/support/cluster/cluster.h"

enum { LONGEST_MS = 7000, PER_MILLE = 15 };

void cluster_troubles_init(struct cluster_troubles *troubles, struct cluster *cluster)
{
    *troubles = (struct cluster_troubles){ .cluster = cluster };
    troubles->favorite = CUT + draw(&cluster->draws, TROUBLE_KINDS - 1);
}

/* Nodes a and b are on one side, the rest on the other. */
static void cut_sides(struct cluster *cluster, int a, int b, bool on)
{
    for (int other = 0; other < CLUSTER_NODES; other++) {
        if (other == a || other == b)
            continue;
        cluster_cut(&cluster->network, a, other, on);
        cluster_cut(&cluster->network, b, other, on);
    }
}

static void set_trouble(struct cluster *cluster, const struct trouble *trouble, bool on)
{
    static const char *const names[] = { "",        "cut",    "reset", "stall",
                                         "suspend", "freeze", "kill",  "partition" };
    struct cluster_gateway *gateway = &cluster->gateways[trouble->a];
    cluster_trace(cluster, "%s %d %d %s", names[trouble->kind], trouble->a, trouble->b,
                  on ? "begins" : "ends");
    switch (trouble->kind) {
    case CUT: cluster_cut(&cluster->network, trouble->a, trouble->b, on); break;
    case RESET:
        if (on)
            cluster_break(&cluster->network, trouble->a, trouble->b);
        break;
    case STALL:
        cluster->network.lines[trouble->b][trouble->a].stalled = on;
        if (trouble->both)
            cluster->network.lines[trouble->a][trouble->b].stalled = on;
        break;
    case PARTITION: cut_sides(cluster, trouble->a, trouble->b, on); break;
    case FREEZE:
        cluster_gateway_suspend(&cluster->gateways[trouble->b], on);
        cluster_gateway_suspend(gateway, on);
        break;
    case SUSPEND: cluster_gateway_suspend(gateway, on); break;
    case KILL:
        if (on)
            cluster_gateway_kill(gateway);
        else if (!gateway->running)
            cluster_gateway_start(gateway);
        break;
    default: break;
    }
}

/* A machine that freezes does so for longer than it takes to count as dead. */
static int64_t duration_of(enum trouble_kind kind, struct draws *draws)
{
    if (kind == RESET)
        return 0;
    if (kind == FREEZE)
        return CLUSTER_DEAD_MS + draw(draws, CLUSTER_DEAD_MS);
    return 100 + draw(draws, LONGEST_MS);
}

static struct trouble draw_trouble(const struct cluster_troubles *troubles)
{
    struct cluster *cluster = troubles->cluster;
    struct draws *draws = &cluster->draws;
    struct trouble trouble = { .kind = CUT + draw(draws, TROUBLE_KINDS - 1) };
    if (chance(draws, 500))
        trouble.kind = troubles->favorite;
    const struct cluster_gateway *leader = cluster_leader(cluster);
    trouble.a = (int)draw(draws, CLUSTER_GATEWAYS);
    if (leader && chance(draws, 500))
        trouble.a = leader->number;
    trouble.b = (int)draw(draws, CLUSTER_NODES);
    if (trouble.b == trouble.a)
        trouble.b = CLUSTER_DATABASE;
    if (trouble.kind == FREEZE)
        trouble.b = (trouble.a + 1 + (int)draw(draws, 2)) % CLUSTER_GATEWAYS;
    trouble.both = chance(draws, 500);
    trouble.until = cluster->network.now + duration_of(trouble.kind, draws);
    return trouble;
}

/* A freeze comes alone: one gateway continues, and takes the lead. */
static void begin_trouble(struct cluster_troubles *troubles, struct trouble *trouble)
{
    struct trouble drawn = draw_trouble(troubles);
    for (int i = 0; i < TROUBLES; i++) {
        enum trouble_kind other = troubles->troubles[i].kind;
        if (other == FREEZE || (other && drawn.kind == FREEZE))
            return;
    }
    *trouble = drawn;
    set_trouble(troubles->cluster, trouble, true);
}

/* Two troubles at a time may concern the same nodes; the end of one heals both. */
void cluster_troubles_step(struct cluster_troubles *troubles)
{
    struct cluster *cluster = troubles->cluster;
    for (int i = 0; i < TROUBLES; i++) {
        struct trouble *trouble = &troubles->troubles[i];
        if (trouble->kind && cluster->network.now >= trouble->until) {
            set_trouble(cluster, trouble, false);
            *trouble = (struct trouble){ 0 };
        } else if (!trouble->kind && chance(&cluster->draws, PER_MILLE)) {
            begin_trouble(troubles, trouble);
        }
    }
}

void cluster_troubles_heal(struct cluster_troubles *troubles)
{
    for (int i = 0; i < TROUBLES; i++)
        if (troubles->troubles[i].kind)
            set_trouble(troubles->cluster, &troubles->troubles[i], false);
    for (int i = 0; i < CLUSTER_GATEWAYS; i++)
        if (!troubles->cluster->gateways[i].running)
            cluster_gateway_start(&troubles->cluster->gateways[i]);
}
