/* site.h - the folder that a supervise role has for itself.
 *
 *   supervise.lock    one of it at a time: held for as long as the process lives
 *   supervise.pids    its children; what is left of them at the next start is killed
 *   versions/ID/      ready versions
 *   runners/ID/       scratch of one runner: its HOME and TMPDIR, removed with it
 *
 * The folder may be entered by everybody, since runners are other users, but not be listed. */
#pragma once

#include "base/buf.h"
#include "base/loop.h"
#include "os/process/process.h"

enum { SITE_PATH_MAX = 1024 };

struct site;

/* Takes the lock, kills and removes what another life of it has left. ERR_CONFLICT: another
 * process has the lock. ERR_INVALID with the reason. */
enum err site_open(struct loop *loop, const char *path, struct site **site,
                   struct failure *why);

/* Where runners are other users: whether they can enter the folder from above. ERR_INVALID
 * names what they cannot. */
enum err site_check_way(const struct site *site, struct failure *why);

/* Removes off the loop what an earlier process has left; no scratch was made yet. */
void site_remove_left(struct site *site);

/* The role stops: a folder of scratch that takes long to remove is left to the next start. */
void site_stop(struct site *site);

/* Nothing is being removed any more: site_is_idle. NULL is fine. */
void site_close(struct site *site);
bool site_is_idle(const struct site *site);

/* The process that has the lock of that folder; 0: none. */
pid_t site_holder(const char *path);

/* PATH, absolute and without links; PATH/versions */
const char *site_path(const struct site *site);
const char *site_versions(const struct site *site);

/* Notes that a child begins or is gone. */
void site_add_child(struct site *site, pid_t pid);
void site_drop_child(struct site *site, pid_t pid);

/* Makes the folder of a runner, which only that user enters. path is the caller's. */
enum err site_make_scratch(struct site *site, const char *runner, struct process_user user,
                           char **path, struct failure *why);

/* Removes it off the loop. Links in it are not followed, whatever its user does meanwhile. */
void site_remove_scratch(struct site *site, const char *runner);
