/* A follower's memory keeps up with the leader's, and is trusted only while that is sure.
 *
 *   leader: world's engine ─► source ─► frames, in a list ─► replica ─► copy: an environment
 *
 * Both use one store. Frames arrive when the test delivers them. */
#include "tests/support/world/unit.h"

#include <string.h>

#include "base/mem.h"
#include "core/replication/replica.h"
#include "core/replication/source.h"
#include "tests/support/world/reader.h"

enum { LEFT_MS = 4000, SMALL_MEMORY = 16 * 1024, PACKET = 600 };

struct sent_frame {
    struct repl_frame frame;
    struct list link; // scene::to_follower or ::to_leader
};

struct scene {
    struct world *world;
    struct source source;
    struct source_follower follower;
    struct replica replica;
    struct environment *copy;
    struct list to_follower, to_leader; // sent_frame::link
    int64_t left_ms;                    /* of the leader */
    char ended[REPL_WHY_MAX];           /* why the follower or the leader ended it */
    bool gave_up;
    int loads; /* replica_load ended so often */
    enum err load_status;
    unsigned clears;
    unsigned runs_sent, payloads_sent, befores_sent;
    uint64_t account_version; /* of the only document of the accounts */
};

/* ---- frames ---- */

static void note(struct scene *scene, const struct repl_frame *frame)
{
    if (frame->kind == REPL_CHANGE) {
        scene->runs_sent++;
        scene->payloads_sent += frame->run.run.payload != NULL;
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

static void drop_first(struct list *list)
{
    struct sent_frame *sent = container_of(list_take(list), struct sent_frame, link);
    repl_frame_finish(&sent->frame);
    free(sent);
}

static void drop_all(struct scene *scene)
{
    while (!list_empty(&scene->to_follower))
        drop_first(&scene->to_follower);
    while (!list_empty(&scene->to_leader))
        drop_first(&scene->to_leader);
}

/* ---- the leader ---- */

static void source_send(void *owner, struct source_follower *to,
                        const struct repl_frame *frame)
{
    struct scene *scene = owner;
    assert_true(!to || to == &scene->follower);
    note(scene, frame);
    send(&scene->to_follower, frame);
}

static void source_end(void *owner, struct source_follower *follower, const char *why)
{
    struct scene *scene = owner;
    (void)follower;
    snprintf(scene->ended, sizeof(scene->ended), "%s", why);
}

static struct environment *next_environment(void *owner, uint32_t *at)
{
    return engine_next_environment(((struct scene *)owner)->world->engine, at);
}

static int64_t left_ms(void *owner)
{
    return ((struct scene *)owner)->left_ms;
}

static void on_change(void *owner, const struct run *before, const struct change *change)
{
    source_apply(&((struct scene *)owner)->source, before, change);
}

/* ---- the follower ---- */

static void replica_send(void *owner, const struct repl_frame *frame)
{
    send(&((struct scene *)owner)->to_leader, frame);
}

static void replica_end(void *owner, const char *why)
{
    struct scene *scene = owner;
    snprintf(scene->ended, sizeof(scene->ended), "%s", why);
}

static void give_up(void *owner, const char *why)
{
    replica_end(owner, why);
    ((struct scene *)owner)->gave_up = true;
}

static struct environment *find(void *owner, uint32_t number)
{
    return number == WORLD_ENV ? ((struct scene *)owner)->copy : NULL;
}

static enum err take_document(void *owner, const struct document *document,
                              struct failure *why)
{
    struct scene *scene = owner;
    (void)why;
    if (document->version > scene->account_version)
        scene->account_version = document->version;
    return OK;
}

static void read_accounts(void *owner)
{
    (void)owner; /* replica_accounts_read is called by pass */
}

static void on_loaded(void *owner, enum err status)
{
    struct scene *scene = owner;
    scene->loads++;
    scene->load_status = status;
}

static struct environment *next_copy(void *owner, uint32_t *at)
{
    return (*at)++ == 0 ? ((struct scene *)owner)->copy : NULL;
}

static void on_clears(void *owner, struct environment *env)
{
    struct scene *scene = owner;
    assert_ptr_equal(env, scene->copy);
    scene->clears++;
}

/* ---- the scene ---- */

static void deliver(struct scene *scene)
{
    while (!list_empty(&scene->to_leader)) {
        struct sent_frame *sent =
            container_of(scene->to_leader.next, struct sent_frame, link);
        if (!scene->ended[0])
            source_receive(&scene->source, &scene->follower, &sent->frame);
        drop_first(&scene->to_leader);
    }
    while (!list_empty(&scene->to_follower)) {
        struct sent_frame *sent =
            container_of(list_take(&scene->to_follower), struct sent_frame, link);
        replica_receive(&scene->replica, &sent->frame, 100);
        free(sent);
    }
}

/* Delivers frames, and lets time pass, until nothing is left to do. */
static void pass(struct scene *scene, int64_t ms)
{
    world_pass(scene->world, ms);
    for (int i = 0; i < 20; i++) {
        deliver(scene);
        if (scene->replica.reads_accounts)
            replica_accounts_read(&scene->replica, OK);
        world_pass(scene->world,
                   scene->replica.catch_up.is_active); /* 1 ms for each read */
    }
}

static void disconnect(struct scene *scene)
{
    source_leave(&scene->source, &scene->follower);
    replica_disconnected(&scene->replica);
    drop_all(scene);
    scene->ended[0] = '\0';
}

static void connect(struct scene *scene)
{
    disconnect(scene);
    replica_connected(&scene->replica);
    pass(scene, 0);
}

static void begin_follower(struct scene *scene)
{
    struct world *world = scene->world;
    struct replica_options options = { .gateway = 2,
                                       .send = replica_send,
                                       .end = replica_end,
                                       .give_up = give_up,
                                       .find = find,
                                       .take_document = take_document,
                                       .read_accounts = read_accounts,
                                       .next = next_copy,
                                       .loaded = on_loaded,
                                       .clears = on_clears,
                                       .owner = scene };
    scene->copy = environment_create(world->loop, world->store, WORLD_ENV, "env_copy",
                                     false, 64 << 20, 100);
    replica_init(&scene->replica, world->loop, world->store, &options);
}

static void begin_leader(struct scene *scene)
{
    struct world *world = scene->world;
    struct source_options options = { .head.term = 3,
                                      .gateway = 1,
                                      .send = source_send,
                                      .end = source_end,
                                      .next = next_environment,
                                      .left_ms = left_ms,
                                      .owner = scene };
    memcpy(options.head.epoch, world->store->epoch, sizeof(options.head.epoch));
    source_init(&scene->source, world->loop, &options);
    engine_on_change(world->engine, on_change, scene);
}

static int open_scene(void **state)
{
    struct scene *scene = mem_new(struct scene);
    scene->world = world_create(&(struct world_options){ .engine.memory = SMALL_MEMORY });
    scene->left_ms = LEFT_MS;
    list_init(&scene->to_follower);
    list_init(&scene->to_leader);
    list_init(&scene->follower.link);
    begin_leader(scene);
    begin_follower(scene);
    *state = scene;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;
    disconnect(scene);
    while (!replica_is_idle(&scene->replica))
        pass(scene, 100);
    replica_finish(&scene->replica);
    source_finish(&scene->source);
    environment_destroy(scene->copy);
    world_destroy(scene->world);
    free(scene);
    return 0;
}

static const struct run *run_in(const struct environment *env, const char *id)
{
    struct tracked *tracked = environment_find(env, slice_of(id));
    assert_non_null(tracked);
    return &tracked->run;
}

static void assert_same_text(const struct bytes *one, const struct bytes *other)
{
    assert_int_equal(one == NULL, other == NULL);
    assert_true(!one || slice_equal(bytes_slice(one), bytes_slice(other)));
}

static void assert_same_run(const struct scene *scene, const char *id)
{
    const struct run *one = run_in(scene->world->env, id), *other = run_in(scene->copy, id);
    assert_int_equal(one->rev, other->rev);
    assert_int_equal(one->version, other->version);
    assert_same_text(one->payload, other->payload);
    assert_same_text(one->metadata, other->metadata);
    assert_same_text(one->metadata_seed, other->metadata_seed);
    assert_same_text(one->output, other->output);
}

static void assert_same(const struct scene *scene)
{
    const struct environment *env = scene->world->env;
    assert_string_equal(scene->ended, "");
    assert_int_equal(scene->copy->applied, env->applied);
    assert_int_equal(scene->copy->unfinished, env->unfinished);
    assert_true(scene->copy->sum == env->sum);
}

static bool is_trusted(struct scene *scene)
{
    return replica_left_ms(&scene->replica) > 0;
}

/* ---- following ---- */

static void follower_has_what_was_before_and_what_comes(void **state)
{
    struct scene *scene = *state;
    create(scene->world, "run_1", "a");
    finish_run(scene->world, "run_1", 10);
    create(scene->world, "run_2", "a,b");
    connect(scene);
    assert_same(scene);
    assert_true(is_trusted(scene));
    assert_same_run(scene, "run_2");
    assert_null(environment_find(scene->copy, SLICE("run_1"))); /* the store has it */
    create(scene->world, "run_3", NULL);
    change(scene->world, "run_2", 2);
    finish_run(scene->world, "run_3", PACKET);
    pass(scene, 10);
    assert_same(scene);
    assert_same_run(scene, "run_2");
    assert_same_run(scene, "run_3");
    assert_int_equal(scene->replica.changes, 3);
}

static void packets_travel_only_in_the_change_that_wrote_them(void **state)
{
    struct scene *scene = *state;
    connect(scene);
    create(scene->world, "run_1", "a");
    set_metadata(scene->world, "run_1", "{\"a\":1}");
    change(scene->world, "run_1", 3);
    pass(scene, 10);
    assert_int_equal(scene->runs_sent, 3);
    assert_true(scene->payloads_sent <= 1);
    assert_same(scene);
    assert_same_run(scene, "run_1");
    assert_non_null(run_in(scene->copy, "run_1")->metadata);
}

static void change_of_an_evicted_run_comes_with_its_state_before(void **state)
{
    struct scene *scene = *state;
    connect(scene);
    create(scene->world, "run_1", "a");
    finish_run(scene->world, "run_1", PACKET);
    pass(scene, 10);
    while (environment_evict(scene->copy, 0))
        ;
    assert_null(environment_find(scene->copy, SLICE("run_1")));
    add_tag(scene->world, "run_1", "b");
    pass(scene, 10);
    assert_int_equal(scene->befores_sent, 1);
    assert_same(scene);
    assert_same_run(scene, "run_1");
}

static void next_connection_continues_from_memory(void **state)
{
    struct scene *scene = *state;
    create(scene->world, "run_1", "a");
    connect(scene);
    finish_run(scene->world, "run_1", 10);
    pass(scene, 10);
    disconnect(scene);
    assert_false(is_trusted(scene));
    create(scene->world, "run_2", "a");
    change(scene->world, "run_2", 2);
    world_settle(scene->world);
    connect(scene);
    assert_same(scene);
    assert_true(is_trusted(scene));
    assert_same_run(scene, "run_1"); /* it was not loaded again */
    assert_same_run(scene, "run_2");
}

/* ---- catching up ---- */

static void frames_wait_while_the_database_is_read(void **state)
{
    struct scene *scene = *state;
    create(scene->world, "run_1", "a");
    fake_store_set_delay(scene->world->fake, 0, 50);
    connect(scene);
    assert_int_equal(scene->replica.state, REPLICA_CATCHING);
    change(scene->world, "run_1", 2);
    pass(scene, 0);
    assert_false(list_empty(&scene->replica.waiting));
    assert_false(is_trusted(scene));
    for (int i = 0; i < 10; i++)
        pass(scene, 50);
    assert_int_equal(scene->replica.state, REPLICA_FOLLOWING);
    assert_same(scene);
    assert_true(is_trusted(scene));
}

static void too_many_waiting_bytes_end_the_connection(void **state)
{
    struct scene *scene = *state;
    struct repl_frame frame = { .kind = REPL_SUM };
    create(scene->world, "run_1", "a");
    fake_store_set_delay(scene->world->fake, 0, 50);
    connect(scene);
    replica_receive(&scene->replica, &frame, REPLICA_WAITING_MAX);
    assert_string_equal(scene->ended, "");
    replica_receive(&scene->replica, &frame, 1);
    assert_string_equal(scene->ended, "too many changes have waited for the database");
    assert_true(list_empty(&scene->replica.waiting));
}

static void on_written(struct document_write *write, enum err status)
{
    (void)write;
    assert_int_equal(status, OK);
}

/* The commit is in the database, but its response has not reached the leader. */
static void memory_ahead_of_the_leader_is_not_trusted(void **state)
{
    struct scene *scene = *state;
    struct document_write write;
    struct bytes *name = bytes_create(SLICE("name"));
    create(scene->world, "run_1", "a");
    fake_store_set_delay(scene->world->fake, 1000, 0);
    document_write_begin(scene->world->engine, WORLD_ENV, DOC_VARIABLE, name, name, 0,
                         &write, on_written);
    pass(scene, 500);
    connect(scene);
    assert_int_equal(scene->copy->applied, scene->world->env->applied + 1);
    assert_int_equal(scene->replica.state, REPLICA_FOLLOWING);
    assert_false(is_trusted(scene));
    pass(scene, 500);
    pass(scene, REPLICA_ASK_MS);
    assert_same(scene);
    assert_true(is_trusted(scene));
    bytes_unref(name);
}

static void on_purged(struct store_purge *purge, enum store_status status)
{
    (void)purge;
    assert_int_equal(status, STORE_OK);
}

static void purge(struct scene *scene)
{
    struct environment *env = scene->world->env;
    struct store_purge purge = { .env = WORLD_ENV,
                                 .before = INT64_MAX,
                                 .documents_before = INT64_MAX,
                                 .limit = 100,
                                 .done = on_purged };
    uint64_t at = 0;
    scene->world->store->ops->purge(scene->world->store, &purge);
    world_pass(scene->world, 1);
    source_floor(&scene->source, &purge.position);
    while (environment_purge(env, &purge.position, &at))
        ;
}

static void retention_removes_runs_from_memory(void **state)
{
    struct scene *scene = *state;
    connect(scene);
    create(scene->world, "run_1", "a");
    create(scene->world, "run_2", "a");
    finish_run(scene->world, "run_1", 10);
    pass(scene, 10);
    assert_int_equal(scene->copy->runs.count, 2);
    purge(scene);
    pass(scene, 10);
    assert_int_equal(scene->copy->runs.count, 1);
    assert_int_equal(scene->copy->purged, scene->world->env->purged);
    assert_int_equal(scene->copy->floor, scene->world->env->floor);
    assert_same(scene);
}

static void memory_below_the_purged_position_is_loaded_again(void **state)
{
    struct scene *scene = *state;
    create(scene->world, "run_1", "a");
    create(scene->world, "run_2", "a");
    connect(scene);
    disconnect(scene);
    finish_run(scene->world, "run_1", 10);
    create(scene->world, "run_3", "a");
    purge(scene);
    connect(scene);
    assert_null(environment_find(scene->copy, SLICE("run_1"))); /* no page has it */
    assert_same(scene);
    assert_int_equal(scene->copy->unfinished, 2);
}

static void memory_is_loaded_without_a_leader(void **state)
{
    struct scene *scene = *state;
    create_many(scene->world, 20, "a");
    finish_run(scene->world, "run_001", 10);
    replica_load(&scene->replica);
    pass(scene, 0);
    assert_int_equal(scene->loads, 1);
    assert_int_equal(scene->load_status, OK);
    assert_int_equal(scene->replica.state, REPLICA_OFF);
    assert_same(scene);
    assert_int_equal(scene->clears, 1);
    connect(scene);
    change(scene->world, "run_002", 2);
    pass(scene, 0);
    assert_same(scene);
    assert_int_equal(scene->clears, 1); /* it continued from memory */
}

/* As when the gateway takes the lead: the database has more than the last leader sent. */
static void memory_is_completed_without_a_leader(void **state)
{
    struct scene *scene = *state;
    create(scene->world, "run_1", "a");
    connect(scene);
    disconnect(scene);
    change(scene->world, "run_1", 2);
    create(scene->world, "run_2", "a");
    replica_load(&scene->replica);
    assert_false(is_trusted(scene));
    pass(scene, 0);
    assert_int_equal(scene->loads, 1);
    assert_same(scene);
    assert_false(is_trusted(scene)); /* leading is what its owner has to know */
    assert_int_equal(scene->clears, 1);
}

static void load_that_is_given_up_calls_nothing(void **state)
{
    struct scene *scene = *state;
    create(scene->world, "run_1", "a");
    fake_store_set_delay(scene->world->fake, 0, 50);
    replica_load(&scene->replica);
    replica_disconnected(&scene->replica);
    for (int i = 0; i < 10; i++)
        pass(scene, 50);
    assert_int_equal(scene->loads, 0);
    assert_true(replica_is_idle(&scene->replica));
}

/* ---- trust ---- */

static void trust_counts_from_the_ask(void **state)
{
    struct scene *scene = *state;
    connect(scene);
    assert_int_equal(replica_left_ms(&scene->replica), LEFT_MS);
    world_pass(scene->world, REPLICA_ASK_MS); /* asks */
    world_pass(scene->world, 1000);
    assert_int_equal(replica_left_ms(&scene->replica), LEFT_MS - REPLICA_ASK_MS - 1000);
    deliver(scene); /* the response to the first of the two asks is 1,000 ms late */
    assert_true(replica_left_ms(&scene->replica) <= LEFT_MS);
    drop_all(scene);
    scene->left_ms = 0; /* no more beats */
    world_pass(scene->world, LEFT_MS);
    deliver(scene);
    assert_false(is_trusted(scene));
}

static void late_beat_does_not_prolong_trust_by_its_delay(void **state)
{
    struct scene *scene = *state;
    connect(scene);
    world_pass(scene->world, REPLICA_ASK_MS);
    drop_first(&scene->to_leader);
    uint64_t question = replica_ask(&scene->replica);
    world_pass(scene->world, 300);
    deliver(scene);
    assert_int_equal(scene->replica.answered, question);
    assert_int_equal(replica_left_ms(&scene->replica), LEFT_MS - 300);
}

static void leader_in_doubt_sends_no_beats(void **state)
{
    struct scene *scene = *state;
    connect(scene);
    scene->left_ms = 0;
    replica_ask(&scene->replica);
    struct sent_frame *ask = container_of(scene->to_leader.next, struct sent_frame, link);
    source_receive(&scene->source, &scene->follower, &ask->frame);
    assert_true(list_empty(&scene->to_follower));
    for (int i = 0; i < 2 * LEFT_MS / REPLICA_ASK_MS; i++)
        pass(scene, REPLICA_ASK_MS);
    assert_false(is_trusted(scene));
    assert_string_equal(scene->ended, "");
    create(scene->world, "run_1", "a"); /* what it applies is true all the same */
    pass(scene, 10);
    assert_same(scene);
    scene->left_ms = LEFT_MS;
    pass(scene, REPLICA_ASK_MS);
    assert_true(is_trusted(scene));
}

static void leader_in_doubt_accepts_no_follower(void **state)
{
    struct scene *scene = *state;
    scene->left_ms = 0;
    connect(scene);
    assert_string_equal(scene->ended, "this leader is in doubt");
    assert_false(scene->follower.is_on);
}

static void silent_leader_loses_its_follower(void **state)
{
    struct scene *scene = *state;
    connect(scene);
    for (int i = 0; i < REPLICA_SILENCE_MS / REPLICA_ASK_MS; i++)
        world_pass(scene->world, REPLICA_ASK_MS);
    assert_string_equal(scene->ended, "the leader does not answer");
    assert_int_equal(scene->replica.state, REPLICA_OFF);
}

/* ---- frames that must not be taken ---- */

static void another_epoch_makes_memory_useless(void **state)
{
    struct scene *scene = *state;
    scene->source.options.head.epoch[0] ^= 1;
    connect(scene);
    assert_true(scene->gave_up);
    assert_int_equal(scene->replica.state, REPLICA_OFF);
}

static void earlier_lead_is_not_followed(void **state)
{
    struct scene *scene = *state;
    connect(scene);
    scene->source.options.head.term--;
    connect(scene);
    assert_string_equal(scene->ended, "an earlier lead");
    scene->source.options.head.term += 2;
    connect(scene);
    assert_true(is_trusted(scene));
}

static void gap_ends_the_connection(void **state)
{
    struct scene *scene = *state;
    connect(scene);
    create(scene->world, "run_1", "a");
    drop_first(&scene->to_follower);
    create(scene->world, "run_2", "a");
    pass(scene, 0);
    assert_string_equal(scene->ended, "the stream has a gap");
    connect(scene);
    assert_same(scene);
}

static void frame_before_the_positions_ends_the_connection(void **state)
{
    struct scene *scene = *state;
    struct repl_frame frame = { .kind = REPL_SUM };
    replica_connected(&scene->replica);
    replica_receive(&scene->replica, &frame, 1);
    assert_string_equal(scene->ended, "an unexpected frame before the positions");
}

static void versions_without_a_common_one_are_refused(void **state)
{
    struct scene *scene = *state;
    struct repl_frame frame = {
        .kind = REPL_HELLO,
        .hello = { .least = REPL_VERSION + 1, .newest = REPL_VERSION + 2, .gateway = 2 }
    };
    source_receive(&scene->source, &scene->follower, &frame);
    assert_string_equal(scene->ended, "no version of replication in common");
    assert_false(scene->follower.is_on);
}

/* ---- sums ---- */

static void wait_for_sums(struct scene *scene)
{
    for (int i = 0; i < 11; i++)
        pass(scene, 1000);
}

static unsigned count_sums(const struct scene *scene)
{
    unsigned count = 0;
    list_each (link, &scene->to_follower)
        count += container_of(link, struct sent_frame, link)->frame.kind == REPL_SUM;
    return count;
}

static void sums_are_sent_of_environments_that_have_changed(void **state)
{
    struct scene *scene = *state;
    create(scene->world, "run_1", "a");
    connect(scene);
    world_pass(scene->world, 10000);
    assert_int_equal(count_sums(scene), 1);
    world_pass(scene->world, 10000);
    assert_int_equal(count_sums(scene), 1);
    change(scene->world, "run_1", 2);
    world_pass(scene->world, 10000);
    assert_int_equal(count_sums(scene), 2);
    connect(scene); /* a new follower has compared nothing */
    world_pass(scene->world, 10000);
    assert_int_equal(count_sums(scene), 1);
}

static void equal_sums_are_silent(void **state)
{
    struct scene *scene = *state;
    create(scene->world, "run_1", "a");
    connect(scene);
    wait_for_sums(scene);
    change(scene->world, "run_1", 2);
    wait_for_sums(scene);
    assert_same(scene);
    assert_int_equal(scene->replica.differences, 0);
}

static void environment_that_differs_is_loaded_again(void **state)
{
    struct scene *scene = *state;
    create(scene->world, "run_1", "a");
    connect(scene);
    assert_true(environment_find(scene->copy, SLICE("run_1")) != NULL);
    scene->copy->sum++;
    wait_for_sums(scene);
    assert_int_equal(scene->replica.differences, 1);
    assert_string_equal(scene->ended, "memory differs from the leader's");
    scene->copy->sum--; /* so that clearing leaves zero */
    connect(scene);
    assert_int_equal(scene->clears, 2);
    assert_same(scene);
    wait_for_sums(scene);
    assert_int_equal(scene->replica.differences, 1);
}

/* ---- accounts ---- */

static void write_account(struct scene *scene, uint32_t expected)
{
    struct document_write write;
    struct bytes *name = bytes_create(SLICE("name"));
    document_write_begin(scene->world->engine, ENV_INSTALLATION, DOC_USER, name, name,
                         expected, &write, on_written);
    world_pass(scene->world, 10);
    bytes_unref(name);
}

static void documents_of_accounts_travel(void **state)
{
    struct scene *scene = *state;
    connect(scene);
    write_account(scene, 0);
    pass(scene, 10);
    assert_int_equal(scene->account_version, 1);
    disconnect(scene);
    write_account(scene, 1);
    connect(scene); /* read_accounts, which this test leaves out */
    assert_int_equal(scene->account_version, 1);
    write_account(scene, 2);
    pass(scene, 10);
    assert_int_equal(scene->account_version, 3);
    assert_same(scene);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(follower_has_what_was_before_and_what_comes),
        TEST(packets_travel_only_in_the_change_that_wrote_them),
        TEST(change_of_an_evicted_run_comes_with_its_state_before),
        TEST(next_connection_continues_from_memory),
        TEST(frames_wait_while_the_database_is_read),
        TEST(too_many_waiting_bytes_end_the_connection),
        TEST(memory_ahead_of_the_leader_is_not_trusted),
        TEST(retention_removes_runs_from_memory),
        TEST(memory_below_the_purged_position_is_loaded_again),
        TEST(memory_is_loaded_without_a_leader),
        TEST(memory_is_completed_without_a_leader),
        TEST(load_that_is_given_up_calls_nothing),
        TEST(trust_counts_from_the_ask),
        TEST(late_beat_does_not_prolong_trust_by_its_delay),
        TEST(leader_in_doubt_sends_no_beats),
        TEST(leader_in_doubt_accepts_no_follower),
        TEST(silent_leader_loses_its_follower),
        TEST(another_epoch_makes_memory_useless),
        TEST(earlier_lead_is_not_followed),
        TEST(gap_ends_the_connection),
        TEST(frame_before_the_positions_ends_the_connection),
        TEST(versions_without_a_common_one_are_refused),
        TEST(sums_are_sent_of_environments_that_have_changed),
        TEST(equal_sums_are_silent),
        TEST(environment_that_differs_is_loaded_again),
        TEST(documents_of_accounts_travel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
