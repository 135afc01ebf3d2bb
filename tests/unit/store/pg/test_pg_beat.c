/* Gateways on one PostgreSQL: beats, who may take the lead, and commits after its loss. A
 * commit of a gateway that has lost the lead is never written. */
#include <stdio.h>
#include <uv.h>

#include "base/buf.h"
#include "base/mem.h"
#include "store/pg/pg_store.h"
#include "tests/support/contract/store_contract.h"
#include "tests/support/world/pg_world.h"

enum { PROCESSES = 3 };

/* A gateway of the test; it has a store. */
struct process {
    struct store_world world; /* for the functions of the store contract */
    struct store_beat beat;
    struct store_lead lead;
    struct store_leave leave;
    struct store_forget forget;
    struct store_recount recount;
    struct store_renew renew;
    struct store_gateway others[8]; /* as in the last beat */
    bool done, closed;
    unsigned moved;
    bool told;     /* the notice that another gateway has left arrived */
    bool cut;      /* the connection for beats was lost */
    bool is_other; /* another server has become the primary one */
    bool registers;
    uint64_t successor; /* as in the notice that another gateway has left */
    enum store_status status;
};

static struct {
    uv_loop_t loop;
    char schema[32];
    struct process all[PROCESSES];
} scene;

static void turn(struct store_world *world)
{
    (void)world;
    uv_run(&scene.loop, UV_RUN_ONCE);
}

static void wait_for(const bool *done)
{
    while (!*done)
        uv_run(&scene.loop, UV_RUN_ONCE);
}

static void on_moved(void *owner)
{
    ((struct process *)owner)->moved++;
}

static void on_left(void *owner, uint64_t successor)
{
    ((struct process *)owner)->successor = successor;
    ((struct process *)owner)->told = true;
}

static void on_cut(void *owner)
{
    ((struct process *)owner)->cut = true;
}

static void on_history(void *owner)
{
    ((struct process *)owner)->is_other = true;
}

static const char *peer_url; /* of the next process; NULL: none */

static struct process *start_by(int which, const char *name, const char *url)
{
    struct process *process = &scene.all[which];
    struct failure why = { 0 };
    struct pg_options options = { .database = url,
                                  .schema = scene.schema,
                                  .name = name,
                                  .peer_url = peer_url,
                                  .stands_by = true };
    *process = (struct process){ .world.turn = turn };
    if (pg_store_open(&scene.loop, &options, &process->world.store, &why))
        fail_msg("%s", why.text);
    process->world.store->on_moved = on_moved;
    process->world.store->on_left = on_left;
    process->world.store->on_cut = on_cut;
    process->world.store->moved_owner = process;
    return process;
}

static struct process *start(int which, const char *name)
{
    return start_by(which, name, pg_world_url());
}

static void on_closed(struct store *store)
{
    for (int i = 0; i < PROCESSES; i++)
        if (scene.all[i].world.store == store)
            scene.all[i].closed = true;
}

static void end(struct process *process)
{
    process->world.store->ops->close(process->world.store, on_closed);
    wait_for(&process->closed);
    process->world.store = NULL;
}

static int open_scene(void **state)
{
    static int count;
    (void)state;
    memset(&scene, 0, sizeof(scene));
    uv_loop_init(&scene.loop);
    snprintf(scene.schema, sizeof(scene.schema), "case_%d", ++count);
    return 0;
}

static int close_scene(void **state)
{
    (void)state;
    for (int i = 0; i < PROCESSES; i++)
        if (scene.all[i].world.store)
            end(&scene.all[i]);
    assert_int_equal(uv_loop_close(&scene.loop), 0);
    return 0;
}

static void on_beaten(struct store_beat *req, enum store_status status)
{
    struct process *process = container_of(req, struct process, beat);
    assert_true(req->gateway_count <= 8);
    if (req->gateway_count)
        memcpy(process->others, req->gateways, req->gateway_count * sizeof(*req->gateways));
    req->gateways = process->others;
    process->status = status;
    process->done = true;
}

static enum store_status try_beat(struct process *process)
{
    process->done = false;
    process->beat =
        (struct store_beat){ .registers = process->registers, .done = on_beaten };
    process->world.store->ops->beat(process->world.store, &process->beat);
    assert_false(process->done); /* not called from within the call */
    wait_for(&process->done);
    return process->status;
}

