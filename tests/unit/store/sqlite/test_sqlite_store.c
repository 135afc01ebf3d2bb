/* The embedded database keeps the store contract, even when the disk fails. */
#include "store/sqlite/sqlite_store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/mem.h"
#include "tests/support/contract/store_contract.h"
#include "tests/support/fakes/fault_vfs.h"

struct disk_world {
    struct store_world world;
    uv_loop_t loop;
    char dir[64], path[96];
    size_t cache_bytes;
    bool closed;
};

static struct disk_world *opened; /* whose store is being closed */

static struct disk_world *own_of(struct store_world *world)
{
    return container_of(world, struct disk_world, world);
}

/* ---- opening and closing ---- */

static void turn(struct store_world *world)
{
    uv_run(&own_of(world)->loop, UV_RUN_ONCE);
}

static enum err open_path(struct disk_world *own, struct store **store, struct failure *why)
{
    struct sqlite_options options = { .path = own->path, .cache_bytes = own->cache_bytes };
    return sqlite_store_open(&own->loop, &options, store, why);
}

static void open_store(struct disk_world *own)
{
    struct failure why;
    assert_int_equal(open_path(own, &own->world.store, &why), OK);
}

static void on_closed(struct store *store)
{
    assert_ptr_equal(store, opened->world.store);
    opened->closed = true;
}

static void close_store(struct disk_world *own)
{
    opened = own;
    own->closed = false;
    own->world.store->ops->close(own->world.store, on_closed);
    while (!own->closed)
        uv_run(&own->loop, UV_RUN_ONCE);
    own->world.store = NULL;
}

static void reopen(struct store_world *world)
{
    close_store(own_of(world));
    open_store(own_of(world));
}

static int create_world(void **state)
{
    struct disk_world *own = mem_new(struct disk_world);
    fault_vfs_install();
    own->world.turn = turn;
    own->world.reopen = reopen;
    uv_loop_init(&own->loop);
    snprintf(own->dir, sizeof(own->dir), "%s/runcast-test-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    assert_non_null(mkdtemp(own->dir));
    snprintf(own->path, sizeof(own->path), "%s/runs.db", own->dir);
    *state = &own->world;
    return 0;
}

static int create_open_world(void **state)
{
    create_world(state);
    open_store(own_of(*state));
    return 0;
}

static int destroy_world(void **state)
{
    struct disk_world *own = own_of(*state);
    static const char *const suffixes[] = { "", "-wal", "-shm", ".lock", "-journal" };
    fault_vfs.sync_fails = fault_vfs.disk_is_full = false;
    fault_vfs.read_delay_ms = 0;
    if (own->world.store)
        close_store(own);
    assert_int_equal(uv_loop_close(&own->loop), 0);
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        char name[128];
        snprintf(name, sizeof(name), "%s%s", own->path, suffixes[i]);
        unlink(name);
    }
    assert_int_equal(rmdir(own->dir), 0);
    free(own);
    return 0;
}

/* ---- the file ---- */

