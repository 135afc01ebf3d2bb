/* cluster_source.h - the leader's side of replication in a simulated cluster.
 *
 * Everything that the leader applies goes to each connected follower, in order. It never
 * waits for one. In doubt it answers no question. */
#pragma once

#include "tests/support/cluster/cluster_replica.h"

struct cluster_source {
    struct cluster_gateway *gateway;
    struct {
        bool on;
        uint32_t connection;
    } followers[CLUSTER_GATEWAYS];
};

void cluster_source_init(struct cluster_source *source, struct cluster_gateway *gateway);

/* A frame of a follower arrived. */
void cluster_source_receive(struct cluster_source *source,
                            const struct repl_message *message);

/* before: the run as it was; NULL: it was not final. */
void cluster_source_run(struct cluster_source *source, const struct run *before,
                        const struct run *run);
void cluster_source_document(struct cluster_source *source, uint64_t seq,
                             const struct document *document);
void cluster_source_passed(struct cluster_source *source, uint64_t seq);
void cluster_source_floor(struct cluster_source *source,
                          const struct store_position *position);
