/* sqlite_log.c - a SQLite file system (VFS) that combines writes to a log.
 *
 * SQLite writes a commit to its log page by page, and each page with two writes: 24 bytes
 * of header, then its content. Most of the cost is in the system calls; a group of thirty
 * triggers made fifty. Here the pieces are buffered, and written with one call:
 *
 *   write, write, … write          sync
 *     └── bytes[at … at + len) ──> one write, then the sync
 *
 * The buffer is an image of a part of the file, so a page that is written again replaces
 * its first version. Every operation except a write (a read, a sync, the size) flushes the
 * buffer first.
 *
 * If a sync or a write cannot flush the buffer, the buffer is discarded. SQLite then rolls
 * back the transaction. Data that it gave up must neither be found by a recovery, nor keep
 * smaller commits off a full disk. A read may fail in a transaction that continues; then
 * the buffer stays.
 *
 * SQLite's own file system opens the file and does all the work. This one only installs
 * another method table for a log file, and keeps its data after that of SQLite's file. */
#include "store/sqlite/sqlite_log.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>
#include <uv.h>

enum {
    GATHERED_BYTES = (128 << 10) - 1, /* largest single write of SQLite's file system */
};

struct log_file {
    sqlite3_io_methods methods;     /* SQLite's, except for the methods of this file */
    const sqlite3_io_methods *disk; /* SQLite's own */
    char *bytes;                    /* the buffer; NULL before the first write */
    sqlite3_int64 at;               /* offset of the buffer in the file */
    size_t len;
};

static uv_once_t once = UV_ONCE_INIT;
static sqlite3_vfs *disk_vfs;
static sqlite3_vfs log_vfs;

static struct log_file *log_of(sqlite3_file *file)
{
    return (struct log_file *)((char *)file + disk_vfs->szOsFile);
}

static int write_gathered(sqlite3_file *file)
{
    struct log_file *log = log_of(file);
    if (!log->len)
        return SQLITE_OK;
    int code = log->disk->xWrite(file, log->bytes, (int)log->len, log->at);
    if (code == SQLITE_OK)
        log->len = 0;
    return code;
}

/* For calls whose failure makes SQLite roll back the transaction. */
static int write_or_forget(sqlite3_file *file)
{
    int code = write_gathered(file);
    log_of(file)->len = 0;
    return code;
}

/* Returns true if the write continues or overlaps the buffer, and fits. */
static bool joins(const struct log_file *log, size_t len, sqlite3_int64 at)
{
    return at >= log->at && at <= log->at + (sqlite3_int64)log->len &&
           (size_t)(at - log->at) + len <= GATHERED_BYTES;
}

static int log_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at)
{
    struct log_file *log = log_of(file);
    if (!joins(log, (size_t)len, at)) {
        int code = write_or_forget(file);
        if (code != SQLITE_OK)
            return code;
        log->at = at;
    }
    if (!log->bytes)
        log->bytes = sqlite3_malloc(GATHERED_BYTES);
    if (!log->bytes || len > GATHERED_BYTES)
        return log->disk->xWrite(file, bytes, len, at);
    size_t from = (size_t)(at - log->at), end = from + (size_t)len;
    memcpy(log->bytes + from, bytes, (size_t)len);
    if (end > log->len)
        log->len = end;
    return SQLITE_OK;
}

static int log_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 at)
{
    int code = write_gathered(file);
    return code == SQLITE_OK ? log_of(file)->disk->xRead(file, bytes, len, at) : code;
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int code = write_gathered(file);
    return code == SQLITE_OK ? log_of(file)->disk->xTruncate(file, size) : code;
}

static int log_sync(sqlite3_file *file, int flags)
{
    int code = write_or_forget(file);
    return code == SQLITE_OK ? log_of(file)->disk->xSync(file, flags) : code;
}

static int log_file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    int code = write_gathered(file);
    return code == SQLITE_OK ? log_of(file)->disk->xFileSize(file, size) : code;
}

static int log_close(sqlite3_file *file)
{
    struct log_file *log = log_of(file);
    int code = write_or_forget(file);
    int closed = log->disk->xClose(file);
    sqlite3_free(log->bytes);
    log->bytes = NULL;
    return code == SQLITE_OK ? closed : code;
}

static int log_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags,
                    int *opened)
{
    (void)vfs;
    int code = disk_vfs->xOpen(disk_vfs, name, file, flags, opened);
    if (code != SQLITE_OK || !(flags & SQLITE_OPEN_WAL))
        return code;
    struct log_file *log = log_of(file);
    *log = (struct log_file){ .methods = *file->pMethods, .disk = file->pMethods };
    log->methods.xClose = log_close;
    log->methods.xRead = log_read;
    log->methods.xWrite = log_write;
    log->methods.xTruncate = log_truncate;
    log->methods.xSync = log_sync;
    log->methods.xFileSize = log_file_size;
    file->pMethods = &log->methods;
    return SQLITE_OK;
}

static void make(void)
{
    disk_vfs = sqlite3_vfs_find(NULL);
    if (!disk_vfs)
        return;
    log_vfs = *disk_vfs;
    log_vfs.zName = "runcast-log";
    log_vfs.pNext = NULL;
    log_vfs.szOsFile += (int)sizeof(struct log_file);
    log_vfs.xOpen = log_open;
    if (sqlite3_vfs_register(&log_vfs, 0) != SQLITE_OK)
        log_vfs.zName = NULL;
}

const char *sqlite_log_vfs(void)
{
    uv_once(&once, make);
    return log_vfs.zName;
}