static void on_led(struct store_lead *req, enum store_status status)
{
    struct process *process = container_of(req, struct process, lead);
    process->status = status;
    process->done = true;
}

/* dead: the gateway found dead, as this process last saw it; NULL: none. */
static enum store_status try_take(struct process *process, const struct store_gateway *dead)
{
    process->done = false;
    process->lead =
        (struct store_lead){ .dead = dead, .dead_count = dead != NULL, .done = on_led };
    process->world.store->ops->lead(process->world.store, &process->lead);
    wait_for(&process->done);
    return process->status;
}

static void on_given_up(struct store_leave *req, enum store_status status)
{
    struct process *process = container_of(req, struct process, leave);
    process->status = status;
    process->done = true;
}

static enum store_status try_leave(struct process *process)
{
    process->done = false;
    process->leave =
        (struct store_leave){ .successor = process->successor, .done = on_given_up };
    process->world.store->ops->leave(process->world.store, &process->leave);
    assert_false(process->done); /* not called from within the call */
    wait_for(&process->done);
    return process->status;
}

static void on_forgotten(struct store_forget *req, enum store_status status)
{
    struct process *process = container_of(req, struct process, forget);
    process->status = status;
    process->done = true;
}

static enum store_status forget(struct process *process, const struct store_gateway *dead,
                                size_t count)
{
    process->done = false;
    process->forget =
        (struct store_forget){ .dead = dead, .dead_count = count, .done = on_forgotten };
    process->world.store->ops->forget(process->world.store, &process->forget);
    wait_for(&process->done);
    return process->status;
}

static void on_recounted(struct store_recount *req, enum store_status status)
{
    struct process *process = container_of(req, struct process, recount);
    process->status = status;
    process->done = true;
}

static enum store_status try_recount(struct process *process)
{
    process->done = false;
    process->recount = (struct store_recount){ .done = on_recounted };
    process->world.store->ops->recount(process->world.store, &process->recount);
    assert_false(process->done); /* not called from within the call */
    wait_for(&process->done);
    return process->status;
}

static const struct store_gateway *seen(const struct process *by, const char *name)
{
    for (size_t i = 0; i < by->beat.gateway_count; i++)
        if (!strcmp(by->others[i].name, name))
            return &by->others[i];
    fail_msg("%s is not seen", name);
    return NULL;
}

/* Repeats until the database answers: the connection may not be open yet, or not again. */
static enum store_status beat(struct process *process)
{
    while (try_beat(process) == STORE_FAILED)
        ;
    return process->status;
}

static enum store_status take(struct process *process, const struct store_gateway *dead)
{
    while (try_take(process, dead) == STORE_FAILED)
        ;
    return process->status;
}

static enum store_status recount(struct process *process)
{
    while (try_recount(process) == STORE_FAILED)
        ;
    return process->status;
}

static struct store_position position_of(const struct process *process, uint32_t env)
{
    return process->world.store->ops->position(process->world.store, env);
}

static void assert_equal_positions(struct store_position a, struct store_position b)
{
    assert_int_equal(a.seq, b.seq);
    assert_int_equal(a.purged, b.purged);
    assert_int_equal(a.floor, b.floor);
    assert_int_equal(a.stored, b.stored);
}

/* ---- beats ---- */

static void beat_lists_all_gateways_and_counts(void **state)
{
    (void)state;
    struct process *a = start(0, "a"), *b = start(1, "b");
    assert_int_equal(beat(a), STORE_OK);
    assert_int_equal(beat(a), STORE_OK);
    assert_int_equal(beat(b), STORE_OK);
    assert_int_equal(b->beat.gateway_count, 2);
    assert_int_equal(seen(b, "a")->beat, 2);
    assert_int_equal(seen(b, "b")->beat, 1);
    assert_int_equal(seen(b, "b")->id, b->beat.me);
    assert_int_equal(b->beat.leader, 0);
    uv_timeval64_t now;
    uv_gettimeofday(&now);
    assert_true(llabs(b->beat.clock_ms - now.tv_sec * 1000) < 10000);
}

