/* cluster_store.c - requests that are repeated until they get a response. */
#include "tests/support/cluster/cluster_store.h"

#include <stdlib.h>

#include "base/mem.h"
#include "tests/support/cluster/cluster.h"
#include "tests/support/cluster/cluster_faults.h"

enum { AGAIN_MS = 100 };

struct cluster_pending {
    enum cluster_call_kind kind;
    union {
        struct store_commit *commit;
        struct store_purge *purge;
        struct store_read *read;
    } req;
    unsigned op;
    bool sent, at_once;
    bool answered; /* waits until this is applied: */
    uint64_t seq;
    enum store_status status;
    uint32_t connection;
    uint64_t number, group;
    int64_t again_at;
    struct list link; // cluster_store::writes or reads
};

static struct cluster_store *store_of(struct store *store)
{
    return container_of(store, struct cluster_store, store);
}

static struct cluster_pending *begin(struct list *list, struct cluster_pending pending)
{
    struct cluster_pending *own = mem_new(struct cluster_pending);
    *own = pending;
    list_append(list, &own->link);
    return own;
}

/* ---- sending ---- */

static void send(struct cluster_store *store, struct cluster_pending *pending)
{
    struct cluster_gateway *gateway = store->gateway;
    struct cluster_call *call = mem_new(struct cluster_call);
    if (pending->kind == CALL_READ && pending->sent)
        store_read_finish(pending->req.read);
    pending->sent = true;
    pending->connection = cluster_gateway_connection(gateway, CLUSTER_DATABASE);
    pending->number = ++store->number;
    call->kind = pending->kind;
    call->number = pending->number;
    call->me = gateway->lead.me;
    call->term = gateway->lead.term;
    call->group = pending->group;
    call->op = pending->op;
    if (gateway->memory != MEMORY_LOADING)
        memcpy(call->epoch, gateway->epoch, sizeof(call->epoch));
    memcpy(&call->req, &pending->req, sizeof(call->req));
    cluster_database_call(gateway->cluster, gateway->number, call);
}

static bool must_send(const struct cluster_store *store,
                      const struct cluster_pending *pending)
{
    struct cluster_gateway *gateway = store->gateway;
    const struct cluster_pair *pair =
        cluster_pair(&gateway->cluster->network, gateway->number, CLUSTER_DATABASE);
    return gateway->lead.me && !pending->answered && !pair->cut &&
           gateway->cluster->network.now >= pending->again_at &&
           (!pending->sent || pending->connection != pair->connection);
}

static void send_write(struct cluster_store *store)
{
    if (list_empty(&store->writes))
        return;
    struct cluster_pending *first =
        container_of(store->writes.next, struct cluster_pending, link);
    if (!first->group)
        first->group = ++store->group;
    if (must_send(store, first))
        send(store, first);
}

/* ---- delivering ---- */

static void finish(struct cluster_store *store, struct cluster_pending *pending,
                   enum store_status status)
{
    struct cluster_pending p = *pending;
    list_remove(&pending->link);
    free(pending);
    switch (p.kind) {
    case CALL_COMMIT: p.req.commit->done(p.req.commit, status); break;
    case CALL_PURGE: p.req.purge->done(p.req.purge, status); break;
    default:
        if (p.at_once)
            cluster_fault_deliver(store->gateway->env, p.req.read, status);
        else
            p.req.read->done(p.req.read, status);
    }
}

/* Returns the seq up to which a result includes changes; 0: unknown, or not of runs. */
static uint64_t seq_of(const struct store_read *read)
{
    switch (read->kind) {
    case READ_WALK: return container_of(read, struct store_walk, read)->seq;
    case READ_LIST: return container_of(read, struct store_list, read)->seq;
    case READ_COUNT: return container_of(read, struct store_count, read)->seq;
    case READ_LOAD: return container_of(read, struct store_load, read)->run.rev;
    default: return 0;
    }
}

static bool may_deliver(const struct cluster_store *store,
                        const struct cluster_pending *pending)
{
    const struct environment *env = store->gateway->env;
    return pending->answered &&
           (pending->at_once || pending->status || has_fault(FAULT_PAGE_AHEAD) ||
            (env && env->applied >= pending->seq));
}

void cluster_store_tick(struct cluster_store *store)
{
    send_write(store);
    list_each (link, &store->reads) {
        struct cluster_pending *pending = container_of(link, struct cluster_pending, link);
        if (must_send(store, pending))
            send(store, pending);
    }
    list_each (link, &store->reads) {
        struct cluster_pending *pending = container_of(link, struct cluster_pending, link);
        if (may_deliver(store, pending)) {
            finish(store, pending, pending->status);
            return; /* it may have begun and ended others */
        }
    }
}

