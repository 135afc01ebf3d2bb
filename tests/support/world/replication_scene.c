/* replication_scene.c - a leader and a follower on one store. */
#include "tests/support/world/unit.h"

#include "tests/support/world/replication_scene.h"

#include <string.h>

#include "base/mem.h"

/* ---- frames ---- */

static void note(struct replication_scene *scene, const struct repl_frame *frame)
{
    if (frame->kind == REPL_CHANGE) {
        scene->runs_sent++;
        scene->payloads_sent += frame->run.run.payload != NULL;
        scene->outputs_sent += frame->run.run.output != NULL;
    }
    scene->befores_sent += frame->kind == REPL_BEFORE;
}

static void send(struct list *list, const struct repl_frame *frame)
{
    struct sent_frame *sent = mem_new(struct sent_frame);
    sent->frame = *frame;
    if (frame->kind == REPL_CHANGE || frame->kind == REPL_BEFORE)
        run_copy(&sent->frame.run.run, &frame->run.run);
    if (frame->kind == REPL_DOCUMENT) {
        bytes_ref(frame->document.document.name);
        bytes_ref(frame->document.document.body);
    }
    if (frame->kind == REPL_POSITIONS) {
        size_t count = frame->positions.count;
        sent->frame.positions.list = mem_new_array(struct repl_position, count);
        memcpy(sent->frame.positions.list, frame->positions.list,
               count * sizeof(struct repl_position));
    }
    list_append(list, &sent->link);
}

void scene_drop_first(struct list *list)
{
    struct sent_frame *sent = container_of(list_take(list), struct sent_frame, link);
    repl_frame_finish(&sent->frame);
    free(sent);
}

void scene_drop_all(struct replication_scene *scene)
{
    while (!list_empty(&scene->to_follower))
        scene_drop_first(&scene->to_follower);
    while (!list_empty(&scene->to_leader))
        scene_drop_first(&scene->to_leader);
}

/* ---- the leader ---- */

static void source_send(void *owner, struct source_follower *to,
                        const struct repl_frame *frame)
{
    struct replication_scene *scene = owner;
    assert_true(!to || to == &scene->follower);
    note(scene, frame);
    send(&scene->to_follower, frame);
}

static void source_end(void *owner, struct source_follower *follower, const char *why)
{
    struct replication_scene *scene = owner;
    (void)follower;
    snprintf(scene->ended, sizeof(scene->ended), "%s", why);
}

static struct environment *next_environment(void *owner, uint32_t *at)
{
    const struct replication_scene *scene = owner;
    return scene->has_dropped ? NULL : engine_next_environment(scene->world->engine, at);
}

static int64_t left_ms(void *owner)
{
    return ((struct replication_scene *)owner)->left_ms;
}

static bool is_slow(void *owner)
{
    return ((struct replication_scene *)owner)->is_slow;
}

static size_t allowance(void *owner)
{
    return ((struct replication_scene *)owner)->allowance;
}

static void on_change(void *owner, const struct run *before, const struct change *change)
{
    source_apply(&((struct replication_scene *)owner)->source, before, change);
}

/* ---- the follower ---- */

static void replica_send(void *owner, const struct repl_frame *frame)
{
    send(&((struct replication_scene *)owner)->to_leader, frame);
}

static void replica_end(void *owner, const char *why)
{
    struct replication_scene *scene = owner;
    snprintf(scene->ended, sizeof(scene->ended), "%s", why);
}

static void give_up(void *owner, const char *why)
{
    replica_end(owner, why);
    ((struct replication_scene *)owner)->gave_up = true;
}

static struct environment *find(void *owner, uint32_t number)
{
    const struct replication_scene *scene = owner;
    return number == WORLD_ENV ? scene->copy : number == OTHER_ENV ? scene->other : NULL;
}

static enum err take_document(void *owner, const struct document *document,
                              struct failure *why)
{
    struct replication_scene *scene = owner;
    (void)why;
    if (document->version > scene->account_version)
        scene->account_version = document->version;
    return OK;
}

static enum err on_documents_end(void *owner, struct failure *why)
{
    struct replication_scene *scene = owner;
    scene->document_ends++;
    return scene->refuses_documents ? explain(why, ERR_INVALID, "a damaged document") : OK;
}

/* replica_accounts_read is called by pass. */
static void read_accounts(void *owner)
{
    ((struct replication_scene *)owner)->account_reads++;
}

static void on_applied(void *owner, struct environment *env)
{
    struct replication_scene *scene = owner;
    scene->ends_at_change = scene->document_ends;
    if (replica_was_left(&scene->replica, env->number))
        environment_clear(env);
    else if (environment_is_over_budget(env))
        environment_evict(env, env->budget);
}

static void on_loaded(void *owner, enum err status)
{
    struct replication_scene *scene = owner;
    scene->loads++;
    scene->load_status = status;
}

static struct environment *next_copy(void *owner, uint32_t *at)
{
    return (*at)++ == 0 ? ((struct replication_scene *)owner)->copy : NULL;
}

static void on_floor(void *owner, struct environment *env)
{
    struct replication_scene *scene = owner;
    assert_ptr_equal(env, scene->copy);
    scene->floors++;
}

static void on_answered(void *owner)
{
    ((struct replication_scene *)owner)->answers++;
}

/* ---- the scene ---- */

void scene_deliver_first(struct replication_scene *scene)
{
    struct sent_frame *sent =
        container_of(list_take(&scene->to_follower), struct sent_frame, link);
    replica_receive(&scene->replica, &sent->frame, 100);
    free(sent);
}

