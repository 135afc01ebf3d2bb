/* An older database is upgraded step by step, after a copy of it was made. A database of a
 * development version is rejected and not changed. The steps here are examples of a later
 * version. */
#include "store/sqlite/sqlite_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/world/unit.h"

/* The steps of this version, before those of a later one. */
#define OWN_STEPS sqlite_schema.steps[0], sqlite_schema.steps[1]
#define ADD_COLUMN "ALTER TABLE task_number ADD COLUMN later TEXT"
#define ADD_TABLE "CREATE TABLE later (x TEXT) STRICT"

static struct {
    char dir[64], path[96];
} scene;

static int open_scene(void **state)
{
    (void)state;
    snprintf(scene.dir, sizeof(scene.dir), "/tmp/runcast-test-XXXXXX");
    assert_non_null(mkdtemp(scene.dir));
    snprintf(scene.path, sizeof(scene.path), "%s/x.db", scene.dir);
    return 0;
}

static int close_scene(void **state)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", ".schema-100",
                                            ".schema-102" };
    (void)state;
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        char name[128];
        snprintf(name, sizeof(name), "%s%s", scene.path, suffixes[i]);
        unlink(name);
    }
    assert_int_equal(rmdir(scene.dir), 0);
    return 0;
}

static void open_db(struct sqlite_db *db)
{
    struct failure why;
    struct sqlite_options options = { .path = scene.path };
    assert_int_equal(sqlite_db_open(db, &options, SQLITE_WRITER, &why), OK);
}

static void assert_refused(const char *reason)
{
    struct sqlite_db db;
    struct failure why = { 0 };
    struct sqlite_options options = { .path = scene.path };
    assert_int_equal(sqlite_db_open(&db, &options, SQLITE_WRITER, &why), ERR_STORE);
    if (!strstr(why.text, reason))
        fail_msg("'%s' does not say '%s'", why.text, reason);
}

static enum err upgrade(struct sqlite_db *db, const char *const *steps)
{
    struct failure why;
    struct sqlite_schema later = { sqlite_schema.tables, steps };
    return sqlite_schema_upgrade(db, &later, scene.path, &why);
}

static void assert_number(struct sqlite_db *db, const char *sql, int64_t number)
{
    assert_int_equal(sqlite_db_number(db, sql, -1), number);
}

/* Makes a database of this version with one row. */
static void make_database(struct sqlite_db *db)
{
    struct failure why;
    open_db(db);
    assert_int_equal(sqlite_schema_upgrade(db, &sqlite_schema, scene.path, &why), OK);
    assert_number(db, "PRAGMA user_version", SQLITE_NEWEST_SCHEMA);
    assert_true(sqlite_db_execute(db, "INSERT INTO task_number VALUES (7, 'hello', 3)"));
}