static void run_sql(const struct disk_world *own, const char *sql)
{
    sqlite3 *handle;
    assert_int_equal(sqlite3_open(own->path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
}

static void assert_refused(struct disk_world *own, const char *reason)
{
    struct store *store = NULL;
    struct failure why = { 0 };
    assert_int_equal(open_path(own, &store, &why), ERR_STORE);
    assert_null(store);
    if (!strstr(why.text, reason))
        fail_msg("'%s' does not say '%s'", why.text, reason);
}

static void an_empty_file_gets_the_schema_and_only_we_can_read_it(void **state)
{
    struct disk_world *own = own_of(*state);
    struct stat stat_of;
    open_store(own);
    assert_int_equal(commit_one(&own->world, new_run(ENV_A, 1, "a")), STORE_OK);
    assert_int_equal(stat(own->path, &stat_of), 0);
    assert_int_equal(stat_of.st_mode & 0777, 0600);
    char log[128];
    snprintf(log, sizeof(log), "%s-wal", own->path);
    assert_int_equal(stat(log, &stat_of), 0);
    assert_int_equal(stat_of.st_mode & 0777, 0600);
    close_store(own);
    assert_int_equal(stat(log, &stat_of), -1); /* a clean end removes the log */
}

static void database_of_a_newer_version_is_rejected(void **state)
{
    struct disk_world *own = own_of(*state);
    open_store(own);
    close_store(own);
    run_sql(own, "PRAGMA user_version = 1000");
    assert_refused(own, "written by a newer runcast (schema 1000");
}

/* Counts everything that an environment stores, as runcast/store.h defines it. */
#define COUNT_ALL                                                                          \
    "UPDATE environment AS e SET stored ="                                                 \
    " (SELECT ifnull(sum(1536 + 2 * length(CAST(ifnull(tags, '') AS BLOB)) + length(CAST(" \
    " ifnull(task, '') || ifnull(queue, '') || ifnull(concurrency_key, '') ||"             \
    " ifnull(worker_version, '') || ifnull(ttl, '') || ifnull(region, '') ||"              \
    " ifnull(batch, '') || ifnull(parent, '') || ifnull(root, '') ||"                      \
    " ifnull(schedule, '') || ifnull(idempotency_key, '') ||"                              \
    " ifnull(idempotency_shown, '') || ifnull(worker_request, '') || ifnull(waits,"        \
    " '') || ifnull(streams, '') || ifnull(metadata_request, '') || ifnull(bulk, '') ||"   \
    " ifnull(external_deployment, '') || ifnull(limits, '') AS BLOB))), 0) FROM run"       \
    " WHERE env = e.env)"                                                                  \
    " + (SELECT ifnull(sum(ifnull(length(body), 0) + length(CAST(ifnull(type, '') AS"      \
    " BLOB))), 0) FROM run_payload WHERE env = e.env)"                                     \
    " + (SELECT ifnull(sum(ifnull(length(body), 0) + ifnull(length(seed), 0)), 0)"         \
    " FROM run_metadata WHERE env = e.env)"                                                \
    " + (SELECT ifnull(sum(ifnull(length(body), 0) + length(CAST(ifnull(type, '') AS"      \
    " BLOB)) + ifnull(length(error), 0)), 0) FROM run_output WHERE env = e.env)"           \
    " + (SELECT ifnull(sum(128 + 2 * length(CAST(name AS BLOB)) + length(body)), 0)"       \
    " FROM document WHERE env = e.env)"                                                    \
    " + (SELECT ifnull(sum(128 + 2 * length(CAST(key AS BLOB))), 0) FROM claim"            \
    " WHERE env = e.env)"                                                                  \
    " + (SELECT ifnull(sum(128 + 2 * length(CAST(key AS BLOB))), 0) FROM brief_claim"      \
    " WHERE env = e.env)"                                                                  \
    " + (SELECT ifnull(sum(128 + length(CAST(task AS BLOB))), 0) FROM task_number"         \
    " WHERE env = e.env AND last > 0)"

/* Counting change by change gives the same as counting everything. */
static void stored_bytes_counted_by_change_equal_a_full_count(void **state)
{
    struct disk_world *own = own_of(*state);
    struct store_world *world = &own->world;
    open_store(own);
    struct change change = new_run(ENV_A, 1, "ä task");
    change.run.tags = tag_list_create((struct slice[]){ SLICE("é"), SLICE("b") }, 2);
    change.run.metadata = text_bytes("{}");
    change.run.metadata_seed = text_bytes("{\"a\":1}");
    run_rare_edit(&change.run)->payload_type = text_bytes("application/json");
    run_rare_edit(&change.run)->concurrency_key = text_bytes("ключ");
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    struct change next = next_version(&change, MARK_OUTPUT);
    next.run.output = text_bytes("output");
    next.run.error = text_bytes("{}");
    run_rare_edit(&next.run)->output_type = text_bytes("text/plain");
    run_rare_edit(&next.run)->waits = text_bytes("[]");
    struct bytes *key = text_bytes("schlüssel");
    struct claim claims[] = {
        { .env = ENV_A, .key = key, .owner = "run_1" },
        { .env = ENV_A, .key = key, .owner = "x", .brief = true },
    };
    claims[1].expires_at = FIRST_RUN_MS + 1;
    assert_int_equal(commit(world, &next, 1, claims, 2), STORE_OK);
    for (enum document_kind kind = 0; kind <= DOC_TRACE; kind++)
        assert_int_equal(commit_one(world, new_document(ENV_A, kind, "ñ", "body")),
                         STORE_OK);
    change_finish(&next);
    bytes_unref(key);
    int64_t counted = world->store->ops->position(world->store, ENV_A).stored;
    assert_true(counted > STORED_RUN + (DOC_TRACE + 4) * STORED_ROW);
    close_store(own);
    run_sql(own, COUNT_ALL);
    open_store(own);
    assert_int_equal(world->store->ops->position(world->store, ENV_A).stored, counted);
}

static void swept_claim_does_not_count(void **state)
{
    struct disk_world *own = own_of(*state);
    open_store(own);
    struct bytes *key = text_bytes("key");
    struct claim claims[] = {
        { .env = ENV_A, .key = key, .owner = "run_1", .expires_at = 1 },
        { .env = ENV_A, .key = key, .owner = "x", .expires_at = 1, .brief = true },
    };
    assert_int_equal(commit(&own->world, NULL, 0, claims, 2), STORE_OK);
    bytes_unref(key);
    assert_int_equal(own->world.store->ops->position(own->world.store, ENV_A).stored, 0);
    close_store(own);
    run_sql(own, "CREATE TABLE seen (count CHECK (count = 0));"
                 "INSERT INTO seen SELECT count(*) FROM claim;"
                 "INSERT INTO seen SELECT count(*) FROM brief_claim;"
                 "INSERT INTO seen SELECT sum(stored) FROM environment");
}

static void database_of_another_program_is_rejected_and_not_changed(void **state)
{
    struct disk_world *own = own_of(*state);
    run_sql(own, "CREATE TABLE theirs (x)");
    assert_refused(own, "is the database of another program");
    run_sql(own, "INSERT INTO theirs VALUES (1)");
    sqlite3 *handle;
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_open(own->path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(handle, "PRAGMA journal_mode", -1, &stmt, NULL), 0);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 0), "delete");
    sqlite3_finalize(stmt);
    sqlite3_close(handle);
}

