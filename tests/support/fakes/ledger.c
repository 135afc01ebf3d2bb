/* ledger.c - passes requests on, and records their outcome. */
#include "tests/support/fakes/ledger.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "tests/support/world/sim.h"

/* A request in flight, and the caller of its outcome. */
struct pending {
    enum { COMMIT, READ } kind;
    union {
        struct store_commit *commit;
        struct store_read *read;
    } req;
    union {
        store_done_fn *commit;
        void (*read)(struct store_read *req, enum store_status status);
    } done;
    store_apply_fn *apply; /* of a commit; may be NULL */
    bool written;          /* for a commit: it is recorded already */
    struct list link;      // ledger::pending
};

/* One simulation at a time. */
static struct ledger *current;

/* ---- what was written ---- */

static struct slice story_key(const void *value)
{
    return slice_of(((const struct story *)value)->id);
}

static void write_run(struct ledger *ledger, const struct run *run)
{
    struct story *story = table_find(&ledger->by_id, slice_of(run->id));
    if (!story) {
        story = mem_new(struct story);
        memcpy(story->id, run->id, sizeof(story->id));
        table_insert(&ledger->by_id, story);
        list_append(&ledger->stories, &story->link);
        ledger->count++;
    }
    if (run->version != story->count + 1)
        violated("%s: version %u follows %u", run->id, run->version, story->count);
    if (story->count == story->capacity) {
        story->capacity = story->capacity ? story->capacity * 2 : 8;
        story->versions = mem_resize(story->versions, story->capacity * sizeof(struct run));
    }
    run_copy(&story->versions[story->count++], run);
}

void ledger_write(struct ledger *ledger, const struct change *change)
{
    if (change->seq != ++ledger->seq)
        violated("seq %llu follows %llu", (unsigned long long)change->seq,
                 (unsigned long long)ledger->seq - 1);
    if (change->kind == CHANGE_RUN)
        write_run(ledger, &change->run);
}

static void write_down(struct ledger *ledger, const struct store_commit *req)
{
    for (size_t i = 0; i < req->change_count; i++)
        ledger_write(ledger, &req->changes[i]);
}

const struct story *ledger_find(const struct ledger *ledger, struct slice id)
{
    return table_find(&ledger->by_id, id);
}

const struct story *ledger_story(const struct ledger *ledger, size_t number)
{
    list_each (link, &ledger->stories)
        if (!number--)
            return container_of(link, struct story, link);
    return NULL;
}

