/* site.h - the folder of a supervise role.
 *
 *   supervise.lock    held for as long as the process lives: one process per folder
 *   supervise.pids    its children; any still alive at the next start are killed
 *   supervise.runs    its runs, which the next process reports (left_runs.h)
 *   versions/ID/      ready versions
 *   runners/ID/       scratch of one runner: its HOME and TMPDIR, removed with it
 *
 * Every user may enter the folder, because runners are other users, but none may list
 * it. */
#pragma once

#include "base/buf.h"
#include "base/loop.h"
#include "os/process/process.h"

enum { SITE_PATH_MAX = 1024 };

struct site;

/* Takes the lock, and kills children left by an earlier process.
 *
 * Returns ERR_CONFLICT if another process has the lock, or ERR_INVALID with the reason. */
enum err site_open(struct loop *loop, const char *path, struct site **site,
                   struct failure *why);

/* Checks that other users can enter all folders above it. Returns ERR_INVALID and names the
 * one that they cannot enter. */
enum err site_check_way(const struct site *site, struct failure *why);

/* Removes scratch folders of earlier processes, off the loop. Call it before making any. */
void site_remove_left(struct site *site);

/* Stops removals; the rest of a large scratch folder is left to the next start. */
void site_stop(struct site *site);

/* Requires site_is_idle: no removal is in progress. Ignores NULL. */
void site_close(struct site *site);
bool site_is_idle(const struct site *site);

/* Returns the process that holds the lock of that folder; 0: none. */
pid_t site_holder(const char *path);

/* Return PATH, absolute and without links, and PATH/versions. */
const char *site_path(const struct site *site);
const char *site_versions(const struct site *site);

/* Record that a child was started or has ended. */
void site_add_child(struct site *site, pid_t pid);
void site_drop_child(struct site *site, pid_t pid);

/* Writes a list that the next process reads, to a temporary file that is then renamed, so
 * half a list is never read. It is not synced. An error is logged. */
void site_write_list(struct site *site, const char *name, struct slice text);

/* Appends the list. Appends nothing if the file is missing or is not a regular file. */
void site_read_list(struct site *site, const char *name, struct buf *out);

/* Creates a runner's scratch folder, accessible only to that user. *path is the caller's to
 * free. */
enum err site_make_scratch(struct site *site, const char *runner, struct process_user user,
                           char **path, struct failure *why);

/* Removes it, off the loop. Does not follow links, whatever its user does meanwhile. */
void site_remove_scratch(struct site *site, const char *runner);
