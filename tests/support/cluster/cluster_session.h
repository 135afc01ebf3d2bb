/* cluster_session.h - a client's connection to one gateway of a simulated cluster. */
#pragma once

#include "base/list.h"

struct cluster_gateway;
struct cluster_session;

struct cluster_session_ops {
    void (*tick)(struct cluster_session *session);
    /* The connection ends. */
    void (*cut)(struct cluster_session *session);
};

/* Embedded in a client. */
struct cluster_session {
    const struct cluster_session_ops *ops;
    struct cluster_gateway *gateway; /* NULL: not connected */
    struct list link;                // cluster_gateway::sessions
};

void cluster_session_open(struct cluster_session *session, struct cluster_gateway *gateway);
void cluster_session_close(struct cluster_session *session);

void cluster_sessions_tick(struct cluster_gateway *gateway);
void cluster_sessions_cut(struct cluster_gateway *gateway);
