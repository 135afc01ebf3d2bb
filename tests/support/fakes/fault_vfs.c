/* fault_vfs.c - passes every call on to the real file system, or makes it fail. */
#include "tests/support/fakes/fault_vfs.h"

#include <sqlite3.h>
#include <string.h>
#include <uv.h>

struct fault_vfs fault_vfs;

struct file {
    sqlite3_file base;
    bool is_log;
    sqlite3_file real[]; /* as large as the real one requires */
};

static sqlite3_vfs *real_vfs;

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct file *)file)->real;
}

static const sqlite3_io_methods *methods_of(sqlite3_file *file)
{
    return real_of(file)->pMethods;
}

static int close_file(sqlite3_file *file)
{
    int code = methods_of(file) ? methods_of(file)->xClose(real_of(file)) : SQLITE_OK;
    fault_vfs.closed += !((struct file *)file)->is_log;
    return code;
}

static int read_file(sqlite3_file *file, void *to, int count, sqlite3_int64 offset)
{
    if (fault_vfs.read_delay_ms)
        uv_sleep((unsigned)fault_vfs.read_delay_ms);
    fault_vfs.read_bytes += count;
    return methods_of(file)->xRead(real_of(file), to, count, offset);
}

static int write_file(sqlite3_file *file, const void *from, int count, sqlite3_int64 offset)
{
    if (fault_vfs.disk_is_full)
        return SQLITE_FULL;
    if (((struct file *)file)->is_log) {
        fault_vfs.log_bytes = offset + count;
        fault_vfs.log_writes++;
    }
    return methods_of(file)->xWrite(real_of(file), from, count, offset);
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size)
{
    return methods_of(file)->xTruncate(real_of(file), size);
}

static void wait_for_copy(void)
{
    fault_vfs.copies++;
    for (int ms = 0; fault_vfs.copies_wait && ms < COPY_WAIT_MS; ms++)
        uv_sleep(1);
    fault_vfs.copied++;
}

static int sync_file(sqlite3_file *file, int flags)
{
    if (fault_vfs.sync_fails) {
        fault_vfs.failed_syncs++;
        return SQLITE_IOERR_FSYNC;
    }
    fault_vfs.syncs++;
    if (!((struct file *)file)->is_log)
        wait_for_copy();
    return fault_vfs.syncs_nothing ? SQLITE_OK
                                   : methods_of(file)->xSync(real_of(file), flags);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return methods_of(file)->xFileSize(real_of(file), size);
}

static int lock_file(sqlite3_file *file, int level)
{
    return methods_of(file)->xLock(real_of(file), level);
}

static int unlock_file(sqlite3_file *file, int level)
{
    return methods_of(file)->xUnlock(real_of(file), level);
}

static int is_reserved(sqlite3_file *file, int *result)
{
    return methods_of(file)->xCheckReservedLock(real_of(file), result);
}

static int control_file(sqlite3_file *file, int operation, void *arg)
{
    return methods_of(file)->xFileControl(real_of(file), operation, arg);
}

static int sector_size(sqlite3_file *file)
{
    return methods_of(file)->xSectorSize(real_of(file));
}

static int characteristics(sqlite3_file *file)
{
    return methods_of(file)->xDeviceCharacteristics(real_of(file));
}

static int map_shared(sqlite3_file *file, int page, int size, int extend,
                      void volatile **memory)
{
    return methods_of(file)->xShmMap(real_of(file), page, size, extend, memory);
}

static int lock_shared(sqlite3_file *file, int offset, int count, int flags)
{
    return methods_of(file)->xShmLock(real_of(file), offset, count, flags);
}

static void barrier(sqlite3_file *file)
{
    methods_of(file)->xShmBarrier(real_of(file));
}

static int unmap_shared(sqlite3_file *file, int remove)
{
    return methods_of(file)->xShmUnmap(real_of(file), remove);
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 2,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = write_file,
    .xTruncate = truncate_file,
    .xSync = sync_file,
    .xFileSize = file_size,
    .xLock = lock_file,
    .xUnlock = unlock_file,
    .xCheckReservedLock = is_reserved,
    .xFileControl = control_file,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = characteristics,
    .xShmMap = map_shared,
    .xShmLock = lock_shared,
    .xShmBarrier = barrier,
    .xShmUnmap = unmap_shared,
};

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *out_flags)
{
    (void)vfs;
    struct file *own = (struct file *)file;
    memset(own->real, 0, (size_t)real_vfs->szOsFile);
    own->is_log = flags & SQLITE_OPEN_WAL;
    int code = real_vfs->xOpen(real_vfs, name, own->real, flags, out_flags);
    file->pMethods = code == SQLITE_OK ? &file_methods : NULL;
    return code;
}

static int wait_for_lock(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    fault_vfs.waits++;
    return real_vfs->xSleep(real_vfs, us);
}

void fault_vfs_install(void)
{
    static sqlite3_vfs vfs;
    if (real_vfs)
        return;
    real_vfs = sqlite3_vfs_find(NULL);
    vfs = *real_vfs;
    vfs.zName = "fault";
    vfs.szOsFile = (int)sizeof(struct file) + real_vfs->szOsFile;
    vfs.xOpen = open_file;
    vfs.xSleep = wait_for_lock;
    sqlite3_vfs_register(&vfs, 1);
}