void scene_deliver(struct replication_scene *scene)
{
    while (!list_empty(&scene->to_leader)) {
        struct sent_frame *sent =
            container_of(scene->to_leader.next, struct sent_frame, link);
        if (!scene->ended[0])
            source_receive(&scene->source, &scene->follower, &sent->frame);
        scene_drop_first(&scene->to_leader);
    }
    while (!list_empty(&scene->to_follower))
        scene_deliver_first(scene);
    replica_message_end(&scene->replica);
}

/* Delivers frames, and lets time pass, until nothing is left to do. */
void scene_pass(struct replication_scene *scene, int64_t ms)
{
    world_pass(scene->world, ms);
    for (int i = 0; i < 20; i++) {
        scene_deliver(scene);
        if (scene->replica.reads_accounts)
            replica_accounts_read(&scene->replica, scene->accounts_seq, OK);
        world_pass(scene->world,
                   !replica_is_idle(&scene->replica)); /* 1 ms for each read */
    }
}

void scene_disconnect(struct replication_scene *scene)
{
    source_leave(&scene->source, &scene->follower);
    replica_disconnected(&scene->replica);
    scene_drop_all(scene);
    scene->ended[0] = '\0';
}

void scene_connect(struct replication_scene *scene)
{
    scene_disconnect(scene);
    replica_connected(&scene->replica);
    scene_pass(scene, 0);
}

static void begin_follower(struct replication_scene *scene)
{
    struct world *world = scene->world;
    struct replica_options options = { .gateway = 2,
                                       .send = replica_send,
                                       .end = replica_end,
                                       .link = scene,
                                       .give_up = give_up,
                                       .find = find,
                                       .take_document = take_document,
                                       .documents_end = on_documents_end,
                                       .read_accounts = read_accounts,
                                       .next = next_copy,
                                       .loaded = on_loaded,
                                       .applied = on_applied,
                                       .floor_moved = on_floor,
                                       .answered = on_answered,
                                       .owner = scene };
    scene->copy = environment_create(world->loop, world->store, WORLD_ENV, "env_copy",
                                     false, 64 << 20, 100);
    scene->other = environment_create(world->loop, world->store, OTHER_ENV, "env_other",
                                      false, 64 << 20, 100);
    replica_init(&scene->replica, world->loop, world->store, &options);
}

static void begin_leader(struct replication_scene *scene)
{
    struct world *world = scene->world;
    struct source_options options = { .head.term = 3,
                                      .gateway = 1,
                                      .send = source_send,
                                      .is_slow = is_slow,
                                      .allowance = allowance,
                                      .end = source_end,
                                      .next = next_environment,
                                      .left_ms = left_ms,
                                      .owner = scene };
    memcpy(options.head.epoch, world->store->epoch, sizeof(options.head.epoch));
    source_init(&scene->source, world->loop, &options);
    engine_on_change(world->engine, on_change, scene);
}

int open_replication_scene(void **state)
{
    struct replication_scene *scene = mem_new(struct replication_scene);
    scene->world = world_create(&(struct world_options){ .engine.memory = SMALL_MEMORY });
    scene->left_ms = LEFT_MS;
    scene->allowance = SIZE_MAX;
    list_init(&scene->to_follower);
    list_init(&scene->to_leader);
    list_init(&scene->follower.link);
    begin_leader(scene);
    begin_follower(scene);
    *state = scene;
    return 0;
}

int close_replication_scene(void **state)
{
    struct replication_scene *scene = *state;
    scene_disconnect(scene);
    while (!replica_is_idle(&scene->replica))
        scene_pass(scene, 100);
    replica_finish(&scene->replica);
    source_finish(&scene->source);
    environment_destroy(scene->copy);
    environment_destroy(scene->other);
    world_destroy(scene->world);
    free(scene);
    return 0;
}

const struct run *run_in(const struct environment *env, const char *id)
{
    struct tracked *tracked = environment_find(env, slice_of(id));
    assert_non_null(tracked);
    return &tracked->run;
}

static void on_purged(struct store_purge *purge, enum store_status status)
{
    (void)purge;
    assert_int_equal(status, STORE_OK);
}

void scene_purge(struct replication_scene *scene)
{
    struct world *world = scene->world;
    struct store_purge purge = { .env = WORLD_ENV,
                                 .before = INT64_MAX,
                                 .documents_before = INT64_MAX,
                                 .limit = 100,
                                 .done = on_purged };
    uint64_t at = 0;
    world->store->ops->purge(world->store, &purge);
    world_pass(world, 1);
    source_floor(&scene->source, &purge.position);
    while (environment_purge(world->env, &purge.position, &at))
        ;
}

static void assert_same_text(const struct bytes *one, const struct bytes *other)
{
    assert_int_equal(one == NULL, other == NULL);
    assert_true(!one || slice_equal(bytes_slice(one), bytes_slice(other)));
}

void assert_same_run(const struct replication_scene *scene, const char *id)
{
    const struct run *one = run_in(scene->world->env, id), *other = run_in(scene->copy, id);
    assert_int_equal(one->rev, other->rev);
    assert_int_equal(one->version, other->version);
    assert_same_text(one->payload, other->payload);
    assert_same_text(one->metadata, other->metadata);
    assert_same_text(one->metadata_seed, other->metadata_seed);
    assert_same_text(one->output, other->output);
}

void assert_same_memory(const struct replication_scene *scene)
{
    const struct environment *env = scene->world->env;
    assert_string_equal(scene->ended, "");
    assert_int_equal(scene->copy->applied, env->applied);
    assert_int_equal(scene->copy->unfinished, env->unfinished);
    assert_true(scene->copy->sum == env->sum);
}

bool is_trusted(struct replication_scene *scene)
{
    return replica_left_ms(&scene->replica) > 0;
}
