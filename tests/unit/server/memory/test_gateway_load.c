/* A start loads the rows of the store into memory, whatever order they come in. */
#include "tests/support/world/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "accounts/account_draft.h"
#include "base/mem.h"
#include "tests/support/fakes/fake_store.h"
#include "tests/support/world/life.h"

enum { TURNS_MAX = 100000, DEV = 1, NOBODYS = 77 };

/* ---- a store whose rows come in another order and whose reads fail ---- */

struct odd_store {
    struct store store;
    struct store *fake;
    struct fault fault; /* applies to scans and walks */
    bool newest_are_slow;
    void (*scanned)(struct store_read *read, enum store_status status);
    void (*walked)(struct store_read *read, enum store_status status);
};

static struct odd_store odd;

static void turn_around(struct document *documents, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        struct document first = documents[i];
        documents[i] = documents[count - 1 - i];
        documents[count - 1 - i] = first;
    }
}

static void on_scanned(struct store_read *read, enum store_status status)
{
    struct store_scan *scan = container_of(read, struct store_scan, read);
    bool fails = fault_trips(&odd.fault);
    if (fails)
        store_read_finish(read);
    turn_around(scan->documents, scan->count);
    odd.scanned(read, fails ? STORE_FAILED : status);
}

static void on_walked(struct store_read *read, enum store_status status)
{
    const struct store_walk *walk = container_of(read, struct store_walk, read);
    bool fails = fault_trips(&odd.fault),
         is_slow = walk->newest_first && odd.newest_are_slow;
    if (fails || is_slow) {
        store_read_finish(read);
        status = fails ? STORE_FAILED : STORE_SLOW;
    }
    odd.walked(read, status);
}

static void read_oddly(struct store *store, struct store_read *read)
{
    (void)store;
    if (read->kind == READ_SCAN) {
        odd.scanned = read->done;
        read->done = on_scanned;
    } else if (read->kind == READ_WALK) {
        odd.walked = read->done;
        read->done = on_walked;
    }
    odd.fake->ops->read(odd.fake, read);
}

static void commit_as_ever(struct store *store, struct store_commit *commit)
{
    (void)store;
    odd.fake->ops->commit(odd.fake, commit);
}

static struct store_position position_as_ever(struct store *store, uint32_t env)
{
    (void)store;
    return odd.fake->ops->position(odd.fake, env);
}

static const struct store_ops odd_ops = { .name = "odd",
                                          .commit = commit_as_ever,
                                          .read = read_oddly,
                                          .position = position_as_ever };

static struct fake_store *fake;

static int create_world(void **state)
{
    struct loop *loop = loop_create(NULL);
    fake = fake_store_create(loop);
    odd = (struct odd_store){ .fake = fake_store_store(fake) };
    odd.store = *odd.fake;
    odd.store.ops = &odd_ops;
    *state = loop;
    return 0;
}

static int destroy_world(void **state)
{
    fake_store_destroy(fake);
    loop_destroy(*state);
    return 0;
}

/* ---- rows ---- */

struct writing {
    struct store_commit commit;
    bool done;
};

static void on_written(struct store_commit *commit, enum store_status status)
{
    assert_int_equal(status, STORE_OK);
    container_of(commit, struct writing, commit)->done = true;
}

/* Takes ownership of the changes. */
static void write_all(struct loop *loop, struct change *changes, size_t count)
{
    struct writing writing = {
        .commit = { .changes = changes, .change_count = count, .done = on_written }
    };
    odd.fake->ops->commit(odd.fake, &writing.commit);
    for (int i = 0; !writing.done; i++) {
        assert_true(i < TURNS_MAX);
        loop_turn(loop, 1);
    }
    for (size_t i = 0; i < count; i++)
        change_finish(&changes[i]);
}

