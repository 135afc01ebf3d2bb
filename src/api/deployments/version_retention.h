/* version_retention.h - decides which versions an environment keeps.
 *
 * It keeps the current version, the newest deployed ones (keep-versions of them), and
 * versions that an unfinished run executes on or is locked to. For any other, the row and
 * the version first record that it is not kept, and then its files are removed. Only the
 * newest deployments without a version are remembered. */
#pragma once

#include "api/deployments/deployment_commands.h"

enum { DEPLOYMENTS_REMEMBERED = 200 }; /* of one environment, without a version */

struct version_retention;

struct version_retention *version_retention_create(struct deployments *all);
/* Ignores NULL. */
void version_retention_destroy(struct version_retention *retention);

/* Schedules a check, because something was deployed or another version is now current. */
void version_retention_check_soon(struct version_retention *retention);

/* Begins no further checks. */
void version_retention_stop(struct version_retention *retention);

/* Removes the deployment's files; log_too: also its log. */
void version_remove_files(const struct deployment *deployment, bool log_too);

/* Records in its row that the deployment's version was dropped, and removes its files. */
void version_drop(struct deployment *deployment);
