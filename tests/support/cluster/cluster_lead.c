/* cluster_lead.c - beats, their responses, and taking the lead. */
#include "tests/support/cluster/cluster_lead.h"

#include "base/mem.h"
#include "tests/support/cluster/cluster.h"
#include "tests/support/cluster/cluster_faults.h"

static int64_t now_of(const struct cluster_lead *lead)
{
    return lead->gateway->cluster->network.now;
}

void cluster_lead_init(struct cluster_lead *lead, struct cluster_gateway *gateway)
{
    *lead = (struct cluster_lead){ .gateway = gateway };
    observation_init(&lead->observation, CLUSTER_DEAD_MS, CLUSTER_BEAT_MS, now_of(lead));
}

void cluster_lead_finish(struct cluster_lead *lead)
{
    observation_finish(&lead->observation);
}

/* ---- trust ---- */

int64_t cluster_lead_trust(const struct cluster_lead *lead)
{
    const struct cluster_gateway *gateway = lead->gateway;
    if (lead->state != LEAD_LEADING || gateway->memory != MEMORY_READY ||
        gateway->must_restart || gateway->must_forget)
        return 0;
    return observation_doubts_in(&lead->observation, now_of(lead));
}

/* As in store/lead/leading.c. */
static bool may_register(const struct cluster_lead *lead)
{
    return lead->gateway->cluster->session_rule && lead->state == LEAD_LEADING;
}

int64_t cluster_lead_grant(struct cluster_lead *lead)
{
    if (!cluster_lead_trust(lead))
        return 0;
    return observation_grant(&lead->observation, may_register(lead), now_of(lead));
}

int cluster_lead_leader(const struct cluster_lead *lead)
{
    for (int i = 0; i < CLUSTER_GATEWAYS; i++)
        if (lead->leader && lead->rows[i].id == lead->leader)
            return i;
    return -1;
}

/* ---- calls ---- */

static bool registers(const struct cluster_lead *lead)
{
    return may_register(lead) && observation_may_register(&lead->observation, now_of(lead));
}

static void call(struct cluster_lead *lead, enum cluster_call_kind kind,
                 const struct cluster_row *dead)
{
    struct cluster_gateway *gateway = lead->gateway;
    struct cluster_call *message = mem_new(struct cluster_call);
    lead->calling = true;
    lead->kind = kind;
    lead->number = ++gateway->store.number;
    lead->connection = cluster_gateway_connection(gateway, CLUSTER_DATABASE);
    message->registers = kind == CALL_BEAT && registers(lead);
    observation_send(&lead->observation,
                     message->registers && !has_fault(FAULT_SESSION_ENDS));
    lead->sent_at = now_of(lead);
    lead->next_at = lead->sent_at + CLUSTER_BEAT_MS;
    message->kind = kind;
    message->number = lead->number;
    message->me = lead->me;
    message->term = lead->term;
    message->dead = dead ? *dead : (struct cluster_row){ 0 };
    cluster_database_call(gateway->cluster, gateway->number, message);
}

static void lose_call(struct cluster_lead *lead)
{
    lead->calling = false;
    observation_miss(&lead->observation);
    if (lead->state == LEAD_TAKING)
        lead->state = LEAD_STANDBY;
}

void cluster_lead_tick(struct cluster_lead *lead)
{
    struct cluster_gateway *gateway = lead->gateway;
    const struct cluster_pair *pair =
        cluster_pair(&gateway->cluster->network, gateway->number, CLUSTER_DATABASE);
    if (lead->known_connection != pair->connection && !pair->cut)
        observation_miss(&lead->observation);
    if (!pair->cut)
        lead->known_connection = pair->connection;
    if (lead->calling && lead->connection != pair->connection)
        lose_call(lead);
    if (lead->calling || pair->cut || now_of(lead) < lead->next_at)
        return;
    if (lead->state == LEAD_JOINING)
        call(lead, CALL_JOIN, NULL);
    else if (lead->other_timeline && lead->state >= LEAD_LOADING)
        call(lead, CALL_EPOCH, NULL);
    else
        call(lead, CALL_BEAT, NULL);
}

/* ---- who is dead ---- */

static enum store_session session_of(const struct cluster_row *row)
{
    if (!row->registered)
        return SESSION_UNKNOWN;
    return row->session ? SESSION_OPEN : SESSION_ENDED;
}

static void observe(struct cluster_lead *lead, const struct cluster_reply *reply)
{
    struct store_gateway gateways[CLUSTER_GATEWAYS] = { 0 };
    struct store_beat beat = { .gateways = gateways,
                               .leader = reply->leader,
                               .me = lead->me };
    for (int i = 0; i < CLUSTER_GATEWAYS; i++)
        if (reply->rows[i].id)
            gateways[beat.gateway_count++] =
                (struct store_gateway){ .id = reply->rows[i].id,
                                        .beat = reply->rows[i].beat,
                                        .session = session_of(&reply->rows[i]) };
    observation_answer(&lead->observation, lead->sent_at, now_of(lead), &beat);
    if (has_fault(FAULT_SESSION_ENDS))
        lead->observation.is_registered = false;
}