/* Writes a run. version 0: a new, queued run; otherwise the stored run's next version. */
static void write_run(struct loop *loop, uint32_t env, const char *id, uint32_t version,
                      enum run_status status)
{
    struct change change = { .kind = CHANGE_RUN, .env = env, .expected = version };
    struct run *run = &change.run;
    bool is_final = status == RUN_COMPLETED;
    change.marks = MARK_WHOLE | MARK_PAYLOAD | MARK_METADATA | MARK_OUTPUT;
    snprintf(run->id, sizeof(run->id), "%s", id);
    run->version = run->snapshot = version + 1;
    run->status = (uint8_t)status;
    run->execution = is_final ? EXECUTION_FINISHED : EXECUTION_QUEUED;
    run->created_at = run->updated_at = run->queued_at = 1;
    run->finished_at = is_final ? 2 : 0;
    run->task = bytes_create_shared(SLICE("hello"));
    run->queue = bytes_create_shared(SLICE("task/hello"));
    write_all(loop, &change, 1);
}

static void write_document(struct loop *loop, enum document_kind kind, uint32_t env,
                           const char *name, const char *body)
{
    struct change change = { .kind = CHANGE_DOCUMENT, .env = env };
    change.document = (struct document){ .kind = kind,
                                         .env = env,
                                         .name = bytes_create(slice_of(name)),
                                         .body = bytes_create(slice_of(body)),
                                         .version = 1 };
    write_all(loop, &change, 1);
}

/* Starts once, so that the accounts exist. */
static void live_first(struct loop *loop)
{
    struct life life;
    life_begin(&life, loop, &odd.store, 0);
    assert_int_equal(life.status, OK);
    life_end(&life);
}

static void delete_project(struct loop *loop)
{
    struct change changes[DRAFT_MAX];
    struct life life;
    life_begin(&life, loop, &odd.store, 0);
    struct draft draft = { .vault = life.vault, .now_ms = 5, .changes = changes };
    const struct account *dev = accounts_by_number(life.accounts, DEV);
    draft_delete_project(&draft, dev->project);
    life_end(&life);
    write_all(loop, changes, draft.count);
}

/* ---- the tests ---- */

static void first_start_creates_accounts_that_the_next_one_finds(void **state)
{
    struct life life;
    char ref[PROJECT_REF_MAX], id[ID_MAX];
    life_begin(&life, *state, &odd.store, 0);
    assert_int_equal(life.status, OK);
    const struct account *dev = accounts_by_number(life.accounts, DEV);
    assert_int_equal(dev->type, ENVIRONMENT_DEV);
    snprintf(ref, sizeof(ref), "%s", dev->project->ref);
    snprintf(id, sizeof(id), "%s", dev->id);
    life_end(&life);

    life_begin(&life, *state, &odd.store, 0);
    assert_int_equal(life.status, OK);
    dev = accounts_by_number(life.accounts, DEV);
    assert_string_equal(dev->id, id);
    assert_string_equal(dev->project->ref, ref);
    assert_non_null(dev->secret_key);
    assert_non_null(engine_environment(life.engine, DEV));
    life_end(&life);
}

static void every_unfinished_run_is_loaded_in_its_newest_version(void **state)
{
    struct life life;
    live_first(*state);
    write_run(*state, DEV, "run_1", 0, RUN_QUEUED);
    write_run(*state, DEV, "run_2", 0, RUN_QUEUED);
    write_run(*state, DEV, "run_3", 0, RUN_QUEUED);
    write_run(*state, DEV, "run_2", 1, RUN_COMPLETED);
    write_run(*state, DEV, "run_1", 1, RUN_QUEUED); /* made first, changed last */

    life_begin(&life, *state, &odd.store, 0);
    struct environment *env = engine_environment(life.engine, DEV);
    assert_int_equal(life.status, OK);
    assert_int_equal(env->runs.count, 3);
    assert_int_equal(env->unfinished, 2);
    assert_int_equal(env->applied, 5);
    assert_int_equal(env->cold, 0); /* no run is in the store alone */
    assert_int_equal(environment_find(env, SLICE("run_1"))->run.version, 2);
    life_end(&life);
}

