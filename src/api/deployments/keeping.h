/* keeping.h - decides which versions an environment keeps.
 *
 * It keeps the current version, the newest that were deployed (keep-versions of them), and
 * versions that an unfinished run is executed by or locked to. For each other one, row and
 * version record first that it is not kept, and then its files are removed. Only the newest
 * deployments that no longer have a version are remembered. */
#pragma once

#include "api/deployments/deployment_commands.h"

enum { DEPLOYMENTS_REMEMBERED = 200 }; /* of one environment, without a version */

struct keeping;

struct keeping *keeping_create(struct deployments *all);
/* Ignores NULL. */
void keeping_destroy(struct keeping *keeping);

/* Looks soon, because something was deployed or another version is current. */
void keeping_look_soon(struct keeping *keeping);

/* Begins nothing any more. */
void keeping_stop(struct keeping *keeping);

/* Removes the files of the deployment; log_too: its log, too. */
void keeping_remove_files(const struct deployment *deployment, bool log_too);

/* Records in its row that the deployment's version was dropped, and removes its files. */
void keeping_drop(struct deployment *deployment);