static struct cluster_pending *find(struct list *list, uint64_t number)
{
    list_each (link, list) {
        struct cluster_pending *pending = container_of(link, struct cluster_pending, link);
        if (pending->sent && pending->number == number)
            return pending;
    }
    return NULL;
}

void cluster_store_replied(struct cluster_store *store, const struct cluster_reply *reply)
{
    struct list *list = reply->kind == CALL_READ ? &store->reads : &store->writes;
    struct cluster_pending *pending = find(list, reply->number);
    if (!pending)
        return;
    if (reply->stale) {
        pending->sent = false;
        pending->again_at = store->gateway->cluster->network.now + AGAIN_MS;
        return;
    }
    if (pending->kind == CALL_READ) {
        pending->answered = true;
        pending->status = reply->status;
        pending->seq = reply->status ? 0 : seq_of(pending->req.read);
        if (!pending->at_once)
            return;
        memcpy(store->positions, reply->positions, sizeof(store->positions));
        memcpy(store->store.epoch, reply->epoch, sizeof(store->store.epoch));
        memcpy(store->direct.epoch, reply->epoch, sizeof(store->direct.epoch));
    }
    finish(store, pending, reply->status);
}

static void fail_reads(struct cluster_store *store)
{
    while (!list_empty(&store->reads)) {
        struct cluster_pending *pending =
            container_of(store->reads.next, struct cluster_pending, link);
        if (pending->sent)
            store_read_finish(pending->req.read);
        finish(store, pending, STORE_MOVED);
    }
}

void cluster_store_fail_all(struct cluster_store *store)
{
    fail_reads(store);
    while (!list_empty(&store->writes))
        finish(store, container_of(store->writes.next, struct cluster_pending, link),
               STORE_MOVED);
    fail_reads(store);
}

/* ---- the operations of store.h ---- */

static void begin_commit(struct store *store, struct store_commit *req)
{
    cluster_store_commit(store_of(store), req, 0);
}

static void begin_read(struct store *store, struct store_read *read)
{
    begin(&store_of(store)->reads,
          (struct cluster_pending){ .kind = CALL_READ, .req.read = read });
}

static void begin_purge(struct store *store, struct store_purge *req)
{
    begin(&store_of(store)->writes,
          (struct cluster_pending){ .kind = CALL_PURGE, .req.purge = req });
}

static struct store_position position(struct store *store, uint32_t env)
{
    return store_of(store)->positions[env];
}

static const struct store_ops ops = { .name = "cluster",
                                      .commit = begin_commit,
                                      .read = begin_read,
                                      .purge = begin_purge,
                                      .position = position };

void cluster_store_commit(struct cluster_store *store, struct store_commit *req,
                          unsigned op)
{
    begin(&store->writes,
          (struct cluster_pending){ .kind = CALL_COMMIT, .req.commit = req, .op = op });
}

static struct cluster_store *store_of_direct(struct store *store)
{
    return container_of(store, struct cluster_store, direct);
}

static void begin_direct_read(struct store *store, struct store_read *read)
{
    begin(&store_of_direct(store)->reads,
          (struct cluster_pending){ .kind = CALL_READ, .req.read = read, .at_once = true });
}

/* The newest reply has them, so they are as new as the last page. */
static struct store_position direct_position(struct store *store, uint32_t env)
{
    struct store_position position = store_of_direct(store)->positions[env];
    if (has_fault(FAULT_KEEPS_PURGED))
        position.purged = 0;
    return position;
}

static void on_recounted(struct store_read *read, enum store_status status)
{
    struct cluster_store *store =
        container_of(read, struct cluster_store, recount_walk.read);
    if (!status)
        store_read_finish(read);
    store->recount->done(store->recount, status);
}

/* Any read has the positions. */
static void begin_recount(struct store *store, struct store_recount *req)
{
    struct cluster_store *own = store_of_direct(store);
    own->recount = req;
    own->recount_walk = (struct store_walk){ .read = { READ_WALK, REPL_RUNS, on_recounted },
                                             .kind = WALK_ALL,
                                             .after = INT64_MAX - 1,
                                             .up_to = INT64_MAX,
                                             .limit = 1 };
    begin_direct_read(store, &own->recount_walk.read);
}

static const struct store_ops direct_ops = { .name = "direct",
                                             .read = begin_direct_read,
                                             .recount = begin_recount,
                                             .position = direct_position };

void cluster_store_init(struct cluster_store *store, struct cluster_gateway *gateway)
{
    *store = (struct cluster_store){ .store.ops = &ops,
                                     .direct.ops = &direct_ops,
                                     .gateway = gateway };
    list_init(&store->writes);
    list_init(&store->reads);
}