enum { FINISHED = 1100 }; /* more than one page */

/* Writes a queued run, and then finished ones. */
static void write_many(void **state)
{
    char id[16];
    live_first(*state);
    write_run(*state, DEV, "run_first", 0, RUN_QUEUED);
    for (int i = 0; i < FINISHED; i++) {
        snprintf(id, sizeof(id), "run_%04d", i);
        write_run(*state, DEV, id, 0, RUN_COMPLETED);
    }
}

static void finished_runs_are_loaded_newest_first_up_to_the_budget(void **state)
{
    struct life life;
    write_many(state);
    life_begin(&life, *state, &odd.store, 0);
    struct environment *env = engine_environment(life.engine, DEV);
    assert_int_equal(env->runs.count, FINISHED + 1);
    assert_int_equal(env->cold, 0);
    life_end(&life);

    life_begin(&life, *state, &odd.store, 1); /* one byte: the first page exceeds it */
    env = engine_environment(life.engine, DEV);
    assert_int_equal(life.status, OK);
    assert_int_equal(env->unfinished, 1);
    assert_in_range(env->cold, 2, FINISHED);
    assert_int_equal(env->runs.count, 1 + FINISHED + 1 - env->cold);
    assert_non_null(environment_find(env, SLICE("run_first")));
    assert_null(environment_find(env, SLICE("run_0000")));
    life_end(&life);
}

/* Memory keeps the runs that it has. Older finished ones are read only if their ids may be
 * newer than those to come. */
static void follower_takes_the_lead_with_its_memory(void **state)
{
    struct life life;
    write_many(state);
    life_begin(&life, *state, &odd.store, 1);
    struct environment *env = engine_environment(life.engine, DEV);
    uint64_t cold = env->cold;
    size_t count = env->runs.count;
    life_take_lead(&life, true, true);
    assert_int_equal(life.status, OK);
    assert_int_equal(env->runs.count, count);
    assert_int_equal(env->cold, cold);
    assert_int_equal(queues_figures(&env->queues, SLICE("task/hello")).waiting, 1);
    life_take_lead(&life, true, false);
    assert_int_equal(life.status, OK);
    assert_true(env->runs.count > count);
    assert_int_equal(env->cold, 0);
    life_end(&life);
}

/* It has not followed until its memory was current: an archived environment may have runs. */
static void follower_loads_what_it_does_not_have(void **state)
{
    struct life life;
    live_first(*state);
    delete_project(*state);
    life_begin(&life, *state, &odd.store, 0);
    assert_null(engine_environment(life.engine, DEV));
    write_run(*state, DEV, "run_1", 0, RUN_QUEUED);
    life_take_lead(&life, true, true);
    assert_null(engine_environment(life.engine, DEV));
    life_take_lead(&life, false, true);
    assert_int_equal(life.status, OK);
    assert_non_null(engine_environment(life.engine, DEV));
    life_settle(&life);
    assert_int_equal(fake_store_run(fake, DEV, "run_1")->status, RUN_CANCELED);
    life_end(&life);
}

static void start_does_not_wait_for_finished_runs(void **state)
{
    struct life life;
    live_first(*state);
    write_run(*state, DEV, "run_1", 0, RUN_QUEUED);
    write_run(*state, DEV, "run_2", 0, RUN_COMPLETED);
    odd.newest_are_slow = true;
    life_begin(&life, *state, &odd.store, 0);
    struct environment *env = engine_environment(life.engine, DEV);
    assert_int_equal(life.status, OK);
    assert_int_equal(env->runs.count, 1);
    assert_int_equal(env->unfinished, 1);
    life_end(&life);
}