static void beat_lists_the_addresses_for_peers(void **state)
{
    (void)state;
    struct process *a = start(0, "a");
    peer_url = "http://10.0.0.2:3040";
    struct process *b = start(1, "b");
    peer_url = NULL;
    assert_int_equal(beat(a), STORE_OK);
    assert_string_equal(seen(a, "a")->peer_url, "");
    assert_string_equal(seen(a, "b")->peer_url, "http://10.0.0.2:3040");
    assert_int_equal(beat(b), STORE_OK);
    assert_string_equal(seen(b, "b")->peer_url, "http://10.0.0.2:3040");
}

static void gateway_that_left_is_not_listed(void **state)
{
    (void)state;
    struct process *a = start(0, "a"), *b = start(1, "b");
    assert_int_equal(take(a, NULL), STORE_OK);
    end(a);
    assert_int_equal(beat(b), STORE_OK);
    assert_int_equal(b->beat.gateway_count, 1);
    assert_int_equal(take(b, NULL), STORE_OK);
}

static void gateway_whose_name_was_taken_gets_moved(void **state)
{
    (void)state;
    struct process *a = start(0, "a"), *again = start(1, "a");
    assert_int_equal(beat(a), STORE_MOVED);
    assert_int_equal(a->beat.gateway_count, 1);
    assert_int_not_equal(seen(a, "a")->id, a->beat.me);
    assert_int_equal(beat(again), STORE_OK);
}

static void rows_of_the_dead_are_removed_unless_they_have_beaten_since(void **state)
{
    (void)state;
    struct process *a = start(0, "a"), *b = start(1, "b"), *c = start(2, "c");
    assert_int_equal(take(a, NULL), STORE_OK);
    assert_int_equal(beat(b), STORE_OK);
    assert_int_equal(beat(c), STORE_OK);
    assert_int_equal(beat(a), STORE_OK);
    struct store_gateway dead[] = { *seen(a, "b"), *seen(a, "c") };
    assert_int_equal(beat(c), STORE_OK); /* it is alive after all */
    assert_int_equal(forget(a, dead, 2), STORE_OK);
    assert_int_equal(beat(a), STORE_OK);
    assert_int_equal(a->beat.gateway_count, 2);
    assert_int_equal(beat(c), STORE_OK);
    assert_int_equal(beat(b), STORE_MOVED);
    end(b);
    assert_int_equal(beat(start(1, "b")), STORE_OK); /* it joins again */
    assert_int_equal(commit_one(&a->world, new_run(ENV_A, 1, "a")), STORE_OK);
}

/* ---- sessions ---- */

/* Executes the statement; @ stands for the schema. */
static const char *ask(const char *text)
{
    struct buf sql = { 0 };
    for (; *text; text++)
        if (*text == '@')
            buf_add_text(&sql, scene.schema);
        else
            buf_add_char(&sql, *text);
    buf_add_char(&sql, '\0');
    const char *result = pg_world_ask(sql.ptr);
    buf_finish(&sql);
    return result;
}

static enum store_session session_of(struct process *by, const char *name)
{
    assert_int_equal(beat(by), STORE_OK);
    return seen(by, name)->session;
}

static void registered_session_is_open_until_it_ends(void **state)
{
    (void)state;
    struct process *a = start(0, "a"), *b = start(1, "b");
    assert_int_equal(session_of(a, "a"), SESSION_UNKNOWN);
    a->registers = true;
    assert_int_equal(session_of(a, "a"), SESSION_OPEN);
    assert_int_equal(session_of(b, "a"), SESSION_OPEN);
    assert_int_equal(session_of(b, "b"), SESSION_UNKNOWN);
    assert_false(a->cut);
    ask("SELECT pg_terminate_backend(session_pid) FROM @.gateway");
    wait_for(&a->cut);
    while (session_of(b, "a") != SESSION_ENDED)
        ;
    assert_int_equal(session_of(a, "a"), SESSION_OPEN);
    assert_int_equal(session_of(b, "a"), SESSION_OPEN);
    a->registers = false;
    assert_int_equal(session_of(a, "a"), SESSION_UNKNOWN);
    assert_int_equal(session_of(b, "a"), SESSION_UNKNOWN);
}