static void file_that_is_not_a_database_is_rejected_with_a_reason(void **state)
{
    struct disk_world *own = own_of(*state);
    int fd = open(own->path, O_CREAT | O_WRONLY, 0600);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(write(fd, "this is a text, not a database\n", 31), 31);
    close(fd);
    assert_refused(own, "is not a database of runcast");
    unlink(own->path);
    snprintf(own->path, sizeof(own->path), "%s/missing/runs.db", own->dir);
    assert_refused(own, "No such file or directory");
    snprintf(own->path, sizeof(own->path), "%s/runs.db", own->dir);
}

static void second_opener_is_rejected(void **state)
{
    struct disk_world *own = own_of(*state);
    open_store(own);
    assert_refused(own, "is in use by another runcast process");
    assert_int_equal(commit_one(&own->world, new_run(ENV_A, 1, "a")), STORE_OK);
    close_store(own);
    open_store(own);
    assert_int_equal(count_runs(&own->world, ENV_A), 1);
}

/* ---- a disk that fails ---- */

static void a_failed_sync_is_never_acknowledged_and_stops_everything_after_it(void **state)
{
    struct store_world *world = *state;
    struct change change = new_run(ENV_A, 1, "a");
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    assert_false(world->store->failing);

    fault_vfs.sync_fails = true;
    assert_int_equal(commit_one(world, new_run(ENV_A, 2, "a")), STORE_FAILED);
    assert_true(world->store->failing);
    assert_int_equal(commit_one(world, new_run(ENV_A, 3, "a")), STORE_FAILED);
    struct run run;
    assert_int_equal(load_run(world, ENV_A, change.run.id, &run),
                     STORE_OK); /* reads still work */
    run_finish(&run);
    change_finish(&change);
    unsigned failed = fault_vfs.failed_syncs;
    while (fault_vfs.failed_syncs < failed + 2) /* while the failed disk is checked */
        uv_run(&own_of(world)->loop, UV_RUN_NOWAIT);
    assert_true(world->store->failing);

    fault_vfs.sync_fails = false;
    while (world->store->failing)
        world->turn(world);
    change = new_run(ENV_A, 4, "a");
    assert_int_equal(commit(world, &change, 1, NULL, 0), STORE_OK);
    assert_int_equal(change.seq, count_runs(world, ENV_A)); /* positions have no gaps */
    assert_int_equal(change.run.number, change.seq);
    change_finish(&change);
    world->reopen(world);
    assert_true(count_runs(world, ENV_A) >= 2);
}

