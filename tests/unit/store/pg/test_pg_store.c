/* PostgreSQL keeps the store contract while connections, servers and leaders come and go.
 *
 * Each case has its own schema on one server, which the program starts. */
#include "store/pg/pg_store.h"

#include <stdio.h>
#include <uv.h>

#include "base/mem.h"
#include "store/pg/pg_schema.h"
#include "tests/support/contract/store_contract.h"
#include "tests/support/world/pg_world.h"

struct server_world {
    struct store_world world;
    uv_loop_t loop;
    char schema[32];
    unsigned timeout_ms; /* long, so that a busy machine is not a failure */
    bool closed;
};

static struct server_world *opened; /* whose store is being closed */

static struct server_world *own_of(struct store_world *world)
{
    return container_of(world, struct server_world, world);
}

/* ---- opening and closing ---- */

static void turn(struct store_world *world)
{
    uv_run(&own_of(world)->loop, UV_RUN_ONCE);
}

static enum err open_as(struct server_world *own, const char *url, const char *name,
                        struct store **store, struct failure *why)
{
    struct pg_options options = {
        .database = url, .schema = own->schema, .name = name, .timeout_ms = own->timeout_ms
    };
    return pg_store_open(&own->loop, &options, store, why);
}

static void open_store(struct server_world *own, const char *url)
{
    struct failure why = { 0 };
    if (open_as(own, url, "one", &own->world.store, &why))
        fail_msg("%s", why.text);
}

static void on_closed(struct store *store)
{
    (void)store;
    opened->closed = true;
}

static void close_this(struct server_world *own, struct store *store)
{
    opened = own;
    own->closed = false;
    store->ops->close(store, on_closed);
    while (!own->closed)
        uv_run(&own->loop, UV_RUN_ONCE);
}

static void close_store(struct server_world *own)
{
    close_this(own, own->world.store);
    own->world.store = NULL;
}

static void reopen(struct store_world *world)
{
    close_store(own_of(world));
    open_store(own_of(world), pg_world_url());
}

static int create_world(void **state)
{
    static int count;
    struct server_world *own = mem_new(struct server_world);
    own->world.turn = turn;
    own->world.reopen = reopen;
    own->timeout_ms = 600000;
    uv_loop_init(&own->loop);
    snprintf(own->schema, sizeof(own->schema), "case_%d", ++count);
    *state = &own->world;
    return 0;
}

static int create_open_world(void **state)
{
    create_world(state);
    open_store(own_of(*state), pg_world_url());
    return 0;
}

static int destroy_world(void **state)
{
    struct server_world *own = own_of(*state);
    if (own->world.store)
        close_store(own);
    assert_int_equal(uv_loop_close(&own->loop), 0);
    free(own);
    return 0;
}

/* ---- many commits at once ---- */

enum { CROWD = 300 };

struct waiting {
    struct store_commit req;
    struct change changes[2];
    struct claim claim;
    bool answered;
};

static struct waiting crowd[CROWD];

static void on_committed(struct store_commit *req, enum store_status status)
{
    (void)status;
    container_of(req, struct waiting, req)->answered = true;
}

static struct waiting *begin(struct store_world *world, int i, struct change first,
                             const struct change *second)
{
    struct waiting *waiting = &crowd[i];
    *waiting = (struct waiting){ .changes = { first } };
    if (second)
        waiting->changes[1] = *second;
    waiting->req = (struct store_commit){ .changes = waiting->changes,
                                          .change_count = second ? 2 : 1,
                                          .now_ms = FIRST_RUN_MS,
                                          .done = on_committed };
    world->store->ops->commit(world->store, &waiting->req);
    return waiting;
}

/* Waits for the result of the i-th commit and frees its changes. */
static enum store_status end(struct store_world *world, int i)
{
    while (!crowd[i].answered)
        world->turn(world);
    change_finish(&crowd[i].changes[0]);
    change_finish(&crowd[i].changes[1]);
    return crowd[i].req.status;
}

/* ---- lost results ---- */