/* All sessions have ended then, whatever became of their gateways. */
static void sessions_before_a_restart_of_the_server_are_unknown(void **state)
{
    (void)state;
    struct process *a = start(0, "a"), *b = start(1, "b");
    a->registers = true;
    assert_int_equal(session_of(a, "a"), SESSION_OPEN);
    assert_int_equal(session_of(b, "a"), SESSION_OPEN);
    pg_world_order("stop fast");
    pg_world_order("start");
    assert_int_equal(session_of(b, "a"), SESSION_UNKNOWN);
    assert_true(b->cut);
    assert_int_equal(session_of(a, "a"), SESSION_OPEN);
}

/* A pooler has its own session, or lends it to others. */
static void session_of_another_process_is_not_registered(void **state)
{
    (void)state;
    struct process *a = start(0, "a");
    a->registers = true;
    assert_int_equal(session_of(a, "a"), SESSION_OPEN);
    assert_string_equal(
        ask("SELECT max(seen_session) FROM @.gateway, @.beat_v102(id, 0, session_pid)"),
        "0");
}

static void session_that_cannot_be_read_is_unknown(void **state)
{
    (void)state;
    struct process *a = start(0, "a");
    a->registers = true;
    pg_world_ask("REVOKE EXECUTE ON FUNCTION pg_stat_get_activity(int) FROM public");
    enum store_session session = session_of(a, "a");
    pg_world_ask("GRANT EXECUTE ON FUNCTION pg_stat_get_activity(int) TO public");
    assert_int_equal(session, SESSION_UNKNOWN);
    assert_int_equal(session_of(a, "a"), SESSION_OPEN);
}

/* ---- beside a gateway of schema 101 ---- */

static void gateway_of_the_schema_before_continues_beside_this_one(void **state)
{
    (void)state;
    end(start(0, "a"));
    ask("ALTER TABLE @.gateway DROP COLUMN session_pid, DROP COLUMN session_start;"
        " DROP FUNCTION @.lead_v102, @.beat_v102, @.session_start_v102,"
        " @.session_state_v102; UPDATE @.meta SET value = '101' WHERE name = 'schema'");
    ask("SELECT @.join_v101('old', '', '', 100, '{}', 2)");
    ask("SELECT @.lead_v101(id, '{0}', '{}', '{}', '{}', '{}') FROM @.gateway");
    struct process *a = start(0, "a");
    assert_string_equal(ask("SELECT value FROM @.meta WHERE name = 'schema'"), "102");
    assert_int_equal(session_of(a, "old"), SESSION_UNKNOWN);
    assert_int_equal(a->beat.leader, seen(a, "old")->id);
    struct store_gateway old = *seen(a, "old");
    ask("SELECT @.beat_v101(id, 0) FROM @.gateway WHERE name = 'old'");
    assert_int_equal(take(a, &old), STORE_TAKEN);
    assert_int_equal(session_of(a, "old"), SESSION_UNKNOWN);
    assert_int_equal(take(a, seen(a, "old")), STORE_OK);
    assert_string_equal(ask("SELECT count(*) FROM @.gateway g, @.lead_v101(g.id, '{0}',"
                            " '{}', '{}', '{}', '{}') WHERE g.name = 'old'"),
                        "0");
}

/* ---- the lead ---- */

static void leader_that_leaves_notifies_others_and_writes_no_more(void **state)
{
    (void)state;
    struct process *a = start(0, "a"), *b = start(1, "b");
    assert_int_equal(take(a, NULL), STORE_OK);
    assert_int_equal(commit_one(&a->world, new_run(ENV_A, 1, "a")), STORE_OK);
    assert_int_equal(beat(b), STORE_OK); /* from here on, b listens */
    a->successor = 1234567890123;
    assert_int_equal(try_leave(a), STORE_OK);
    wait_for(&b->told);
    assert_int_equal(b->successor, 1234567890123);
    assert_int_equal(take(b, NULL), STORE_OK);
    assert_int_equal(commit_one(&a->world, new_run(ENV_A, 2, "a")), STORE_MOVED);
    assert_int_equal(commit_one(&b->world, new_run(ENV_A, 2, "a")), STORE_OK);
    assert_int_equal(beat(a), STORE_MOVED);
}