static void a_store_that_fails_can_be_closed(void **state)
{
    struct store_world *world = *state;
    fault_vfs.sync_fails = true;
    assert_int_equal(commit_one(world, new_run(ENV_A, 1, "a")), STORE_FAILED);
    close_store(own_of(world));
    fault_vfs.sync_fails = false;
    open_store(own_of(world));
    assert_int_equal(commit_one(world, new_run(ENV_A, 2, "a")), STORE_OK);
}

static void full_disk_rejects_writes_and_recovers_by_itself(void **state)
{
    struct store_world *world = *state;
    assert_int_equal(commit_one(world, new_run(ENV_A, 1, "a")), STORE_OK);
    fault_vfs.disk_is_full = true;
    for (int n = 2; n < 5; n++)
        assert_int_equal(commit_one(world, new_run(ENV_A, n, "a")), STORE_NO_SPACE);
    assert_true(world->store->full);
    assert_false(world->store->failing);
    assert_int_equal(count_runs(world, ENV_A), 1);

    fault_vfs.disk_is_full = false;
    struct change change = new_run(ENV_A, 5, "a");
    enum store_status status;
    while ((status = commit(world, &change, 1, NULL, 0)) == STORE_NO_SPACE)
        continue;
    assert_int_equal(status, STORE_OK);
    assert_int_equal(change.seq, 2);
    assert_int_equal(change.run.number, 2);
    assert_false(world->store->full);
    change_finish(&change);
}

/* ---- limits ---- */

static void every_acknowledgement_follows_a_sync(void **state)
{
    struct store_world *world = *state;
    for (int n = 1; n <= 20; n++) {
        unsigned before = fault_vfs.syncs;
        assert_int_equal(commit_one(world, new_run(ENV_A, n, "a")), STORE_OK);
        assert_true(fault_vfs.syncs > before);
    }
}

static void log_size_stays_limited(void **state)
{
    struct store_world *world = *state;
    long long highest = 0;
    for (int n = 1; n <= 60; n++) {
        struct change change = new_run(ENV_A, n, "a");
        bytes_unref(change.run.payload);
        change.run.payload = bytes_create_empty(2 << 20);
        memset(change.run.payload->data, 'x', 2 << 20);
        assert_int_equal(commit_one(world, change), STORE_OK);
        highest = fault_vfs.log_bytes > highest ? fault_vfs.log_bytes : highest;
    }
    assert_true(highest < 64 << 20); /* although 120 MiB were written */
    assert_int_equal(count_runs(world, ENV_A), 60);
}

static enum store_status listed;
static bool was_listed;

enum { LARGE_COMMITS = 6, LARGE_COMMIT = 300, TURN_NS = 2000000 };

struct large_commit {
    struct store_commit req;
    struct change changes[LARGE_COMMIT];
    unsigned *reported;
};

/* Takes the time of a turn, as applying a large commit does. */
static void on_large(struct store_commit *req, enum store_status status)
{
    uint64_t end = uv_hrtime() + TURN_NS;
    assert_int_equal(status, STORE_OK);
    while (uv_hrtime() < end)
        ;
    ++*container_of(req, struct large_commit, req)->reported;
}

/* A commit is applied in the turn that reports it, and turns have to be short. */
static void a_turn_reports_one_large_commit(void **state)
{
    struct store_world *world = *state;
    struct large_commit *commits = mem_new_array(struct large_commit, LARGE_COMMITS);
    unsigned reported = 0;
    for (int i = 0; i < LARGE_COMMITS; i++) {
        for (int k = 0; k < LARGE_COMMIT; k++)
            commits[i].changes[k] = new_run(ENV_A, i * LARGE_COMMIT + k, "a");
        commits[i].reported = &reported;
        commits[i].req = (struct store_commit){ .changes = commits[i].changes,
                                                .change_count = LARGE_COMMIT,
                                                .done = on_large };
        world->store->ops->commit(world->store, &commits[i].req);
    }
    while (reported < LARGE_COMMITS) {
        unsigned before = reported;
        world->turn(world);
        assert_true(reported <= before + 1);
    }
    for (int i = 0; i < LARGE_COMMITS; i++)
        for (int k = 0; k < LARGE_COMMIT; k++)
            change_finish(&commits[i].changes[k]);
    free(commits);
}

