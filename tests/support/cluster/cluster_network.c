/* cluster_network.c - lines of messages that are late, lost, held back or cut off. */
#include "tests/support/cluster/cluster_network.h"

#include <stdlib.h>

void cluster_network_init(struct cluster_network *network, struct cluster *cluster,
                          struct draws *draws)
{
    *network = (struct cluster_network){ .cluster = cluster, .draws = draws };
    network->delay_ms = 1;
    for (int from = 0; from < CLUSTER_NODES; from++)
        for (int to = 0; to < CLUSTER_NODES; to++)
            list_init(&network->lines[from][to].messages);
}

static void destroy(struct cluster_message *message)
{
    if (message->destroy)
        message->destroy(message);
    else
        free(message);
}

struct cluster_pair *cluster_pair(struct cluster_network *network, int a, int b)
{
    return a < b ? &network->pairs[a][b] : &network->pairs[b][a];
}

static void append(struct cluster_network *network, struct cluster_message *message)
{
    struct cluster_line *line = &network->lines[message->from][message->to];
    int64_t at = network->now + draw(network->draws, network->delay_ms);
    line->last_at = at > line->last_at ? at : line->last_at;
    message->at = line->last_at;
    list_append(&line->messages, &message->link);
}

void cluster_send(struct cluster_network *network, int from, int to,
                  struct cluster_message *message)
{
    const struct cluster_pair *pair = cluster_pair(network, from, to);
    message->from = from;
    message->to = to;
    message->connection = pair->connection;
    if (pair->cut)
        destroy(message);
    else
        append(network, message);
}

void cluster_answer(struct cluster_network *network, const struct cluster_message *request,
                    struct cluster_message *message)
{
    const struct cluster_pair *pair = cluster_pair(network, request->from, request->to);
    message->from = request->to;
    message->to = request->from;
    message->connection = request->connection;
    if (pair->cut || pair->connection != request->connection)
        destroy(message);
    else
        append(network, message);
}

/* Loses the messages of a line. Some of them had arrived; their answers are lost. */
static void lose(struct cluster_network *network, struct cluster_line *line)
{
    while (!list_empty(&line->messages)) {
        struct cluster_message *message =
            container_of(list_take(&line->messages), struct cluster_message, link);
        if (message->may_survive && chance(network->draws, 500))
            message->arrive(network->cluster, message);
        destroy(message);
    }
}

void cluster_break(struct cluster_network *network, int a, int b)
{
    cluster_pair(network, a, b)->connection++;
    lose(network, &network->lines[a][b]);
    lose(network, &network->lines[b][a]);
}

void cluster_cut(struct cluster_network *network, int a, int b, bool cut)
{
    struct cluster_pair *pair = cluster_pair(network, a, b);
    if (cut && !pair->cut)
        cluster_break(network, a, b);
    pair->cut = cut;
}

static void deliver(struct cluster_network *network, int from, int to)
{
    struct cluster_line *line = &network->lines[from][to];
    while (!list_empty(&line->messages)) {
        struct cluster_message *message =
            container_of(line->messages.next, struct cluster_message, link);
        if (message->at > network->now || network->suspended[to] || line->stalled)
            return;
        list_remove(&message->link);
        message->arrive(network->cluster, message);
        destroy(message);
    }
}

void cluster_deliver(struct cluster_network *network)
{
    for (int from = 0; from < CLUSTER_NODES; from++)
        for (int to = 0; to < CLUSTER_NODES; to++)
            deliver(network, from, to);
}

void cluster_network_finish(struct cluster_network *network)
{
    for (int from = 0; from < CLUSTER_NODES; from++)
        for (int to = 0; to < CLUSTER_NODES; to++) {
            struct list *messages = &network->lines[from][to].messages;
            while (!list_empty(messages))
                destroy(container_of(list_take(messages), struct cluster_message, link));
        }
}