static void free_lead_is_taken_and_kept(void **state)
{
    (void)state;
    struct process *a = start(0, "a"), *b = start(1, "b");
    assert_int_equal(take(a, NULL), STORE_OK);
    assert_int_equal(take(a, NULL), STORE_OK);
    assert_int_equal(take(b, NULL), STORE_TAKEN);
    assert_int_equal(beat(b), STORE_OK);
    assert_int_equal(b->beat.leader, seen(b, "a")->id);
}

static void lead_is_taken_from_a_dead_leader_only_at_its_last_seen_beat(void **state)
{
    (void)state;
    struct process *a = start(0, "a"), *b = start(1, "b");
    assert_int_equal(take(a, NULL), STORE_OK);
    assert_int_equal(beat(b), STORE_OK);
    struct store_gateway dead = *seen(b, "a");
    assert_int_equal(beat(a), STORE_OK); /* it is alive after all */
    assert_int_equal(take(b, &dead), STORE_TAKEN);
    dead.beat++;
    assert_int_equal(take(b, &dead), STORE_OK);
    assert_int_equal(beat(a), STORE_OK);
    assert_int_equal(a->beat.leader, b->beat.me);
}

static void commit_after_losing_the_lead_is_not_written(void **state)
{
    (void)state;
    struct process *a = start(0, "a"), *b = start(1, "b");
    assert_int_equal(take(a, NULL), STORE_OK);
    assert_int_equal(commit_one(&a->world, new_run(ENV_A, 1, "a")), STORE_OK);
    assert_int_equal(commit_one(&a->world, new_run(ENV_A, 2, "a")), STORE_OK);
    assert_int_equal(beat(b), STORE_OK);
    assert_int_equal(take(b, seen(b, "a")), STORE_OK);
    assert_int_equal(b->world.store->ops->position(b->world.store, ENV_A).seq, 2);
    assert_int_equal(a->moved, 0);
    assert_int_equal(commit_one(&a->world, new_run(ENV_A, 3, "a")), STORE_MOVED);
    assert_int_not_equal(a->moved, 0);
    assert_int_equal(commit_one(&a->world, new_run(ENV_A, 3, "a")), STORE_MOVED);
    assert_int_equal(commit_one(&b->world, new_run(ENV_A, 3, "a")), STORE_OK);
    assert_int_equal(count_runs(&b->world, ENV_A), 3);
    assert_int_equal(b->world.store->ops->position(b->world.store, ENV_A).seq, 3);
}

static void gateway_that_does_not_lead_writes_nothing(void **state)
{
    (void)state;
    struct process *a = start(0, "a"), *b = start(1, "b");
    assert_int_equal(take(a, NULL), STORE_OK);
    assert_int_equal(commit_one(&a->world, new_run(ENV_A, 1, "a")), STORE_OK);
    assert_int_equal(commit_one(&b->world, new_run(ENV_A, 2, "a")), STORE_MOVED);
    assert_int_equal(count_runs(&a->world, ENV_A), 1);
}

static void recount_shows_the_positions_of_the_leader(void **state)
{
    (void)state;
    struct process *a = start(0, "a"), *b = start(1, "b");
    assert_int_equal(take(a, NULL), STORE_OK);
    assert_int_equal(recount(b), STORE_OK);
    assert_int_equal(position_of(b, ENV_A).seq, 0);
    assert_int_equal(commit_one(&a->world, new_run(ENV_A, 1, "a")), STORE_OK);
    assert_int_equal(commit_one(&a->world, new_run(ENV_A, 2, "a")), STORE_OK);
    assert_int_equal(commit_one(&a->world, new_run(ENV_B, 1, "a")), STORE_OK);
    assert_int_equal(position_of(b, ENV_A).seq, 0);
    assert_int_equal(recount(b), STORE_OK);
    assert_equal_positions(position_of(b, ENV_A), position_of(a, ENV_A));
    assert_int_equal(position_of(b, ENV_A).seq, 2);
    assert_true(position_of(b, ENV_A).stored > 0);
    assert_int_equal(position_of(b, ENV_B).seq, 1);
}

