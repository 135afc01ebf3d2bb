/* cluster_session.c - the sessions of a gateway. */
#include "tests/support/cluster/cluster_session.h"

#include "tests/support/cluster/cluster.h"

void cluster_session_open(struct cluster_session *session, struct cluster_gateway *gateway)
{
    session->gateway = gateway;
    list_append(&gateway->sessions, &session->link);
}

void cluster_session_close(struct cluster_session *session)
{
    session->gateway = NULL;
    list_remove(&session->link);
}

void cluster_sessions_tick(struct cluster_gateway *gateway)
{
    list_each (link, &gateway->sessions) {
        struct cluster_session *session = container_of(link, struct cluster_session, link);
        session->ops->tick(session);
    }
}

void cluster_sessions_cut(struct cluster_gateway *gateway)
{
    list_each (link, &gateway->sessions) {
        struct cluster_session *session = container_of(link, struct cluster_session, link);
        session->ops->cut(session);
    }
}
