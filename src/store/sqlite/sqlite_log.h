/* sqlite_log.h - how the writer's write-ahead log reaches the file: in one piece a commit. */
#pragma once

/* The name of a file system for sqlite3_open_v2: the default one, but what is written into a log
 * is kept until something needs it in the file. Only for connections with synchronous=FULL, whose
 * log is synced before others are told of a commit. NULL: the default one, there is none of ours.
 * For any thread. */
const char *sqlite_log_vfs(void);