static void on_listed(struct store_read *read, enum store_status status)
{
    (void)read;
    listed = status;
    was_listed = true;
}

enum { MANY = 3000, WALKED = 500 };

/* The runs do not fit into the cache. */
static struct disk_world *open_with_many_runs(void **state)
{
    struct disk_world *own = own_of(*state);
    own->cache_bytes = 1 << 16;
    open_store(own);
    struct change *changes = mem_new_array(struct change, MANY);
    for (int n = 0; n < MANY; n++)
        changes[n] = new_run(ENV_A, n, "a");
    assert_int_equal(commit(&own->world, changes, MANY, NULL, 0), STORE_OK);
    for (int n = 0; n < MANY; n++)
        change_finish(&changes[n]);
    free(changes);
    return own;
}

static void on_walked(struct store_read *read, enum store_status status)
{
    (void)read;
    listed = status;
    was_listed = true;
}

static enum store_status walk_all(struct disk_world *own, struct store_walk *req)
{
    req->read = (struct store_read){ READ_WALK, ENV_A, on_walked };
    req->kind = WALK_ALL;
    req->up_to = MANY;
    req->limit = WALKED;
    req->byte_limit = SIZE_MAX;
    was_listed = false;
    own->world.store->ops->read(own->world.store, &req->read);
    while (!was_listed)
        own->world.turn(&own->world);
    return listed;
}

/* A start reads all unfinished runs; a time limit would stop every start on a slow disk. */
static void reads_of_a_start_have_no_time_limit(void **state)
{
    struct disk_world *own = open_with_many_runs(state);
    struct store_walk usual = { 0 }, start = { .takes_its_time = true };
    fault_vfs.read_delay_ms = 2;
    assert_int_equal(walk_all(own, &usual), STORE_SLOW);
    assert_int_equal(walk_all(own, &start), STORE_OK);
    fault_vfs.read_delay_ms = 0;
    assert_int_equal(start.count, WALKED);
    for (size_t i = 0; i < start.count; i++)
        run_finish(&start.runs[i]);
    free(start.runs);
}

/* ---- reads that no client still waits for ---- */

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

/* The first two are executed, by the two connections; the others wait. Together they read less
 * than one search does. */
static void abandoned_reads_end_and_do_not_begin(void **state)
{
    enum { LISTS = 4, SEARCH_BYTES = 200000 };
    struct disk_world *own = open_with_many_runs(state);
    struct slice regions[] = { SLICE("nowhere") };
    struct abandoned_list lists[LISTS] = { 0 };
    long long read_before = fault_vfs.read_bytes;
    size_t left = LISTS;
    fault_vfs.read_delay_ms = 20;
    for (size_t i = 0; i < LISTS; i++) {
        lists[i].req =
            (struct store_list){ .read = { READ_LIST, ENV_A, on_abandoned }, .limit = 10 };
        lists[i].req.filter =
            (struct run_filter){ .is_test = -1, .regions = regions, .region_count = 1 };
        own->world.store->ops->read(own->world.store, &lists[i].req.read);
    }
    while (fault_vfs.read_bytes == read_before)
        usleep(1000);
    for (size_t i = 0; i < LISTS; i++)
        store_read_abandon(&lists[i].req.read);
    while (left) {
        own->world.turn(&own->world);
        left = 0;
        for (size_t i = 0; i < LISTS; i++)
            left += !lists[i].is_done;
    }
    fault_vfs.read_delay_ms = 0;
    assert_true(fault_vfs.read_bytes - read_before < SEARCH_BYTES);
    for (size_t i = 0; i < LISTS; i++) {
        assert_int_equal(lists[i].status, STORE_FAILED);
        assert_int_equal(lists[i].req.count, 0);
        assert_null(lists[i].req.runs);
    }
}

