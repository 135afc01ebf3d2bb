/* Writes to the log are held back, and reach the file as one write. */
#include "store/sqlite/sqlite_log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/mem.h"
#include "tests/support/fakes/fault_vfs.h"

enum {
    HEADER = 24,
    PAGE = 8192,
    FRAME = HEADER + PAGE,
    IMAGE = 1 << 20,
    STEPS = 20000,
};

static struct {
    char dir[64], path[80], log_path[88];
    sqlite3_file *log;
    unsigned char image[IMAGE]; /* expected content of the log */
    sqlite3_int64 size;
    unsigned written; /* writes to the file before the test */
} scene;

static int open_scene(void **state)
{
    (void)state;
    memset(&scene, 0, sizeof(scene));
    fault_vfs_install();
    fault_vfs.syncs_nothing = true;
    snprintf(scene.dir, sizeof(scene.dir), "/tmp/runcast-test-XXXXXX");
    assert_non_null(mkdtemp(scene.dir));
    snprintf(scene.path, sizeof(scene.path), "%s/x.db", scene.dir);
    snprintf(scene.log_path, sizeof(scene.log_path), "%s-wal", scene.path);
    close(open(scene.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    sqlite3_vfs *vfs = sqlite3_vfs_find(sqlite_log_vfs());
    assert_non_null(vfs);
    scene.log = calloc(1, (size_t)vfs->szOsFile);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_WAL;
    assert_int_equal(vfs->xOpen(vfs, scene.log_path, scene.log, flags, &flags), SQLITE_OK);
    scene.written = fault_vfs.log_writes;
    return 0;
}

static int close_scene(void **state)
{
    (void)state;
    fault_vfs.disk_is_full = false;
    if (scene.log->pMethods)
        scene.log->pMethods->xClose(scene.log);
    free(scene.log);
    unlink(scene.log_path);
    unlink(scene.path);
    return rmdir(scene.dir);
}

static unsigned writes(void)
{
    return fault_vfs.log_writes - scene.written;
}

/* Writes as SQLite would: a refused write changes nothing. */
static int put(sqlite3_int64 at, int len, int fill)
{
    unsigned char bytes[PAGE];
    assert_true(len <= PAGE && at + len <= IMAGE);
    memset(bytes, fill, (size_t)len);
    int code = scene.log->pMethods->xWrite(scene.log, bytes, len, at);
    if (code == SQLITE_OK) {
        memcpy(scene.image + at, bytes, (size_t)len);
        scene.size = at + len > scene.size ? at + len : scene.size;
    }
    return code;
}

static void put_frames(int first, int count)
{
    for (int i = first; i < first + count; i++) {
        assert_int_equal(put((sqlite3_int64)i * FRAME, HEADER, 0x80 + i), SQLITE_OK);
        assert_int_equal(put((sqlite3_int64)i * FRAME + HEADER, PAGE, i + 1), SQLITE_OK);
    }
}

static int sync_log(void)
{
    return scene.log->pMethods->xSync(scene.log, SQLITE_SYNC_NORMAL);
}

static void assert_file_is_image(void)
{
    unsigned char *found = malloc(IMAGE);
    int fd = open(scene.log_path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(pread(fd, found, IMAGE, 0), scene.size);
    assert_memory_equal(found, scene.image, (size_t)scene.size);
    close(fd);
    free(found);
}

/* Takes the file's content as the expected one, because other writes were refused. */
static void take_image(void)
{
    int fd = open(scene.log_path, O_RDONLY | O_CLOEXEC);
    memset(scene.image, 0, IMAGE);
    scene.size = pread(fd, scene.image, IMAGE, 0);
    close(fd);
}

static void assert_synced_by(unsigned calls)
{
    assert_int_equal(sync_log(), SQLITE_OK);
    assert_int_equal(writes(), calls);
    assert_file_is_image();
}

static void held_back_frames_are_written_by_one_call(void **state)
{
    (void)state;
    put_frames(0, 10);
    assert_int_equal(writes(), 0);
    assert_synced_by(1);
    assert_synced_by(1);
}

static void rewritten_frame_replaces_the_first(void **state)
{
    (void)state;
    put_frames(0, 6);
    assert_int_equal(put(2 * FRAME + HEADER, PAGE, 'x'), SQLITE_OK);
    assert_int_equal(put(3 * FRAME, HEADER, 'y'), SQLITE_OK);
    assert_synced_by(1);
}

static void write_elsewhere_in_the_log_is_a_call_of_its_own(void **state)
{
    (void)state;
    put_frames(0, 2);
    put_frames(4, 2);
    put_frames(1, 1);
    assert_int_equal(writes(), 2);
    assert_synced_by(3);
}

static void a_large_commit_is_written_in_large_pieces(void **state)
{
    (void)state;
    put_frames(0, 120);
    assert_int_equal(sync_log(), SQLITE_OK);
    assert_in_range(writes(), 120 / 15, 120 / 15 + 1);
    assert_file_is_image();
}

static void reads_and_size_include_held_back_writes(void **state)
{
    unsigned char page[PAGE];
    sqlite3_int64 size;
    (void)state;
    put_frames(0, 3);
    assert_int_equal(scene.log->pMethods->xRead(scene.log, page, PAGE, 2 * FRAME + HEADER),
                     SQLITE_OK);
    assert_memory_equal(page, scene.image + 2 * FRAME + HEADER, PAGE);
    put_frames(3, 1);
    assert_int_equal(scene.log->pMethods->xFileSize(scene.log, &size), SQLITE_OK);
    assert_int_equal(size, 4 * FRAME);
    put_frames(4, 1);
    scene.size = FRAME;
    assert_int_equal(scene.log->pMethods->xTruncate(scene.log, FRAME), SQLITE_OK);
    assert_int_equal(sync_log(), SQLITE_OK);
    assert_file_is_image();
}

static void full_disk_is_reported_by_the_sync_and_its_writes_are_dropped(void **state)
{
    unsigned char page[PAGE];
    (void)state;
    put_frames(0, 1);
    assert_int_equal(sync_log(), SQLITE_OK);
    fault_vfs.disk_is_full = true;
    put_frames(1, 2);
    assert_int_equal(sync_log(), SQLITE_FULL);
    take_image();
    assert_int_equal(scene.log->pMethods->xRead(scene.log, page, PAGE, HEADER), SQLITE_OK);
    assert_memory_equal(page, scene.image + HEADER, PAGE);
    fault_vfs.disk_is_full = false;
    assert_int_equal(sync_log(), SQLITE_OK);
    assert_int_equal(scene.size, FRAME);
    assert_file_is_image();
}

static void read_that_fails_on_a_full_disk_loses_nothing(void **state)
{
    unsigned char page[PAGE];
    (void)state;
    put_frames(0, 2);
    fault_vfs.disk_is_full = true;
    assert_int_equal(scene.log->pMethods->xRead(scene.log, page, PAGE, HEADER),
                     SQLITE_FULL);
    fault_vfs.disk_is_full = false;
    assert_int_equal(sync_log(), SQLITE_OK);
    assert_file_is_image();
}

static void held_back_writes_are_written_when_the_log_is_closed(void **state)
{
    (void)state;
    put_frames(0, 2);
    assert_int_equal(scene.log->pMethods->xClose(scene.log), SQLITE_OK);
    scene.log->pMethods = NULL;
    assert_file_is_image();
}

static void read_anywhere(uint32_t drawn)
{
    unsigned char found[PAGE];
    int len = (int)(drawn % PAGE) + 1;
    sqlite3_int64 at = (sqlite3_int64)(drawn >> 7) % (IMAGE - PAGE);
    int code = scene.log->pMethods->xRead(scene.log, found, len, at);
    if (fault_vfs.disk_is_full && code == SQLITE_FULL)
        return;
    assert_true(code == SQLITE_OK || code == SQLITE_IOERR_SHORT_READ);
    assert_memory_equal(found, scene.image + at, (size_t)len);
}

/* Random writes, reads and syncs on a disk that is sometimes full. The file and all reads
 * are as if writes had not been held back, except for those that were refused. The writes
 * continue one another, overlap or are far apart. */
static void log_is_as_if_writes_were_not_held_back(void **state)
{
    uint32_t drawn = 20261127;
    sqlite3_int64 at = 0;
    (void)state;
    for (int i = 0; i < STEPS; i++) {
        drawn = drawn * 1664525 + 1013904223;
        uint32_t choice = drawn >> 24;
        if (choice < 200) {
            int len = choice & 1 ? HEADER : PAGE;
            if (choice >= 180)
                at = (sqlite3_int64)(drawn >> 3) % (IMAGE - PAGE);
            if (at + len > IMAGE)
                at = 0;
            if (put(at, len, (int)(drawn >> 9)) == SQLITE_OK) {
                at += len;
            } else {
                assert_true(fault_vfs.disk_is_full);
                take_image();
            }
        } else if (choice < 230) {
            read_anywhere(drawn);
        } else if (choice < 250) {
            if (sync_log() != SQLITE_OK) {
                assert_true(fault_vfs.disk_is_full);
                take_image();
            }
        } else {
            fault_vfs.disk_is_full = choice >= 253;
        }
    }
    fault_vfs.disk_is_full = false;
    assert_int_equal(sync_log(), SQLITE_OK);
    assert_file_is_image();
}

/* With SQLite itself: pages that spill before the transaction ends, and a rollback. One
 * page is changed again after it has spilled. */
static void transaction_is_one_write_and_may_spill(void **state)
{
    sqlite3 *db, *reader;
    sqlite3_stmt *stmt;
    (void)state;
    scene.log->pMethods->xClose(scene.log);
    scene.log->pMethods = NULL;
    unlink(scene.log_path);
    assert_int_equal(
        sqlite3_open_v2(scene.path, &db, SQLITE_OPEN_READWRITE, sqlite_log_vfs()),
        SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                                  "PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = 10;"
                                  "CREATE TABLE t (a INTEGER PRIMARY KEY, b)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    unsigned before = fault_vfs.log_writes;
    sqlite3_exec(db, "INSERT INTO t VALUES (1, randomblob(5000)), (2, randomblob(5000))",
                 NULL, NULL, NULL);
    assert_int_equal(fault_vfs.log_writes - before, 1);
    sqlite3_exec(
        db,
        "BEGIN; WITH n(x) AS (SELECT 3 UNION ALL SELECT x + 1 FROM n WHERE x < 500)"
        " INSERT INTO t SELECT x, randomblob(3000) FROM n; UPDATE t SET b = a || b;"
        " DELETE FROM t WHERE a % 3 = 0; UPDATE t SET b = zeroblob(a); ROLLBACK;"
        "BEGIN; WITH n(x) AS (SELECT 3 UNION ALL SELECT x + 1 FROM n WHERE x < 500)"
        " INSERT INTO t SELECT x, randomblob(3000) FROM n; UPDATE t SET b = a || b;"
        " DELETE FROM t WHERE a % 3 = 0; UPDATE t SET b = zeroblob(a); COMMIT",
        NULL, NULL, NULL);
    assert_int_equal(sqlite3_open_v2(scene.path, &reader, SQLITE_OPEN_READONLY, NULL),
                     SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(reader,
                           "SELECT count(*), sum(length(b)), (SELECT quick_check"
                           " FROM pragma_quick_check) FROM t",
                           -1, &stmt, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(stmt, 0), 334);
    assert_int_equal(sqlite3_column_int(stmt, 1), 125250 - 3 * 166 * 167 / 2);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 2), "ok");
    sqlite3_finalize(stmt);
    sqlite3_close(reader);
    sqlite3_close(db);
}

static void copy_file(const char *from, const char *to)
{
    char bytes[PAGE];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    for (ssize_t len; (len = read(in, bytes, sizeof(bytes))) > 0;)
        assert_int_equal(write(out, bytes, (size_t)len), len);
    close(in);
    close(out);
}

static int count_rows(const char *path)
{
    sqlite3 *db;
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM t", -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int count = sqlite3_column_int(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return count;
}

/* The disk has space again, the next transaction has begun, then the process is killed. */
static void rejected_commit_is_missing_after_a_crash(void **state)
{
    char path[80], log_path[88];
    sqlite3 *db;
    (void)state;
    snprintf(path, sizeof(path), "%s/y.db", scene.dir);
    snprintf(log_path, sizeof(log_path), "%s-wal", path);
    scene.log->pMethods->xClose(scene.log);
    scene.log->pMethods = NULL;
    unlink(scene.log_path);
    sqlite3_open_v2(scene.path, &db, SQLITE_OPEN_READWRITE, sqlite_log_vfs());
    sqlite3_exec(
        db,
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        "PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a); INSERT INTO t VALUES (1)",
        NULL, NULL, NULL);
    sqlite3_exec(db, "BEGIN IMMEDIATE; INSERT INTO t VALUES (2)", NULL, NULL, NULL);
    fault_vfs.disk_is_full = true;
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_FULL);
    assert_true(sqlite3_get_autocommit(db));
    fault_vfs.disk_is_full = false;
    sqlite3_exec(db, "BEGIN IMMEDIATE; SELECT * FROM t; ROLLBACK", NULL, NULL, NULL);
    sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    copy_file(scene.path, path);
    copy_file(scene.log_path, log_path);
    sqlite3_close(db);
    assert_int_equal(count_rows(path), 1);
    unlink(log_path);
    unlink(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(held_back_frames_are_written_by_one_call),
        TEST(rewritten_frame_replaces_the_first),
        TEST(write_elsewhere_in_the_log_is_a_call_of_its_own),
        TEST(a_large_commit_is_written_in_large_pieces),
        TEST(reads_and_size_include_held_back_writes),
        TEST(full_disk_is_reported_by_the_sync_and_its_writes_are_dropped),
        TEST(read_that_fails_on_a_full_disk_loses_nothing),
        TEST(held_back_writes_are_written_when_the_log_is_closed),
        TEST(log_is_as_if_writes_were_not_held_back),
        TEST(transaction_is_one_write_and_may_spill),
        TEST(rejected_commit_is_missing_after_a_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
