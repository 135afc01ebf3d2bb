/* sqlite_log.h - combines a commit's writes to the write-ahead log into one. */
#pragma once

/* Returns the name of a VFS for sqlite3_open_v2; NULL (the default VFS) if it is
 * unavailable.
 *
 * It is the default VFS, except that writes to a log are buffered until something needs
 * them in the file. Only for connections with synchronous=FULL, whose log is synced before
 * other connections learn of a commit. For any thread. */
const char *sqlite_log_vfs(void);