static bool is_dead(const struct cluster_lead *lead, int leader)
{
    if (leader < 0 || lead->leader == lead->me)
        return true;
    return !observation_dead_in(&lead->observation, lead->leader, now_of(lead));
}

/* After a failover nothing can be read before a leader has begun a new epoch. So a gateway
 * without memory may take the lead then: maybe none has memory. */
static bool may_lead(const struct cluster_lead *lead)
{
    const struct cluster_gateway *gateway = lead->gateway;
    const struct cluster_replication *replication = &gateway->replication;
    bool is_ready = gateway->memory == MEMORY_READY;
    if (is_ready && !replica_is_idle(&replication->replica))
        return false;
    return is_ready || lead->other_timeline;
}

static void consider(struct cluster_lead *lead)
{
    int leader = cluster_lead_leader(lead);
    if (!may_lead(lead) || !is_dead(lead, leader))
        return;
    struct cluster_row dead = leader < 0 ? (struct cluster_row){ 0 } : lead->rows[leader];
    lead->state = LEAD_TAKING;
    call(lead, CALL_LEAD, &dead);
}

/* ---- responses ---- */

/* The database names another leader, or a higher term: trust ends at once. */
static void note_leader(struct cluster_lead *lead, const struct cluster_reply *reply)
{
    bool is_other = lead->leader != reply->leader || lead->known_term != reply->term;
    lead->leader = reply->leader;
    lead->known_term = reply->term;
    memcpy(lead->rows, reply->rows, sizeof(lead->rows));
    lead->other_timeline = reply->other_timeline;
    if (is_other && !has_fault(FAULT_SERVES_IN_DOUBT))
        cluster_replication_end(&lead->gateway->replication);
}

static void on_beat(struct cluster_lead *lead, const struct cluster_reply *reply)
{
    struct cluster_gateway *gateway = lead->gateway;
    note_leader(lead, reply);
    observe(lead, reply);
    if (lead->state >= LEAD_LOADING && reply->leader != lead->me)
        gateway->must_restart = true;
    else if (strcmp(gateway->epoch, reply->epoch) != 0 && gateway->memory == MEMORY_READY)
        gateway->must_forget = true;
    else if (lead->state == LEAD_STANDBY)
        consider(lead);
}

/* Nothing but this gateway writes now, so the reply has the end of each environment. */
static void take_over(struct cluster_lead *lead, const struct cluster_reply *reply)
{
    struct cluster_gateway *gateway = lead->gateway;
    memcpy(gateway->store.positions, reply->positions, sizeof(reply->positions));
    if (gateway->memory == MEMORY_READY)
        cluster_replication_load(&gateway->replication);
}

static void on_lead(struct cluster_lead *lead, const struct cluster_reply *reply)
{
    struct cluster_gateway *gateway = lead->gateway;
    note_leader(lead, reply);
    lead->state = LEAD_STANDBY;
    if (reply->status)
        return;
    cluster_replication_end(&gateway->replication);
    lead->state = LEAD_LOADING;
    lead->term = reply->term;
    cluster_trace(gateway->cluster, "%s takes the lead, term %llu", gateway->name,
                  (unsigned long long)lead->term);
    gateway->store.group = 0;
    if (strcmp(gateway->epoch, reply->epoch) != 0)
        gateway->must_forget = true; /* and loads */
    else
        take_over(lead, reply);
}

void cluster_lead_loaded(struct cluster_lead *lead)
{
    if (lead->state != LEAD_LOADING)
        return;
    lead->state = LEAD_LEADING;
    cluster_replication_lead(&lead->gateway->replication);
    cluster_trace(lead->gateway->cluster, "%s leads, at %llu", lead->gateway->name,
                  (unsigned long long)lead->gateway->env->applied);
}

static void on_epoch(struct cluster_lead *lead, const struct cluster_reply *reply)
{
    if (reply->status) {
        lead->gateway->must_restart = true;
        return;
    }
    lead->other_timeline = false;
    lead->state = LEAD_LOADING;
    lead->gateway->must_forget = true;
}

void cluster_lead_replied(struct cluster_lead *lead, const struct cluster_reply *reply)
{
    if (!lead->calling || reply->number != lead->number)
        return;
    lead->calling = false;
    switch (reply->kind) {
    case CALL_JOIN:
        lead->me = reply->me;
        lead->state = LEAD_STANDBY;
        note_leader(lead, reply);
        break;
    case CALL_LEAD: on_lead(lead, reply); break;
    case CALL_EPOCH: on_epoch(lead, reply); break;
    default: on_beat(lead, reply); break;
    }
}