static int commit_next(struct store_world *world, int *n)
{
    struct change change = new_run(ENV_A, ++*n, "a");
    enum store_status status = commit(world, &change, 1, NULL, 0);
    assert_int_equal(change.seq, *n);
    assert_int_equal(change.run.number, *n);
    change_finish(&change);
    return status;
}

/* Each message of a commit, from either side, is lost, cut in half, doubled or delayed. */
static void commit_is_written_once_whatever_message_is_lost(void **state)
{
    static const char *const strikes[] = { "cut", "tear", "double", "ghost" };
    struct server_world *own = own_of(*state);
    int n = 0;
    unsigned struck = 0;
    open_store(own, pg_world_relay_url());
    assert_int_equal(commit_next(&own->world, &n), STORE_OK);
    for (unsigned i = 0; i < 8; i++) {
        enum pg_side side = i % 2 ? PG_SERVER : PG_CLIENT;
        for (unsigned at = 1; at <= 6; at++) {
            if (i / 2 == 3 && side == PG_SERVER)
                continue; /* only statements become ghosts */
            pg_world_strike(strikes[i / 2], side, at, "commit_v101");
            assert_int_equal(commit_next(&own->world, &n), STORE_OK);
            struck += pg_world_struck();
            pg_world_order("pass");
        }
    }
    assert_true(struck > 30);
    assert_int_equal(commit_next(&own->world, &n), STORE_OK);
    close_store(own);
    open_store(own, pg_world_url());
    assert_int_equal(count_runs(&own->world, ENV_A), n);
}

struct walking {
    struct store_walk req;
    bool answered;
    enum store_status status;
};

static void on_walked(struct store_read *read, enum store_status status)
{
    struct walking *walking = container_of(read, struct walking, req.read);
    walking->status = status;
    walking->answered = true;
}

/* Walks the runs as a start does, each after the one before, and counts them. */
static uint64_t walk(struct store_world *world, enum store_status *status)
{
    struct walking walking = { .req = { .read = { READ_WALK, ENV_A, on_walked },
                                        .kind = WALK_UNFINISHED,
                                        .up_to = UINT64_MAX,
                                        .limit = 7,
                                        .takes_its_time = true } };
    struct store_walk *req = &walking.req;
    uint64_t came = 0;
    do {
        walking.answered = false;
        world->store->ops->read(world->store, &req->read);
        while (!walking.answered)
            world->turn(world);
        for (size_t i = 0; i < req->count; i++) {
            assert_true(req->runs[i].rev > req->after);
            req->after = req->runs[i].rev;
        }
        came += req->count;
        store_read_finish(&req->read);
    } while (req->more && !walking.status);
    *status = walking.status;
    return came;
}

static void assert_all_walked(struct store_world *world)
{
    enum store_status status;
    assert_int_equal(walk(world, &status), CROWD);
    assert_int_equal(status, STORE_OK);
}

static void open_crowd(struct server_world *own)
{
    open_store(own, pg_world_relay_url());
    for (int i = 0; i < CROWD; i++)
        begin(&own->world, i, new_run(ENV_A, i, "a"), NULL);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(end(&own->world, i), STORE_OK);
}

/* Rows of a COPY are lost or cut in half, and the connection is lost with them. */
static void interrupted_start_continues_where_it_stopped(void **state)
{
    struct server_world *own = own_of(*state);
    struct store_world *world = &own->world;
    unsigned struck = 0;
    open_crowd(own);
    assert_all_walked(world);
    for (unsigned at = 1; at <= CROWD + 6; at += at < 8 || at > CROWD - 3 ? 1 : 23) {
        pg_world_strike(at % 2 ? "cut" : "tear", PG_SERVER, at, "TO STDOUT");
        assert_all_walked(world);
        struck += pg_world_struck();
        pg_world_order("pass");
    }
    assert_true(struck > 15);
}

