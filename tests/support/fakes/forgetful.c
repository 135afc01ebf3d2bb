/* forgetful.c - passes requests on, and loses the write or the result of one commit. */
#include "tests/support/fakes/forgetful.h"

#include "base/mem.h"

static struct forgetful *forgetful_of(struct store *store)
{
    return container_of(store, struct forgetful, store);
}

struct forgetful *forgetful;

static void answer_victim(struct deferred *deferred)
{
    struct forgetful *store = container_of(deferred, struct forgetful, deferred);
    store->lost = true;
    store->victim_done(store->victim, STORE_FAILED);
}

static void on_victim(struct store_commit *req, enum store_status status)
{
    (void)status;
    (void)req;
    loop_defer(forgetful->loop, &forgetful->deferred);
}

static void forgetful_commit(struct store *store, struct store_commit *req)
{
    struct forgetful *self = forgetful_of(store);
    if (self->countdown != 1) {
        self->countdown -= self->countdown > 0;
        self->below->ops->commit(self->below, req);
        return;
    }
    self->countdown = 0;
    self->victim = req;
    self->victim_done = req->done;
    if (self->loss == LOSE_WRITE) {
        loop_defer(self->loop, &self->deferred);
        return;
    }
    req->done = on_victim;
    self->below->ops->commit(self->below, req);
}

static void forgetful_read(struct store *store, struct store_read *req)
{
    struct store *below = forgetful_of(store)->below;
    below->ops->read(below, req);
}

static struct store_position forgetful_position(struct store *store, uint32_t env)
{
    struct store *below = forgetful_of(store)->below;
    return below->ops->position(below, env);
}

static const struct store_ops forgetful_ops = { .name = "forgetful",
                                                .commit = forgetful_commit,
                                                .read = forgetful_read,
                                                .position = forgetful_position };

struct store *forgetful_wrap(struct world *world)
{
    struct forgetful *self = mem_new(struct forgetful);
    self->below = world->store;
    self->loop = world->loop;
    self->store.ops = &forgetful_ops;
    self->deferred.fn = answer_victim;
    list_init(&self->deferred.link);
    forgetful = self;
    return &self->store;
}
