/* fault_vfs.h - SQLite's file system with faults, for this process.
 *
 * Every file that is opened after fault_vfs_install goes through it. The faults may be set
 * while other threads work. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { COPY_WAIT_MS = 20000 };

struct fault_vfs {
    atomic_bool sync_fails;   /* EIO */
    atomic_bool disk_is_full; /* ENOSPC for every write */
    atomic_int read_delay_ms;
    atomic_bool copies_wait;    /* syncs of files other than logs, up to COPY_WAIT_MS */
    atomic_bool syncs_nothing;  /* a sync succeeds at once: for tests that write a lot */
    atomic_uint copies, copied; /* number of such syncs that began, and that ended */
    atomic_uint closed;         /* files that are not logs, closed by their connections */
    atomic_uint waits;          /* for a lock that another connection holds */
    atomic_uint syncs;          /* successful syncs */
    atomic_uint failed_syncs;
    atomic_llong read_bytes; /* of all files */
    atomic_llong log_bytes;  /* the end of the last write to a -wal file */
    atomic_uint log_writes;  /* to -wal files */
};

extern struct fault_vfs fault_vfs;

/* Becomes the default; harmless if it already is. */
void fault_vfs_install(void);