static void recount_leaves_the_positions_of_led_environments(void **state)
{
    (void)state;
    struct process *a = start(0, "a");
    assert_int_equal(take(a, NULL), STORE_OK);
    assert_int_equal(a->world.store->term, 1);
    assert_int_equal(commit_one(&a->world, new_run(ENV_A, 1, "a")), STORE_OK);
    struct store_position before = position_of(a, ENV_A);
    char sql[96];
    snprintf(sql, sizeof(sql), "UPDATE %s.environment SET stored = 7, purged = 9",
             scene.schema);
    pg_world_ask(sql);
    assert_int_equal(recount(a), STORE_OK);
    assert_equal_positions(position_of(a, ENV_A), before);
}

/* As after a failover that has lost a commit. */
static void lose_last_commit(void)
{
    char sql[96];
    snprintf(sql, sizeof(sql), "UPDATE %s.environment SET seq = 1 WHERE env = %d",
             scene.schema, ENV_A);
    pg_world_ask(sql);
}

static void begin_history(struct process *process)
{
    static const char epoch[17] = "0123456789abcdef";
    process->world.store->ops->begin_history(process->world.store, epoch);
    assert_string_equal(process->world.store->epoch, epoch);
}

static void begin_beside_a_leader(struct process **a, struct process **b)
{
    *a = start(0, "a");
    *b = start(1, "b");
    assert_int_equal(take(*a, NULL), STORE_OK);
    assert_int_equal(commit_one(&(*a)->world, new_run(ENV_A, 1, "a")), STORE_OK);
    assert_int_equal(commit_one(&(*a)->world, new_run(ENV_A, 2, "a")), STORE_OK);
    assert_int_equal(recount(*b), STORE_OK);
    assert_int_equal(position_of(*b, ENV_A).seq, 2);
    lose_last_commit();
}

static void another_history_forgets_the_positions_until_a_recount(void **state)
{
    (void)state;
    struct process *a, *b;
    begin_beside_a_leader(&a, &b);
    begin_history(b);
    assert_int_equal(position_of(b, ENV_A).seq, 0);
    assert_int_equal(recount(b), STORE_OK);
    assert_int_equal(position_of(b, ENV_A).seq, 1);
}

/* A follower that reads more in the database than the leader says waits for the rest. */
static void another_history_has_the_positions_of_the_lead(void **state)
{
    (void)state;
    struct process *a, *b;
    begin_beside_a_leader(&a, &b);
    end(a);
    assert_int_equal(take(b, NULL), STORE_OK);
    assert_int_equal(position_of(b, ENV_A).seq, 1);
    begin_history(b);
    assert_int_equal(recount(b), STORE_OK);
    assert_int_equal(position_of(b, ENV_A).seq, 1);
    assert_true(position_of(b, ENV_A).stored > 0);
}

static void on_renewed(struct store_renew *req, enum store_status status)
{
    struct process *process = container_of(req, struct process, renew);
    process->status = status;
    process->done = true;
}

static void renew(struct process *process)
{
    do {
        process->done = false;
        process->renew = (struct store_renew){ .done = on_renewed };
        process->world.store->ops->renew(process->world.store, &process->renew);
        wait_for(&process->done);
    } while (process->status == STORE_FAILED);
}

static bool has_epoch(const struct process *process)
{
    return !strcmp(process->renew.epoch, process->world.store->epoch);
}

/* It takes the lead at the new server, so the lead holds. But memory is of the old one. */
static void leader_that_asks_for_the_epoch_is_told_of_a_promotion(void **state)
{
    (void)state;
    struct process *a = start(0, "a");
    a->world.store->on_history = on_history;
    a->world.store->history_owner = a;
    renew(a);
    assert_true(has_epoch(a) && !a->renew.is_other);
    assert_int_equal(take(a, NULL), STORE_OK);
    pg_world_order("promote");
    while (!a->is_other && !a->moved)
        uv_run(&scene.loop, UV_RUN_ONCE);
    assert_int_equal(a->moved, 0);
    renew(a);
    assert_true(!has_epoch(a) && a->renew.is_other);
    a->world.store->ops->begin_history(a->world.store, a->renew.epoch);
    renew(a);
    assert_true(has_epoch(a) && !a->renew.is_other);
    assert_int_equal(commit_one(&a->world, new_run(ENV_A, 1, "a")), STORE_OK);
    assert_int_equal(a->moved, 0);
}