static void assert_copy_is_of_this_version(void)
{
    char name[128];
    struct sqlite_db copy = { 0 };
    struct stat found;
    snprintf(name, sizeof(name), "%s.schema-102", scene.path);
    assert_int_equal(stat(name, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
    assert_int_equal(sqlite3_open(name, &copy.handle), SQLITE_OK);
    assert_number(&copy, "PRAGMA user_version", 102);
    assert_number(&copy, "SELECT last FROM task_number", 3);
    assert_number(&copy, "SELECT count(later) FROM task_number", -1); /* no such column */
    sqlite3_close(copy.handle);
}

static void database_of_this_version_opens_in_the_next(void **state)
{
    const char *const steps[] = { OWN_STEPS, ADD_COLUMN, ADD_TABLE, NULL };
    struct sqlite_db db;
    (void)state;
    make_database(&db);
    assert_int_equal(upgrade(&db, steps), OK);
    assert_number(&db, "PRAGMA user_version", 104);
    assert_number(&db, "SELECT last FROM task_number WHERE later IS NULL", 3);
    assert_number(&db, "SELECT count(*) FROM later", 0);
    assert_number(&db, "SELECT count(*) FROM meta WHERE name = 'steps_left'", 0);
    assert_copy_is_of_this_version();
    sqlite_db_close(&db);
    assert_refused("written by a newer runcast (schema 104, this one knows 102)");
}

static void a_database_of_schema_100_gets_the_limits_of_runs(void **state)
{
    static const char *const none[] = { NULL };
    struct sqlite_db db;
    struct failure why;
    (void)state;
    open_db(&db);
    assert_int_equal(upgrade(&db, none), OK);
    assert_number(&db, "PRAGMA user_version", 100);
    assert_number(&db, "SELECT count(limits) FROM run", -1); /* no such column */
    assert_int_equal(sqlite_schema_upgrade(&db, &sqlite_schema, scene.path, &why), OK);
    assert_number(&db, "SELECT count(limits) FROM run", 0);
    sqlite_db_close(&db);
}

static void a_new_database_takes_all_steps_and_keeps_no_copy(void **state)
{
    const char *const steps[] = { OWN_STEPS, ADD_COLUMN, ADD_TABLE, NULL };
    struct sqlite_db db;
    struct stat found;
    char name[128];
    (void)state;
    open_db(&db);
    assert_int_equal(upgrade(&db, steps), OK);
    assert_number(&db, "PRAGMA user_version", 104);
    snprintf(name, sizeof(name), "%s.schema-102", scene.path);
    assert_int_equal(stat(name, &found), -1);
    sqlite_db_close(&db);
}

static void interrupted_upgrade_continues_and_keeps_the_first_copy(void **state)
{
    const char *const steps[] = { OWN_STEPS, ADD_COLUMN, ADD_TABLE, NULL };
    struct sqlite_db db;
    (void)state;
    make_database(&db);
    assert_true(sqlite_db_execute(&db, ADD_TABLE)); /* makes the second step fail */
    assert_int_equal(upgrade(&db, steps), ERR_STORE);
    assert_true(sqlite_db_execute(&db, "ROLLBACK")); /* like the end of the process */
    assert_number(&db, "PRAGMA user_version", 103);
    assert_true(
        sqlite_db_execute(&db, "DROP TABLE later; UPDATE task_number SET last = 4"));
    assert_int_equal(upgrade(&db, steps), OK);
    assert_number(&db, "PRAGMA user_version", 104);
    assert_number(&db, "SELECT last FROM task_number", 4);
    assert_copy_is_of_this_version();
    sqlite_db_close(&db);
}

static void database_that_cannot_be_copied_is_not_upgraded(void **state)
{
    const char *const steps[] = { OWN_STEPS, ADD_TABLE, NULL };
    struct sqlite_db db;
    char part[128];
    (void)state;
    make_database(&db);
    snprintf(part, sizeof(part), "%s.schema-102.part", scene.path);
    assert_int_equal(mkdir(part, 0700), 0);
    assert_int_equal(upgrade(&db, steps), ERR_STORE);
    assert_int_equal(rmdir(part), 0);
    assert_number(&db, "PRAGMA user_version", 102);
    assert_number(&db, "SELECT count(*) FROM later", -1); /* no such table */
    sqlite_db_close(&db);
}

/* Returns the bytes of the file. The caller frees them. */
static char *read_file(size_t *len)
{
    struct stat found;
    FILE *file = fopen(scene.path, "rb");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &found), 0);
    *len = (size_t)found.st_size;
    char *bytes = malloc(*len);
    assert_int_equal(fread(bytes, 1, *len, file), *len);
    fclose(file);
    return bytes;
}

static void assert_development_version_is_left_alone(int version)
{
    char sql[96], log[128];
    struct stat found;
    size_t len, len_after;
    sqlite3 *handle;
    snprintf(sql, sizeof(sql), "PRAGMA journal_mode = DELETE; PRAGMA user_version = %d",
             version);
    assert_int_equal(sqlite3_open(scene.path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
    char *before = read_file(&len);
    assert_refused("was made by a development version of runcast; this version cannot open "
                   "it");
    char *after = read_file(&len_after);
    assert_int_equal(len, len_after);
    assert_memory_equal(before, after, len);
    snprintf(log, sizeof(log), "%s-wal", scene.path);
    assert_int_equal(stat(log, &found), -1);
    free(before);
    free(after);
}

static void database_of_a_development_version_is_rejected_and_not_changed(void **state)
{
    static const int versions[] = { 0, 1, 6, 13, 99 };
    struct sqlite_db db;
    (void)state;
    make_database(&db);
    sqlite_db_close(&db);
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
        assert_development_version_is_left_alone(versions[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
    const struct CMUnitTest tests[] = {
        TEST(database_of_this_version_opens_in_the_next),
        TEST(a_database_of_schema_100_gets_the_limits_of_runs),
        TEST(a_new_database_takes_all_steps_and_keeps_no_copy),
        TEST(interrupted_upgrade_continues_and_keeps_the_first_copy),
        TEST(database_that_cannot_be_copied_is_not_upgraded),
        TEST(database_of_a_development_version_is_rejected_and_not_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
