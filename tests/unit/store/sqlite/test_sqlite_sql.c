/* Statements that every transaction may execute do not depend on the size of a table. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/sqlite/sqlite_db.h"
#include "store/sqlite/sqlite_schema.h"
#include "tests/support/world/unit.h"

static struct {
    char dir[64], path[96];
    struct sqlite_db db;
} scene;

static int open_scene(void **state)
{
    struct failure why;
    struct sqlite_options options = { .path = scene.path };
    (void)state;
    snprintf(scene.dir, sizeof(scene.dir), "/tmp/runcast-test-XXXXXX");
    assert_non_null(mkdtemp(scene.dir));
    snprintf(scene.path, sizeof(scene.path), "%s/x.db", scene.dir);
    assert_int_equal(sqlite_db_open(&scene.db, &options, SQLITE_WRITER, &why), OK);
    assert_int_equal(sqlite_schema_upgrade(&scene.db, &sqlite_schema, scene.path, &why),
                     OK);
    return 0;
}

static int close_scene(void **state)
{
    (void)state;
    sqlite_db_close(&scene.db);
    unlink(scene.path);
    assert_int_equal(rmdir(scene.dir), 0);
    return 0;
}

enum { NOW = 1000, EXPIRED = 20 };

static void add_claims(const char *table, int from, int count, int expires_at)
{
    struct buf sql = { 0 };
    buf_print(&sql,
              "WITH RECURSIVE c (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM c WHERE"
              " i < %d) INSERT INTO %s (env, kind, key, owner, expires_at)"
              " SELECT 1, 1, i * 7919 %% 100003, 'run_1', %d FROM c",
              from, from + count - 1, table, expires_at);
    buf_add_char(&sql, '\0');
    assert_true(sqlite_db_execute(&scene.db, sql.ptr));
    buf_finish(&sql);
}

/* Returns the steps of the virtual machine that a sweep takes. */
static int sweep(enum sqlite_statement which, int most, int removed)
{
    sqlite3_stmt *stmt = sqlite_db_stmt(&scene.db, which);
    sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
    sqlite3_bind_int(stmt, 1, NOW);
    sqlite3_bind_int(stmt, 2, most);
    int code, count = 0;
    while ((code = sqlite3_step(stmt)) == SQLITE_ROW)
        count++;
    assert_int_equal(code, SQLITE_DONE);
    assert_int_equal(count, removed);
    sqlite3_reset(stmt);
    return sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 0);
}

static void assert_sweep(const char *table, enum sqlite_statement which)
{
    add_claims(table, 0, EXPIRED, NOW);
    add_claims(table, EXPIRED, 100, NOW + 1);
    int steps = sweep(which, EXPIRED / 2, EXPIRED / 2);
    add_claims(table, 1000, 50000, NOW + 1);
    assert_in_range(sweep(which, EXPIRED / 2, EXPIRED / 2), 1, 2 * steps);
    sweep(which, EXPIRED, 0);
}

static void a_sweep_takes_no_more_steps_with_more_claims(void **state)
{
    (void)state;
    assert_sweep("claim", SQL_SWEEP_CLAIMS);
    assert_sweep("brief_claim", SQL_SWEEP_BRIEF_CLAIMS);
}

static int purge(int most, int removed)
{
    sqlite3_stmt *stmt = sqlite_db_stmt(&scene.db, SQL_PURGE_CLAIMS);
    sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
    sqlite3_bind_int(stmt, 1, 1);
    sqlite3_bind_int(stmt, 2, most);
    int count = 0;
    while (sqlite3_step(stmt) == SQLITE_ROW)
        count++;
    assert_int_equal(count, removed);
    sqlite3_reset(stmt);
    return sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 0);
}

static void a_purge_takes_no_more_steps_with_more_claims(void **state)
{
    (void)state;
    add_claims("claim", 0, 100, NOW);
    int steps = purge(10, 10);
    add_claims("claim", 1000, 50000, NOW);
    assert_in_range(purge(10, 10), 1, 2 * steps);
}

static void a_purge_leaves_no_claim_of_any_kind(void **state)
{
    (void)state;
    add_claims("claim", 0, 15, NOW);
    assert_true(sqlite_db_execute(
        &scene.db,
        "UPDATE claim SET kind = 2 WHERE key IN (SELECT key FROM claim LIMIT 4)"));
    purge(10, 10);
    purge(10, 1);
    purge(10, 4);
    purge(10, 0);
}

/* Some of the claims that expire at the same time. */
static void a_sweep_removes_no_more_than_its_limit(void **state)
{
    (void)state;
    add_claims("claim", 0, 100, NOW);
    for (int left = 100; left > 0; left -= 30)
        sweep(SQL_SWEEP_CLAIMS, 30, left < 30 ? left : 30);
    sweep(SQL_SWEEP_CLAIMS, 30, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
    const struct CMUnitTest tests[] = {
        TEST(a_sweep_takes_no_more_steps_with_more_claims),
        TEST(a_sweep_removes_no_more_than_its_limit),
        TEST(a_purge_takes_no_more_steps_with_more_claims),
        TEST(a_purge_leaves_no_claim_of_any_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