/* It has written, so what it acknowledged may be lost. */
static void leader_that_writes_loses_the_lead_by_a_promotion(void **state)
{
    (void)state;
    struct process *a = start(0, "a");
    assert_int_equal(take(a, NULL), STORE_OK);
    pg_world_order("promote");
    while (!a->moved)
        uv_run(&scene.loop, UV_RUN_ONCE);
    assert_int_equal(commit_one(&a->world, new_run(ENV_A, 1, "a")), STORE_MOVED);
}

/* ---- a connection that is cut at each message ---- */

/* The request ends with some result, and the next request gets the right one. */
static void cut_beats(const char *what, enum pg_side from)
{
    struct process *a = start_by(0, "a", pg_world_relay_url());
    assert_int_equal(beat(a), STORE_OK);
    unsigned n = 0;
    do {
        pg_world_strike(what, from, ++n, "beat_v102");
        uint64_t before = seen(a, "a")->beat;
        bool answered = try_beat(a) == STORE_OK;
        pg_world_order("forget");
        assert_int_equal(beat(a), STORE_OK);
        uint64_t counted = seen(a, "a")->beat - before;
        assert_true(counted >= 1 + (unsigned)answered && counted <= 2);
    } while (pg_world_struck());
    assert_true(n > 3);
    end(a);
}

static void beat_cut_at_any_message_fails_and_the_next_one_works(void **state)
{
    (void)state;
    cut_beats("cut", PG_CLIENT);
    cut_beats("cut", PG_SERVER);
    cut_beats("tear", PG_SERVER);
}

static void take_cut_at_any_message_is_retried(void **state)
{
    (void)state;
    static const enum pg_side sides[] = { PG_CLIENT, PG_SERVER };
    for (int i = 0; i < 2; i++) {
        struct process *a = start_by(0, "a", pg_world_relay_url());
        assert_int_equal(take(a, NULL), STORE_OK);
        unsigned n = 0;
        do {
            pg_world_strike("cut", sides[i], ++n, "lead_v102");
            try_take(a, NULL);
            pg_world_order("forget");
            assert_int_equal(take(a, NULL), STORE_OK);
        } while (pg_world_struck());
        assert_true(n > 3);
        assert_int_equal(commit_one(&a->world, new_run(ENV_A, i + 1, "a")), STORE_OK);
        end(a);
    }
}

static void silent_database_is_reported(void **state)
{
    (void)state;
    struct process *a = start_by(0, "a", pg_world_relay_url());
    assert_int_equal(beat(a), STORE_OK);
    pg_world_order("hold server");
    assert_int_equal(try_beat(a), STORE_FAILED);
    pg_world_order("pass");
    assert_int_equal(beat(a), STORE_OK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
    const struct CMUnitTest tests[] = {
        TEST(beat_lists_all_gateways_and_counts),
        TEST(beat_lists_the_addresses_for_peers),
        TEST(gateway_that_left_is_not_listed),
        TEST(gateway_whose_name_was_taken_gets_moved),
        TEST(rows_of_the_dead_are_removed_unless_they_have_beaten_since),
        TEST(registered_session_is_open_until_it_ends),
        TEST(sessions_before_a_restart_of_the_server_are_unknown),
        TEST(session_of_another_process_is_not_registered),
        TEST(session_that_cannot_be_read_is_unknown),
        TEST(gateway_of_the_schema_before_continues_beside_this_one),
        TEST(leader_that_leaves_notifies_others_and_writes_no_more),
        TEST(free_lead_is_taken_and_kept),
        TEST(lead_is_taken_from_a_dead_leader_only_at_its_last_seen_beat),
        TEST(commit_after_losing_the_lead_is_not_written),
        TEST(gateway_that_does_not_lead_writes_nothing),
        TEST(recount_shows_the_positions_of_the_leader),
        TEST(recount_leaves_the_positions_of_led_environments),
        TEST(another_history_forgets_the_positions_until_a_recount),
        TEST(another_history_has_the_positions_of_the_lead),
        TEST(leader_that_asks_for_the_epoch_is_told_of_a_promotion),
        TEST(leader_that_writes_loses_the_lead_by_a_promotion),
        TEST(beat_cut_at_any_message_fails_and_the_next_one_works),
        TEST(take_cut_at_any_message_is_retried),
        TEST(silent_database_is_reported),
    };
    return cmocka_run_group_tests(tests, pg_world_set_up, pg_world_tear_down);
}