/* Something between the server and the gateway loses a single row. */
static void start_that_reads_too_few_runs_fails(void **state)
{
    struct server_world *own = own_of(*state);
    enum store_status status;
    open_crowd(own);
    for (unsigned at = 20; at < CROWD; at += 60) { /* the rows begin after a short head */
        pg_world_strike("drop", PG_SERVER, at, "TO STDOUT");
        assert_int_not_equal(walk(&own->world, &status), CROWD);
        assert_int_equal(status, STORE_FAILED);
        assert_true(pg_world_struck());
    }
    assert_all_walked(&own->world);
}

/* A rejected commit is never written, even if a ghost of it is still in flight. */
static void ghost_of_a_rejected_commit_writes_nothing(void **state)
{
    struct server_world *own = own_of(*state);
    char sql[160];
    open_store(own, pg_world_relay_url());
    assert_int_equal(commit_one(&own->world, new_run(ENV_A, 1, "a")), STORE_OK);
    snprintf(sql, sizeof(sql), "ALTER TABLE %s.run ADD CONSTRAINT no CHECK (task <> 'b')",
             own->schema);
    pg_world_ask(sql);
    pg_world_strike("ghost", PG_CLIENT, 1, "commit_v101");
    assert_int_equal(commit_one(&own->world, new_run(ENV_A, 2, "b")), STORE_FAILED);
    assert_true(pg_world_struck());
    snprintf(sql, sizeof(sql), "ALTER TABLE %s.run DROP CONSTRAINT no", own->schema);
    pg_world_ask(sql);
    pg_world_order("pass");
    struct change change = new_run(ENV_A, 3, "b");
    assert_int_equal(commit(&own->world, &change, 1, NULL, 0), STORE_OK);
    assert_int_equal(change.seq, 2);
    assert_int_equal(change.run.number, 1);
    change_finish(&change);
    assert_int_equal(count_runs(&own->world, ENV_A), 2);
}

