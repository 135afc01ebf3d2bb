/* fake_store.c - the store of tests: fake_data with delays.
 *
 *   begun ──half the delay──► done to the data ──the other half──► answered
 *
 * So a read can see a commit whose result is still in flight, and a result can be older
 * than what was committed meanwhile, as with a real database. Commits and purges keep
 * their order, reads keep theirs. */
#include "tests/support/fakes/fake_store.h"

#include <assert.h>

#include "base/mem.h"
#include "tests/support/fakes/fake_data.h"

enum pending_kind { COMMIT, PURGE, READ };

struct pending {
    enum pending_kind kind;
    union {
        struct store_commit *commit;
        struct store_purge *purge;
        struct store_read *read;
    } req;
    enum store_status status; /* of a read */
    int64_t act_at, answer_at;
    bool acted;
    struct list link; // fake_store::writes, reads or answering
};

struct fake_store {
    struct store store;
    struct loop *loop;
    struct fake_data *data;
    struct fault fault, load_fault;
    unsigned reads_for_memory;
    enum store_status fail_with;
    int64_t commit_ms, read_ms;
    uint32_t timer_kind;
    struct timer timer;
    struct list writes, reads, answering;
    void (*closed)(struct store *store);
};

static struct fake_store *fake_of(struct store *store)
{
    return container_of(store, struct fake_store, store);
}

/* ---- acting on the data ---- */

static void act_commit(struct fake_store *fake, struct store_commit *req)
{
    if (fault_trips(&fake->fault)) {
        req->status = fake->fail_with;
        fake->store.full = req->status == STORE_NO_SPACE;
        return;
    }
    fake_data_commit(fake->data, req);
    if (req->status == STORE_OK)
        fake->store.full = false;
}

static bool is_for_memory(const struct store_read *req)
{
    if (req->kind == READ_LOAD)
        return container_of(req, struct store_load, read)->is_for_memory;
    return req->kind == READ_WALK &&
           container_of(req, struct store_walk, read)->is_for_memory;
}

static enum store_status act_read(struct fake_store *fake, struct store_read *req)
{
    fake->reads_for_memory += is_for_memory(req);
    if (req->kind == READ_LOAD && fault_trips(&fake->load_fault))
        return STORE_FAILED;
    return fake_data_read(fake->data, req);
}

static void act(struct fake_store *fake, struct pending *pending)
{
    pending->acted = true;
    switch (pending->kind) {
    case COMMIT: act_commit(fake, pending->req.commit); break;
    case PURGE: fake_data_purge(fake->data, pending->req.purge); break;
    case READ: pending->status = act_read(fake, pending->req.read); break;
    }
}

static void answer(struct pending *pending)
{
    struct pending p = *pending;
    free(pending);
    switch (p.kind) {
    case COMMIT: p.req.commit->done(p.req.commit, p.req.commit->status); break;
    case PURGE: p.req.purge->done(p.req.purge, p.req.purge->status); break;
    case READ: p.req.read->done(p.req.read, p.status); break;
    }
}

/* ---- time ---- */

static int64_t next_deadline(const struct list *queue, int64_t nearest)
{
    list_each (link, queue) {
        const struct pending *pending = container_of(link, struct pending, link);
        int64_t at = pending->acted ? pending->answer_at : pending->act_at;
        nearest = at < nearest ? at : nearest;
    }
    return nearest;
}

static void arm(struct fake_store *fake)
{
    int64_t now = loop_now_ms(fake->loop);
    int64_t at = next_deadline(&fake->reads, next_deadline(&fake->writes, INT64_MAX));
    if (!list_empty(&fake->answering))
        at = now;
    if (at < INT64_MAX)
        loop_set_timer(fake->loop, &fake->timer, fake->timer_kind, at > now ? at - now : 0);
}

static void act_due(struct fake_store *fake, struct list *queue, int64_t now)
{
    list_each (link, queue) {
        struct pending *pending = container_of(link, struct pending, link);
        if (!pending->acted && pending->act_at <= now)
            act(fake, pending);
    }
}

static void take_due(struct fake_store *fake, struct list *queue, int64_t now)
{
    list_each (link, queue) {
        struct pending *pending = container_of(link, struct pending, link);
        if (!pending->acted || pending->answer_at > now)
            break;
        list_remove(link);
        list_append(&fake->answering, link);
    }
}

/* Leaves the rest for the next turn. */
static bool is_applied_on(const struct pending *pending)
{
    struct store_commit *commit = pending->req.commit;
    return pending->kind == COMMIT && commit->status == STORE_OK && commit->apply &&
           commit->apply(commit);
}

/* Returns true if the commit has an environment of another commit, which is half
 * applied. */
static bool waits_for(const struct store_commit *req, const struct store_commit *other)
{
    for (size_t i = 0; i < req->change_count; i++)
        for (size_t j = 0; j < other->change_count; j++)
            if (req->changes[i].env == other->changes[j].env)
                return true;
    return false;
}

/* Commits of an environment wait for one that is half applied; others are answered. */
static bool has_to_wait(const struct fake_store *fake, const struct pending *pending)
{
    list_each (link, &fake->answering) {
        const struct pending *earlier = container_of(link, struct pending, link);
        if (earlier == pending)
            break;
        if (pending->kind == COMMIT && earlier->kind == COMMIT &&
            waits_for(pending->req.commit, earlier->req.commit))
            return true;
    }
    return false;
}

static void answer_some(struct fake_store *fake)
{
    list_each (link, &fake->answering) {
        struct pending *pending = container_of(link, struct pending, link);
        if (has_to_wait(fake, pending) || is_applied_on(pending))
            continue;
        list_remove(link);
        answer(pending);
    }
}