static void read_that_takes_too_long_is_stopped(void **state)
{
    struct disk_world *own = open_with_many_runs(state);

    struct slice regions[] = { SLICE("nowhere") };
    struct store_list req = { .read = { READ_LIST, ENV_A, on_listed }, .limit = 10 };
    req.filter =
        (struct run_filter){ .is_test = -1, .regions = regions, .region_count = 1 };
    fault_vfs.read_delay_ms = 100;
    was_listed = false;
    own->world.store->ops->read(own->world.store, &req.read);
    while (!was_listed)
        own->world.turn(&own->world);
    assert_int_equal(listed, STORE_SLOW);
    assert_int_equal(req.count, 0);
    assert_null(req.runs);

    fault_vfs.read_delay_ms = 0;
    was_listed = false;
    own->world.store->ops->read(own->world.store, &req.read);
    while (!was_listed)
        own->world.turn(&own->world);
    assert_int_equal(listed, STORE_OK);
    free(req.runs);
}

static void sweep_expired(struct disk_world *own, bool brief, const char *check)
{
    struct claim claims[40];
    for (int i = 0; i < 40; i++) {
        char key[16];
        snprintf(key, sizeof(key), "key %d", i);
        claims[i] = (struct claim){
            .kind = CLAIM_REQUEST, .env = ENV_A, .key = text_bytes(key), .owner = "run_1"
        };
        claims[i].brief = brief;
        claims[i].expires_at = i < 30 ? FIRST_RUN_MS - 1 : FIRST_RUN_MS + 1000;
    }
    open_store(own);
    assert_int_equal(commit(&own->world, NULL, 0, claims, 40), STORE_OK);
    for (int i = 0; i < 40; i++)
        bytes_unref(claims[i].key);
    close_store(own);
    run_sql(own, check);
}

static void expired_claims_are_swept(void **state)
{
    sweep_expired(own_of(*state), false,
                  "CREATE TEMP TABLE t (n CHECK (n = 10));"
                  "INSERT INTO t SELECT count(*) FROM claim");
    sweep_expired(own_of(*state), true,
                  "CREATE TEMP TABLE t (n CHECK (n = 10));"
                  "INSERT INTO t SELECT count(*) FROM brief_claim");
}

/* ---- brief claims ---- */

static enum store_status take_brief(struct store_world *world, int number,
                                    const char *owner)
{
    char key[16];
    snprintf(key, sizeof(key), "key %d", number);
    struct claim claim = { .kind = CLAIM_REQUEST,
                           .env = ENV_A,
                           .key = text_bytes(key),
                           .expires_at = FIRST_RUN_MS + 1000,
                           .brief = true };
    snprintf(claim.owner, sizeof(claim.owner), "%s", owner);
    enum store_status status = commit(world, NULL, 0, &claim, 1);
    bytes_unref(claim.key);
    return status;
}

/* The outcome of the failed commit is unknown, so the table decides. */
static void brief_claims_are_read_again_after_a_failure(void **state)
{
    struct store_world *world = *state;
    for (int i = 0; i < 10; i++)
        assert_int_equal(take_brief(world, i, "request_1"), STORE_OK);
    fault_vfs.sync_fails = true;
    assert_int_equal(take_brief(world, 10, "request_1"), STORE_FAILED);
    fault_vfs.sync_fails = false;
    while (world->store->failing)
        world->turn(world);
    for (int i = 0; i < 10; i++)
        assert_int_equal(take_brief(world, i, "request_2"), STORE_TAKEN);
    take_brief(world, 10, "request_2");
    assert_int_equal(take_brief(world, 10, "request_3"), STORE_TAKEN);
    close_store(own_of(world));
    run_sql(own_of(world), "CREATE TEMP TABLE t (n CHECK (n = 11));"
                           "INSERT INTO t SELECT count(*) FROM brief_claim");
}

static void brief_claims_of_a_full_disk_are_free(void **state)
{
    struct store_world *world = *state;
    assert_int_equal(take_brief(world, 1, "request_1"), STORE_OK);
    fault_vfs.disk_is_full = true;
    assert_int_equal(take_brief(world, 2, "request_1"), STORE_NO_SPACE);
    fault_vfs.disk_is_full = false;
    enum store_status status;
    while ((status = take_brief(world, 2, "request_2")) == STORE_NO_SPACE)
        continue;
    assert_int_equal(status, STORE_OK);
    assert_int_equal(take_brief(world, 1, "request_2"), STORE_TAKEN);
    assert_int_equal(take_brief(world, 2, "request_3"), STORE_TAKEN);
}