static void terminated_sessions_lose_no_commits(void **state)
{
    struct store_world *world = *state;
    for (int i = 0; i < CROWD; i++) {
        begin(world, i, new_run(i % 2 ? ENV_A : ENV_B, i, "a"), NULL);
        uv_run(&own_of(world)->loop, UV_RUN_NOWAIT);
        if (i % 60 == 30)
            pg_world_ask("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                         " WHERE query LIKE '%commit_v101%' AND pid <> pg_backend_pid()");
    }
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(end(world, i), STORE_OK);
    assert_int_equal(count_runs(world, ENV_A), CROWD / 2);
    assert_int_equal(count_runs(world, ENV_B), CROWD / 2);
    assert_int_equal(world->store->ops->position(world->store, ENV_A).seq, CROWD / 2);
}

static void restart_of_the_server_loses_no_commits(void **state)
{
    struct store_world *world = *state;
    for (int i = 0; i < 50; i++)
        begin(world, i, new_run(ENV_A, i, "a"), NULL);
    uv_run(&own_of(world)->loop, UV_RUN_NOWAIT);
    pg_world_order("stop immediate");
    pg_world_order("start");
    for (int i = 0; i < 50; i++)
        assert_int_equal(end(world, i), STORE_OK);
    assert_int_equal(count_runs(world, ENV_A), 50);
    assert_false(world->store->failing);
}

/* ---- a database that does not answer ---- */

static void unsent_commit_fails_and_sent_commit_waits(void **state)
{
    struct server_world *own = own_of(*state);
    struct store_world *world = &own->world;
    own->timeout_ms = 500;
    open_store(own, pg_world_relay_url());
    while (commit_one(world, new_run(ENV_A, 1, "a")) != STORE_OK)
        continue; /* the machine may be busy */
    pg_world_order("hold server");
    begin(world, 0, new_run(ENV_A, 2, "a"), NULL);
    begin(world, 1, new_run(ENV_A, 3, "a"), NULL);
    assert_int_equal(end(world, 1), STORE_FAILED);
    assert_true(world->store->failing);
    assert_int_equal(commit_one(world, new_run(ENV_A, 4, "a")), STORE_FAILED);
    assert_false(crowd[0].answered);
    pg_world_order("pass");
    assert_int_equal(end(world, 0), STORE_OK);
    while (world->store->failing)
        world->turn(world);
    assert_int_equal(count_runs(world, ENV_A), 2);
}

/* ---- reads that no client still waits for ---- */

enum { SENT = 3, LISTS = 8 };

struct abandoned_list {
    struct store_list req;
    bool is_done;
    enum store_status status;
};

static void on_abandoned(struct store_read *read, enum store_status status)
{
    struct abandoned_list *list = container_of(read, struct abandoned_list, req.read);
    list->is_done = true;
    list->status = status;
}

/* One is sent on each of the three connections. The others wait, and would be the last
 * statements there. They alone filter by region. */
static void abandoned_reads_are_neither_sent_nor_decoded(void **state)
{
    struct server_world *own = own_of(*state);
    struct store_world *world = &own->world;
    struct abandoned_list lists[LISTS] = { 0 };
    struct slice regions[] = { SLICE("nowhere") };
    assert_int_equal(commit_one(world, new_run(ENV_A, 1, "a")), STORE_OK);
    for (size_t i = 0; i < LISTS; i++) {
        lists[i].req = (struct store_list){ .read = { READ_LIST, ENV_A, on_abandoned },
                                            .filter = { .is_test = -1 },
                                            .limit = 10 };
        lists[i].req.filter.regions = regions;
        lists[i].req.filter.region_count = i >= SENT;
        world->store->ops->read(world->store, &lists[i].req.read);
    }
    for (size_t i = 1; i < LISTS; i++)
        store_read_abandon(&lists[i].req.read);
    for (size_t i = 0; i < LISTS; i++)
        while (!lists[i].is_done)
            world->turn(world);
    for (size_t i = 1; i < LISTS; i++) {
        assert_int_equal(lists[i].status, STORE_FAILED);
        assert_null(lists[i].req.runs);
    }
    assert_int_equal(lists[0].status, STORE_OK);
    assert_int_equal(lists[0].req.count, 1);
    store_read_finish(&lists[0].req.read);
    assert_string_equal(
        pg_world_ask("SELECT count(*) FILTER (WHERE query LIKE '%region IN%'),"
                     " count(*) > 2 FROM pg_stat_activity"
                     " WHERE pid <> pg_backend_pid()"
                     " AND application_name = 'runcast'"),
        "0|t");
}

/* ---- groups ---- */

/* It does not fit into an index, even though the server compresses what it can. */
static struct bytes *too_long_a_tag(void)
{
    struct bytes *tag = bytes_create_empty(16000);
    uint32_t random = 1;
    for (uint32_t i = 0; i < tag->len; i++) {
        random = random * 1664525 + 1013904223;
        tag->data[i] = (char)(random >> 24);
    }
    return tag;
}

static void commit_that_cannot_be_written_fails_alone(void **state)
{
    struct store_world *world = *state;
    struct bytes *long_tag = too_long_a_tag();
    struct slice tag = bytes_slice(long_tag);
    for (int i = 0; i < 64; i++) {
        struct change change = new_run(ENV_A, i, "a");
        if (i == 40)
            change.run.tags = tag_list_create(&tag, 1);
        begin(world, i, change, NULL);
    }
    for (int i = 0; i < 64; i++)
        assert_int_equal(end(world, i), i == 40 ? STORE_FAILED : STORE_OK);
    assert_int_equal(count_runs(world, ENV_A), 63);
    assert_int_equal(world->store->ops->position(world->store, ENV_A).seq, 63);
    assert_false(world->store->failing);
    bytes_unref(long_tag);
}

/* A commit of a group sees the changes of those before it. */
static void commits_of_a_group_see_those_before_them(void **state)
{
    struct store_world *world = *state;
    struct bytes *key = text_bytes("key");
    begin(world, 0, new_document(ENV_A, DOC_QUEUE, "q", "1"), NULL);
    for (int i = 1; i < 40; i++) {
        struct change change =
            i % 2 ? new_run(ENV_A, i, "a") : new_document(ENV_A, DOC_QUEUE, "q", "2");
        if (i % 2 == 0)
            change.expected = (uint32_t)(i / 2);
        begin(world, i, change, NULL);
    }
    for (int i = 0; i < 40; i++)
        assert_int_equal(end(world, i), STORE_OK);
    for (int i = 0; i < 3; i++) {
        crowd[i] = (struct waiting){
            .claim = { .kind = CLAIM_REQUEST, .env = ENV_A, .key = key }
        };
        snprintf(crowd[i].claim.owner, sizeof(crowd[i].claim.owner), "run_%d", i);
        crowd[i].req = (struct store_commit){ .claims = &crowd[i].claim,
                                              .claim_count = 1,
                                              .now_ms = FIRST_RUN_MS,
                                              .done = on_committed };
        world->store->ops->commit(world->store, &crowd[i].req);
    }
    assert_int_equal(end(world, 0), STORE_OK);
    assert_int_equal(end(world, 1), STORE_TAKEN);
    assert_int_equal(end(world, 2), STORE_TAKEN);
    assert_string_equal(crowd[2].claim.owner, "run_0");
    bytes_unref(key);
}

/* Several connections lock environments in the same order. */
static void commits_over_several_environments_do_not_deadlock(void **state)
{
    struct store_world *world = *state;
    for (int i = 0; i < 120; i++) {
        struct change a = new_run(ENV_A, i, "a"), b = new_run(ENV_B, i, "a");
        if (i % 3 == 0)
            begin(world, i, a, &b);
        else if (i % 3 == 1)
            begin(world, i, b, &a);
        else {
            change_finish(i % 2 ? &a : &b);
            begin(world, i, i % 2 ? b : a, NULL);
        }
    }
    for (int i = 0; i < 120; i++)
        assert_int_equal(end(world, i), STORE_OK);
    assert_int_equal(count_runs(world, ENV_A), 100);
    assert_int_equal(count_runs(world, ENV_B), 100);
}

/* The second change of an old run in a commit does not wait for the new runs. */
static void new_runs_are_inserted_together_despite_changes_of_old_runs(void **state)
{
    struct store_world *world = *state;
    pg_world_ask("ALTER DATABASE runcast SET track_functions = 'pl'");
    for (int i = 0; i < 40; i++)
        begin(world, i, new_run(ENV_A, i, "a"), NULL);
    for (int i = 0; i < 40; i++)
        assert_int_equal(end(world, i), STORE_OK);
    world->reopen(world);
    for (int i = 0; i < 80; i++) { /* changes of new and old runs alternate */
        struct change first = new_run(ENV_A, i % 2 ? i / 2 : 100 + i, "a");
        struct change second = new_run(ENV_A, i / 2, "a");
        first.expected = i % 2;
        second.expected = 2;
        begin(world, i, first, i % 2 ? &second : NULL);
        if (i % 2 == 0)
            change_finish(&second);
    }
    for (int i = 0; i < 80; i++)
        assert_int_equal(end(world, i), STORE_OK);
    world->reopen(world); /* a session reports its statistics at its end at the latest */
    static const char calls[] =
        "SELECT string_agg(calls::text, ' ' ORDER BY funcname DESC)"
        " FROM pg_stat_user_functions WHERE funcname ~ '(commit|runs)_v101'";
    int inserts = 0, commits = 0;
    while (sscanf(pg_world_ask(calls), "%d %d", &inserts, &commits) != 2)
        uv_run(&own_of(world)->loop, UV_RUN_NOWAIT);
    assert_in_range(inserts, 1, commits);
    assert_in_range(commits, 2, 39);
}

/* ---- leading ---- */

static void first_commit_of_many_environments_leads_them_all(void **state)
{
    enum { ENVIRONMENTS = 300, FIRST_ENV = 1000 };
    struct store_world *world = *state;
    struct change changes[ENVIRONMENTS];
    for (int i = 0; i < ENVIRONMENTS; i++)
        changes[i] = new_run((uint32_t)(FIRST_ENV + i), 0, "a");
    assert_int_equal(commit(world, changes, ENVIRONMENTS, NULL, 0), STORE_OK);
    for (int i = 0; i < ENVIRONMENTS; i++)
        change_finish(&changes[i]);
    assert_int_equal(count_runs(world, FIRST_ENV + ENVIRONMENTS - 1), 1);
}

static void an_environment_of_another_term_is_not_written(void **state)
{
    struct store_world *world = *state;
    char sql[96];
    assert_int_equal(commit_one(world, new_run(ENV_A, 1, "a")), STORE_OK);
    assert_int_equal(commit_one(world, new_run(ENV_B, 1, "a")), STORE_OK);
    snprintf(sql, sizeof(sql), "UPDATE %s.environment SET term = term + 1 WHERE env = %d",
             own_of(world)->schema, ENV_A);
    pg_world_ask(sql);
    struct change both[] = { new_run(ENV_B, 2, "a"), new_run(ENV_A, 2, "a") };
    assert_int_equal(commit(world, both, 2, NULL, 0), STORE_MOVED);
    change_finish(&both[0]);
    change_finish(&both[1]);
    assert_int_equal(commit_one(world, new_run(ENV_A, 3, "a")), STORE_MOVED);
    assert_int_equal(commit_one(world, new_run(ENV_B, 3, "a")), STORE_OK);
    assert_int_equal(count_runs(world, ENV_A), 1);
    assert_int_equal(count_runs(world, ENV_B), 2);
}

static void process_of_the_same_name_takes_the_lead(void **state)
{
    struct server_world *own = own_of(*state);
    struct store_world *world = &own->world;
    struct store *other;
    struct failure why = { 0 };
    assert_int_equal(commit_one(world, new_run(ENV_A, 1, "a")), STORE_OK);
    assert_int_equal(open_as(own, pg_world_url(), "two", &other, &why), ERR_STORE);
    assert_string_equal(why.text, "another gateway leads this database");
    assert_int_equal(commit_one(world, new_run(ENV_A, 2, "a")), STORE_OK);

    assert_int_equal(open_as(own, pg_world_url(), "one", &other, &why), OK);
    assert_int_equal(other->ops->position(other, ENV_A).seq, 2);
    assert_int_equal(commit_one(world, new_run(ENV_A, 3, "a")), STORE_MOVED);
    assert_int_equal(commit_one(world, new_run(ENV_B, 3, "a")), STORE_MOVED);
    close_store(own);
    world->store = other;
    assert_int_equal(commit_one(world, new_run(ENV_A, 3, "a")), STORE_OK);
    assert_int_equal(count_runs(world, ENV_A), 3);
}

/* Like an old backup that was restored while the gateway runs. */
static void database_that_lost_groups_starts_a_new_epoch(void **state)
{
    struct store_world *world = *state;
    char sql[96], epoch[sizeof(world->store->epoch)];
    for (int i = 1; i <= 3; i++)
        assert_int_equal(commit_one(world, new_run(ENV_A, i, "a")), STORE_OK);
    memcpy(epoch, world->store->epoch, sizeof(epoch));
    reopen(world);
    assert_string_equal(world->store->epoch, epoch);
    for (int i = 4; i <= 6; i++)
        assert_int_equal(commit_one(world, new_run(ENV_A, i, "a")), STORE_OK);
    snprintf(sql, sizeof(sql), "UPDATE %s.writer SET grp = grp - 2 WHERE grp > 2",
             own_of(world)->schema);
    pg_world_ask(sql);
    assert_int_equal(commit_one(world, new_run(ENV_A, 7, "a")), STORE_MOVED);
    reopen(world);
    assert_string_not_equal(world->store->epoch, epoch);
    assert_int_equal(commit_one(world, new_run(ENV_A, 7, "a")), STORE_OK);
}

/* ---- opening ---- */

static void assert_refused(struct server_world *own, const char *url, const char *reason)
{
    struct store *store = NULL;
    struct failure why = { 0 };
    assert_int_not_equal(open_as(own, url, "one", &store, &why), OK);
    assert_null(store);
    if (!strstr(why.text, reason) || strstr(why.text, "secret"))
        fail_msg("'%s' does not say '%s'", why.text, reason);
}

static void database_that_cannot_be_opened_is_rejected_with_a_reason(void **state)
{
    struct server_world *own = own_of(*state);
    char sql[96];
    assert_refused(own, "postgresql://runcast:secret@127.0.0.1:1/x",
                   "cannot reach the database");
    open_store(own, pg_world_url());
    close_store(own);
    snprintf(sql, sizeof(sql), "UPDATE %s.meta SET value = '999' WHERE name = 'least'",
             own->schema);
    pg_world_ask(sql);
    assert_refused(own, pg_world_url(), "is for newer versions of runcast (999");
    snprintf(sql, sizeof(sql), "UPDATE %s.meta SET value = '4' WHERE name = 'schema'",
             own->schema);
    pg_world_ask(sql);
    assert_refused(
        own, pg_world_url(),
        "was made by a development version of runcast; this version cannot open it");
    snprintf(own->schema, sizeof(own->schema), "no;name");
    assert_refused(own, pg_world_url(), "is not a valid schema name");
}

/* A newer gateway has upgraded the database; the older one keeps running on it. */
static void database_of_this_version_opens_in_the_next(void **state)
{
    static const char *const steps[] = { "SELECT 1", "SELECT 1",
                                         "CREATE TABLE later (x int)", "SELECT 1", NULL };
    struct server_world *own = own_of(*state);
    struct failure why;
    struct pg_hello hello;
    char sql[96];
    open_store(own, pg_world_url());
    close_store(own);
    struct pg_options options = { .database = pg_world_url(), .schema = own->schema };
    PGconn *conn = pg_connect(&options, NULL, &hello, &why);
    assert_non_null(conn);
    snprintf(sql, sizeof(sql), "SET search_path = %s", own->schema);
    PQclear(pg_run(conn, sql, 0, NULL, &why));
    for (int repeated = 0; repeated < 2; repeated++)
        assert_int_equal(pg_schema_upgrade(conn, steps, &why), OK);
    assert_int_equal(pg_run_number(conn, "SELECT count(*) FROM later", -1), 0);
    assert_int_equal(
        pg_run_number(conn, "SELECT value FROM meta WHERE name = 'schema'", -1), 104);
    PQfinish(conn);
    open_store(own, pg_world_url());
    assert_int_equal(commit_one(&own->world, new_run(ENV_A, 1, "a")), STORE_OK);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)
#define OPEN_CASE(name)                                                                    \
    cmocka_unit_test_setup_teardown(name, create_open_world, destroy_world)

int main(void)
{
    const struct CMUnitTest own[] = {
        CASE(commit_is_written_once_whatever_message_is_lost),
        CASE(interrupted_start_continues_where_it_stopped),
        CASE(start_that_reads_too_few_runs_fails),
        CASE(ghost_of_a_rejected_commit_writes_nothing),
        OPEN_CASE(terminated_sessions_lose_no_commits),
        OPEN_CASE(restart_of_the_server_loses_no_commits),
        CASE(unsent_commit_fails_and_sent_commit_waits),
        OPEN_CASE(abandoned_reads_are_neither_sent_nor_decoded),
        OPEN_CASE(commit_that_cannot_be_written_fails_alone),
        OPEN_CASE(commits_of_a_group_see_those_before_them),
        OPEN_CASE(commits_over_several_environments_do_not_deadlock),
        OPEN_CASE(new_runs_are_inserted_together_despite_changes_of_old_runs),
        OPEN_CASE(first_commit_of_many_environments_leads_them_all),
        OPEN_CASE(an_environment_of_another_term_is_not_written),
        OPEN_CASE(process_of_the_same_name_takes_the_lead),
        OPEN_CASE(database_that_lost_groups_starts_a_new_epoch),
        CASE(database_that_cannot_be_opened_is_rejected_with_a_reason),
        CASE(database_of_this_version_opens_in_the_next),
    };
    int failures = pg_world_set_up(NULL);
    failures +=
        store_contract_run("PostgreSQL: contract", create_open_world, destroy_world);
    failures += cmocka_run_group_tests_name("PostgreSQL", own, NULL, NULL);
    pg_world_tear_down(NULL);
    return failures;
}