static void on_timer(struct timer *timer)
{
    struct fake_store *fake = container_of(timer, struct fake_store, timer);
    int64_t now = loop_now_ms(fake->loop);

    act_due(fake, &fake->writes, now);
    fake_data_tell_stored(fake->data, &fake->store);
    act_due(fake, &fake->reads, now);
    take_due(fake, &fake->writes, now);
    take_due(fake, &fake->reads, now);
    answer_some(fake);
    arm(fake);
    if (fake->closed && list_empty(&fake->writes) && list_empty(&fake->reads) &&
        list_empty(&fake->answering)) {
        void (*closed)(struct store * store) = fake->closed;
        fake->closed = NULL;
        closed(&fake->store);
    }
}

static void begin(struct fake_store *fake, struct pending pending)
{
    assert(!fake->closed);
    bool is_write = pending.kind != READ;
    struct list *queue = is_write ? &fake->writes : &fake->reads;
    int64_t delay = is_write ? fake->commit_ms : fake->read_ms;
    int64_t now = loop_now_ms(fake->loop);

    pending.act_at = now + delay / 2;
    pending.answer_at = now + delay;
    if (!list_empty(queue)) {
        const struct pending *last = container_of(queue->prev, struct pending, link);
        if (pending.act_at < last->act_at)
            pending.act_at = last->act_at;
        if (pending.answer_at < last->answer_at)
            pending.answer_at = last->answer_at;
    }
    struct pending *own = mem_new(struct pending);
    *own = pending;
    list_append(queue, &own->link);
    arm(fake);
}

/* ---- the operations ---- */

static void commit(struct store *store, struct store_commit *req)
{
    begin(fake_of(store), (struct pending){ .kind = COMMIT, .req.commit = req });
}

static void begin_read(struct store *store, struct store_read *req)
{
    begin(fake_of(store), (struct pending){ .kind = READ, .req.read = req });
}

static void purge(struct store *store, struct store_purge *req)
{
    begin(fake_of(store), (struct pending){ .kind = PURGE, .req.purge = req });
}

static struct store_position position(struct store *store, uint32_t env)
{
    return fake_data_position(fake_of(store)->data, env);
}

static void close_store(struct store *store, void (*closed)(struct store *store))
{
    struct fake_store *fake = fake_of(store);
    assert(!fake->closed);
    fake->closed = closed;
    if (list_empty(&fake->writes) && list_empty(&fake->reads))
        loop_set_timer(fake->loop, &fake->timer, fake->timer_kind, 0);
}

static const struct store_ops fake_ops = {
    .name = "fake",
    .commit = commit,
    .read = begin_read,
    .purge = purge,
    .position = position,
    .close = close_store,
};

/* ---- the test's side ---- */

struct fake_store *fake_store_create(struct loop *loop)
{
    struct fake_store *fake = mem_new(struct fake_store);
    fake->store.ops = &fake_ops;
    memcpy(fake->store.epoch, "fakefakefakefake", sizeof(fake->store.epoch));
    fake->loop = loop;
    fake->data = fake_data_create();
    fake->fail_with = STORE_FAILED;
    fake->timer_kind = timers_kind(loop_timers(loop), on_timer);
    list_init(&fake->writes);
    list_init(&fake->reads);
    list_init(&fake->answering);
    return fake;
}

static void forget(struct list *queue)
{
    list_each (link, queue) {
        struct pending *pending = container_of(link, struct pending, link);
        list_remove(link);
        if (pending->kind == READ && pending->acted && !pending->status)
            store_read_finish(pending->req.read);
        free(pending);
    }
}

static bool coin(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 63;
}

void fake_store_crash(struct fake_store *fake, uint64_t seed)
{
    list_each (link, &fake->writes) {
        struct pending *pending = container_of(link, struct pending, link);
        if (pending->acted)
            continue;
        if (!coin(&seed))
            break;
        act(fake, pending);
    }
    forget(&fake->writes);
    forget(&fake->reads);
    forget(&fake->answering);
    timers_clear(loop_timers(fake->loop), &fake->timer);
    fake->closed = NULL;
}

void fake_store_destroy(struct fake_store *fake)
{
    if (!fake)
        return;
    forget(&fake->writes);
    forget(&fake->reads);
    timers_clear(loop_timers(fake->loop), &fake->timer);
    fake_data_destroy(fake->data);
    free(fake);
}

bool fake_store_idle(const struct fake_store *fake)
{
    return list_empty(&fake->writes) && list_empty(&fake->reads) &&
           list_empty(&fake->answering);
}

struct store *fake_store_store(struct fake_store *fake)
{
    return &fake->store;
}

struct fault *fake_store_fault(struct fake_store *fake)
{
    return &fake->fault;
}

unsigned fake_store_reads_for_memory(const struct fake_store *fake)
{
    return fake->reads_for_memory;
}

struct fault *fake_store_load_fault(struct fake_store *fake)
{
    return &fake->load_fault;
}

void fake_store_fail_with(struct fake_store *fake, enum store_status status)
{
    fake->fail_with = status;
}

void fake_store_set_delay(struct fake_store *fake, int64_t commit_ms, int64_t read_ms)
{
    fake->commit_ms = commit_ms;
    fake->read_ms = read_ms;
}

const struct run *fake_store_run(struct fake_store *fake, uint32_t env, const char *id)
{
    return fake_data_run(fake->data, env, slice_of(id));
}

size_t fake_store_count(struct fake_store *fake, uint32_t env)
{
    return fake_data_count(fake->data, env);
}