const struct run *story_at(const struct story *story, uint64_t seq)
{
    uint32_t low = 0, high = story->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (story->versions[middle].rev <= seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &story->versions[low - 1] : NULL;
}

const struct run *story_version(const struct story *story, uint32_t version)
{
    return version && version <= story->count ? &story->versions[version - 1] : NULL;
}

/* ---- requests ---- */

static struct pending *find(const void *req)
{
    list_each (link, &current->pending) {
        struct pending *pending = container_of(link, struct pending, link);
        if ((const void *)pending->req.commit == req)
            return pending;
    }
    violated("an outcome that nobody waits for");
}

static struct pending *take(const void *req)
{
    struct pending *pending = find(req);
    list_remove(&pending->link);
    return pending;
}

/* Must run once: after apply, the changes no longer have runs. */
static void write_down_once(struct pending *pending)
{
    if (!pending->written)
        write_down(current, pending->req.commit);
    pending->written = true;
}

static bool on_applied(struct store_commit *req)
{
    struct pending *pending = find(req);
    write_down_once(pending);
    return pending->apply && pending->apply(req);
}

static void on_committed(struct store_commit *req, enum store_status status)
{
    struct pending *pending = take(req);
    req->done = pending->done.commit;
    req->apply = pending->apply;
    if (status == STORE_OK)
        write_down_once(pending);
    free(pending);
    req->done(req, status);
}

static void on_read(struct store_read *req, enum store_status status)
{
    struct pending *pending = take(req);
    req->done = pending->done.read;
    free(pending);
    req->done(req, status);
}

/* Returns true if the request may reach the store below: the process is alive. */
static bool note(struct pending pending)
{
    struct pending *own = mem_new(struct pending);
    *own = pending;
    list_append(&current->pending, &own->link);
    if (current->dead)
        loop_defer(current->loop, &current->deferred);
    return !current->dead;
}

static void commit(struct store *store, struct store_commit *req)
{
    bool alive = note((struct pending){
        .kind = COMMIT, .req.commit = req, .done.commit = req->done, .apply = req->apply });
    (void)store;
    req->done = on_committed;
    req->apply = on_applied;
    if (alive)
        current->below->ops->commit(current->below, req);
}

static void begin_read(struct store *store, struct store_read *req)
{
    struct pending pending = { .kind = READ, .req.read = req, .done.read = req->done };
    (void)store;
    req->done = on_read;
    if (note(pending))
        current->below->ops->read(current->below, req);
}

static struct store_position position(struct store *store, uint32_t env)
{
    (void)store;
    return current->below->ops->position(current->below, env);
}

static const struct store_ops ops = {
    .name = "ledger", .commit = commit, .read = begin_read, .position = position
};

/* ---- a crash ---- */

/* Fails every request of a dead process, so that the process frees its memory. */
static void fail_all(struct deferred *deferred)
{
    struct ledger *ledger = container_of(deferred, struct ledger, deferred);
    while (!list_empty(&ledger->pending)) {
        struct pending *pending = container_of(ledger->pending.next, struct pending, link);
        if (pending->kind == COMMIT)
            on_committed(pending->req.commit, STORE_FAILED);
        else
            on_read(pending->req.read, STORE_FAILED);
    }
}

void ledger_crash(struct ledger *ledger, uint64_t seed)
{
    fake_store_crash(ledger->fake, seed);
    ledger->dead = true;
    list_each (link, &ledger->pending) {
        struct pending *pending = container_of(link, struct pending, link);
        const struct store_commit *req = pending->req.commit;
        if (pending->kind == COMMIT && req->change_count && req->changes[0].seq)
            write_down_once(pending);
    }
    loop_defer(ledger->loop, &ledger->deferred);
}

void ledger_revive(struct ledger *ledger)
{
    if (!list_empty(&ledger->pending))
        violated("a dead process still waits for its store");
    loop_cancel_deferred(&ledger->deferred);
    ledger->dead = false;
    if (ledger->seq != position(&ledger->store, WORLD_ENV).seq)
        violated("the store has changes that were never asked for");
}

/* ---- made, gone ---- */

struct ledger *ledger_create(void)
{
    struct ledger *ledger = mem_new(struct ledger);
    table_init(&ledger->by_id, story_key);
    list_init(&ledger->stories);
    list_init(&ledger->pending);
    return ledger;
}

struct store *ledger_wrap(struct world *world)
{
    struct ledger *ledger = ledger_create();
    ledger->below = world->store;
    ledger->fake = world->fake;
    ledger->loop = world->loop;
    ledger->store.ops = &ops;
    memcpy(ledger->store.epoch, world->store->epoch, sizeof(ledger->store.epoch));
    ledger->deferred.fn = fail_all;
    current = ledger;
    return &ledger->store;
}

struct ledger *ledger_of(struct world *world)
{
    return container_of(world->store, struct ledger, store);
}

void ledger_destroy(struct ledger *ledger)
{
    if (!list_empty(&ledger->pending))
        violated("somebody still waits for the store");
    table_finish(&ledger->by_id);
    while (!list_empty(&ledger->stories)) {
        struct story *story = container_of(list_take(&ledger->stories), struct story, link);
        for (uint32_t i = 0; i < story->count; i++)
            run_finish(&story->versions[i]);
        free(story->versions);
        free(story);
    }
    free(ledger);
}
