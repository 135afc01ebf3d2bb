/* keeping.h - which versions an environment keeps.
 *
 * Kept is what is current, the newest of those that were deployed (keep-versions of them), and
 * what an unfinished run is executed by or locked to. Of the others row and version say first
 * that they are not kept, then their files go. Of deployments that have no version any more the
 * newest are remembered. */
#pragma once

#include "api/deployments/deployment_commands.h"

enum { DEPLOYMENTS_REMEMBERED = 200 }; /* of one environment, that have no version */

struct keeping;

struct keeping *keeping_create(struct deployments *all);
/* NULL is fine. */
void keeping_destroy(struct keeping *keeping);

/* Something was deployed, or another version is current: looks soon. */
void keeping_look_soon(struct keeping *keeping);

/* Nothing is begun any more. */
void keeping_stop(struct keeping *keeping);

/* Removes the files of the deployment; its log, too. */
void keeping_remove_files(const struct deployment *deployment, bool log_too);

/* The deployment's version is gone from memory: its row follows, and its files. */
void keeping_drop(struct deployment *deployment);