/* Its rows stay until retention has removed them. */
static void only_unfinished_runs_of_a_deleted_project_are_loaded(void **state)
{
    struct life life;
    live_first(*state);
    write_run(*state, DEV, "run_1", 0, RUN_QUEUED);
    write_run(*state, DEV, "run_2", 0, RUN_COMPLETED);
    write_run(*state, DEV + 1, "run_3", 0, RUN_COMPLETED);
    write_document(*state, DOC_QUEUE, DEV + 1, "task/hello", "no queue at all");
    delete_project(*state);

    life_begin(&life, *state, &odd.store, 0);
    assert_int_equal(life.status, OK);
    assert_true(accounts_by_number(life.accounts, DEV)->archived);
    assert_non_null(engine_environment(life.engine, DEV));
    assert_null(engine_environment(life.engine, DEV + 1));
    life_settle(&life);
    assert_int_equal(fake_store_run(fake, DEV, "run_1")->status, RUN_CANCELED);
    assert_int_equal(fake_store_run(fake, DEV, "run_2")->version, 1);
    life_end(&life);
}

/* They are left over from a removal that was interrupted, or were written by a tool. */
static void rows_of_unknown_environments_are_ignored(void **state)
{
    struct life life;
    live_first(*state);
    write_run(*state, NOBODYS, "run_1", 0, RUN_QUEUED);
    write_document(*state, DOC_WORKER, NOBODYS, "20260101.1", "no worker at all");
    life_begin(&life, *state, &odd.store, 0);
    assert_int_equal(life.status, OK);
    assert_null(engine_environment(life.engine, NOBODYS));
    life_settle(&life);
    assert_int_equal(fake_store_run(fake, NOBODYS, "run_1")->version, 1);
    life_end(&life);
}

static void unreadable_document_ends_the_start_with_a_reason(void **state)
{
    struct life life;
    live_first(*state);
    write_document(*state, DOC_WORKER, DEV, "20260101.1", "no worker at all");
    life_begin(&life, *state, &odd.store, 0);
    assert_int_not_equal(life.status, OK);
    assert_int_equal(life.why.code, life.status);
    assert_true(life.why.text[0]);
    life_end(&life);
}

/* Each read of the start fails once, the very first included; ASan would report leaks. */
static void failed_read_ends_the_start(void **state)
{
    live_first(*state);
    write_run(*state, DEV, "run_1", 0, RUN_QUEUED);
    for (int nth = 1;; nth++) {
        struct life life;
        odd.fault = (struct fault){ .countdown = nth };
        life_begin(&life, *state, &odd.store, 0);
        bool tripped = odd.fault.tripped;
        assert_int_equal(life.status, tripped ? ERR_STORE : OK);
        if (tripped)
            assert_string_equal(life.why.text, "cannot read the database");
        life_end(&life);
        if (!tripped) {
            assert_true(nth > 12 + 4); /* kinds of documents, and walks of environments */
            break;
        }
    }
}

static void rows_are_loaded_over_several_turns(void **state)
{
    struct life life;
    char name[32];
    live_first(*state);
    life_begin(&life, *state, &odd.store, 0);
    unsigned turns = life.turns;
    life_end(&life);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "run_%03d", i);
        write_run(*state, DEV, name, 0, RUN_QUEUED);
    }
    loop_set_budget(*state, 0); /* no time at all: one unit per turn */
    life_begin(&life, *state, &odd.store, 0);
    loop_set_budget(*state, 1000);
    assert_int_equal(engine_environment(life.engine, DEV)->unfinished, 200);
    assert_in_range(life.turns, turns + 200 / 20, turns + 200);
    life_end(&life);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(first_start_creates_accounts_that_the_next_one_finds),
        TEST(every_unfinished_run_is_loaded_in_its_newest_version),
        TEST(finished_runs_are_loaded_newest_first_up_to_the_budget),
        TEST(follower_takes_the_lead_with_its_memory),
        TEST(follower_loads_what_it_does_not_have),
        TEST(start_does_not_wait_for_finished_runs),
        TEST(only_unfinished_runs_of_a_deleted_project_are_loaded),
        TEST(rows_of_unknown_environments_are_ignored),
        TEST(unreadable_document_ends_the_start_with_a_reason),
        TEST(failed_read_ends_the_start),
        TEST(rows_are_loaded_over_several_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