/* Returns a database to schema 101, which had the keys of metadata among all others. */
#define TO_SCHEMA_101                                                                      \
    "INSERT INTO claim (env, kind, key, owner, expires_at)"                                \
    " SELECT env, kind, key, owner, expires_at FROM brief_claim;"                          \
    "DROP TABLE brief_claim; PRAGMA user_version = 101"

static enum store_status take_key(struct store_world *world, struct slice space, bool brief,
                                  const char *owner)
{
    struct claim claim = { .kind = CLAIM_REQUEST,
                           .env = ENV_A,
                           .key = idempotency_claim_key(space, SLICE("request")),
                           .expires_at = FIRST_RUN_MS + 1000,
                           .brief = brief };
    snprintf(claim.owner, sizeof(claim.owner), "%s", owner);
    enum store_status status = commit(world, NULL, 0, &claim, 1);
    bytes_unref(claim.key);
    return status;
}

static void claims_of_schema_101_are_still_taken(void **state)
{
    struct disk_world *own = own_of(*state);
    struct store_world *world = &own->world;
    struct slice metadata = SLICE(CLAIM_NO_TASK "metadata\nrun_1");
    struct slice bulk = SLICE(CLAIM_NO_TASK "bulk"), task = SLICE("metadata\n");
    open_store(own);
    assert_int_equal(take_key(world, metadata, true, "request_1"), STORE_OK);
    assert_int_equal(take_key(world, bulk, false, "bulk_1"), STORE_OK);
    assert_int_equal(take_key(world, task, false, "run_1"), STORE_OK);
    int64_t stored = world->store->ops->position(world->store, ENV_A).stored;
    close_store(own);
    run_sql(own, TO_SCHEMA_101);

    open_store(own);
    assert_int_equal(world->store->ops->position(world->store, ENV_A).stored, stored);
    assert_int_equal(take_key(world, metadata, true, "request_2"), STORE_TAKEN);
    assert_int_equal(take_key(world, bulk, false, "bulk_2"), STORE_TAKEN);
    assert_int_equal(take_key(world, task, false, "run_2"), STORE_TAKEN);
    close_store(own);
    run_sql(own, "CREATE TEMP TABLE t (n CHECK (n = 12));"
                 "INSERT INTO t SELECT 10 * (SELECT count(*) FROM brief_claim)"
                 " + (SELECT count(*) FROM claim)");
    char copy[128];
    snprintf(copy, sizeof(copy), "%s.schema-101", own->path);
    assert_int_equal(unlink(copy), 0);
}

int main(void)
{
#define OPEN(name) cmocka_unit_test_setup_teardown(name, create_open_world, destroy_world)
#define CLOSED(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)
    const struct CMUnitTest own[] = {
        CLOSED(an_empty_file_gets_the_schema_and_only_we_can_read_it),
        CLOSED(database_of_a_newer_version_is_rejected),
        CLOSED(swept_claim_does_not_count),
        CLOSED(stored_bytes_counted_by_change_equal_a_full_count),
        CLOSED(database_of_another_program_is_rejected_and_not_changed),
        CLOSED(file_that_is_not_a_database_is_rejected_with_a_reason),
        CLOSED(second_opener_is_rejected),
        OPEN(a_failed_sync_is_never_acknowledged_and_stops_everything_after_it),
        OPEN(a_store_that_fails_can_be_closed),
        OPEN(full_disk_rejects_writes_and_recovers_by_itself),
        OPEN(every_acknowledgement_follows_a_sync),
        OPEN(log_size_stays_limited),
        OPEN(a_turn_reports_one_large_commit),
        CLOSED(reads_of_a_start_have_no_time_limit),
        CLOSED(abandoned_reads_end_and_do_not_begin),
        CLOSED(read_that_takes_too_long_is_stopped),
        CLOSED(expired_claims_are_swept),
        OPEN(brief_claims_are_read_again_after_a_failure),
        OPEN(brief_claims_of_a_full_disk_are_free),
        CLOSED(claims_of_schema_101_are_still_taken),
    };
    int failures =
        store_contract_run("sqlite store: contract", create_open_world, destroy_world);
    return failures + cmocka_run_group_tests_name("sqlite store", own, NULL, NULL);
}
